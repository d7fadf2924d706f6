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

impl Changes {
    /// Compares a history with what was kept of it, in linear time. Events that both share are the same; between two of
    /// those, one that has the calls of another, or the results of the same calls, is what is left of it.
    pub fn of(counter: &dyn TokenCounter, before: &History, after: &History) -> Self {
        let raw: Vec<_> = before.iter().filter(|event| event.counts()).collect();
        let places: HashMap<_, _> = raw.iter().enumerate().map(|(index, event)| (Arc::as_ptr(event), index)).collect();
        let (mut fates, mut next, mut waiting) = (Fates::default(), 0, Vec::new());
        for event in after.iter().filter(|event| event.counts()) {
            match places.get(&Arc::as_ptr(event)) {
                Some(&place) if place >= next => {
                    fates.between(&raw[next..place], &waiting);
                    waiting.clear();
                    fates.kept.push(event);
                    next = place + 1;
                }
                _ => waiting.push(&**event),
            }
        }
        fates.between(&raw[next..], &waiting);
        let tokens = |events: &[&Event]| count_events(counter, events.iter().copied());
        let (whole, rest) = (tokens(&fates.whole), tokens(&fates.rest));
        Self {
            kept: count_events(counter, fates.kept.iter().chain(&fates.rest).copied()),
            dropped: tokens(&fates.dropped),
            blanked: Tokens(whole.0.saturating_sub(rest.0)),
            made: tokens(&fates.made),
        }
    }
}

/// The events of two histories, by what became of them.
#[derive(Default)]
struct Fates<'a> {
    kept: Vec<&'a Event>,
    dropped: Vec<&'a Event>,
    made: Vec<&'a Event>,
    /// Events that were rewritten, and what is left of them.
    whole: Vec<&'a Event>,
    rest: Vec<&'a Event>,
}

impl<'a> Fates<'a> {
    /// Adds the events between two that were kept.
    fn between(&mut self, old: &[&'a Arc<Event>], new: &[&'a Event]) {
        let mut new = new.iter().copied().peekable();
        for event in old {
            let shape = shape(event);
            while let Some(made) = new.next_if(|made| self::shape(made).is_none()) {
                self.made.push(made);
            }
            match new.next_if(|rest| shape.is_some() && self::shape(rest) == shape) {
                Some(rest) => {
                    self.whole.push(event);
                    self.rest.push(rest);
                }
                None => self.dropped.push(event),
            }
        }
        self.made.extend(new);
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
    use retrace_events::tokens::FourCharacters;

    use super::*;
    use crate::histories::history;
    use crate::{ClearToolResults, CompactContext, Compacted, SlidingWindow};

    /// One token for every character, so that nothing is rounded.
    struct Characters;

    impl TokenCounter for Characters {
        fn name(&self) -> &str {
            "characters"
        }

        fn units(&self, text: &str) -> u64 {
            FourCharacters.units(text)
        }

        fn tokens(&self, units: u64) -> Tokens {
            Tokens(units)
        }
    }

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
