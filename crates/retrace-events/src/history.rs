//! A history: the events an agent resumes from, sharing its prefix with every other history of the same recording.

use std::sync::{Arc, OnceLock};

use crate::event::Event;
use crate::part::Part;
use crate::sent::{SentChain, SentHash};

/// A list of events: a prefix shared with others, and events of its own after it.
///
/// A clone copies only pointers to the events of its own, so a thousand rollouts of a boundary share one prefix.
#[derive(Clone, Debug)]
pub struct History {
    shared: Arc<[Arc<Event>]>,
    n_shared: usize,
    own: Vec<Arc<Event>>,
    /// Of all its events, once it was asked for.
    chain: OnceLock<SentChain>,
}

impl History {
    /// A history of these events, all of them shared by its clones.
    pub fn new(events: impl Into<Arc<[Arc<Event>]>>) -> Self {
        let shared = events.into();
        Self { n_shared: shared.len(), shared, own: Vec::new(), chain: OnceLock::new() }
    }

    /// The first `n` of shared events, or all of them if there are fewer.
    pub fn prefix(events: &Arc<[Arc<Event>]>, n: usize) -> Self {
        Self { n_shared: n.min(events.len()), ..Self::new(Arc::clone(events)) }
    }

    /// The events shared with other histories.
    pub fn shared(&self) -> &[Arc<Event>] {
        &self.shared[..self.n_shared]
    }

    /// The events after them.
    pub fn own(&self) -> &[Arc<Event>] {
        &self.own
    }

    /// The number of events.
    pub fn len(&self) -> usize {
        self.n_shared + self.own.len()
    }

    /// The number of events that a model may see.
    pub fn n_counting(&self) -> usize {
        self.events().filter(|event| event.counts()).count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The event at an index.
    pub fn get(&self, index: usize) -> Option<&Arc<Event>> {
        if index < self.n_shared { self.shared.get(index) } else { self.own.get(index - self.n_shared) }
    }

    /// The newest event.
    pub fn last(&self) -> Option<&Arc<Event>> {
        self.own.last().or_else(|| self.shared().last())
    }

    /// Appends an event of its own.
    pub fn push(&mut self, event: impl Into<Arc<Event>>) {
        let event = event.into();
        if let Some(chain) = self.chain.get_mut() {
            chain.push(&event);
        }
        self.own.push(event);
    }

    /// The events, oldest first, as pointers to share.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Event>> + Clone {
        self.shared().iter().chain(&self.own)
    }

    /// The events, oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> + Clone {
        self.iter().map(|event| &**event)
    }

    /// What of it a model is sent.
    pub fn sent(&self) -> Sent<'_> {
        let newest_response =
            self.iter().rev().position(|event| matches!(**event, Event::Response(_))).map(|back| self.len() - 1 - back);
        Sent { history: self, newest_response }
    }

    /// The hash of what of it a model is sent. Once asked for, it grows with the history, and goes to its clones: each
    /// event is hashed once.
    pub fn sent_hash(&self) -> SentHash {
        self.chain.get_or_init(|| SentChain::of(self.events())).hash()
    }
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        // Pointers to one event are equal at a look, since events are `Eq`.
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl From<Vec<Event>> for History {
    fn from(events: Vec<Event>) -> Self {
        Self::new(events.into_iter().map(Arc::new).collect::<Vec<_>>())
    }
}

/// What of a history a model is sent: no `usage` events, and no part with `scope: "request"` once a response has
/// followed it.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    history: &'a History,
    newest_response: Option<usize>,
}

impl<'a> Sent<'a> {
    /// The events, oldest first; of their own content only what [`SentEvent::parts`] gives is sent.
    pub fn events(&self) -> impl Iterator<Item = SentEvent<'a>> + use<'a> {
        let newest_response = self.newest_response;
        self.history.events().enumerate().filter(|(_, event)| event.counts()).map(move |(index, event)| SentEvent {
            event,
            answered: newest_response.is_some_and(|newest| index < newest),
        })
    }
}

