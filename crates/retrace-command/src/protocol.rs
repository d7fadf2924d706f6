//! The messages of the protocol, version 1: what goes over a program's standard input and output, one a line.
//!
//! `docs/protocol.md` explains them and has a transcript of each kind.

use std::fmt;

use retrace_events::Raw;
use retrace_events::sent::SentHash;
use serde::de::value::MapDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version of the protocol that this crate speaks.
pub const PROTOCOL_VERSION: u64 = 1;

/// What a program is to retrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It compacts histories.
    Strategy,
    /// It acts on a history.
    Agent,
    /// It answers calls.
    Environment,
}

/// How many uses one process of a program serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Serves {
    /// One: each use has a process of its own.
    #[default]
    One,
    /// All of them, one after the other.
    OneByOne,
    /// All of them, side by side.
    Many,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strategy => "strategy",
            Self::Agent => "agent",
            Self::Environment => "environment",
        })
    }
}

/// Why a line is no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// It is no JSON object with a `type`.
    #[error("no JSON object with a `type`")]
    NoMessage,
    /// Its `type` is none of those that are known here.
    #[error("a message of type `{kind}`, which the protocol does not have")]
    UnknownType {
        /// The type.
        kind: String,
    },
    /// A field of it is missing, wrong, or not known.
    #[error("a `{kind}` that is wrong: {message}")]
    Field {
        /// Its type.
        kind: &'static str,
        /// The field, and what is wrong.
        message: String,
    },
}

/// An enum of messages, each with its `type` and a struct for what it holds.
macro_rules! messages {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident($body:ty) = $kind:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "type")]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $kind)] $variant($body),)+
        }

        impl $name {
            /// Its `type`.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $kind,)+
                }
            }

            /// Reads the message of a line.
            ///
            /// # Errors
            /// When the line is none.
            pub fn parse(line: &str) -> Result<Self, MessageError> {
                let mut fields: Fields<'_> = serde_json::from_str(line).map_err(|_| MessageError::NoMessage)?;
                let kind = fields.take_kind().ok_or(MessageError::NoMessage)?;
                match &*kind {
                    $($kind => fields.read($kind).map(Self::$variant),)+
                    _ => Err(MessageError::UnknownType { kind }),
                }
            }
        }

        $(impl From<$body> for $name {
            fn from(message: $body) -> Self {
                Self::$variant(message)
            }
        })+
    };
}

messages! {
    /// What retrace tells a program.
    ToProgram {
        /// The first line.
        Hello(Hello) = "hello",
        /// To a strategy: a history to compact. Begins a use.
        Compact(Compact) = "compact",
        /// To an agent: a history to go on from. Begins a use.
        Resume(Resume) = "resume",
        /// To an environment: a world is wanted. Begins a use.
        Open(Open) = "open",
        /// To an environment: a call.
        Call(Call) = "call",
        /// To a strategy or an agent: what retrace's model answered.
        Answer(Answer) = "answer",
        /// To a strategy: retrace's model gave no answer.
        NoAnswer(NoAnswer) = "no_answer",
        /// To an agent: the result of its call.
        Result(CallResult) = "result",
        /// A use is over: nothing more is wanted of it.
        Over(Over) = "over",
    }
}

messages! {
    /// What a program tells retrace.
    FromProgram {
        /// The first line.
        Greeting(Greeting) = "greeting",
        /// Of a strategy: what it kept. Ends the use.
        Compacted(Compacted) = "compacted",
        /// Of a strategy: there was nothing to do. Ends the use.
        Unchanged(Unchanged) = "unchanged",
        /// Of a strategy: a question to retrace's model.
        Ask(Ask) = "ask",
        /// Of a strategy: what its own model calls cost.
        Spent(Spent) = "spent",
        /// Of an agent: a wish for the next response of retrace's model.
        Respond(Respond) = "respond",
        /// Of an agent: a response that its own model gave.
        Report(Report) = "report",
        /// Of an agent: a call.
        Call(AgentCall) = "call",
        /// Of an agent: the result of a call that it answered itself.
        OwnResult(OwnResult) = "own_result",
        /// Of an agent: an event that is neither a response nor results, such as a request of its harness.
        Note(Note) = "note",
        /// Of an agent: its turn ended. Ends the use.
        Ended(Ended) = "ended",
        /// Of an environment: the world is there.
        Opened(Opened) = "opened",
        /// Of an environment: the result of a call.
        Result(CallResult) = "result",
        /// The use failed. Ends it.
        Failed(Failed) = "failed",
    }
}

