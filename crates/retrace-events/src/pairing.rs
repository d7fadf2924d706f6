//! Which result answers which call.
//!
//! Call ids need not be unique, so a call is known by where it stands: a result answers, among the calls with its id
//! that still wait, the first one of the newest response that has such a call.

use std::collections::{HashMap, VecDeque};

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
    // For each id the responses with waiting calls of that id, newest last; within a response the first call first.
    let mut waiting: HashMap<&str, Vec<(usize, VecDeque<usize>)>> = HashMap::new();
    for (event_idx, event) in events.into_iter().enumerate() {
        for (part, call) in event.tool_calls() {
            let number = pairing.calls.len();
            pairing.calls.push(PairedCall { event: event_idx, part, call, answer: None });
            let responses = waiting.entry(&call.id).or_default();
            match responses.last_mut() {
                Some((newest, calls)) if *newest == event_idx => calls.push_back(number),
                _ => responses.push((event_idx, VecDeque::from([number]))),
            }
        }
        let Event::ToolResults(round) = event else { continue };
        for (index, result) in round.results.iter().enumerate() {
            let placed = PlacedResult { event: event_idx, index, result };
            let answered = waiting.get_mut(&*result.call_id).and_then(|responses| {
                let (_, calls) = responses.last_mut()?;
                let number = calls.pop_front();
                if calls.is_empty() {
                    responses.pop();
                }
                number
            });
            match answered {
                Some(number) => pairing.calls[number].answer = Some(placed),
                None => pairing.orphans.push(placed),
            }
        }
    }
    pairing
}
