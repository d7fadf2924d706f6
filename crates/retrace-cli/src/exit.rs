//! Exit codes.

use std::process::ExitCode;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// It did what it was asked; of a verification at least one boundary was scored at some horizon.
    Ok = 0,
    /// It could not run, nothing could be scored, or every rollout broke.
    CouldNotRun = 2,
    /// The user stopped it.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
