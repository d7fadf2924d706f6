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

    /// As [`check`](Self::check), where the strategy needs a trigger.
    pub(crate) fn check_set(&self) -> Result<(), BadSetting> {
        if !self.is_set() {
            return Err(BadSetting::new("max_messages", "is missing: set it, `max_tokens` or `max_fraction`"));
        }
        self.check()
    }
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
