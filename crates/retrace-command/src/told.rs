//! What an agent that is a program has told of its run.

use std::collections::BTreeMap;

use retrace_events::{Event, History, ToolCall, ToolResult};

/// The history of a run as retrace learns of it, with the round that is under way.
pub(crate) struct Told {
    history: History,
    /// Calls that the newest response issued and that have no result yet.
    issued: Vec<ToolCall>,
    /// What the calls made since then gave, each at its place among all of the run.
    results: BTreeMap<usize, Option<ToolResult>>,
    n_made: usize,
}

impl Told {
    /// What is told so far is where the run starts.
    pub(crate) fn of(history: History) -> Self {
        Self { history, issued: Vec::new(), results: BTreeMap::new(), n_made: 0 }
    }

    /// The program has put another history in the place of what was told so far.
    pub(crate) fn rewrite(&mut self, history: History) {
        *self = Self { n_made: self.n_made, ..Self::of(history) };
    }

    /// An event follows.
    pub(crate) fn push(&mut self, event: Event) {
        self.close_round();
        self.issued = event.tool_calls().map(|(_, call)| call.clone()).collect();
        self.history.push(event);
    }

    /// A call is made; its place is where its result goes. None for one that the newest response does not hold.
    pub(crate) fn make_call(&mut self, call: &ToolCall) -> Option<usize> {
        self.take_issued(&call.id, &call.name)?;
        Some(self.place(None))
    }

    /// The result of the call made at a place; of one that an event has overtaken, nothing is told.
    pub(crate) fn result(&mut self, place: usize, result: ToolResult) {
        if let Some(waiting) = self.results.get_mut(&place) {
            *waiting = Some(result);
        }
    }

    /// The result of a call that was not made through retrace; gives the call.
    pub(crate) fn own_result(&mut self, result: ToolResult) -> Option<ToolCall> {
        let call = self.take_issued(&result.call_id, &result.name);
        self.place(Some(result));
        call
    }

    fn place(&mut self, result: Option<ToolResult>) -> usize {
        self.n_made += 1;
        self.results.insert(self.n_made, result);
        self.n_made
    }

    fn take_issued(&mut self, id: &str, name: &str) -> Option<ToolCall> {
        let place = self.issued.iter().position(|call| call.id == id && call.name == name)?;
        Some(self.issued.remove(place))
    }

    /// Whether every call that was issued or made has its result.
    pub(crate) fn is_round_closed(&self) -> bool {
        self.issued.is_empty() && self.results.values().all(Option::is_some)
    }

    /// The history so far.
    pub(crate) fn history(&self) -> History {
        let mut history = self.history.clone();
        let results: Vec<_> = self.results.values().flatten().cloned().collect();
        if !results.is_empty() {
            history.push(Event::results(results));
        }
        history
    }

    fn close_round(&mut self) {
        self.history = self.history();
        self.results.clear();
    }
}

#[cfg(test)]
mod tests {
    use retrace_events::Outcome;

    use super::*;

    fn response(ids: &[&str]) -> Event {
        Event::calls(ids.iter().map(|id| ToolCall::new(*id, "check", "{}")))
    }

    fn result(id: &str) -> ToolResult {
        ToolResult::text_result(&ToolCall::new(id, "check", "{}"), Outcome::Ok, id)
    }

    /// A program may give up a call and go on; what the call gives then is no result of the next one.
    #[test]
    fn a_result_that_comes_too_late_takes_nobodys_place() {
        for is_rewritten in [false, true] {
            let mut told = Told::of(History::from(Vec::new()));
            told.push(response(&["a"]));
            let late = told.make_call(&ToolCall::new("a", "check", "{}")).unwrap();
            if is_rewritten {
                told.rewrite(History::from(vec![Event::request("go")]));
            }
            told.push(response(&["b"]));
            let place = told.make_call(&ToolCall::new("b", "check", "{}")).unwrap();
            told.result(late, result("a"));
            assert!(!told.is_round_closed());
            told.result(place, result("b"));
            assert!(told.is_round_closed());
            assert_eq!(told.history().last().map(|event| &**event), Some(&Event::results([result("b")])));
        }
    }
}
