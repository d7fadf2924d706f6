//! `sliding_window`: the oldest events dropped, the task kept. Cost: none. Known from pydantic-ai-harness.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use retrace_events::tokens::{TokenCounter, Tokens};
use retrace_events::{Event, History};
use serde::{Deserialize, Serialize};

use crate::anchors::{bring_back, first_user_event};
use crate::config::BadSetting;
use crate::context::CompactContext;
use crate::cut::{Keep, is_turn, window_cut};
use crate::receipt::{is_receipt, receipt};
use crate::strategy::{Business, CompactError, Compacted, Strategy};
use crate::trigger::{FALLBACK_WINDOW, Kept, with_trigger};

with_trigger! {
    /// Keeps the newest events, more where a result would lose its call, and in front of them the first thing that the user
    /// said. Pinned parts and leading system prompts stay; an earlier summary goes like any event.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct SlidingWindow {
        /// How many events stay; 0 is 1.
        pub keep_messages: usize,
        /// How many tokens stay at least, in place of a number of events. A floor says what is kept, not how large a
        /// request gets: one huge newest result stays.
        pub keep_tokens: Option<u64>,
        /// Whether the first thing that the user said stays.
        pub preserve_first_user_message: bool,
        /// Whether a note stands in front of how many events were dropped. It takes the place of one.
        pub receipts: bool,
    }
}

impl Default for SlidingWindow {
    fn default() -> Self {
        Self {
            max_messages: None,
            max_tokens: None,
            max_fraction: None,
            context_window: None,
            fallback_context_window: FALLBACK_WINDOW,
            keep_messages: 40,
            keep_tokens: None,
            preserve_first_user_message: true,
            receipts: false,
        }
    }
}

impl SlidingWindow {
    pub(crate) fn check(&self) -> Result<(), BadSetting> {
        self.trigger().check_set()
    }

    fn slide(&self, history: &History, counter: &dyn TokenCounter) -> Compacted {
        let keep = match self.keep_tokens {
            Some(tokens) => Keep::Tokens(tokens),
            None => Keep::Events(self.keep_messages - usize::from(self.receipts && self.keep_messages > 1)),
        };
        let cut = window_cut(history, keep, counter);
        if cut == 0 {
            return Compacted::Unchanged;
        }
        let first = first_user_event(history).filter(|&first| self.preserve_first_user_message && first < cut);
        let protected = self.keep_tokens.is_some_and(|tokens| tokens > 0);
        // The newest event stays, whatever it is.
        let newest = history.len() - history.events().rev().position(is_turn).map_or(0, |back| back + 1);
        let stays_in_tail = |(index, event): &(usize, &Arc<Event>)| {
            protected || !self.receipts || *index >= newest || !is_receipt(event)
        };
        let tail = history.iter().enumerate().skip(cut).filter(stays_in_tail).map(|(_, event)| Arc::clone(event));
        let tail = tail.collect();
        let head = first.and_then(|first| history.get(first)).map(Arc::clone).into_iter().collect();
        let mut kept = bring_back(history, head, tail);
        if self.receipts {
            let dropped = || {
                let dropped = history.events().enumerate().take(cut).filter(|(index, _)| Some(*index) != first);
                dropped.map(|(_, event)| event).filter(|event| !is_receipt(event))
            };
            let stays = |(index, event): &(usize, &Arc<Event>)| match *index < cut {
                true => event.counts() && !is_receipt(event),
                false => stays_in_tail(&(*index, event)),
            };
            if kept.iter().eq(history.iter().enumerate().filter(stays).map(|(_, event)| event)) {
                // Nothing but a receipt would go.
                return Compacted::Unchanged;
            }
            kept.insert(0, receipt("dropped", dropped(), counter));
        }
        Compacted::of(history, History::new(kept))
    }
}

impl Strategy for SlidingWindow {
    fn kind(&self) -> &'static str {
        "sliding_window"
    }

    fn business(&self) -> Business {
        Business::Drops
    }

    fn is_due(&self, history: &History, window: Option<Tokens>, counter: &dyn TokenCounter) -> bool {
        self.trigger().fires(history, window, counter)
    }

    fn warnings(&self) -> Vec<BadSetting> {
        let kept = match self.keep_tokens {
            Some(n) => Kept::Tokens { n, by: "keep_tokens" },
            None => Kept::Events {
                n: self.keep_messages.max(1).saturating_add(usize::from(self.preserve_first_user_message)),
                by: "keep_messages",
            },
        };
        self.trigger().set_off_by(kept).into_iter().collect()
    }

    fn compact<'a>(
        &'a self,
        history: &'a History,
        cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        Box::pin(std::future::ready(Ok(self.slide(history, cx.counter))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_agree_with_the_vectors() {
        crate::vectors::check_free::<SlidingWindow>("strategies/sliding_window.jsonl");
    }

    fn slide(strategy: &SlidingWindow, history: &History) -> Compacted {
        pollster::block_on(strategy.compact(history, &mut CompactContext::without_model())).unwrap()
    }

    #[test]
    fn a_tail_is_measured_again_without_the_usage_that_was_cut_off() {
        let usage = retrace_events::Usage { output_tokens: 1, ..retrace_events::Usage::default() };
        let first = retrace_events::Response { usage: Some(usage), ..retrace_events::Response::default() };
        // Each alone is no token, all three are two.
        let answers = ["abc", "abc", "abcd"].map(Event::answer);
        let history = History::from([Event::Response(first)].into_iter().chain(answers).collect::<Vec<_>>());
        let strategy = SlidingWindow { keep_tokens: Some(1), ..SlidingWindow::default() };
        let Compacted::Changed(kept) = slide(&strategy, &history) else { panic!("nothing was dropped") };
        assert_eq!(slide(&strategy, &kept), Compacted::Unchanged);
    }

    #[test]
    fn the_newest_event_stays_if_it_is_a_receipt() {
        let note = receipt("dropped", std::iter::empty(), &retrace_events::tokens::FourCharacters);
        let mut history = History::from(vec![Event::answer("one"), Event::answer("two")]);
        history.push(Arc::clone(&note));
        let strategy = SlidingWindow { keep_messages: 1, receipts: true, ..SlidingWindow::default() };
        let Compacted::Changed(kept) = slide(&strategy, &history) else { panic!("nothing was dropped") };
        assert_eq!((kept.len(), kept.last()), (2, Some(&note)));
    }
}
