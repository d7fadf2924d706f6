//! The lines of a cassette, version 1. `docs/formats.md` describes them.

use std::time::Duration;

use retrace_events::sent::SentHash;
use retrace_events::{Event, Prices, Response};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use crate::model::{Answer, ModelError};
use crate::rules::Rules;

/// The version of the cassettes that this crate reads and writes.
pub const CASSETTE_VERSION: u32 = 1;

/// One line. Pieces and histories are written once, before the first line that refers to them by number.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    /// The first line.
    Cassette { version: u32 },
    /// A model that is asked.
    Model {
        name: String,
        rules: Rules,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prices: Option<Prices>,
    },
    /// Something that requests are made of: instructions, a list of tools, or an event as it is sent.
    Piece { n: u32, is: Box<RawValue> },
    /// Histories, each one event longer than the one before: `first` is `after` and the first of the events, the next
    /// number is that and the second, and so on. Number 0 is the empty history.
    History { first: u32, after: u32, events: Vec<u32> },
    /// A request and what came of it.
    Answer(Box<AnswerLine>),
}

/// What is known of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Known {
    pub(super) rules: Rules,
    pub(super) prices: Option<Prices>,
}

/// A request and what came of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerLine {
    pub(super) model: String,
    pub(super) seed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<u32>,
    pub(super) tools: u32,
    pub(super) history: u32,
    pub(super) outcome: Outcome,
}

/// What came of a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Outcome {
    /// An answer, and the hash of what had been sent.
    Answered {
        response: Said,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<SentHash>,
    },
    /// See [`ModelError::RateLimited`].
    RateLimited { message: String, retry_after: Option<Duration> },
    /// See [`ModelError::Unavailable`].
    Unavailable { message: String, retry_after: Option<Duration> },
    /// See [`ModelError::TimedOut`].
    TimedOut { limit: Duration },
    /// See [`ModelError::Refused`].
    Refused { message: String },
    /// See [`ModelError::Unusable`].
    Unusable { message: String },
    /// See [`ModelError::Cassette`]: a cassette that was recorded again.
    Cassette { message: String },
    /// The caller did not wait for an answer, for example since a rollout was out of time.
    Abandoned {},
}

/// A response, written as the event it becomes.
#[derive(Clone, Debug)]
pub(super) struct Said(pub(super) Response);

impl Serialize for Said {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Event::Response(self.0.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Event::deserialize(deserializer)? {
            Event::Response(response) => Ok(Self(response)),
            other => Err(de::Error::custom(format_args!("expected a `response`, found a `{}`", other.kind()))),
        }
    }
}

impl Outcome {
    pub(super) fn of(answer: &Result<Answer, ModelError>) -> Self {
        match answer.clone() {
            Ok(Answer { response, sent }) => Self::Answered { response: Said(response), sent },
            Err(ModelError::RateLimited { message, retry_after }) => Self::RateLimited { message, retry_after },
            Err(ModelError::Unavailable { message, retry_after }) => Self::Unavailable { message, retry_after },
            Err(ModelError::TimedOut { limit }) => Self::TimedOut { limit },
            Err(ModelError::Refused { message }) => Self::Refused { message },
            Err(ModelError::Unusable { message }) => Self::Unusable { message },
            Err(ModelError::Cassette { message }) => Self::Cassette { message },
        }
    }

    pub(super) fn into_answer(self) -> Result<Answer, ModelError> {
        Err(match self {
            Self::Answered { response: Said(response), sent } => return Ok(Answer { response, sent }),
            Self::RateLimited { message, retry_after } => ModelError::RateLimited { message, retry_after },
            Self::Unavailable { message, retry_after } => ModelError::Unavailable { message, retry_after },
            Self::TimedOut { limit } => ModelError::TimedOut { limit },
            Self::Refused { message } => ModelError::Refused { message },
            Self::Unusable { message } => ModelError::Unusable { message },
            Self::Cassette { message } => ModelError::Cassette { message },
            Self::Abandoned {} => {
                ModelError::Cassette { message: "when this was recorded, nobody waited for the answer".to_owned() }
            }
        })
    }
}