/// One event as it is sent.
#[derive(Clone, Copy, Debug)]
pub struct SentEvent<'a> {
    /// The event.
    pub event: &'a Event,
    answered: bool,
}

impl<'a> SentEvent<'a> {
    /// The parts of its own content that are sent; results are always sent whole.
    pub fn parts(self) -> impl Iterator<Item = &'a Part> {
        self.event.content().iter().filter(move |part| !(self.answered && part.is_request_scoped()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::any_events::any_events;

    /// These events with the first `n` of them shared.
    fn split(events: &[Event], n: usize) -> History {
        let shared: Arc<[Arc<Event>]> = events.iter().cloned().map(Arc::new).collect();
        let mut history = History::prefix(&shared, n);
        shared[n..].iter().for_each(|event| history.push(Arc::clone(event)));
        history
    }

    proptest! {
        #[test]
        fn a_history_is_its_events_however_they_are_shared(events in any_events(), n: prop::sample::Index) {
            let n = n.index(events.len() + 1);
            let history = split(&events, n);
            prop_assert_eq!((history.shared().len(), history.own().len()), (n, events.len() - n));
            prop_assert_eq!((history.len(), history.is_empty()), (events.len(), events.is_empty()));
            prop_assert!(history.events().eq(&events));
            prop_assert!(history.events().rev().eq(events.iter().rev()));
            prop_assert_eq!(history.last().map(|event| &**event), events.last());
            for index in 0..=events.len() {
                prop_assert_eq!(history.get(index).map(|event| &**event), events.get(index));
            }
            prop_assert_eq!(&history, &History::from(events.clone()));
            if let Some((_, fewer)) = events.split_last() {
                prop_assert_ne!(&history, &History::from(fewer.to_vec()));
            }
            let mut more = history.clone();
            more.push(Event::request("one more"));
            prop_assert_ne!(&history, &more);
        }

        #[test]
        fn what_is_sent_is_all_but_telemetry_and_answered_request_parts(
            events in any_events(),
            scoped in proptest::collection::vec(any::<bool>(), 12),
        ) {
            let mut events = events;
            for (event, scoped) in events.iter_mut().zip(scoped) {
                if let (Event::Request(request), true) = (event, scoped) {
                    request.content[0].marks.set_scope("request");
                }
            }
            let history = History::from(events.clone());
            let sent: Vec<_> = history.sent().events().map(|sent| (sent.event, sent.parts().collect())).collect();
            let expected: Vec<(&Event, Vec<&Part>)> = (0..events.len())
                .filter(|&index| !matches!(events[index], Event::Usage(_)))
                .map(|index| {
                    let answered = events[index + 1..].iter().any(|event| matches!(event, Event::Response(_)));
                    let parts = events[index].content().iter().filter(|part| !(answered && part.is_request_scoped()));
                    (&events[index], parts.collect())
                })
                .collect();
            prop_assert_eq!(sent, expected);
        }
    }

    #[test]
    fn a_clone_shares_the_prefix_and_the_events_of_its_own() {
        let mut history = split(&[Event::request("a"), Event::answer("b"), Event::request("c")], 2);
        let clone = history.clone();
        assert!(Arc::ptr_eq(&history.shared, &clone.shared));
        assert!(history.iter().zip(clone.iter()).all(|(a, b)| Arc::ptr_eq(a, b)));
        history.push(Event::answer("d"));
        assert_eq!((history.len(), clone.len()), (4, 3));
    }

    #[test]
    fn a_prefix_ends_where_the_events_do() {
        let events: Arc<[Arc<Event>]> = Arc::new([Arc::new(Event::request("a"))]);
        assert_eq!(History::prefix(&events, 7).len(), 1);
        assert!(History::prefix(&events, 0).is_empty());
        assert_eq!(History::prefix(&events, 0).last(), None);
    }
}
