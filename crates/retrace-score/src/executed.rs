//! What was executed before a boundary: what makes a later call a repeat.

use std::collections::HashSet;
use std::sync::Arc;

use retrace_events::{Action, Boundary, Signature};

/// Says what was executed before a boundary.
pub trait Executed {
    /// Whether this very call was.
    fn has_executed(&self, call: &Signature) -> bool;

    /// Whether any call of this tool was.
    fn has_used(&self, tool: &str) -> bool;
}

/// What was executed, gathered from calls. Where a recording is at hand its [`Boundary`] needs no gathering.
///
/// ```
/// use retrace_events::{Action, Outcome, Signature};
/// use retrace_score::{Executed, ExecutedCalls};
///
/// let executed: ExecutedCalls = [Action::new("read", r#"{"file": "a"}"#, Outcome::Ok, None)].iter().collect();
/// assert!(executed.has_executed(&Signature::of("read", r#"{ "file":"a" }"#)));
/// assert!(!executed.has_executed(&Signature::of("read", r#"{"file": "b"}"#)));
/// assert!(executed.has_used("read"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutedCalls {
    calls: HashSet<Signature>,
    tools: HashSet<String>,
}

impl ExecutedCalls {
    /// Adds a call.
    pub fn insert(&mut self, call: Signature) {
        if !self.tools.contains(call.name()) {
            self.tools.insert(call.name().to_owned());
        }
        self.calls.insert(call);
    }
}

impl FromIterator<Signature> for ExecutedCalls {
    fn from_iter<I: IntoIterator<Item = Signature>>(calls: I) -> Self {
        let mut executed = Self::default();
        calls.into_iter().for_each(|call| executed.insert(call));
        executed
    }
}

impl<'a> FromIterator<&'a Action> for ExecutedCalls {
    fn from_iter<I: IntoIterator<Item = &'a Action>>(actions: I) -> Self {
        actions.into_iter().map(|action| action.signature().clone()).collect()
    }
}

impl Executed for ExecutedCalls {
    fn has_executed(&self, call: &Signature) -> bool {
        self.calls.contains(call)
    }

    fn has_used(&self, tool: &str) -> bool {
        self.tools.contains(tool)
    }
}

/// A plain set of calls. Asking it for a tool goes through all of them.
impl Executed for HashSet<Signature> {
    fn has_executed(&self, call: &Signature) -> bool {
        self.contains(call)
    }

    fn has_used(&self, tool: &str) -> bool {
        self.iter().any(|call| call.name() == tool)
    }
}

/// Answers from the index of the recording, at the same cost however many calls lie before it.
impl Executed for Boundary {
    fn has_executed(&self, call: &Signature) -> bool {
        Boundary::has_executed(self, call)
    }

    fn has_used(&self, tool: &str) -> bool {
        self.trajectory().has_used(tool, self.executed())
    }
}

impl<E: Executed + ?Sized> Executed for &E {
    fn has_executed(&self, call: &Signature) -> bool {
        (**self).has_executed(call)
    }

    fn has_used(&self, tool: &str) -> bool {
        (**self).has_used(tool)
    }
}

impl<E: Executed + ?Sized> Executed for Box<E> {
    fn has_executed(&self, call: &Signature) -> bool {
        (**self).has_executed(call)
    }

    fn has_used(&self, tool: &str) -> bool {
        (**self).has_used(tool)
    }
}

impl<E: Executed + ?Sized> Executed for Arc<E> {
    fn has_executed(&self, call: &Signature) -> bool {
        (**self).has_executed(call)
    }

    fn has_used(&self, tool: &str) -> bool {
        (**self).has_used(tool)
    }
}

#[cfg(test)]
mod tests {
    use retrace_events::{Event, Header, Outcome, Recording, ToolCall, ToolResult, Trajectory};

    use super::*;

    #[test]
    fn a_boundary_knows_what_lies_before_it_and_nothing_after() {
        let round = |tool: &str| {
            let call = ToolCall::new("c", tool, r#"{"n":1}"#);
            let result = ToolResult::text_result(&call, Outcome::Error, "no");
            [Event::calls([call]), Event::results([result])]
        };
        let events = ["login", "list", "stock"].map(round).into_iter().flatten();
        let trajectory = Arc::new(Trajectory::new(Recording::new(Header::new("r"), events)));
        let boundary: Arc<dyn Executed> = Arc::new(Boundary::new(&trajectory, 4).unwrap());
        for (tool, expected) in [("login", true), ("list", true), ("stock", false)] {
            assert_eq!(boundary.has_executed(&Signature::of(tool, r#"{ "n": 1 }"#)), expected);
            assert!(!boundary.has_executed(&Signature::of(tool, r#"{"n":2}"#)));
            assert_eq!(boundary.has_used(tool), expected);
        }
    }
}
