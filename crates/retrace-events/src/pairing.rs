//! Which result answers which call.
//!
//! Call ids need not be unique, so a call is known by where it stands: a result answers, among the calls with its id
//! that still wait, the first one of the newest response that has such a call.

use std::collections::HashMap;

use crate::event::{Event, ToolResult};
use crate::part::ToolCall;

/// The calls of a list of events and the results that answered them.
#[derive(Clone, Debug, Default)]
pub struct Pairing<'a> {
    /// Every call, in the order issued.
    pub calls: Vec<PairedCall<'a>>,
    /// Results that answer no call.
    pub orphans: Vec<PlacedResult<'a>>,
}

/// A call and its answer.
#[derive(Clone, Copy, Debug)]
pub struct PairedCall<'a> {
    /// The index of the response that issued it.
    pub event: usize,
    /// The index of its part in that response.
    pub part: usize,
    /// The call.
    pub call: &'a ToolCall,
    /// Its answer, if one came.
    pub answer: Option<PlacedResult<'a>>,
}

/// A result and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct PlacedResult<'a> {
    /// The index of its `tool_results` event.
    pub event: usize,
    /// Its index among that event's results.
    pub index: usize,
    /// The result.
    pub result: &'a ToolResult,
}

impl<'a> Pairing<'a> {
    /// The calls that were answered, in the order issued, each with its answer.
    pub fn answered(&self) -> impl Iterator<Item = (&PairedCall<'a>, PlacedResult<'a>)> {
        self.calls.iter().filter_map(|call| call.answer.map(|answer| (call, answer)))
    }

    /// Those of them that an environment executed: tools of the agent's own answered the others.
    pub fn executed(&self) -> impl Iterator<Item = (&PairedCall<'a>, PlacedResult<'a>)> {
        self.answered().filter(|(_, answer)| !answer.result.own)
    }
}

/// Pairs calls and results, in time linear in the number of both.
///
/// ```
/// use retrace_events::{Event, Outcome, ToolCall, ToolResult, pairing::pair};
///
/// let call = ToolCall::new("c1", "login", "{}");
/// let result = ToolResult::text_result(&call, Outcome::Ok, "s-4821");
/// let events = [Event::request("go"), Event::calls([call]), Event::results([result])];
/// let pairing = pair(&events);
/// assert_eq!(pairing.calls[0].answer.unwrap().event, 2);
/// ```
pub fn pair<'a>(events: impl IntoIterator<Item = &'a Event>) -> Pairing<'a> {
    let mut pairing = Pairing::default();
    // Most results answer the calls of the newest response in order: from this one on its calls wait, all of them. Those
    // that wait otherwise are known by their ids, for each the next to be answered last.
    let mut next = 0;
    let mut waiting: HashMap<&str, Vec<usize>> = HashMap::new();
    for (event_idx, event) in events.into_iter().enumerate() {
        let n_before = pairing.calls.len();
        pairing.calls.extend(event.tool_calls().map(|(part, call)| PairedCall {
            event: event_idx,
            part,
            call,
            answer: None,
        }));
        if pairing.calls.len() > n_before {
            shelve(&pairing.calls[next..n_before], next, &mut waiting);
            next = n_before;
        }
        let Event::ToolResults(round) = event else { continue };
        for (index, result) in round.results.iter().enumerate() {
            let placed = PlacedResult { event: event_idx, index, result };
            if let Some(call) = pairing.calls.get_mut(next).filter(|call| call.call.id == result.call_id) {
                call.answer = Some(placed);
                next += 1;
                continue;
            }
            shelve(&pairing.calls[next..], next, &mut waiting);
            next = pairing.calls.len();
            match waiting.get_mut(&*result.call_id).and_then(Vec::pop) {
                Some(number) => pairing.calls[number].answer = Some(placed),
                None => pairing.orphans.push(placed),
            }
        }
    }
    pairing
}

