//! Triggers: when a running agent compacts.

use retrace_events::History;
use retrace_events::tokens::{TokenCounter, Tokens};

use crate::config::{BadSetting, at_least_one, one_of_two};
use crate::sizes::anchored;

/// The context window of a model of which nobody knows it, in tokens.
pub(crate) const FALLBACK_WINDOW: u64 = 200_000;

/// When a strategy is to run: when more events count than `max_messages`, or the next request has more tokens than
/// `max_tokens` or that share of the window. Either suffices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trigger {
    pub(crate) max_messages: Option<usize>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_fraction: Option<f64>,
    pub(crate) window: Window,
}

/// The window that a share is taken of: the user's, else the model's, else a fallback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) own: Option<u64>,
    pub(crate) fallback: u64,
}

impl Trigger {
    /// Whether a history calls for the strategy; `known` is the window of the model.
    pub(crate) fn fires(&self, history: &History, known: Option<Tokens>, counter: &dyn TokenCounter) -> bool {
        self.max_messages.is_some_and(|most| history.n_counting() > most)
            || self.most_tokens(known).is_some_and(|most| anchored(counter, history) > most)
    }

    /// The most tokens before it fires, if it looks at tokens.
    pub(crate) fn most_tokens(&self, known: Option<Tokens>) -> Option<Tokens> {
        self.max_tokens.map(Tokens).or_else(|| Some(self.window.share(self.max_fraction?, known)))
    }

    /// Whether it looks at anything.
    pub(crate) fn is_set(&self) -> bool {
        self.max_messages.is_some() || self.max_tokens.is_some() || self.max_fraction.is_some()
    }

    pub(crate) fn check(&self) -> Result<(), BadSetting> {
        at_least_one("max_messages", self.max_messages)?;
        at_least_one("max_tokens", self.max_tokens)?;
        one_of_two("max_tokens", self.max_tokens.is_some(), "max_fraction", self.max_fraction.is_some())?;
        if let Some(fraction) = self.max_fraction {
            Window::check_share("max_fraction", fraction)?;
        }
        self.window.check()
    }

    /// As [`check`](Self::check), where a setting needs one that goes by tokens.
    pub(crate) fn check_tokens_set(&self, setting: &'static str) -> Result<(), BadSetting> {
        if self.max_tokens.is_none() && self.max_fraction.is_none() {
            return Err(BadSetting::new(setting, "is a share of the trigger: set `max_tokens` or `max_fraction`"));
        }
        self.check()
    }

    /// As [`check`](Self::check), where the strategy needs a trigger.
    pub(crate) fn check_set(&self) -> Result<(), BadSetting> {
        if !self.is_set() {
            return Err(BadSetting::new("max_messages", "is missing: set it, `max_tokens` or `max_fraction`"));
        }
        self.check()
    }
}

/// The keys of a trigger.
const KEYS: [&str; 3] = ["max_messages", "max_tokens", "max_fraction"];

/// Whether a warning is of a trigger, and of no interest where somebody else decides when a strategy runs.
pub(crate) fn is_of_trigger(warning: &BadSetting) -> bool {
    KEYS.contains(&warning.key)
}

impl Trigger {
    /// What to say where a strategy that keeps so many events, or at least so many tokens, sets off its own trigger. `by`
    /// names the setting that keeps them.
    pub(crate) fn set_off_by(&self, kept: Kept) -> Option<BadSetting> {
        match kept {
            Kept::Events { n, by } => {
                self.max_messages.filter(|most| n.saturating_add(EVENTS_OF_ROUND) > *most).map(|most| {
                    let problem = format!(
                        "is {most}, and {n} events stay (`{by}`): it runs at every request, and not now and then"
                    );
                    BadSetting::new("max_messages", problem)
                })
            }
            Kept::Tokens { n, by } => self.max_tokens.filter(|most| n >= *most).map(|most| {
                let problem = format!("is {most}, and at least {n} tokens stay (`{by}`): it runs at every request");
                BadSetting::new("max_tokens", problem)
            }),
        }
    }
}

/// A response and its results.
const EVENTS_OF_ROUND: usize = 2;

