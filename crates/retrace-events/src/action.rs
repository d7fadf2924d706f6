//! Actions: executed tool calls.

use serde::{Deserialize, Serialize};

use crate::event::{Event, Outcome, ToolResult};
use crate::pairing::pair;
use crate::part::ToolCall;
use crate::signature::Signature;

/// One executed tool call: the call and how it went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ActionFields", into = "ActionFields")]
pub struct Action {
    name: String,
    arguments: String,
    outcome: Outcome,
    error: Option<String>,
    signature: Signature,
}

impl Action {
    /// An action from its parts: the tool, the arguments as the model sent them, the outcome, and the kind of the
    /// failure if it was one.
    pub fn new(name: impl Into<String>, arguments: impl Into<String>, outcome: Outcome, error: Option<String>) -> Self {
        let (name, arguments) = (name.into(), arguments.into());
        let signature = Signature::of(&name, &arguments);
        Self { name, arguments, outcome, error, signature }
    }

    /// A call with the result that answered it.
    pub fn of(call: &ToolCall, result: &ToolResult) -> Self {
        Self::new(&*call.name, &*call.arguments, result.outcome, result.error.clone())
    }

    /// The tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The JSON text of the arguments, as the model sent it.
    pub fn arguments(&self) -> &str {
        &self.arguments
    }

    /// How it went.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Whether its execution failed.
    pub fn is_blocked(&self) -> bool {
        self.outcome.is_blocked()
    }

    /// The kind of the failure.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// What makes another call the same one.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }
}

/// How an action is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionFields {
    name: String,
    arguments: String,
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<ActionFields> for Action {
    fn from(fields: ActionFields) -> Self {
        Self::new(fields.name, fields.arguments, fields.outcome, fields.error)
    }
}

impl From<Action> for ActionFields {
    fn from(action: Action) -> Self {
        Self { name: action.name, arguments: action.arguments, outcome: action.outcome, error: action.error }
    }
}

/// The executed calls of a list of events, in the order issued. A call that was never answered is no
/// action, nor is one that a tool of the agent's own answered.
pub fn actions_from_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<Action> {
    pair(events).executed().map(|(call, answer)| Action::of(call.call, answer.result)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_agree_with_the_vectors() {
        for row in retrace_testing::vectors::rows("verifier/actions.jsonl") {
            let name = &row["name"];
            let events: Vec<Event> = serde_json::from_value(row["events"].clone()).unwrap();
            let found: Vec<_> = pair(&events)
                .answered()
                .map(|(call, answer)| {
                    let action = Action::of(call.call, answer.result);
                    serde_json::json!({
                        "call_id": call.call.id,
                        "name": action.name(),
                        "arguments": action.arguments(),
                        "signature": action.signature().to_string(),
                        "blocked": action.is_blocked(),
                        "error_type": action.error(),
                    })
                })
                .collect();
            assert_eq!(serde_json::Value::from(found), row["actions"], "{name}");
        }
    }
}
