//! The menu as a configuration names it.

use std::sync::Arc;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

use crate::trigger::FALLBACK_WINDOW;
use crate::{
    ClampOversizedMessages, ClearToolResults, DeduplicateFileReads, FallbackCompaction, Identity, LimitWarner,
    RelevanceCompaction, SlidingWindow, Strategy, Summarize, SummarizingCompaction, TailWindow, TieredCompaction,
};

/// A strategy by its kind and settings, as in a configuration file. What is read is checked.
///
/// ```
/// use retrace_strategies::StrategyConfig;
///
/// let config: StrategyConfig = serde_json::from_str(r#"{"kind": "tail_window", "target": 8}"#)?;
/// assert_eq!(config.build().kind(), "tail_window");
///
/// let error = serde_json::from_str::<StrategyConfig>(r#"{"kind": "sliding_window"}"#).unwrap_err();
/// assert!(error.to_string().starts_with("`max_messages` is missing"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Settings")]
pub struct StrategyConfig(Settings);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Settings {
    Identity(Identity),
    TailWindow(TailWindow),
    Summarize(Summarize),
    Summarizing(SummarizingCompaction),
    Relevance(RelevanceCompaction),
    ClampOversized(ClampOversizedMessages),
    SlidingWindow(SlidingWindow),
    ClearToolResults(ClearToolResults),
    DeduplicateFileReads(DeduplicateFileReads),
    Tiered(Tiers),
    LimitWarner(LimitWarner),
    Fallback(Chain),
}

/// The settings of [`TieredCompaction`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tiers {
    tiers: Vec<StrategyConfig>,
    target_tokens: Option<u64>,
    target_fraction: Option<f64>,
    context_window: Option<u64>,
    fallback_context_window: u64,
}

/// The settings of [`FallbackCompaction`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Chain {
    chain: Vec<StrategyConfig>,
    max_tokens: Option<u64>,
    max_fraction: Option<f64>,
    context_window: Option<u64>,
    fallback_context_window: u64,
    background_start: Option<f64>,
}

impl Default for Tiers {
    fn default() -> Self {
        Self {
            tiers: Vec::new(),
            target_tokens: None,
            target_fraction: None,
            context_window: None,
            fallback_context_window: FALLBACK_WINDOW,
        }
    }
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            chain: Vec::new(),
            max_tokens: None,
            max_fraction: None,
            context_window: None,
            fallback_context_window: FALLBACK_WINDOW,
            background_start: None,
        }
    }
}

impl StrategyConfig {
    /// Every kind of the menu, as a configuration names it.
    pub const KINDS: [&str; 12] = [
        "identity",
        "tail_window",
        "summarize",
        "summarizing",
        "relevance",
        "clamp_oversized",
        "sliding_window",
        "clear_tool_results",
        "deduplicate_file_reads",
        "tiered",
        "limit_warner",
        "fallback",
    ];

    /// A strategy of this kind, its settings read from what comes without the `kind`. Unlike reading the whole at once,
    /// an error keeps its place in the source.
    ///
    /// # Errors
    /// When there is no such kind, or the settings do not fit it.
    pub fn of_kind<'de, D: Deserializer<'de>>(kind: &str, settings: D) -> Result<Self, D::Error> {
        let settings = match kind {
            "identity" => Deserialize::deserialize(settings).map(Settings::Identity),
            "tail_window" => Deserialize::deserialize(settings).map(Settings::TailWindow),
            "summarize" => Deserialize::deserialize(settings).map(Settings::Summarize),
            "summarizing" => Deserialize::deserialize(settings).map(Settings::Summarizing),
            "relevance" => Deserialize::deserialize(settings).map(Settings::Relevance),
            "clamp_oversized" => Deserialize::deserialize(settings).map(Settings::ClampOversized),
            "sliding_window" => Deserialize::deserialize(settings).map(Settings::SlidingWindow),
            "clear_tool_results" => Deserialize::deserialize(settings).map(Settings::ClearToolResults),
            "deduplicate_file_reads" => Deserialize::deserialize(settings).map(Settings::DeduplicateFileReads),
            "tiered" => Deserialize::deserialize(settings).map(Settings::Tiered),
            "limit_warner" => Deserialize::deserialize(settings).map(Settings::LimitWarner),
            "fallback" => Deserialize::deserialize(settings).map(Settings::Fallback),
            _ => {
                let kinds = Self::KINDS.join(", ");
                return Err(D::Error::custom(format_args!("unknown kind `{kind}`, expected one of {kinds}")));
            }
        };
        Self::try_from(settings?).map_err(D::Error::custom)
    }

