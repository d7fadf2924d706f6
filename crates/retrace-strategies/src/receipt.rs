//! Receipts: notes in a history of what was removed from it.

use std::sync::Arc;

use retrace_events::tokens::{TokenCounter, count_units};
use retrace_events::{Event, History, Part, Raw, Request};
use serde::{Deserialize, Serialize};

/// What the mark of a receipt says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Receipt {
    /// How many events that count were removed.
    pub(crate) events: usize,
    /// How many tokens they had.
    pub(crate) tokens: u64,
    /// In which way.
    how: String,
}

/// A request of one receipt, for events that were removed in this way.
pub(crate) fn receipt<'a>(
    how: &str,
    removed: impl Iterator<Item = &'a Event> + Clone,
    counter: &dyn TokenCounter,
) -> Arc<Event> {
    let events = removed.clone().filter(|event| event.counts()).count();
    let tokens = counter.tokens(count_units(counter, removed)).0;
    let note = format!("[compaction: {events} earlier events, about {tokens} tokens, were {how} here]");
    let mut part = Part::text(note);
    if let Ok(receipt) = Raw::of(&Receipt { events, tokens, how: how.to_owned() }) {
        part.marks.set_receipt(receipt);
    }
    Arc::new(Event::Request(Request { content: [part].into(), ..Request::default() }))
}

/// Whether an event holds nothing but receipts.
pub(crate) fn is_receipt(event: &Event) -> bool {
    matches!(event, Event::Request(Request { content, .. })
        if !content.is_empty() && content.iter().all(|part| part.marks.receipt().is_some()))
}

/// The receipts of a history in events that another does not share. A mark that says something else is a receipt of
/// somebody else's, and none here.
pub(crate) fn new_receipts(before: &History, after: &History) -> Vec<Receipt> {
    let is_new = |event: &&Arc<Event>| !before.iter().any(|old| Arc::ptr_eq(old, event));
    let of_event = |event: &Arc<Event>| match &**event {
        Event::Request(request) => {
            request.content.iter().filter_map(|part| part.marks.receipt()?.read().ok()).collect()
        }
        _ => Vec::new(),
    };
    after.iter().filter(|event| is_receipt(event)).filter(is_new).flat_map(of_event).collect()
}

#[cfg(test)]
mod tests {
    use retrace_events::tokens::FourCharacters;

    use super::*;

    #[test]
    fn what_says_something_else_is_no_receipt_of_ours() {
        let mut foreign = Part::text("much was here");
        foreign.marks.set_receipt(Raw::of(&serde_json::json!({"bytes": 4})).expect("it is JSON"));
        let foreign = Event::Request(Request { content: [foreign].into(), ..Request::default() });
        let ours = receipt("dropped", [Event::request("12345678")].iter(), &FourCharacters);
        let after = History::new(vec![Arc::new(foreign), ours]);
        let found = new_receipts(&History::from(Vec::new()), &after);
        assert_eq!(found.iter().map(|receipt| (receipt.events, receipt.tokens)).collect::<Vec<_>>(), [(1, 2)]);
    }
}
