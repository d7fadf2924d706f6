//! What requests are made of, each thing once: pieces by their text, and histories as a tree of which they are the paths.

use std::collections::HashMap;
use std::sync::Arc;

use retrace_events::{
    Event, Extra, History, Part, PartBody, Request, Response, SentEvent, Summary, ToolCall, ToolResult, ToolResults,
    ToolSpec, canonical_arguments,
};
use serde::Serialize;

/// The number of the empty history.
pub(super) const EMPTY: u32 = 0;

/// The pieces and histories of a cassette, by number.
#[derive(Debug)]
pub(super) struct Index {
    numbers: HashMap<Arc<str>, u32>,
    pieces: Vec<Arc<str>>,
    /// Each history by the one that it goes on from and the piece of its newest event.
    longer: HashMap<(u32, u32), u32>,
    histories: Vec<Node>,
}

/// A history: one event more than another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) after: u32,
    pub(super) event: u32,
    pub(super) n_events: u32,
}

/// What tells requests apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) model: u32,
    pub(super) seed: u64,
    pub(super) instructions: Option<u32>,
    pub(super) tools: u32,
    pub(super) history: u32,
}

impl Default for Index {
    fn default() -> Self {
        let empty = Node { after: EMPTY, event: 0, n_events: 0 };
        Self { numbers: HashMap::new(), pieces: Vec::new(), longer: HashMap::new(), histories: vec![empty] }
    }
}

impl Index {
    /// The number of a piece with this text.
    pub(super) fn find(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// Adds a piece that is not there yet.
    pub(super) fn add(&mut self, text: String) -> u32 {
        let (number, text) = (self.pieces.len() as u32, Arc::<str>::from(text));
        self.numbers.insert(Arc::clone(&text), number);
        self.pieces.push(text);
        number
    }

    /// The text of a piece.
    pub(super) fn piece(&self, number: u32) -> Option<&str> {
        self.pieces.get(number as usize).map(|text| &**text)
    }

    pub(super) fn n_pieces(&self) -> u32 {
        self.pieces.len() as u32
    }

    /// The history that is `after` and one event more.
    pub(super) fn longer(&self, after: u32, event: u32) -> Option<u32> {
        self.longer.get(&(after, event)).copied()
    }

    /// Adds a history that is not there yet.
    pub(super) fn add_longer(&mut self, after: u32, event: u32) -> u32 {
        let number = self.histories.len() as u32;
        let n_events = self.histories[after as usize].n_events + 1;
        self.longer.insert((after, event), number);
        self.histories.push(Node { after, event, n_events });
        number
    }

    /// A history; the empty one for a number that there is not.
    pub(super) fn history(&self, number: u32) -> Node {
        self.histories.get(number as usize).copied().unwrap_or(self.histories[0])
    }

    pub(super) fn n_histories(&self) -> u32 {
        self.histories.len() as u32
    }

    /// The events of a history, oldest first, as pieces.
    pub(super) fn events(&self, number: u32) -> Vec<u32> {
        let mut node = self.history(number);
        let mut events = Vec::with_capacity(node.n_events as usize);
        while node.n_events > 0 {
            events.push(node.event);
            node = self.history(node.after);
        }
        events.reverse();
        events
    }
}

/// The texts of shared events by their address, so that a history that many requests share is written out once.
///
/// An event is held as long as its address is known, so no other can come to lie there.
#[derive(Debug)]
pub(super) struct Seen<T>(HashMap<usize, (Arc<Event>, T)>);

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Copy> Seen<T> {
    /// What `find` makes of the text of each event that is sent of a history.
    pub(super) fn events(&mut self, history: &History, mut find: impl FnMut(String) -> T) -> Vec<T> {
        let counting = history.iter().enumerate().filter(|(_, event)| event.counts());
        let each = counting.zip(history.sent().events()).map(|((index, event), sent)| {
            let is_whole = !event.content().iter().any(Part::is_request_scoped);
            if !is_whole || index >= history.shared().len() {
                return find(event_text(sent));
            }
            let entry = self.0.entry(Arc::as_ptr(event).addr());
            entry.or_insert_with(|| (Arc::clone(event), find(event_text(sent)))).1
        });
        each.collect()
    }
}

/// An event as it is sent, as canonical JSON: without what no provider is sent, such as marks and usage.
fn event_text(sent: SentEvent<'_>) -> String {
    let parts = || sent.parts().map(bare).collect();
    json(&match sent.event {
        Event::Request(_) => Event::Request(Request { content: parts(), ..Request::default() }),
        Event::Summary(_) => Event::Summary(Summary { content: parts(), ..Summary::default() }),
        Event::Response(response) => Event::Response(Response {
            content: parts(),
            provider_data: response.provider_data.clone(),
            ..Response::default()
        }),
        Event::ToolResults(round) => Event::ToolResults(ToolResults {
            results: round.results.iter().map(bare_result).collect(),
            ..ToolResults::default()
        }),
        Event::Usage(usage) => Event::Usage(usage.clone()),
    })
}

/// The text of the n-th event that is sent of a history, from 0; empty where there is none.
pub(super) fn sent_text(history: &History, n: usize) -> String {
    history.sent().events().nth(n).map(event_text).unwrap_or_default()
}

fn bare(part: &Part) -> Part {
    let mut body = part.body.clone();
    if let PartBody::ToolCall(call) = &mut body {
        *call = ToolCall::new(&*call.id, &*call.name, canonical_arguments(&call.arguments));
    }
    body.into()
}

fn bare_result(result: &ToolResult) -> ToolResult {
    ToolResult {
        call_id: result.call_id.clone(),
        name: result.name.clone(),
        content: result.content.iter().map(bare).collect(),
        outcome: result.outcome,
        error: result.error.clone(),
        outcome_from: None,
        own: false,
        extra: Extra::default(),
    }
}

/// The instructions as canonical JSON.
pub(super) fn instructions_text(instructions: &str) -> String {
    json(instructions)
}

/// The tools as canonical JSON.
pub(super) fn tools_text(tools: &[ToolSpec]) -> String {
    let bare = |tool: &ToolSpec| ToolSpec { extra: Extra::default(), ..tool.clone() };
    json(&tools.iter().map(bare).collect::<Vec<_>>())
}

/// The canonical JSON of a value: the same in whatever order its maps come.
fn json(value: &(impl Serialize + ?Sized)) -> String {
    canonical(&serde_json::to_string(value).expect("no map of a prompt has a key that is no string"))
}

/// The canonical form of a JSON text.
pub(super) fn canonical(json: &str) -> String {
    canonical_arguments(json)
}
