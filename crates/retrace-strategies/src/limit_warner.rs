//! `limit_warner`: a warning behind the history, no rewriting. Cost: none. Known from pydantic-ai-harness.

use std::fmt::Write as _;

use futures_core::future::BoxFuture;
use retrace_events::tokens::{TokenCounter, Tokens};
use retrace_events::{Event, History, Part, Request};
use serde::{Deserialize, Serialize};

use crate::config::{BadSetting, at_least_one, one_of_two};
use crate::context::{CompactContext, RunSoFar};
use crate::sizes::anchored;
use crate::strategy::{Business, CompactError, Compacted, Strategy};
use crate::trigger::{FALLBACK_WINDOW, Window};

/// How a part of its own is marked.
const ORIGIN: &str = "limit_warner";

/// Appends one warning when a run comes close to its limits. The warning is sent with the next request only, and what
/// was sent before is never changed, so provider caches and signed reasoning stay good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitWarner {
    /// The most model calls of the run, those of compactions included.
    pub max_iterations: Option<u64>,
    /// The most tokens of a request.
    pub max_context_tokens: Option<u64>,
    /// As `max_context_tokens`, as a share of the context window.
    pub max_context_fraction: Option<f64>,
    /// The context window in tokens, whatever the model's is.
    pub context_window: Option<u64>,
    /// The context window where the model's is not known.
    pub fallback_context_window: u64,
    /// The most tokens of all model calls of the run together.
    pub max_total_tokens: Option<u64>,
    /// The limits that are warned of; all that are set where none are named.
    pub warn_on: Option<Vec<WarnOn>>,
    /// The share of a limit from which on it is warned of.
    pub warning_threshold: f64,
    /// So many model calls left are critical.
    pub critical_remaining_iterations: u64,
}

/// A limit that can be warned of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarnOn {
    /// `max_iterations`.
    Iterations,
    /// `max_context_tokens` or `max_context_fraction`.
    ContextWindow,
    /// `max_total_tokens`.
    TotalTokens,
}

/// A limit that a run is close to.
struct Close {
    on: WarnOn,
    used: u64,
    limit: u64,
}

impl Default for LimitWarner {
    fn default() -> Self {
        Self {
            max_iterations: None,
            max_context_tokens: None,
            max_context_fraction: None,
            context_window: None,
            fallback_context_window: FALLBACK_WINDOW,
            max_total_tokens: None,
            warn_on: None,
            warning_threshold: 0.7,
            critical_remaining_iterations: 3,
        }
    }
}

impl LimitWarner {
    pub(crate) fn check(&self) -> Result<(), BadSetting> {
        at_least_one("max_iterations", self.max_iterations)?;
        at_least_one("max_context_tokens", self.max_context_tokens)?;
        at_least_one("max_total_tokens", self.max_total_tokens)?;
        let (tokens, fraction) = (self.max_context_tokens.is_some(), self.max_context_fraction.is_some());
        one_of_two("max_context_tokens", tokens, "max_context_fraction", fraction)?;
        if let Some(fraction) = self.max_context_fraction {
            Window::check_share("max_context_fraction", fraction)?;
        }
        self.window().check()?;
        let is_set = |on: &WarnOn| match on {
            WarnOn::Iterations => self.max_iterations.is_some(),
            WarnOn::ContextWindow => tokens || fraction,
            WarnOn::TotalTokens => self.max_total_tokens.is_some(),
        };
        if ![WarnOn::Iterations, WarnOn::ContextWindow, WarnOn::TotalTokens].iter().any(is_set) {
            let problem = "is missing: set it, `max_context_tokens`, `max_context_fraction` or `max_total_tokens`";
            return Err(BadSetting::new("max_iterations", problem));
        }
        match &self.warn_on {
            Some(on) if on.is_empty() => {
                return Err(BadSetting::new("warn_on", "is empty: leave it out to warn of every limit that is set"));
            }
            Some(on) if !on.iter().all(is_set) => {
                return Err(BadSetting::new("warn_on", "names a limit that is not set"));
            }
            _ => {}
        }
        Window::check_share("warning_threshold", self.warning_threshold)
    }