    /// The settings of a kind with their defaults; none where all must be given.
    pub(crate) fn defaults(kind: &str) -> serde_json::Map<String, serde_json::Value> {
        let json = match kind {
            "summarizing" => serde_json::to_value(SummarizingCompaction::default()),
            "relevance" => serde_json::to_value(RelevanceCompaction::default()),
            "clamp_oversized" => serde_json::to_value(ClampOversizedMessages::default()),
            "sliding_window" => serde_json::to_value(SlidingWindow::default()),
            "clear_tool_results" => serde_json::to_value(ClearToolResults::default()),
            "deduplicate_file_reads" => serde_json::to_value(DeduplicateFileReads::default()),
            "tiered" => serde_json::to_value(Tiers::default()),
            "limit_warner" => serde_json::to_value(LimitWarner::default()),
            "fallback" => serde_json::to_value(Chain::default()),
            "summarize" => Ok(serde_json::json!({"model": null})),
            _ => Ok(serde_json::json!({})),
        };
        match json {
            Ok(serde_json::Value::Object(settings)) => settings,
            _ => serde_json::Map::new(),
        }
    }

    /// The strategy.
    pub fn build(self) -> Arc<dyn Strategy> {
        match self.0 {
            Settings::Identity(strategy) => Arc::new(strategy),
            Settings::TailWindow(strategy) => Arc::new(strategy),
            Settings::Summarize(strategy) => Arc::new(strategy),
            Settings::Summarizing(strategy) => Arc::new(strategy),
            Settings::Relevance(strategy) => Arc::new(strategy),
            Settings::ClampOversized(strategy) => Arc::new(strategy),
            Settings::SlidingWindow(strategy) => Arc::new(strategy),
            Settings::ClearToolResults(strategy) => Arc::new(strategy),
            Settings::DeduplicateFileReads(strategy) => Arc::new(strategy),
            Settings::Tiered(tiers) => Arc::new(tiers.build()),
            Settings::LimitWarner(strategy) => Arc::new(strategy),
            Settings::Fallback(chain) => Arc::new(chain.build()),
        }
    }

    /// As [`build`](Self::build), with these in place of the tiers of a `tiered` or the links of a `fallback`: such as are
    /// of no kind of the menu. Other kinds have none, and do not look at them.
    pub fn build_with(self, parts: Vec<Arc<dyn Strategy>>) -> Arc<dyn Strategy> {
        match self.0 {
            Settings::Tiered(tiers) => Arc::new(TieredCompaction { tiers: parts, ..tiers.build() }),
            Settings::Fallback(chain) => Arc::new(FallbackCompaction { chain: parts, ..chain.build() }),
            settings => Self(settings).build(),
        }
    }

    /// The setting of a kind that lists other strategies, if it has one.
    pub fn parts_of(kind: &str) -> Option<&'static str> {
        match kind {
            "tiered" => Some("tiers"),
            "fallback" => Some("chain"),
            _ => None,
        }
    }
}

impl TryFrom<Settings> for StrategyConfig {
    type Error = BadSetting;

