//! How large a history is: for triggers by what the provider said of it, for tails event by event.

use std::sync::Arc;

use retrace_events::tokens::{Size, TokenCounter, Tokens, count_events, count_units};
use retrace_events::{Event, History, Usage};

use crate::cut::is_turn;

/// The tokens that the next request will have: what the provider said of the newest response that told its input, and the
/// rule over the events after it. Where none did, the rule over everything.
///
/// A provider counts instructions, tools and dense text, which a rule cannot see. It knows nothing of what was rewritten
/// since.
pub(crate) fn anchored(counter: &dyn TokenCounter, history: &History) -> Tokens {
    told(counter, history).unwrap_or_else(|| count_events(counter, history.events()))
}

/// The same, where a response told its input.
pub(crate) fn told(counter: &dyn TokenCounter, history: &History) -> Option<Tokens> {
    let newest = history.events().rev().enumerate().find_map(|(back, event)| Some((back, input(event)?)));
    let (back, usage) = newest?;
    Some(Tokens(usage.total_tokens()) + count_events(counter, history.events().rev().take(back)))
}

/// Counts a history and then what became of it, of which only the events that are new where they stand.
pub(crate) struct Recount<'a> {
    counter: &'a dyn TokenCounter,
    /// The history counted last, and the size of each of its events.
    last: (History, Vec<Size>),
}

impl<'a> Recount<'a> {
    pub(crate) fn new(counter: &'a dyn TokenCounter) -> Self {
        Self { counter, last: (History::from(Vec::new()), Vec::new()) }
    }

    /// The tokens of a history, as [`count_events`] gives them.
    pub(crate) fn count(&mut self, history: &History) -> Tokens {
        let (last, known) = &self.last;
        let (mut sum, mut sizes) = (Size::default(), Vec::with_capacity(history.len()));
        for (index, event) in history.iter().enumerate() {
            let is_known = last.get(index).is_some_and(|old| Arc::ptr_eq(old, event));
            let size = if is_known { known[index] } else { Size::of_event(self.counter, event) };
            sum += size;
            sizes.push(size);
        }
        self.last = (history.clone(), sizes);
        sum.tokens(self.counter)
    }
}

/// What the tails of a history measure, each of its texts counted at most once.
///
/// A tail counts the texts back to the newest response, at its start or before, that tells its input; where none does,
/// but some response reports, all of them. Without reports it counts its own alone.
///
/// An event measures its texts by the counter, or the output that its response reported, if that is more. Where two
/// responses follow each other and the second one's input is larger, the events from the first up to the second share
/// exactly the difference, in proportion to what they measure. Where no response reports, a tail measures its texts.
pub(crate) struct TailSizes<'a> {
    counter: &'a dyn TokenCounter,
    history: &'a History,
    /// The units of the events that were come to, the newest first.
    units: Vec<u64>,
}

impl<'a> TailSizes<'a> {
    pub(crate) fn of(history: &'a History, counter: &'a dyn TokenCounter) -> Self {
        Self { counter, history, units: Vec::with_capacity(history.len()) }
    }

    /// Whether any response of the events from `from` on reports tokens.
    pub(crate) fn reports(&self, from: usize) -> bool {
        let newest_first = self.history.events().rev().take(self.history.len().saturating_sub(from));
        let mut usages = newest_first.filter_map(usage);
        usages.any(|usage| usage.input_tokens > 0 || usage.output_tokens > 0)
    }

    /// The tails of the events from `from` on that start at a turn, the shortest first: where each starts, and what its
    /// turns measure.
    pub(crate) fn tails(&mut self, from: usize) -> impl Iterator<Item = (usize, u64)> {
        let reports = self.reports(from);
        let (mut start, mut total, mut input_after) = (self.history.len(), 0_u64, None);
        // What the events ahead of `start` measure, oldest first, as far as it is known.
        let mut sizes = Vec::new();
        std::iter::from_fn(move || {
            loop {
                if sizes.is_empty() {
                    let told = self.stretch(from, start, reports, &mut sizes);
                    let difference = input_after.zip(told).and_then(|(after, before)| u64::checked_sub(after, before));
                    if let Some(difference) = difference.filter(|difference| *difference > 0) {
                        share(difference, &mut sizes);
                    }
                    input_after = told;
                }
                let size = sizes.pop()?;
                start -= 1;
                if is_turn(self.history.get(start)?) {
                    total = total.saturating_add(size);
                    return Some((start, if reports { total } else { self.counter.tokens(total).0 }));
                }
            }
        })
    }

