//! The port.

use futures_core::future::BoxFuture;
use retrace_events::History;
use retrace_strategies::CompactError;

use crate::context::{Halt, RunContext};

/// Acts on a history.
///
/// An agent reaches a model and tools only through its context. It holds no state from one run to the next: a
/// verification runs it many times at once.
pub trait Agent: Send + Sync {
    /// Goes on from a history until the turn ends or the context says that the budget is spent.
    ///
    /// # Errors
    /// When it cannot go on: what it did so far is still scored.
    fn resume<'a>(&'a self, history: History, cx: &'a RunContext<'a>) -> BoxFuture<'a, Result<Turn, AgentError>>;
}

/// How an agent's run came to its end.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// The agent ended its turn; the history holds what it did.
    Ended(History),
    /// It was stopped by its budget; the history holds what it did.
    Stopped(History),
}

/// Why an agent could not go on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// Its context gave no answer.
    #[error(transparent)]
    Halt(#[from] Halt),
    /// Its history could not be compacted.
    #[error("the compaction failed")]
    Compact(#[from] CompactError),
    /// Anything else that an agent of one's own may fail with.
    #[error("{message}")]
    Other {
        /// What went wrong.
        message: String,
    },
}
