//! The port.

use futures_core::future::BoxFuture;
use retrace_events::History;
use retrace_events::tokens::Tokens;
use retrace_model::ModelError;

use crate::context::CompactContext;

/// Turns a history into what is kept of it.
///
/// It applies unconditionally, obeys the [`laws`](crate::laws), and reaches nothing but what its context hands it.
pub trait Strategy: Send + Sync {
    /// Its kind, as a configuration names it.
    fn kind(&self) -> &'static str;

    /// What becomes of the events that it does not keep.
    fn business(&self) -> Business;

    /// Whether a second pass over its own output, with nothing new, changes nothing and asks nothing.
    fn settles(&self) -> bool {
        true
    }

    /// The model that it asks for by name, if it does.
    fn model(&self) -> Option<&str> {
        None
    }

    /// Compacts a history.
    ///
    /// # Errors
    /// When there is nothing it can keep; the history is then left as it was.
    fn compact<'a>(
        &'a self,
        history: &'a History,
        cx: &'a mut CompactContext<'_>,
    ) -> BoxFuture<'a, Result<Compacted, CompactError>>;
}

/// What becomes of the events that a strategy does not keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Business {
    /// It keeps them all.
    Keeps,
    /// It drops them, and asks no model.
    Drops,
    /// It shows them to a model and keeps its summary.
    Summarizes,
}

/// What a strategy made of a history.
#[derive(Clone, Debug, PartialEq)]
pub enum Compacted {
    /// There was nothing to do.
    Unchanged,
    /// What it kept.
    Changed(History),
}

impl Compacted {
    /// The outcome of turning `before` into `after`, which may be no change at all.
    pub fn of(before: &History, after: History) -> Self {
        if *before == after { Self::Unchanged } else { Self::Changed(after) }
    }
}

/// Why a history could not be compacted. It is then left as it was.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// The model gave no answer.
    #[error("the summary call failed")]
    Model(#[from] ModelError),
    /// The model answered with nothing.
    #[error("the summary is empty")]
    EmptySummary,
    /// A dry run asks nobody.
    #[error("no model is asked here; the question has about {} tokens", question.0)]
    NotAsked {
        /// The size of the question.
        question: Tokens,
    },
    /// The strategy names a model that the run does not have.
    #[error("there is no model `{name}`")]
    UnknownModel {
        /// The name.
        name: String,
    },
    /// Anything else that a strategy of one's own may fail with.
    #[error("{message}")]
    Other {
        /// What went wrong.
        message: String,
    },
}
