//! The menu as people read it: what each strategy costs and does, and how it is set.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::StrategyConfig;

/// A strategy of the menu.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MenuEntry {
    /// Its kind, as a configuration names it.
    pub kind: &'static str,
    /// What it costs.
    pub cost: &'static str,
    /// What it does.
    pub does: &'static str,
    /// When to reach for it.
    pub reach_for: &'static str,
    /// Where it is known from.
    pub known_from: &'static str,
    /// Its settings with their defaults; null for one that is not set unless the user does, or has no default.
    pub defaults: Map<String, Value>,
}

const AG2: &str = "AG2";
const HARNESS: &str = "pydantic-ai-harness";

/// A row of the menu.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static [&'static str]);

/// Kind, cost, what it does, when to reach for it, where it is known from, and the settings that have no default.
#[rustfmt::skip]
const MENU: [Row; StrategyConfig::KINDS.len()] = [
    ("identity", "none", "nothing", "a control is wanted: its delta is the noise floor", "statistics", &[]),
    ("tail_window", "none", "keeps the last N events", "old context is worthless", AG2, &["target"]),
    ("summarize", "1 call", "one summary, then the last N events", "a baseline with a model is wanted", AG2, &["target"]),
    ("summarizing", "1 call", "a structured summary, updated from one pass to the next", "old context matters but must shrink", HARNESS, &[]),
    ("relevance", "1 call for every few new steps, 1 for a summary", "keeps, reduces or drops each older step, as a judge ranks it", "some old results are needed word for word, others never again", HARNESS, &[]),
    ("clamp_oversized", "none", "cuts the middle out of one huge part of a response", "one runaway generation fills the window", HARNESS, &[]),
    ("sliding_window", "none", "drops the oldest events, keeps the task", "only recent rounds matter", HARNESS, &[]),
    ("clear_tool_results", "none", "blanks old tool results in place", "results dominate and can be fetched again", HARNESS, &[]),
    ("deduplicate_file_reads", "none", "blanks reads that a newer read replaces", "files are read again and again", HARNESS, &[]),
    ("tiered", "escalates", "runs tiers in order until the history fits", "a sensible default is wanted", HARNESS, &[]),
    ("limit_warner", "none", "appends a warning", "the agent should wrap up, not be rewritten", HARNESS, &[]),
    ("fallback", "that of its chain", "the next strategy when one fails", "a summary may fail and the run must go on", HARNESS, &[]),
];

/// The whole menu, in the order of [`StrategyConfig::KINDS`].
pub fn menu() -> Vec<MenuEntry> {
    let entry = |(kind, cost, does, reach_for, known_from, required): Row| {
        let mut defaults = StrategyConfig::defaults(kind);
        defaults.extend(required.iter().map(|key| ((*key).to_owned(), Value::Null)));
        MenuEntry { kind, cost, does, reach_for, known_from, defaults }
    };
    MENU.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_is_on_the_menu_with_exactly_its_settings() {
        let menu = menu();
        assert_eq!(menu.iter().map(|entry| entry.kind).collect::<Vec<_>>(), StrategyConfig::KINDS);
        for MenuEntry { kind, defaults, .. } in menu {
            // The error names the settings that there are.
            let unknown = serde_json::json!({"no_such_setting": 1});
            let error = StrategyConfig::of_kind(kind, unknown).unwrap_err().to_string();
            let named: BTreeSet<_> = error.split('`').skip(3).step_by(2).collect();
            assert_eq!(named, defaults.keys().map(String::as_str).collect(), "{kind}: {error}");
        }
    }
}
