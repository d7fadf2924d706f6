//! `sliding_window`: the oldest events dropped, the task kept. Cost: none. Known from pydantic-ai-harness.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use retrace_events::tokens::{TokenCounter, Tokens};
use retrace_events::{Event, History};
use serde::{Deserialize, Serialize};

use crate::anchors::{bring_back, first_user_event};
use crate::config::BadSetting;
use crate::context::CompactContext;
use crate::cut::{Keep, window_cut};
use crate::receipt::{is_receipt, receipt};
use crate::strategy::{Business, CompactError, Compacted, Strategy};
use crate::trigger::{FALLBACK_WINDOW, with_trigger};

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
        let is_old_receipt = |event: &Event| self.receipts && is_receipt(event);
        let tail =
            history.iter().skip(cut).filter(|event| protected || !is_old_receipt(event)).map(Arc::clone).collect();
        let head = first.and_then(|first| history.get(first)).map(Arc::clone).into_iter().collect();
        let mut kept = bring_back(history, head, tail);
        if self.receipts {
            let dropped = || {
                let dropped = history.events().enumerate().take(cut).filter(|(index, _)| Some(*index) != first);
                dropped.map(|(_, event)| event).filter(|event| !is_receipt(event))
            };
            let stays = |(index, event): &(usize, &Arc<Event>)| match *index < cut {
                true => event.counts() && !is_receipt(event),
                false => protected || !is_receipt(event),
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
}
