//! What a strategy did to a history, in tokens.

use std::collections::HashMap;
use std::sync::Arc;

use retrace_events::tokens::{TokenCounter, Tokens, count_events};
use retrace_events::{Event, History, Outcome};

/// What became of the events of a history, in tokens; each number is rounded down by itself.
///
/// ```
/// use retrace_events::{Event, History, tokens::{FourCharacters, Tokens}};
/// use retrace_strategies::Changes;
///
/// let before = History::from(vec![Event::request("a task of twenty ch."), Event::answer("something said")]);
/// let changes = Changes::of(&FourCharacters, &before, &History::prefix(&before.iter().cloned().collect(), 1));
/// assert_eq!((changes.kept, changes.dropped), (Tokens(5), Tokens(3)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// What is left of the events that were there.
    pub kept: Tokens,
    /// Events that are gone.
    pub dropped: Tokens,
    /// What is gone of events that stayed: blanked results, clamped texts.
    pub blanked: Tokens,
    /// Events that were not there before: summaries, notes, warnings.
    pub made: Tokens,
}

/// What became of one event, or where it comes from; events are known by their indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It stayed as it was.
    Kept {
        /// Its index in the raw history.
        before: usize,
    },
    /// It stayed, but not all that it held.
    Blanked {
        /// Its index in the raw history.
        before: usize,
        /// The index of what is left of it.
        after: usize,
    },
    /// It is gone.
    Dropped {
        /// Its index in the raw history.
        before: usize,
    },
    /// The strategy made it.
    Made {
        /// Its index in the compacted history.
        after: usize,
    },
}

impl Fate {
    /// The fates of all events of a history and of what was kept of it, in order and in linear time. Events that both
    /// share were kept; between two of those, one that has the calls of another, or the results of the same calls, is
    /// what is left of it.
    pub fn of_all(before: &History, after: &History) -> Vec<Self> {
        let places: HashMap<_, _> =
            before.iter().enumerate().map(|(index, event)| (Arc::as_ptr(event), index)).collect();
        let (mut fates, mut next, mut waiting) = (Vec::with_capacity(before.len()), 0, Vec::new());
        let raw: Vec<_> = before.iter().map(|event| &**event).collect();
        for (index, event) in after.iter().enumerate() {
            match places.get(&Arc::as_ptr(event)) {
                Some(&place) if place >= next => {
                    between(next, &raw[next..place], &waiting, &mut fates);
                    waiting.clear();
                    fates.push(Self::Kept { before: place });
                    next = place + 1;
                }
                _ => waiting.push((index, &**event)),
            }
        }
        between(next, &raw[next..], &waiting, &mut fates);
        fates
    }
}

/// Adds the fates of the events between two that were kept; the first of the old ones has this index.
fn between(first: usize, old: &[&Event], new: &[(usize, &Event)], fates: &mut Vec<Fate>) {
    let mut new = new.iter().peekable();
    for (before, event) in (first..).zip(old) {
        let shape = shape(event);
        while let Some((after, _)) = new.next_if(|(_, made)| self::shape(made).is_none()) {
            fates.push(Fate::Made { after: *after });
        }
        match new.next_if(|(_, rest)| shape.is_some() && self::shape(rest) == shape) {
            Some((after, _)) => fates.push(Fate::Blanked { before, after: *after }),
            None => fates.push(Fate::Dropped { before }),
        }
    }
    fates.extend(new.map(|(after, _)| Fate::Made { after: *after }));
}

impl Changes {
    /// Compares a history with what was kept of it, in linear time, as [`Fate::of_all`] does.
    pub fn of(counter: &dyn TokenCounter, before: &History, after: &History) -> Self {
        let (mut kept, mut dropped, mut made) = (Vec::new(), Vec::new(), Vec::new());
        let (mut whole, mut rest) = (Vec::new(), Vec::new());
        for fate in Fate::of_all(before, after) {
            match fate {
                Fate::Kept { before: index } => kept.extend(before.get(index)),
                Fate::Dropped { before: index } => dropped.extend(before.get(index)),
                Fate::Made { after: index } => made.extend(after.get(index)),
                Fate::Blanked { before: old, after: new } => {
                    whole.extend(before.get(old));
                    rest.extend(after.get(new));
                }
            }
        }
        let tokens = |events: &[&Arc<Event>]| count_events(counter, events.iter().map(|event| &***event));
        let blanked = Tokens(tokens(&whole).0.saturating_sub(tokens(&rest).0));
        kept.extend(rest);
        Self { kept: tokens(&kept), dropped: tokens(&dropped), blanked, made: tokens(&made) }
    }
}

/// What rewriting leaves of an event.
#[derive(PartialEq)]
enum Shape<'a> {
    Response(usize, Vec<(&'a str, &'a str)>),
    Results(Vec<(&'a str, &'a str, Outcome)>),
}

fn shape(event: &Event) -> Option<Shape<'_>> {
    match event {
        Event::Response(response) => {
            let calls = response.tool_calls().map(|call| (&*call.id, &*call.name)).collect();
            Some(Shape::Response(response.content.len(), calls))
        }
        Event::ToolResults(round) => {
            let results = round.results.iter();
            Some(Shape::Results(results.map(|result| (&*result.call_id, &*result.name, result.outcome)).collect()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::histories::{Characters, history};
    use crate::{ClearToolResults, CompactContext, Compacted, SlidingWindow};

    fn after(strategy: &dyn crate::Strategy, before: &History) -> History {
        match pollster::block_on(strategy.compact(before, &mut CompactContext::without_model())).unwrap() {
            Compacted::Unchanged => before.clone(),
            Compacted::Changed(after) => after,
        }
    }

    proptest! {
        #[test]
        fn what_was_there_is_kept_dropped_or_blanked_and_the_rest_was_made(history in history(), n in 0..5_usize) {
            let whole = count_events(&Characters, history.events());
            let same = Changes::of(&Characters, &history, &history);
            prop_assert_eq!(same, Changes { kept: whole, ..Changes::default() });

            let window = SlidingWindow { keep_messages: n, receipts: true, ..SlidingWindow::default() };
            let slid = after(&window, &history);
            let changes = Changes::of(&Characters, &history, &slid);
            prop_assert_eq!(changes.blanked, Tokens(0));
            prop_assert_eq!(changes.kept + changes.dropped, whole);
            prop_assert_eq!(changes.kept + changes.made, count_events(&Characters, slid.events()));

            let clear = ClearToolResults { keep_pairs: n, placeholder: String::new(), ..ClearToolResults::default() };
            let cleared = after(&clear, &history);
            let changes = Changes::of(&Characters, &history, &cleared);
            prop_assert_eq!((changes.dropped, changes.made), (Tokens(0), Tokens(0)));
            prop_assert_eq!(changes.kept, count_events(&Characters, cleared.events()));
            prop_assert_eq!(changes.kept + changes.blanked, whole);
        }
    }
}
