//! `clear_tool_results`: old results blanked in place. Cost: none. Known from pydantic-ai-harness.

use std::collections::BTreeSet;

use futures_core::future::BoxFuture;
use retrace_events::pairing::pair;
use retrace_events::tokens::{TokenCounter, Tokens, count_units};
use retrace_events::{Event, History, Outcome};
use serde::{Deserialize, Serialize};

use crate::config::BadSetting;
use crate::context::CompactContext;
use crate::edits::{Edits, is_blank};
use crate::sizes::anchored;
use crate::strategy::{Business, CompactError, Compacted, Strategy};
use crate::trigger::{FALLBACK_WINDOW, Kept, with_trigger};

with_trigger! {
    /// Blanks the results of all answered calls but the last `keep_pairs`, each result by itself; those of a round of
    /// several count one by one. Nothing is removed, so no call loses its result. A result that says that there is no such
    /// tool is neither counted nor blanked.
    ///
    /// Its trigger by events counts only those after the newest blanked result, so that it does not blank one more result
    /// at each request and spoil the provider's cache each time. At or below `2 · keep_pairs` it does so all the same.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ClearToolResults {
        /// How many of the newest answered calls keep their results.
        pub keep_pairs: usize,
        /// What stands in for a result.
        pub placeholder: String,
        /// Tools whose results are never blanked. They keep their places among the kept ones.
        pub exclude_tools: BTreeSet<String>,
        /// Whether the arguments of a call go with its result.
        pub clear_tool_inputs: bool,
        /// Leaves the history alone where fewer tokens than this would be saved; 0 never makes it longer.
        pub min_clear_tokens: Option<u64>,
    }
}

impl Default for ClearToolResults {
    fn default() -> Self {
        Self {
            max_messages: None,
            max_tokens: None,
            max_fraction: None,
            context_window: None,
            fallback_context_window: FALLBACK_WINDOW,
            keep_pairs: 3,
            placeholder: "[tool result cleared]".to_owned(),
            exclude_tools: BTreeSet::new(),
            clear_tool_inputs: false,
            min_clear_tokens: None,
        }
    }
}

impl ClearToolResults {
    pub(crate) fn check(&self) -> Result<(), BadSetting> {
        self.trigger().check_set()
    }

    fn clear(&self, history: &History, counter: &dyn TokenCounter) -> Compacted {
        let mut calls = pair(history.events()).calls;
        calls.retain(|call| call.answer.is_some_and(|answer| answer.result.outcome != Outcome::NotFound));
        calls.sort_by_key(|call| call.answer.map(|answer| (answer.event, answer.index)));
        calls.truncate(calls.len().saturating_sub(self.keep_pairs));
        let mut edits = Edits::of(history, &self.placeholder);
        for call in &calls {
            let Some(answer) = call.answer.filter(|_| !self.exclude_tools.contains(&*call.call.name)) else { continue };
            if !is_blank(answer.result, &self.placeholder) {
                edits.blank(answer.event, answer.index);
            }
            if self.clear_tool_inputs && call.call.arguments != "{}" {
                edits.replace(call.event, call.part, "{}");
            }
        }
        match edits.finish() {
            Some(cleared) if self.is_worth(history, &cleared, counter) => Compacted::Changed(cleared),
            _ => Compacted::Unchanged,
        }
    }

    fn is_worth(&self, before: &History, after: &History, counter: &dyn TokenCounter) -> bool {
        let Some(least) = self.min_clear_tokens else { return true };
        let tokens = |history: &History| counter.tokens(count_units(counter, history.events())).0;
        tokens(before).checked_sub(tokens(after)).is_some_and(|saved| saved >= least)
    }

    /// How many events count after the newest one that holds a blanked result.
    fn n_since_cleared(&self, history: &History) -> usize {
        let is_cleared = |event: &&Event| {
            matches!(event, Event::ToolResults(round)
                if round.results.iter().any(|result| is_blank(result, &self.placeholder)))
        };
        history.events().rev().take_while(|event| !is_cleared(event)).filter(|event| event.counts()).count()
    }
}

impl Strategy for ClearToolResults {
    fn kind(&self) -> &'static str {
        "clear_tool_results"
    }

    fn business(&self) -> Business {
        Business::Blanks
    }

    fn is_due(&self, history: &History, window: Option<Tokens>, counter: &dyn TokenCounter) -> bool {
        let trigger = self.trigger();
        trigger.max_messages.is_some_and(|most| self.n_since_cleared(history) > most)
            || trigger.most_tokens(window).is_some_and(|most| anchored(counter, history) > most)
    }

    fn warnings(&self) -> Vec<BadSetting> {
        let none = BadSetting::new("keep_pairs", "is 0: the result that the model is about to read is blanked, too");
        // Two events for each pair that stays follow the newest blanked result, and the next round adds two.
        let kept = Kept::Events { n: self.keep_pairs.saturating_mul(2), by: "keep_pairs" };
        let none = (self.keep_pairs == 0).then_some(none);
        none.into_iter().chain(self.trigger().set_off_by(kept)).collect()
    }

    fn compact<'a>(
        &'a self,
        history: &'a History,
        cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        Box::pin(std::future::ready(Ok(self.clear(history, cx.counter))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clearings_agree_with_the_vectors() {
        crate::vectors::check_free::<ClearToolResults>("strategies/clear_tool_results.jsonl");
    }
}
