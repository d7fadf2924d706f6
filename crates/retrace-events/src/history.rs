//! A history: the events an agent resumes from, sharing its prefix with every other history of the same recording.

use std::sync::Arc;

use crate::event::Event;
use crate::part::Part;

/// A list of events: a prefix shared with others, and events of its own after it.
///
/// A clone copies only pointers to the events of its own, so a thousand rollouts of a boundary share one prefix.
#[derive(Clone, Debug)]
pub struct History {
    shared: Arc<[Arc<Event>]>,
    n_shared: usize,
    own: Vec<Arc<Event>>,
}

impl History {
    /// A history of these events, all of them shared by its clones.
    pub fn new(events: impl Into<Arc<[Arc<Event>]>>) -> Self {
        let shared = events.into();
        Self { n_shared: shared.len(), shared, own: Vec::new() }
    }

    /// The first `n` of shared events, or all of them if there are fewer.
    pub fn prefix(events: &Arc<[Arc<Event>]>, n: usize) -> Self {
        Self { shared: Arc::clone(events), n_shared: n.min(events.len()), own: Vec::new() }
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
        self.own.push(event.into());
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
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other.iter()).all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
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