    /// The sizes of the events between `from` and `end`, back to the newest response among them that tells its input, and
    /// that input; without reports that of the newest event alone, in units.
    fn stretch(&mut self, from: usize, end: usize, reports: bool, sizes: &mut Vec<u64>) -> Option<u64> {
        let mut told = None;
        for index in (from..end).rev() {
            let Some(event) = self.history.get(index) else { break };
            let back = self.history.len() - 1 - index;
            if back == self.units.len() {
                self.units.push(count_units(self.counter, [&**event]));
            }
            let units = self.units[back];
            let output = usage(event).map_or(0, |usage| usage.output_tokens);
            sizes.push(match reports {
                true if event.counts() => self.counter.tokens(units).0.max(output),
                true => 0,
                false => units,
            });
            told = input(event).map(|usage| usage.input_tokens);
            if told.is_some() || !reports {
                break;
            }
        }
        sizes.reverse();
        told
    }
}

/// Gives each its share of `total` in proportion, rounded down, and what is left over to the first.
fn share(total: u64, sizes: &mut [u64]) {
    let sum: u128 = sizes.iter().map(|&size| u128::from(size)).sum();
    let mut left = total;
    for size in sizes.iter_mut() {
        let part = u128::from(total) * u128::from(*size);
        // At most `total`, so it fits.
        *size = part.checked_div(sum).unwrap_or(0) as u64;
        left -= *size;
    }
    if let Some(first) = sizes.first_mut() {
        *first += left;
    }
}

/// What a response says of its own input, if it does.
fn input(event: &Event) -> Option<&Usage> {
    usage(event).filter(|usage| usage.input_tokens > 0)
}

fn usage(event: &Event) -> Option<&Usage> {
    if let Event::Response(response) = event { response.usage.as_ref() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::histories::{Characters, history};

    /// The rule, word for word, over all events at once: what each measures, if any response reports.
    fn by_the_rule(counter: &dyn TokenCounter, events: &[&Event]) -> Option<Vec<u64>> {
        let reported = events.iter().filter_map(|event| usage(event));
        if !reported.clone().any(|usage| usage.input_tokens > 0 || usage.output_tokens > 0) {
            return None;
        }
        let size = |event: &Event| {
            let output = usage(event).map_or(0, |usage| usage.output_tokens);
            if event.counts() { counter.tokens(count_units(counter, [event])).0.max(output) } else { 0 }
        };
        let mut sizes: Vec<_> = events.iter().map(|event| size(event)).collect();
        let told = events.iter().enumerate().filter_map(|(index, event)| Some((index, input(event)?.input_tokens)));
        let told: Vec<_> = told.collect();
        for pair in told.windows(2) {
            if pair[1].1 > pair[0].1 {
                share(pair[1].1 - pair[0].1, &mut sizes[pair[0].0..pair[1].0]);
            }
        }
        Some(sizes)
    }

    proptest! {
        #[test]
        fn what_is_counted_again_is_counted_as_if_anew(
            histories in prop::collection::vec(history(), 1..4), shared in prop::collection::vec(any::<bool>(), 14)
        ) {
            let mut recount = Recount::new(&Characters);
            let mut last = History::from(Vec::new());
            for history in histories {
                let events = history.iter().enumerate().map(|(index, event)| {
                    let old = last.get(index).filter(|_| shared[index]);
                    Arc::clone(old.unwrap_or(event))
                });
                last = History::new(events.collect::<Vec<_>>());
                prop_assert_eq!(recount.count(&last), count_events(&Characters, last.events()));
            }
        }

        #[test]
        fn tails_measure_what_their_turns_do(history in history(), froms in prop::collection::vec(0..14_usize, 1..4)) {
            for counter in [&Characters as &dyn TokenCounter, &retrace_events::tokens::FourCharacters] {
                let mut tail_sizes = TailSizes::of(&history, counter);
                for &from in &froms {
                    let events: Vec<_> = history.events().skip(from).collect();
                    let sizes = by_the_rule(counter, &events);
                    prop_assert_eq!(sizes.is_some(), tail_sizes.reports(from));
                    let measure = |start: usize| match &sizes {
                        Some(sizes) => (start..events.len())
                            .filter(|&index| is_turn(events[index]))
                            .fold(0, |sum: u64, index| sum.saturating_add(sizes[index])),
                        None => {
                            let turns = events[start..].iter().copied().filter(|event| is_turn(event));
                            counter.tokens(count_units(counter, turns)).0
                        }
                    };
                    let starts = (0..events.len()).rev().filter(|&index| is_turn(events[index]));
                    let tails: Vec<_> = starts.map(|start| (from + start, measure(start))).collect();
                    prop_assert_eq!(tail_sizes.tails(from).collect::<Vec<_>>(), tails);
                }
            }
        }
    }
}
