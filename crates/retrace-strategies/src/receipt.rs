//! Receipts: notes in a history of what was removed from it.

use std::sync::Arc;

use retrace_events::tokens::{TokenCounter, count_units};
use retrace_events::{Event, Part, Raw, Request};

/// A request of one receipt, for events that were removed in this way.
pub(crate) fn receipt<'a>(
    how: &str,
    removed: impl Iterator<Item = &'a Event> + Clone,
    counter: &dyn TokenCounter,
) -> Arc<Event> {
    let events = removed.clone().filter(|event| event.counts()).count();
    let tokens = counter.tokens(count_units(counter, removed)).0;
    let note = format!("[compaction: {events} earlier events, about {tokens} tokens, were {how} here]");
    let receipt = serde_json::json!({"events": events, "tokens": tokens, "how": how});
    let mut part = Part::text(note);
    part.marks.receipt = Raw::of(&receipt).ok();
    Arc::new(Event::Request(Request { content: vec![part], ..Request::default() }))
}

/// Whether an event holds nothing but receipts.
pub(crate) fn is_receipt(event: &Event) -> bool {
    matches!(event, Event::Request(Request { content, .. })
        if !content.is_empty() && content.iter().all(|part| part.marks.receipt.is_some()))
}