    fn try_from(settings: Settings) -> Result<Self, BadSetting> {
        match &settings {
            Settings::Identity(_) | Settings::TailWindow(_) | Settings::Summarize(_) => Ok(()),
            Settings::Summarizing(strategy) => strategy.check(),
            Settings::Relevance(strategy) => strategy.check(),
            Settings::ClampOversized(strategy) => strategy.check(),
            Settings::SlidingWindow(strategy) => strategy.check(),
            Settings::ClearToolResults(strategy) => strategy.check(),
            Settings::DeduplicateFileReads(strategy) => strategy.check(),
            Settings::Tiered(tiers) => tiers.clone().build().check(),
            Settings::LimitWarner(strategy) => strategy.check(),
            Settings::Fallback(chain) => chain.clone().build().check(),
        }?;
        Ok(Self(settings))
    }
}

impl Tiers {
    fn build(self) -> TieredCompaction {
        let Self { tiers, target_tokens, target_fraction, context_window, fallback_context_window } = self;
        let tiers = tiers.into_iter().map(StrategyConfig::build).collect();
        TieredCompaction { tiers, target_tokens, target_fraction, context_window, fallback_context_window }
    }
}

impl Chain {
    fn build(self) -> FallbackCompaction {
        let Self { chain, max_tokens, max_fraction, context_window, fallback_context_window, background_start } = self;
        let chain = chain.into_iter().map(StrategyConfig::build).collect();
        FallbackCompaction {
            chain,
            max_tokens,
            max_fraction,
            context_window,
            fallback_context_window,
            background_start,
        }
    }
}

/// A setting that cannot be used, or hardly as it is meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` {problem}")]
pub struct BadSetting {
    /// Its key.
    pub key: &'static str,
    /// What is wrong with it, and what to do.
    pub problem: String,
}

impl BadSetting {
    pub(crate) fn new(key: &'static str, problem: impl Into<String>) -> Self {
        Self { key, problem: problem.into() }
    }
}

/// Refuses a 0.
pub(crate) fn at_least_one<N: PartialEq + From<u8>>(key: &'static str, number: Option<N>) -> Result<(), BadSetting> {
    if number == Some(N::from(0)) { Err(BadSetting::new(key, "is 0, and must be at least 1")) } else { Ok(()) }
}

/// Refuses both.
pub(crate) fn one_of_two(key: &'static str, is_set: bool, other: &str, other_is_set: bool) -> Result<(), BadSetting> {
    if is_set && other_is_set {
        Err(BadSetting::new(key, format!("and `{other}` are both set: set one")))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_in_both_ways() {
        for kind in StrategyConfig::KINDS {
            let settings = match kind {
                "identity" => "{}",
                "tail_window" | "summarize" => r#"{"target": 3}"#,
                "clamp_oversized" => r#"{"max_part_chars": 9}"#,
                "deduplicate_file_reads" => r#"{"file_key": [{"tool": "read", "args": ["path"]}]}"#,
                "tiered" => r#"{"tiers": [{"kind": "identity"}], "target_tokens": 9}"#,
                "limit_warner" => r#"{"max_iterations": 9}"#,
                "fallback" => r#"{"chain": [{"kind": "identity"}]}"#,
                "relevance" => r#"{"max_tokens": 9}"#,
                _ => r#"{"max_messages": 9}"#,
            };
            let mut json = serde_json::Deserializer::from_str(settings);
            let apart = StrategyConfig::of_kind(kind, &mut json).unwrap();
            let mut whole: serde_json::Value = serde_json::from_str(settings).unwrap();
            whole["kind"] = kind.into();
            assert_eq!(serde_json::from_value::<StrategyConfig>(whole).unwrap(), apart);
            assert_eq!(apart.build().kind(), kind);
        }
        let mut json = serde_json::Deserializer::from_str("{}");
        let error = StrategyConfig::of_kind("tail", &mut json).unwrap_err().to_string();
        assert!(error.contains("`tail`") && error.contains("tail_window"), "{error}");
    }

    #[test]
    fn what_is_valid_agrees_with_the_vectors() {
        for row in retrace_testing::vectors::rows("strategies/config.jsonl") {
            let read = serde_json::from_value::<StrategyConfig>(row["strategy"].clone());
            assert_eq!(read.is_ok(), row["valid"] == true, "{}: {read:?}", row["name"]);
        }
    }
}
