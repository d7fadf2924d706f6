//! The menu as a configuration names it.

use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error};

use crate::{Identity, Strategy, Summarize, TailWindow};

/// A strategy by its kind and parameters, as in a configuration file:
///
/// ```
/// use retrace_strategies::StrategyConfig;
///
/// let config: StrategyConfig = serde_json::from_str(r#"{"kind": "tail_window", "target": 8}"#)?;
/// assert_eq!(config.build().kind(), "tail_window");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StrategyConfig {
    /// See [`Identity`].
    Identity(Identity),
    /// See [`TailWindow`].
    TailWindow(TailWindow),
    /// See [`Summarize`].
    Summarize(Summarize),
}

impl StrategyConfig {
    /// Every kind of the menu, as a configuration names it.
    pub const KINDS: [&str; 3] = ["identity", "tail_window", "summarize"];

    /// A strategy of this kind, its parameters read from what comes without the `kind`. Unlike reading the whole at
    /// once, an error keeps its place in the source.
    ///
    /// # Errors
    /// When there is no such kind, or the parameters do not fit it.
    pub fn of_kind<'de, D: Deserializer<'de>>(kind: &str, parameters: D) -> Result<Self, D::Error> {
        match kind {
            "identity" => Deserialize::deserialize(parameters).map(Self::Identity),
            "tail_window" => Deserialize::deserialize(parameters).map(Self::TailWindow),
            "summarize" => Deserialize::deserialize(parameters).map(Self::Summarize),
            _ => {
                Err(D::Error::custom(format_args!("unknown kind `{kind}`, expected one of {}", Self::KINDS.join(", "))))
            }
        }
    }

    /// The strategy.
    pub fn build(self) -> Arc<dyn Strategy> {
        match self {
            Self::Identity(strategy) => Arc::new(strategy),
            Self::TailWindow(strategy) => Arc::new(strategy),
            Self::Summarize(strategy) => Arc::new(strategy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_in_both_ways() {
        for kind in StrategyConfig::KINDS {
            let parameters = if kind == "identity" { "{}" } else { r#"{"target": 3}"# };
            let mut json = serde_json::Deserializer::from_str(parameters);
            let apart = StrategyConfig::of_kind(kind, &mut json).unwrap();
            let mut whole: serde_json::Value = serde_json::from_str(parameters).unwrap();
            whole["kind"] = kind.into();
            assert_eq!(serde_json::from_value::<StrategyConfig>(whole).unwrap(), apart);
            assert_eq!(apart.build().kind(), kind);
        }
        let mut json = serde_json::Deserializer::from_str("{}");
        let error = StrategyConfig::of_kind("tail", &mut json).unwrap_err().to_string();
        assert!(error.contains("`tail`") && error.contains("tail_window"), "{error}");
    }
}
