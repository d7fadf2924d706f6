//! Tools: what answers a call.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use retrace_events::{Outcome, Part, SmolStr, ToolCall, ToolResult, ToolSpec};

use crate::text::{MAX_NAME, shorten};

/// One tool of an agent.
///
/// A tool is called with arguments that its [`Toolbox`](crate::Toolbox) found to fit the schema in its spec. It does
/// nothing before the future is polled, and a failed call is an answer like any other; only what ends the rollout is an
/// `Err`.
pub trait Tool: Send + Sync {
    /// What a model is told of it.
    fn spec(&self) -> &ToolSpec;

    /// Executes a call. `arguments` is the JSON text of an object.
    ///
    /// # Errors
    /// When the call has no result, which ends the rollout. A call that failed has one: [`ToolOutput::failed`].
    fn call<'a>(&'a self, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>>;
}

/// What a tool answered. A failed call is an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// Text and media.
    pub content: Vec<Part>,
    /// Whether the call worked.
    pub outcome: Outcome,
    /// The kind of the failure, such as the name of an error type.
    pub error: Option<String>,
}

/// Why a call has no result, which ends the rollout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Only what was recorded can be answered, and this call was not.
    #[error("`{call}` was not called in the recording")]
    OffTheRecord {
        /// The call, cut short.
        call: String,
    },
    /// What stands behind the tools is broken.
    #[error("{message}")]
    Environment {
        /// What happened.
        message: String,
    },
}

impl ToolOutput {
    /// The answer of a call that worked.
    pub fn ok(text: impl Into<SmolStr>) -> Self {
        Self { content: vec![Part::text(text)], outcome: Outcome::Ok, error: None }
    }

    /// The answer of a call that failed, with the kind of the failure.
    pub fn failed(kind: impl Into<String>, text: impl Into<SmolStr>) -> Self {
        Self { content: vec![Part::text(text)], outcome: Outcome::Error, error: Some(kind.into()) }
    }

    /// The answer to a call of a tool that does not exist.
    pub fn not_found(name: &str) -> Self {
        let text = format!("there is no tool `{}`", shorten(name, MAX_NAME));
        Self { content: vec![Part::text(text)], outcome: Outcome::NotFound, error: Some("ToolNotFound".to_owned()) }
    }

    /// The text parts, joined.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Part::as_text).collect()
    }

    /// The result that answers a call with this.
    pub fn into_result(self, call: &ToolCall) -> ToolResult {
        let Self { content, outcome, error } = self;
        ToolResult { content: content.into(), error, ..ToolResult::text_result(call, outcome, "") }
    }
}

impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn spec(&self) -> &ToolSpec {
        (**self).spec()
    }

    fn call<'a>(&'a self, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        (**self).call(arguments)
    }
}

impl<T: Tool + ?Sized> Tool for Box<T> {
    fn spec(&self) -> &ToolSpec {
        (**self).spec()
    }

    fn call<'a>(&'a self, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        (**self).call(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_answers_a_call_with_all_it_holds() {
        let call = ToolCall::new("c1", "check", "{}");
        let result = ToolOutput::failed("Refused", "no").into_result(&call);
        assert_eq!((&*result.call_id, &*result.name, result.text().as_str()), ("c1", "check", "no"));
        assert_eq!((result.outcome, result.error.as_deref()), (Outcome::Error, Some("Refused")));
        assert_eq!(ToolOutput::not_found("nope").into_result(&call).outcome, Outcome::NotFound);
    }

    #[test]
    fn a_missing_tool_is_named_but_never_at_length() {
        assert_eq!(ToolOutput::not_found("nope").text(), "there is no tool `nope`");
        assert!(ToolOutput::not_found(&"é".repeat(10_000)).text().chars().count() < 200);
    }
}
