//! `tail_window`: the last N events. Cost: none. Known from AG2.

use futures_core::future::BoxFuture;
use retrace_events::History;
use serde::{Deserialize, Serialize};

use crate::anchors::keep_from;
use crate::context::CompactContext;
use crate::cut::tail_cut;
use crate::strategy::{Business, CompactError, Compacted, Strategy};

/// Keeps the last `target` events that count, fewer where that would part a result from its call, and everything
/// where even the newest round is longer. The task usually goes; pinned parts and leading system prompts stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TailWindow {
    /// How many events to keep; 0 keeps them all.
    pub target: usize,
}

impl TailWindow {
    /// A window of `target` events.
    pub fn new(target: usize) -> Self {
        Self { target }
    }
}

impl Strategy for TailWindow {
    fn kind(&self) -> &'static str {
        "tail_window"
    }

    fn business(&self) -> Business {
        Business::Drops
    }

    fn compact<'a>(
        &'a self,
        history: &'a History,
        _cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        let compacted = tail_cut(history, self.target)
            .map_or(Compacted::Unchanged, |cut| Compacted::of(history, keep_from(history, cut, None)));
        Box::pin(std::future::ready(Ok(compacted)))
    }
}

#[cfg(test)]
mod tests {
    use retrace_events::{Event, Part, Request};

    use super::*;

    #[test]
    fn windows_agree_with_the_vectors() {
        for row in crate::vectors::read("strategies/tail_window.jsonl") {
            let strategy: TailWindow = row.strategy();
            let compacted = pollster::block_on(strategy.compact(&row.input, &mut CompactContext::without_model()));
            row.check(compacted.unwrap());
        }
    }

    #[test]
    fn pins_and_leading_prompts_come_back_and_a_second_pass_leaves_them() {
        let content = vec![Part::system("be brief"), Part::text("never push").pinned(), Part::text("the task")].into();
        let head = Event::Request(Request { content, ..Request::default() });
        let history = History::from(vec![head, Event::answer("one"), Event::request("two"), Event::answer("three")]);
        let compact = |history: &History| {
            pollster::block_on(TailWindow::new(2).compact(history, &mut CompactContext::without_model())).unwrap()
        };
        let Compacted::Changed(kept) = compact(&history) else { panic!("nothing was cut") };
        let request = |part| Event::Request(Request { content: [part].into(), ..Request::default() });
        let wanted = vec![
            request(Part::system("be brief")),
            request(Part::text("never push").pinned()),
            Event::request("two"),
            Event::answer("three"),
        ];
        assert_eq!(kept, History::from(wanted));
        assert_eq!(compact(&kept), Compacted::Unchanged);
    }
}
