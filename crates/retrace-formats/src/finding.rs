//! What an import gives: recordings, and what was noticed.

use std::fmt;

use retrace_events::Recording;

use crate::place::{Place, shown};

/// What came of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The recordings, at least one, in the order of the source; their ids differ.
    pub recordings: Vec<Recording>,
    /// What a reader of them should know: first what was left out, then recording by recording. None of it is an error.
    pub findings: Vec<Finding>,
}

/// Something noticed in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// What.
    pub kind: FindingKind,
}

/// What was noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// The last line was cut off in writing, and is left out.
    TornLine,
    /// A run without messages, which is left out.
    EmptyRun,
    /// A logged request of another kind, which is left out.
    OtherRequest,
    /// A logged request whose conversation goes on in a later one, which stands for both.
    Continued {
        /// The later one.
        by: Place,
    },
    /// A response with several answers, of which the first is taken.
    SeveralChoices {
        /// How many there are.
        n: usize,
    },
    /// The model refused; its words are kept as text.
    Refusal,
    /// A message that says nothing and calls nothing.
    EmptyMessage,
    /// A call without an id, which was given one.
    MadeId {
        /// The tool.
        tool: String,
    },
    /// Several calls of one response share an id; results answer them in the order issued.
    SharedId {
        /// The id.
        id: String,
    },
    /// A result without a usable id, given to the one call of its round that it can answer.
    PairedWithoutId {
        /// The tool.
        tool: String,
    },
    /// A result without an id that could answer several calls, or none; it is given to none.
    UnclearResult,
    /// A call that nothing answers; it is no action.
    UnansweredCall {
        /// The tool.
        tool: String,
    },
    /// A result whose id no waiting call has; readers skip it.
    OrphanResult {
        /// The id.
        id: String,
    },
    /// A tool of the request without a name of its own, such as one that the provider runs; it is left out.
    UnnamedTool,
    /// Numbers of tokens that cannot be read, and are left out.
    UnreadUsage,
}

impl Finding {
    pub(crate) fn new(place: Place, kind: FindingKind) -> Self {
        Self { place, kind }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind)
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornLine => f.write_str("the last line is cut off and left out"),
            Self::EmptyRun => f.write_str("a run without messages is left out"),
            Self::OtherRequest => f.write_str("a request without a list of messages is left out"),
            Self::Continued { by } => write!(f, "goes on at {by}, which stands for both"),
            Self::SeveralChoices { n } => write!(f, "the first of {n} answers is taken"),
            Self::Refusal => f.write_str("a refusal is kept as text"),
            Self::EmptyMessage => f.write_str("a message says nothing and calls nothing"),
            Self::MadeId { tool } => write!(f, "a call of `{}` without an id was given one", shown(tool)),
            Self::SharedId { id } => {
                write!(f, "calls of one response share the id `{}`; results answer them in order", shown(id))
            }
            Self::PairedWithoutId { tool } => {
                write!(f, "a result without a usable id is given to the one call of `{}` that waits", shown(tool))
            }
            Self::UnclearResult => {
                f.write_str("a result without an id is not clearly that of one call, and answers none")
            }
            Self::UnansweredCall { tool } => write!(f, "a call of `{}` is never answered", shown(tool)),
            Self::OrphanResult { id } => write!(f, "no call with the id `{}` waits for this result", shown(id)),
            Self::UnnamedTool => f.write_str("a tool without a name is left out"),
            Self::UnreadUsage => f.write_str("its numbers of tokens cannot be read and are left out"),
        }
    }
}
