//! Why a source could not be imported.

use std::io;

use crate::place::Place;

/// Why a source could not be imported: where, what was found there, and by [`hint`](Self::hint) what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The source could not be read.
    #[error("failed to read the transcript")]
    Io(#[from] io::Error),
    /// The source holds nothing.
    #[error("no transcript: the file is empty")]
    Empty,
    /// The source is not UTF-8.
    #[error("line {line}: not UTF-8 from byte {byte} of the line on")]
    NotUtf8 {
        /// The line, counted from 1.
        line: usize,
        /// The byte of the line, counted from 1.
        byte: usize,
    },
    /// A value of the source is no JSON.
    #[error("line {line}, column {column}: no JSON: {message}")]
    Syntax {
        /// The line, counted from 1.
        line: usize,
        /// The byte of the line, counted from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// A value is of another type than can be read there.
    #[error("{place}: found {found}, expected {expected}")]
    Unexpected {
        /// Where it stands.
        place: Place,
        /// What it is.
        found: &'static str,
        /// What could be read.
        expected: &'static str,
    },
    /// A value is of the right type and cannot be read all the same.
    #[error("{place}: {message}")]
    Unreadable {
        /// Where it stands.
        place: Place,
        /// What is wrong with it.
        message: String,
    },
    /// A field that is needed is not there, or is null.
    #[error("{place}: no `{field}`")]
    MissingField {
        /// The object that lacks it.
        place: Place,
        /// The field.
        field: &'static str,
    },
    /// An object has no list of messages.
    #[error("{place}: no list of messages {}", among(.keys))]
    NoMessages {
        /// Where the object stands.
        place: Place,
        /// The keys it has, or the first of them.
        keys: Vec<String>,
    },
    /// An object has nothing under the key that was asked for.
    #[error("{place}: no list under the key `{key}` {}", among(.keys))]
    NoSuchKey {
        /// Where the object stands.
        place: Place,
        /// The key that was asked for.
        key: String,
        /// The keys it has, or the first of them.
        keys: Vec<String>,
    },
    /// A message stands where a run is expected.
    #[error("{place}: found a single message, expected a list of them or an object that has one")]
    SingleMessage {
        /// Where it stands.
        place: Place,
    },
    /// A message is of a role that the format does not have.
    #[error("{place}: unknown role `{role}`, expected {expected}")]
    UnknownRole {
        /// Where the role stands.
        place: Place,
        /// The role, cut short and without control characters.
        role: String,
        /// The roles that can be read.
        expected: &'static str,
    },
    /// A part is of a type that cannot be read there.
    #[error("{place}: part of type `{kind}`, expected {expected}")]
    UnknownPart {
        /// Where the type stands.
        place: Place,
        /// The type, cut short and without control characters.
        kind: String,
        /// The types that can be read there.
        expected: &'static str,
    },
    /// Nothing in the source could be made a recording.
    #[error("no run in the transcript{}", .first.as_ref().map(|first| format!(": {first}")).unwrap_or_default())]
    NoRuns {
        /// What was noticed first.
        first: Option<String>,
    },
}

impl ImportError {
    /// What to do next.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Io(_) => None,
            Self::Empty => Some("leave the file out, or export the run again"),
            Self::NotUtf8 { .. } => Some("save the file as UTF-8"),
            Self::Syntax { .. } => Some(
                "a transcript is one JSON value, or one on each line; a file cut off in the middle has to be exported again",
            ),
            Self::NoMessages { .. } | Self::NoSuchKey { .. } => Some(
                "name the key that holds the messages (`--messages-key` of the program), if it is a transcript of OpenAI Chat \
                      Completions; no other format is read yet",
            ),
            Self::SingleMessage { .. } => {
                Some("make the messages of the file one list, with `jq -s .` where each stands on a line of its own")
            }
            Self::UnknownRole { .. }
            | Self::UnknownPart { .. }
            | Self::Unexpected { .. }
            | Self::Unreadable { .. }
            | Self::MissingField { .. }
            | Self::NoRuns { .. } => Some(
                "only transcripts of OpenAI Chat Completions are read, as docs/formats.md describes; in one of those, fix or \
                 remove what stands there",
            ),
        }
    }
}

/// The keys that an object does have.
fn among(keys: &[String]) -> String {
    match keys {
        [] => "(it has no keys)".to_owned(),
        keys => format!("(its keys: `{}`)", keys.join("`, `")),
    }
}
