//! How much of a compacted history a provider's prompt cache still knows.

use std::sync::Arc;

use retrace_events::tokens::{SentCount, TokenCounter, Tokens};
use retrace_events::{Event, History};

/// The start that a compacted history has in common with the raw one. Providers bill it at a fraction, since their caches
/// go by what prompts start with.
///
/// ```
/// use retrace_events::{Event, History, tokens::{FourCharacters, Tokens}};
/// use retrace_strategies::CacheKept;
///
/// let before = History::from(vec![Event::request("a task of twenty ch."), Event::answer("something said")]);
/// let after = History::from(vec![Event::request("a task of twenty ch."), Event::answer("cut!")]);
/// let cache = CacheKept::of(&FourCharacters, &before, &after);
/// assert_eq!((cache.first_changed, cache.start, cache.whole), (Some(1), Tokens(5), Tokens(6)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheKept {
    /// The index, in the compacted history, of the first event that is not the one that stood there; its length where events
    /// are only missing at the end, and nothing where no event differs.
    pub first_changed: Option<usize>,
    /// The tokens before it that a model is sent.
    pub start: Tokens,
    /// The tokens of all that a model is sent of the compacted history.
    pub whole: Tokens,
}

impl CacheKept {
    /// Compares a history with what was kept of it, event by event: of an event that changed, nothing counts. `usage` events
    /// reach no model, so whether they differ does not matter.
    pub fn of(counter: &dyn TokenCounter, before: &History, after: &History) -> Self {
        let mut raw = before.iter().filter(|event| event.counts());
        let mut count = SentCount::new(counter);
        let (mut first_changed, mut start) = (None, None);
        for (index, event) in after.iter().enumerate() {
            if start.is_none() && event.counts() && !raw.next().is_some_and(|raw| is_same(raw, event)) {
                (first_changed, start) = (Some(index), Some(count.tokens()));
            }
            count.push(event);
        }
        if start.is_none() && raw.next().is_some() {
            first_changed = Some(after.len());
        }
        let whole = count.tokens();
        // A part that is sent only until it is answered may be counted at the start and be gone in the end.
        Self { first_changed, start: start.unwrap_or(whole).min(whole), whole }
    }
}

fn is_same(one: &Arc<Event>, other: &Arc<Event>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use retrace_events::tokens::{FourCharacters, count_sent};

    use super::*;
    use crate::histories::history;

    proptest! {
        #[test]
        fn a_start_ends_where_an_event_differs(before in history(), at in any::<prop::sample::Index>()) {
            let whole = count_sent(&FourCharacters, &before);
            let same = CacheKept::of(&FourCharacters, &before, &before);
            prop_assert_eq!(same, CacheKept { first_changed: None, start: whole, whole });

            let copy = History::from(before.events().cloned().collect::<Vec<_>>());
            prop_assert_eq!(CacheKept::of(&FourCharacters, &before, &copy), same);

            let at = at.index(before.len() + 1);
            let mut events: Vec<_> = before.iter().map(Arc::clone).collect();
            events.insert(at, Arc::new(Event::request("no such words")));
            let after = History::new(events);
            let inserted = CacheKept::of(&FourCharacters, &before, &after);
            prop_assert_eq!(inserted.first_changed, Some(at));
            prop_assert_eq!(inserted.start, count_sent(&FourCharacters, &History::prefix(&after.iter().map(Arc::clone).collect(), at)));
            prop_assert_eq!(inserted.whole, count_sent(&FourCharacters, &after));

            let end = History::prefix(&before.iter().map(Arc::clone).collect(), at);
            let shorter = CacheKept::of(&FourCharacters, &before, &end);
            prop_assert_eq!((shorter.start, shorter.whole), (shorter.whole, count_sent(&FourCharacters, &end)));
            let is_shorter = end.n_counting() < before.n_counting();
            prop_assert_eq!(shorter.first_changed, is_shorter.then_some(at));
        }
    }
}