/// What a strategy keeps whatever the history.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept {
    Events { n: usize, by: &'static str },
    Tokens { n: u64, by: &'static str },
}

impl Window {
    /// A share of the window in tokens, at least one.
    pub(crate) fn share(&self, fraction: f64, known: Option<Tokens>) -> Tokens {
        let window = self.own.or(known.map(|tokens| tokens.0)).unwrap_or(self.fallback);
        Tokens(((window as f64 * fraction) as u64).max(1))
    }

    pub(crate) fn check(&self) -> Result<(), BadSetting> {
        at_least_one("context_window", self.own)?;
        at_least_one("fallback_context_window", Some(self.fallback))
    }

    pub(crate) fn check_share(key: &'static str, fraction: f64) -> Result<(), BadSetting> {
        if fraction > 0.0 && fraction <= 1.0 {
            Ok(())
        } else {
            Err(BadSetting::new(key, "is a share above 0, at most 1"))
        }
    }
}

/// A struct with the settings of a trigger in front of its own, so that a configuration has them all in one table.
macro_rules! with_trigger {
    ($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $(#[$meta])*
        pub struct $name {
            /// Compact when more than this many events count.
            pub max_messages: Option<usize>,
            /// Compact when the next request has more tokens than this.
            pub max_tokens: Option<u64>,
            /// As `max_tokens`, as a share of the context window.
            pub max_fraction: Option<f64>,
            /// The context window in tokens, whatever the model's is.
            pub context_window: Option<u64>,
            /// The context window where the model's is not known.
            pub fallback_context_window: u64,
            $($fields)*
        }

        impl $name {
            pub(crate) fn trigger(&self) -> $crate::trigger::Trigger {
                $crate::trigger::Trigger {
                    max_messages: self.max_messages,
                    max_tokens: self.max_tokens,
                    max_fraction: self.max_fraction,
                    window: $crate::trigger::Window {
                        own: self.context_window,
                        fallback: self.fallback_context_window,
                    },
                }
            }
        }
    };
}
pub(crate) use with_trigger;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use retrace_events::tokens::FourCharacters;
    use retrace_events::{Event, Outcome, ToolCall, ToolResult};
    use retrace_model::ScriptedModel;

    use super::*;
    use crate::{
        AskModel, ClampOversizedMessages, ClearToolResults, CompactContext, Compacted, FallbackCompaction,
        RelevanceCompaction, SlidingWindow, Strategy, SummarizingCompaction, TieredCompaction,
    };

    /// Whether a strategy runs at each of the last requests of a long run.
    fn runs_every_time(strategy: &dyn Strategy) -> bool {
        let mut history = History::from(vec![Event::request("go")]);
        let model = AskModel(ScriptedModel::new(vec!["so far"; 60]));
        let mut ran = Vec::new();
        for n in 0..60 {
            let call = ToolCall::new(n.to_string(), "read", "{}");
            history.push(Event::calls([call.clone()]));
            history.push(Event::results([ToolResult::text_result(&call, Outcome::Ok, "words ".repeat(9))]));
            let is_due = strategy.is_due(&history, None, &FourCharacters);
            if is_due
                && let Ok(Compacted::Changed(after)) =
                    pollster::block_on(strategy.compact(&history, &mut CompactContext::new(&model, 0)))
            {
                history = after;
            }
            ran.push(is_due);
        }
        ran[50..].iter().all(|ran| *ran)
    }

    #[test]
    fn what_is_warned_of_runs_at_every_request() {
        let mut n_warned = 0;
        for max in 1..14 {
            for keep in 0..10 {
                for flag in [false, true] {
                    let window = SlidingWindow {
                        max_messages: Some(max),
                        keep_messages: keep,
                        preserve_first_user_message: flag,
                        ..SlidingWindow::default()
                    };
                    let clear =
                        ClearToolResults { max_messages: Some(max), keep_pairs: keep, ..ClearToolResults::default() };
                    let summarizing = SummarizingCompaction {
                        max_messages: Some(max),
                        keep_messages: keep,
                        preserve_first_user_message: flag,
                        ..SummarizingCompaction::default()
                    };
                    let strategies: [&dyn Strategy; 3] = [&window, &clear, &summarizing];
                    for strategy in strategies {
                        let warned = strategy.warnings().iter().any(is_of_trigger);
                        assert!(!warned || runs_every_time(strategy), "{} {max} {keep} {flag}", strategy.kind());
                        n_warned += usize::from(warned);
                    }
                }
            }
        }
        assert!(n_warned > 300, "{n_warned}");
    }

    fn warnings(strategy: &dyn Strategy) -> Vec<String> {
        strategy.warnings().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_allowed_and_hardly_meant_is_said() {
        let tokens = SlidingWindow { max_tokens: Some(500), keep_tokens: Some(500), ..SlidingWindow::default() };
        assert_eq!(
            warnings(&tokens),
            ["`max_tokens` is 500, and at least 500 tokens stay (`keep_tokens`): it runs at every request"]
        );
        assert_eq!(warnings(&SlidingWindow { keep_tokens: Some(499), ..tokens.clone() }), [""; 0]);
        let judged = RelevanceCompaction { max_tokens: Some(8_000), ..RelevanceCompaction::default() };
        assert!(warnings(&judged)[0].contains("at least 8000 tokens stay"));
        let none = ClearToolResults { keep_pairs: 0, max_tokens: Some(9), ..ClearToolResults::default() };
        assert!(warnings(&none)[0].starts_with("`keep_pairs` is 0"));
        let clamp = ClampOversizedMessages { max_part_tokens: Some(1000), ..ClampOversizedMessages::default() };
        assert!(warnings(&clamp)[0].starts_with("`max_part_tokens` is below the 4038 characters"));
        assert_eq!(warnings(&ClampOversizedMessages { max_part_tokens: Some(1010), ..clamp.clone() }), [""; 0]);
        // Nobody asks for the triggers of tiers and links.
        let parts: [Arc<dyn Strategy>; 3] = [Arc::new(tokens), Arc::new(clamp), Arc::new(none)];
        for of_parts in
            [warnings(&TieredCompaction::new(parts.clone(), 9)), warnings(&FallbackCompaction::new(parts.clone()))]
        {
            assert!(of_parts.len() == 2 && of_parts[1].starts_with("`keep_pairs`"), "{of_parts:?}");
        }
    }
}