/// Notes calls, of which the first has this number, as waiting.
fn shelve<'a>(calls: &[PairedCall<'a>], first: usize, waiting: &mut HashMap<&'a str, Vec<usize>>) {
    for (index, issued) in calls.iter().enumerate().rev() {
        waiting.entry(&issued.call.id).or_default().push(first + index);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::any_events::any_events;
    use crate::event::Outcome;

    /// The rule, word for word: for each call the place of its answer, and the places of the orphans.
    type Places = (Vec<Option<(usize, usize)>>, Vec<(usize, usize)>);

    fn by_the_rule(events: &[Event]) -> Places {
        let calls: Vec<_> = events
            .iter()
            .enumerate()
            .flat_map(|(event, e)| e.tool_calls().map(move |(part, call)| (event, part, call)))
            .collect();
        let (mut answers, mut orphans) = (vec![None; calls.len()], Vec::new());
        for (event, e) in events.iter().enumerate() {
            let Event::ToolResults(round) = e else { continue };
            for (index, result) in round.results.iter().enumerate() {
                let waits = |&number: &usize| {
                    let (issued_at, _, call) = calls[number];
                    issued_at < event && call.id == result.call_id && answers[number].is_none()
                };
                let newest = (0..calls.len()).filter(waits).map(|number| calls[number].0).max();
                match (0..calls.len()).filter(waits).find(|&number| Some(calls[number].0) == newest) {
                    Some(number) => answers[number] = Some((event, index)),
                    None => orphans.push((event, index)),
                }
            }
        }
        (answers, orphans)
    }

    fn places(pairing: &Pairing<'_>) -> Places {
        let place = |placed: &PlacedResult<'_>| (placed.event, placed.index);
        (
            pairing.calls.iter().map(|call| call.answer.as_ref().map(place)).collect(),
            pairing.orphans.iter().map(place).collect(),
        )
    }

    proptest! {
        #[test]
        fn results_answer_calls_by_the_rule(events in any_events()) {
            prop_assert_eq!(places(&pair(&events)), by_the_rule(&events));
        }

        #[test]
        fn every_result_answers_one_call_or_none(events in any_events()) {
            let pairing = pair(&events);
            let (answers, orphans) = places(&pairing);
            let mut used: Vec<_> = answers.into_iter().flatten().chain(orphans).collect();
            used.sort_unstable();
            let all = events.iter().enumerate().flat_map(|(event, e)| {
                let n = if let Event::ToolResults(round) = e { round.results.len() } else { 0 };
                (0..n).map(move |index| (event, index))
            });
            prop_assert_eq!(used, all.collect::<Vec<_>>());
            for (call, answer) in pairing.answered() {
                prop_assert!(call.event < answer.event);
                prop_assert_eq!(&call.call.id, &answer.result.call_id);
            }
        }

        #[test]
        fn what_follows_changes_no_answer(events in any_events(), n: prop::sample::Index) {
            let n = n.index(events.len() + 1);
            let (before, _) = places(&pair(&events[..n]));
            let (all, _) = places(&pair(&events));
            for (before, all) in before.iter().zip(all) {
                prop_assert_eq!(*before, all.filter(|(event, _)| *event < n));
            }
        }
    }

    #[test]
    fn a_result_answers_the_first_call_of_the_newest_response_that_waits() {
        let call = |name: &str| ToolCall::new("0", name, "{}");
        let results = |n: usize| Event::results(vec![ToolResult::text_result(&call("any"), Outcome::Ok, ""); n]);
        let events =
            [Event::calls([call("old"), call("older")]), Event::calls([call("a"), call("b")]), results(3), results(2)];
        let pairing = pair(&events);
        let mut answered: Vec<_> = pairing.answered().map(|(c, a)| ((a.event, a.index), &*c.call.name)).collect();
        answered.sort_unstable();
        let order: Vec<_> = answered.into_iter().map(|(_, name)| name).collect();
        assert_eq!(order, ["a", "b", "old", "older"]);
        assert_eq!(pairing.orphans.iter().map(|o| (o.event, o.index)).collect::<Vec<_>>(), [(3, 1)]);
    }
}
