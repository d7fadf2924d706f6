//! The environment port: what restores the world of a boundary.

use std::error::Error;

use futures_core::future::BoxFuture;
use retrace_events::{Boundary, Outcome};

use crate::replay::{Replay, replay};
use crate::tool::CallError;
use crate::toolbox::{Toolbox, ToolboxError};

/// What restores the world that an agent acts on to the state it had at a boundary.
///
/// Each restored toolbox has a world of its own: nothing that one rollout does may be seen by another, however many run
/// at once. Nothing of an implementation but that world outlives a future that was dropped. Whether worlds are really
/// apart can be asked with [`check_rebuilds`](crate::check_rebuilds).
pub trait Environment: Send + Sync {
    /// A toolbox whose world is in the state that recordings start from.
    ///
    /// # Errors
    /// When the world cannot be built.
    fn open(&self) -> BoxFuture<'_, Result<Toolbox, RestoreError>>;

    /// A toolbox whose world is in the state of the boundary: a fresh one, in which the recorded calls before it were
    /// executed again.
    ///
    /// # Errors
    /// When the world cannot be built or brought to that state. That costs the boundary its rollouts, not the run.
    fn restore<'a>(&'a self, boundary: &'a Boundary) -> BoxFuture<'a, Result<Restored, RestoreError>> {
        Box::pin(async move {
            let toolbox = self.open().await?;
            let replay = replay(boundary, &toolbox).await?;
            Ok(Restored { toolbox, replay })
        })
    }
}

/// A world restored to the state of a boundary.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The tools that act on it.
    pub toolbox: Toolbox,
    /// How faithful it is.
    pub replay: Replay,
}

/// Why the world of a boundary could not be restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// A call that worked when it was recorded now fails, or the reverse.
    #[error(
        "replay of recording `{recording}` diverged at action {position}: `{call}` was recorded as \
         {} and now {} with `{text}`",
        told(.recorded), verb(.replayed)
    )]
    ReplayMismatch {
        /// The id of the recording.
        recording: String,
        /// The call, cut short.
        call: String,
        /// Which action of the recording it is, from 1.
        position: usize,
        /// How the call went when it was recorded.
        recorded: Outcome,
        /// How it went now.
        replayed: Outcome,
        /// What the tool answered now, cut short.
        text: String,
    },
    /// A recorded call had no result at all.
    #[error("replay of recording `{recording}` stopped at action {position}, `{call}`, which had no result")]
    Call {
        /// The id of the recording.
        recording: String,
        /// The call, cut short.
        call: String,
        /// Which action of the recording it is, from 1.
        position: usize,
        /// Why it had none.
        source: CallError,
    },
    /// The tools make no toolbox.
    #[error("the tools of the environment cannot be used")]
    Toolbox(#[from] ToolboxError),
    /// There is no world to act on.
    #[error("the environment could not be built")]
    Environment {
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
}

fn told(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "a success",
        Outcome::Error => "a failure",
        Outcome::NotFound => "a call of a tool that does not exist",
    }
}

fn verb(outcome: &Outcome) -> &'static str {
    if outcome.is_blocked() { "fails" } else { "succeeds" }
}
