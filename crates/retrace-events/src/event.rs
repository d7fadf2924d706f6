//! The events of a run, in the order the agent saw them.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::few::Few;
use crate::part::{Part, PartBody, ToolCall};
use crate::raw::{Extra, Raw};

/// One event of a recorded run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// What the user, or the harness on the user's channel, said.
    Request(Request),
    /// One answer of the model.
    Response(Response),
    /// The results of the calls of a response; closes a round.
    ToolResults(ToolResults),
    /// Stands in for events that a strategy removed.
    Summary(Summary),
    /// Telemetry: tokens spent. Never reaches a model.
    Usage(UsageEvent),
}

/// What the user, or the harness on the user's channel, said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Text, system prompts and media.
    pub content: Few<Part>,
    /// Fields retrace does not know.
    pub extra: Extra,
}

/// One answer of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Text, thinking and tool calls.
    pub content: Few<Part>,
    /// The model that answered.
    pub model: Option<String>,
    /// The tokens of this one model call.
    pub usage: Option<Usage>,
    /// What the provider wants back, verbatim.
    pub provider_data: Option<Raw>,
    /// Fields retrace does not know.
    pub extra: Extra,
}

/// The results of the calls of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolResults {
    /// One result a call, in any order.
    pub results: Few<ToolResult>,
    /// Fields retrace does not know.
    pub extra: Extra,
}

/// What came back from one tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call it answers; not unique, see [`pair`](crate::pairing::pair).
    pub call_id: SmolStr,
    /// The tool.
    pub name: SmolStr,
    /// Text and media.
    pub content: Few<Part>,
    /// Whether the call worked.
    pub outcome: Outcome,
    /// The kind of the failure, such as the class of an exception.
    pub error: Option<String>,
    /// How the outcome was known.
    pub outcome_from: Option<OutcomeSource>,
    /// Whether a tool of the agent's own answered, and not one of its environment: its call is no action.
    pub own: bool,
    /// Fields retrace does not know.
    pub extra: Extra,
}

/// Stands in for events that a strategy removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The text of the summary.
    pub content: Few<Part>,
    /// How many events it stands for.
    pub replaced: u64,
    /// Fields retrace does not know.
    pub extra: Extra,
}

/// Tokens spent, as telemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageEvent {
    /// What they were spent on, such as `compaction`.
    pub kind: String,
    /// The tokens.
    pub usage: Usage,
    /// The model they were spent with.
    pub model: Option<String>,
    /// Fields retrace does not know.
    pub extra: Extra,
}

/// Whether a call worked. The last two are a *blocked* action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The call worked.
    Ok,
    /// The tool ran, or refused its arguments, and reported a failure.
    Error,
    /// There is no such tool.
    NotFound,
}

impl Outcome {
    /// Whether the execution failed.
    pub fn is_blocked(self) -> bool {
        self != Self::Ok
    }
}

/// How the outcome of a recorded result was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeSource {
    /// A field of the source said so.
    Flag,
    /// The type of the source's event said so.
    Event,
    /// The exit code of a command said so.
    ExitCode,
    /// An [`OutcomeRule`](crate::OutcomeRule) of the user said so.
    Rule,
    /// The source cannot tell; such a result is written as `ok`.
    Unknown,
}

/// Tokens of a model call, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the whole request, the cached part included.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Tokens of the request read from the provider's cache.
    pub cache_read_tokens: Option<u64>,
    /// Tokens of the request written to the provider's cache.
    pub cache_write_tokens: Option<u64>,
    /// Fields retrace does not know.
    pub extra: Extra,
}

impl Usage {
    /// Input and output together.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds the tokens of another call; fields retrace does not know are not added up.
    pub fn add(&mut self, other: &Self) {
        let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = add(self.cache_read_tokens, other.cache_read_tokens);
        self.cache_write_tokens = add(self.cache_write_tokens, other.cache_write_tokens);
    }
}

impl Event {
    /// A request of one text part.
    pub fn request(text: impl Into<SmolStr>) -> Self {
        Self::Request(Request { content: [Part::text(text)].into(), ..Request::default() })
    }

    /// A response of one text part.
    pub fn answer(text: impl Into<SmolStr>) -> Self {
        Self::Response(Response { content: [Part::text(text)].into(), ..Response::default() })
    }

    /// A response that holds nothing but calls.
    pub fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        let content = calls.into_iter().map(|call| Part::from(PartBody::ToolCall(call))).collect();
        Self::Response(Response { content, ..Response::default() })
    }

    /// The results of a round.
    pub fn results(results: impl IntoIterator<Item = ToolResult>) -> Self {
        Self::ToolResults(ToolResults { results: results.into_iter().collect(), extra: Extra::default() })
    }

    /// Its `type`, as the format spells it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "request",
            Self::Response(_) => "response",
            Self::ToolResults(_) => "tool_results",
            Self::Summary(_) => "summary",
            Self::Usage(_) => "usage",
        }
    }

    /// Whether a model may see it: any event but `usage`.
    pub fn counts(&self) -> bool {
        !matches!(self, Self::Usage(_))
    }

    /// Whether it is a request of nothing but parts that are sent only while no response follows, such as a warning.
    pub fn is_request_scoped(&self) -> bool {
        matches!(self, Self::Request(request)
            if !request.content.is_empty() && request.content.iter().all(Part::is_request_scoped))
    }

    /// Its own parts; the parts inside results are not among them.
    pub fn content(&self) -> &[Part] {
        match self {
            Self::Request(request) => &request.content,
            Self::Response(response) => &response.content,
            Self::Summary(summary) => &summary.content,
            Self::ToolResults(_) | Self::Usage(_) => &[],
        }
    }

    /// The calls of a response, in order, each with the index of its part.
    pub fn tool_calls(&self) -> impl Iterator<Item = (usize, &ToolCall)> {
        let parts = if let Self::Response(response) = self { &response.content[..] } else { &[] };
        parts.iter().enumerate().filter_map(|(index, part)| part.as_tool_call().map(|call| (index, call)))
    }
}

impl Response {
    /// The calls, in the order issued.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(Part::as_tool_call)
    }

    /// The text parts, joined; thinking is left out.
    pub fn text(&self) -> String {
        text_of(&self.content)
    }
}

impl ToolResults {
    /// Whether the same calls have the same outcomes in the same order, whatever their contents.
    pub fn tells_the_same(&self, other: &Self) -> bool {
        fn told(round: &ToolResults) -> impl Iterator<Item = (&str, &str, Outcome)> {
            round.results.iter().map(|result| (&*result.call_id, &*result.name, result.outcome))
        }
        told(self).eq(told(other))
    }
}

impl ToolResult {
    /// A result of one text part.
    pub fn text_result(call: &ToolCall, outcome: Outcome, text: impl Into<SmolStr>) -> Self {
        Self {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: [Part::text(text)].into(),
            outcome,
            error: None,
            outcome_from: None,
            own: false,
            extra: Extra::default(),
        }
    }

    /// The text parts, joined.
    pub fn text(&self) -> String {
        text_of(&self.content)
    }
}

/// The plain text parts of a content, joined.
fn text_of(content: &[Part]) -> String {
    content.iter().filter_map(Part::as_text).collect()
}
