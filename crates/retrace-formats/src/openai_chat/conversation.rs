//! From messages to events: rounds, and results that say poorly which call they answer.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use retrace_events::pairing::pair;
use retrace_events::{Event, PartBody, Request, Response, ToolResult, ToolResults};

use super::exchange::same_event;
use super::message::Message;
use crate::finding::{Finding, FindingKind};
use crate::place::Place;

/// The messages of one run, read so far.
#[derive(Default)]
pub(super) struct Conversation {
    /// What was noticed.
    pub(super) findings: Vec<Finding>,
    instructions: Vec<String>,
    events: Vec<Event>,
    /// Where the messages of each event stand.
    places: Vec<Vec<Place>>,
    waiting: Waiting,
}

impl Conversation {
    /// Adds a message. System prompts ahead of everything else are the agent's instructions; results that follow one
    /// another are one event.
    pub(super) fn push(&mut self, message: Message, place: Place) {
        if !matches!(message, Message::Result(_)) {
            self.close_results();
        }
        match message {
            Message::System(Request { content, .. }) if self.events.is_empty() => {
                self.instructions.extend(content.into_iter().filter_map(|part| match part.body {
                    PartBody::System(text) => Some(text.into()),
                    _ => None,
                }));
            }
            Message::System(request) | Message::Request(request) => self.add(Event::Request(request), place),
            Message::Response(response) => self.add_response(response, place),
            Message::Result(result) => match (self.events.last_mut(), self.places.last_mut()) {
                (Some(Event::ToolResults(round)), Some(places)) => {
                    round.results.push(result);
                    places.push(place);
                }
                _ => self.add(Event::results([result]), place),
            },
        }
    }

    /// Adds the answer of a logged response, unless the messages end with it.
    pub(super) fn push_answer(&mut self, answer: Response, place: Place) {
        self.close_results();
        let newest = self.events.len().saturating_sub(1);
        if let Some(last @ Event::Response(_)) = self.events.last_mut() {
            let mut again = answer.clone();
            give_ids(&mut again, newest);
            let again = Event::Response(again);
            if same_event(last, &again) {
                // The response says more of it: the model, the tokens.
                *last = again;
                return;
            }
        }
        self.add_response(answer, place);
    }

    /// The instructions, the events, and what was noticed.
    pub(super) fn finish(mut self) -> (Option<String>, Vec<Event>, Vec<Finding>) {
        self.close_results();
        self.name_results();
        let instructions = (!self.instructions.is_empty()).then(|| self.instructions.join("\n\n"));
        (instructions, self.events, self.findings)
    }

    fn add(&mut self, event: Event, place: Place) {
        self.events.push(event);
        self.places.push(vec![place]);
    }

    fn add_response(&mut self, mut response: Response, place: Place) {
        let made = give_ids(&mut response, self.events.len());
        self.waiting = Waiting::default();
        let (mut ids, mut shared) = (HashSet::new(), HashSet::new());
        for (call, is_made) in response.tool_calls().zip(made) {
            self.waiting.add(&call.id, &call.name, is_made);
            let kind = if is_made {
                FindingKind::MadeId { tool: call.name.to_string() }
            } else if !ids.insert(&*call.id) && shared.insert(&*call.id) {
                FindingKind::SharedId { id: call.id.to_string() }
            } else {
                continue;
            };
            self.findings.push(Finding::new(place.clone(), kind));
        }
        self.add(Event::Response(response), place);
    }

    /// Finds, for the results added last, the calls that they answer where their ids do not say. The surest come first,
    /// so that the order in which the results came does not matter.
    fn close_results(&mut self) {
        let (Some(Event::ToolResults(round)), Some(places)) = (self.events.last_mut(), self.places.last()) else {
            return;
        };
        let ToolResults { results, .. } = round;
        let mut unpaired: Vec<_> = (0..results.len()).filter(|&i| !self.waiting.answer(&results[i])).collect();
        for is_named in [true, false] {
            unpaired.retain(|&i| {
                let result = &mut results[i];
                let call = if result.name.is_empty() != is_named { self.waiting.take_only(result) } else { None };
                let Some(WaitingCall { id, name, .. }) = call else { return true };
                (result.call_id, result.name) = (id.into(), name.as_str().into());
                self.findings.push(Finding::new(places[i].clone(), FindingKind::PairedWithoutId { tool: name }));
                false
            });
        }
        let unclear = unpaired.into_iter().filter(|&i| results[i].call_id.is_empty());
        self.findings.extend(unclear.map(|i| Finding::new(places[i].clone(), FindingKind::UnclearResult)));
    }