impl FromProgram {
    /// The use that it belongs to.
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Greeting(_) => None,
            Self::Compacted(Compacted { r#use, .. })
            | Self::Unchanged(Unchanged { r#use })
            | Self::Ask(Ask { r#use, .. })
            | Self::Spent(Spent { r#use, .. })
            | Self::Respond(Respond { r#use, .. })
            | Self::Report(Report { r#use, .. })
            | Self::Call(AgentCall { r#use, .. })
            | Self::OwnResult(OwnResult { r#use, .. })
            | Self::Note(Note { r#use, .. })
            | Self::Ended(Ended { r#use })
            | Self::Opened(Opened { r#use, .. })
            | Self::Result(CallResult { r#use, .. })
            | Self::Failed(Failed { r#use, .. }) => Some(*r#use),
        }
    }

    /// Whether the program has nothing more to say of the use.
    pub(crate) fn ends_use(&self) -> bool {
        matches!(self, Self::Compacted(_) | Self::Unchanged(_) | Self::Ended(_) | Self::Failed(_))
    }
}

/// The first line that a program reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The version of the protocol that retrace speaks.
    pub retrace: u64,
    /// What the program is to be.
    pub role: Role,
    /// What the configuration has for it; an object.
    pub config: Raw,
}

/// The first line that a program writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Greeting {
    /// The version of the protocol that it speaks.
    pub retrace: u64,
    /// What it is.
    pub role: Role,
    /// Its name, as reports give it.
    pub name: String,
    /// How many uses a process of it serves.
    #[serde(default)]
    pub serves: Serves,
    /// Of a strategy: whether it may ask retrace's model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// Of an agent: the names of the tools that it brings itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

/// A history to compact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compact {
    /// The use.
    pub r#use: u64,
    /// The events, oldest first, as a recording has them.
    pub events: Vec<Raw>,
    /// The context window of the run's model, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// What whoever wished for the compaction wants it to keep in view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
}

/// A history to go on from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// The use.
    pub r#use: u64,
    /// The agent's system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The events, oldest first, as a recording has them.
    pub events: Vec<Raw>,
    /// The tools of the environment, as the header of a recording has them.
    pub tools: Vec<Raw>,
    /// Whether the calls of one response may run side by side.
    pub independent: bool,
    /// How much it may use; what is not limited is left out.
    pub budget: Limits,
    /// All the randomness that a simulated model may use.
    pub seed: u64,
}

/// How much an agent may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<u64>,
    /// Answers of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<u64>,
    /// Model calls, failed ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Tokens of all model calls together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
}

/// A world is wanted, in its starting state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The use.
    pub r#use: u64,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The use.
    pub r#use: u64,
    /// The number that its result has, too.
    pub id: u64,
    /// The tool.
    pub name: String,
    /// The JSON text of the arguments, as the model wrote it.
    pub arguments: String,
}

/// A call that an agent makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentCall {
    /// The use.
    pub r#use: u64,
    /// The number that its result has, too.
    pub id: u64,
    /// The id that the model gave the call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// The JSON text of the arguments, as the model wrote it.
    pub arguments: String,
}

/// What retrace's model answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The use.
    pub r#use: u64,
    /// The number of the question.
    pub id: u64,
    /// The answer, a `response` event.
    pub response: Raw,
}

/// Retrace's model gave no answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoAnswer {
    /// The use.
    pub r#use: u64,
    /// The number of the question.
    pub id: u64,
    /// Why.
    pub message: String,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallResult {
    /// The use.
    pub r#use: u64,
    /// The number of the call.
    pub id: u64,
    /// A text, or `text` and media parts.
    pub content: Raw,
    /// `ok`, `error` or `not_found`.
    pub outcome: retrace_events::Outcome,
    /// The kind of the failure, such as the class of an exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A use is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Over {
    /// The use.
    pub r#use: u64,
    /// Why, for people.
    pub reason: String,
}

/// What a strategy kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compacted {
    /// The use.
    pub r#use: u64,
    /// The events, oldest first: a number stands for the event at that place of the history that came in, from 0.
    pub events: Vec<Raw>,
}

/// There was nothing to compact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unchanged {
    /// The use.
    pub r#use: u64,
}

/// A question to retrace's model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The use.
    pub r#use: u64,
    /// The number that its answer has, too.
    pub id: u64,
    /// The system prompt.
    pub instructions: String,
    /// The question.
    pub question: String,
    /// The model, where it is not the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What a strategy's own model calls cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// The use.
    pub r#use: u64,
    /// How many there were.
    pub model_calls: u64,
    /// Their tokens, as the `usage` of a response.
    pub usage: Raw,
}

/// A wish for the next response of retrace's model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Respond {
    /// The use.
    pub r#use: u64,
    /// The number that its answer has, too.
    pub id: u64,
    /// The history to answer to, where it is not that of the run so far: a number stands for the event at that place
    /// of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Raw>>,
}

/// A response that an agent's own model gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The use.
    pub r#use: u64,
    /// The response, a `response` event.
    pub response: Raw,
    /// The hash of what the model was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentHash>,
}

/// The result of a call that an agent answered itself: of one of its own tools, or one that it refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnResult {
    /// The use.
    pub r#use: u64,
    /// The result, as `results` of a `tool_results` event have it.
    pub result: Raw,
}

/// An event that is neither a response nor results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The use.
    pub r#use: u64,
    /// The event.
    pub event: Raw,
}

/// An agent's turn ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// The use.
    pub r#use: u64,
}

/// A world is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    /// The use.
    pub r#use: u64,
    /// Its tools, as the header of a recording has them.
    pub tools: Vec<Raw>,
    /// Whether the calls of one response may run side by side.
    #[serde(default)]
    pub independent: bool,
}

/// A use failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// The use.
    pub r#use: u64,
    /// Why.
    pub message: String,
}

/// The fields of an object, each value as its text. A serde enum with a tag would take the values apart.
#[derive(Deserialize)]
#[serde(transparent)]
struct Fields<'a> {
    #[serde(borrow)]
    fields: indexmap::IndexMap<String, &'a RawValue>,
}

impl<'a> Fields<'a> {
    fn take_kind(&mut self) -> Option<String> {
        serde_json::from_str(self.fields.shift_remove("type")?.get()).ok()
    }

    fn read<T: Deserialize<'a>>(self, kind: &'static str) -> Result<T, MessageError> {
        let fields: MapDeserializer<'_, _, serde_json::Error> = MapDeserializer::new(self.fields.into_iter());
        serde_path_to_error::deserialize(fields).map_err(|error| {
            let (path, cause) = (error.path().to_string(), error.inner().to_string());
            let cause = cause.split(" at line 1 column ").next().unwrap_or_default();
            let message = if path == "." { cause.to_owned() } else { format!("field `{path}`: {cause}") };
            MessageError::Field { kind, message }
        })
    }
}