    fn window(&self) -> Window {
        Window { own: self.context_window, fallback: self.fallback_context_window }
    }

    /// What is to be said before the next request, if anything is.
    fn warning(
        &self,
        history: &History,
        run: RunSoFar,
        window: Option<Tokens>,
        counter: &dyn TokenCounter,
    ) -> Option<String> {
        let newest = history.events().rev().find(|event| event.counts())?;
        let has_warned =
            !newest.content().is_empty() && newest.content().iter().all(|part| part.marks.origin() == Some(ORIGIN));
        if matches!(newest, Event::Response(_)) || has_warned {
            return None;
        }
        let close = self.close(history, run, window, counter);
        (!close.is_empty()).then(|| self.text(&close))
    }

    fn close(
        &self,
        history: &History,
        run: RunSoFar,
        window: Option<Tokens>,
        counter: &dyn TokenCounter,
    ) -> Vec<Close> {
        let context =
            self.max_context_tokens.or_else(|| Some(self.window().share(self.max_context_fraction?, window).0));
        let limits = [
            (WarnOn::Iterations, self.max_iterations),
            (WarnOn::ContextWindow, context),
            (WarnOn::TotalTokens, self.max_total_tokens),
        ];
        let is_wanted = |on: WarnOn| self.warn_on.as_ref().is_none_or(|wanted| wanted.contains(&on));
        let set = limits.into_iter().filter_map(|(on, limit)| Some((on, limit?))).filter(|(on, _)| is_wanted(*on));
        let close = set.map(|(on, limit)| {
            let used = match on {
                WarnOn::Iterations => run.n_requests,
                WarnOn::ContextWindow => anchored(counter, history).0,
                WarnOn::TotalTokens => run.total_tokens.0,
            };
            Close { on, used, limit }
        });
        close.filter(|close| close.share() >= self.warning_threshold).collect()
    }

    fn text(&self, close: &[Close]) -> String {
        let is_critical = close.iter().any(|close| match close.on {
            WarnOn::Iterations => close.remaining() <= self.critical_remaining_iterations,
            _ => close.used >= close.limit,
        });
        let (severity, advice) = match is_critical {
            true => ("CRITICAL", "Finish now; call no more tools."),
            false => ("URGENT", "Start to wrap up."),
        };
        let mut text = format!("{severity}: this run is close to its limits.\n");
        for close in close {
            let what = match close.on {
                WarnOn::Iterations => "model calls",
                WarnOn::ContextWindow => "context tokens",
                WarnOn::TotalTokens => "tokens in total",
            };
            let percent = (close.share() * 100.0).round_ties_even();
            let (used, limit, left) = (close.used, close.limit, close.remaining());
            // Writing to a text cannot fail.
            let _ = writeln!(text, "- {used} of {limit} {what} ({percent}%), {left} left");
        }
        text + advice
    }
}

impl Close {
    fn share(&self) -> f64 {
        self.used as f64 / self.limit as f64
    }

    fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

impl Strategy for LimitWarner {
    fn kind(&self) -> &'static str {
        "limit_warner"
    }

    fn business(&self) -> Business {
        Business::Keeps
    }

    fn is_due(&self, _: &History, _: Option<Tokens>, _: &dyn TokenCounter) -> bool {
        // It looks for itself, and costs nothing.
        true
    }

    fn compact<'a>(
        &'a self,
        history: &'a History,
        cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        let compacted = self.warning(history, cx.run, cx.window, cx.counter).map_or(Compacted::Unchanged, |text| {
            let mut part = Part::text(text);
            part.marks.set_origin(ORIGIN);
            part.marks.set_scope("request");
            let mut warned = history.clone();
            warned.push(Event::Request(Request { content: [part].into(), ..Request::default() }));
            Compacted::Changed(warned)
        });
        Box::pin(std::future::ready(Ok(compacted)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_agree_with_the_vectors() {
        for row in crate::vectors::read("strategies/limit_warner.jsonl") {
            let strategy: LimitWarner = row.strategy();
            let mut cx = CompactContext::without_model();
            cx.run = row.run_so_far();
            row.check_output(pollster::block_on(strategy.compact(&row.input, &mut cx)).unwrap());
        }
    }
}
