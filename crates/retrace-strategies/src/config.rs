//! The menu as a configuration names it.

use std::sync::Arc;

use serde::Deserialize;

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
#[derive(Clone, Debug, PartialEq, Deserialize)]
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
    /// The strategy.
    pub fn build(self) -> Arc<dyn Strategy> {
        match self {
            Self::Identity(strategy) => Arc::new(strategy),
            Self::TailWindow(strategy) => Arc::new(strategy),
            Self::Summarize(strategy) => Arc::new(strategy),
        }
    }
}
