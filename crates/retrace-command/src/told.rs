//! What an agent that is a program has told of its run.

use retrace_events::{Event, History, ToolCall, ToolResult};

/// The history of a run as retrace learns of it, with the round that is under way.
pub(crate) struct Told {
    history: History,
    /// Calls that the newest response issued and that have no result yet.
    issued: Vec<ToolCall>,
    /// What the calls made since then gave, in the order made.
    results: Vec<Option<ToolResult>>,
}

impl Told {
    /// What is told so far is where the run starts.
    pub(crate) fn of(history: History) -> Self {
        Self { history, issued: Vec::new(), results: Vec::new() }
    }

    /// An event follows.
    pub(crate) fn push(&mut self, event: Event) {
        self.close_round();
        self.issued = event.tool_calls().map(|(_, call)| call.clone()).collect();
        self.history.push(event);
    }

    /// A call is made; its place is where its result goes.
    pub(crate) fn make_call(&mut self, call: &ToolCall) -> usize {
        self.take_issued(&call.id, &call.name);
        self.results.push(None);
        self.results.len() - 1
    }

    /// The result of the call made at a place; of one that an event has overtaken, nothing is told.
    pub(crate) fn result(&mut self, place: usize, result: ToolResult) {
        if let Some(waiting) = self.results.get_mut(place) {
            *waiting = Some(result);
        }
    }

    /// The result of a call that was not made through retrace; gives the call.
    pub(crate) fn own_result(&mut self, result: ToolResult) -> Option<ToolCall> {
        let call = self.take_issued(&result.call_id, &result.name);
        self.results.push(Some(result));
        call
    }

    fn take_issued(&mut self, id: &str, name: &str) -> Option<ToolCall> {
        let place = self.issued.iter().position(|call| call.id == id && call.name == name)?;
        Some(self.issued.remove(place))
    }

    /// Whether every call that was issued or made has its result.
    pub(crate) fn is_round_closed(&self) -> bool {
        self.issued.is_empty() && self.results.iter().all(Option::is_some)
    }

    /// The history so far.
    pub(crate) fn history(&self) -> History {
        let mut history = self.history.clone();
        let results: Vec<_> = self.results.iter().flatten().cloned().collect();
        if !results.is_empty() {
            history.push(Event::results(results));
        }
        history
    }

    fn close_round(&mut self) {
        if self.results.iter().any(Option::is_some) {
            self.history.push(Event::results(self.results.drain(..).flatten()));
        }
        self.results.clear();
    }
}