    /// Gives results the names of their calls where they have none, and notes what does not pair.
    fn name_results(&mut self) {
        let pairing = pair(&self.events);
        let mut names = Vec::new();
        for paired in &pairing.calls {
            match paired.answer {
                Some(answer) if answer.result.name.is_empty() => {
                    names.push((answer.event, answer.index, paired.call.name.clone()));
                }
                Some(_) => {}
                None => {
                    let kind = FindingKind::UnansweredCall { tool: paired.call.name.to_string() };
                    self.findings.push(Finding::new(self.places[paired.event][0].clone(), kind));
                }
            }
        }
        for orphan in pairing.orphans.iter().filter(|orphan| !orphan.result.call_id.is_empty()) {
            let kind = FindingKind::OrphanResult { id: orphan.result.call_id.to_string() };
            self.findings.push(Finding::new(self.places[orphan.event][orphan.index].clone(), kind));
        }
        for (event, index, name) in names {
            if let Event::ToolResults(round) = &mut self.events[event] {
                round.results[index].name = name;
            }
        }
    }
}

/// Gives the calls of the response at an index ids where they have none. Returns for each call whether it was given one.
fn give_ids(response: &mut Response, event_idx: usize) -> Vec<bool> {
    let calls = response.content.iter_mut().filter_map(|part| match &mut part.body {
        PartBody::ToolCall(call) => Some(call),
        _ => None,
    });
    let made = calls.enumerate().map(|(index, call)| {
        let is_made = call.id.is_empty();
        if is_made {
            call.id = format!("no-id-{event_idx}-{index}").into();
        }
        is_made
    });
    made.collect()
}

/// The calls of the newest response that nothing has answered yet.
#[derive(Default)]
struct Waiting {
    calls: Vec<WaitingCall>,
    open: BTreeSet<usize>,
    open_by_name: HashMap<String, BTreeSet<usize>>,
    /// In the order issued; those answered otherwise may still be among them.
    by_id: HashMap<String, VecDeque<usize>>,
}

#[derive(Clone)]
struct WaitingCall {
    id: String,
    name: String,
    is_made: bool,
}

impl Waiting {
    fn add(&mut self, id: &str, name: &str, is_made: bool) {
        let number = self.calls.len();
        self.calls.push(WaitingCall { id: id.to_owned(), name: name.to_owned(), is_made });
        self.open.insert(number);
        self.open_by_name.entry(name.to_owned()).or_default().insert(number);
        if !is_made {
            self.by_id.entry(id.to_owned()).or_default().push_back(number);
        }
    }

    /// Whether a call with the id of this result waited; it does no more.
    fn answer(&mut self, result: &ToolResult) -> bool {
        let Some(calls) = self.by_id.get_mut(&*result.call_id) else { return false };
        let Some(number) = std::iter::from_fn(|| calls.pop_front()).find(|number| self.open.contains(number)) else {
            return false;
        };
        self.close(number);
        true
    }

    /// Takes the only call that this result can answer: of its name, if it has one, and, if it has an id, with none of
    /// its own.
    fn take_only(&mut self, result: &ToolResult) -> Option<WaitingCall> {
        let open = if result.name.is_empty() { &self.open } else { self.open_by_name.get(&*result.name)? };
        let number = open.first().copied().filter(|_| open.len() == 1)?;
        let call = self.calls[number].clone();
        if !call.is_made && !result.call_id.is_empty() {
            return None;
        }
        self.close(number);
        Some(call)
    }

    fn close(&mut self, number: usize) {
        self.open.remove(&number);
        if let Some(calls) = self.open_by_name.get_mut(&self.calls[number].name) {
            calls.remove(&number);
        }
    }
}
