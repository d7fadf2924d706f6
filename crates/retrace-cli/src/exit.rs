//! Exit codes.

use std::process::ExitCode;

/// How the program ends, the graver the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// It did what it was asked; of a verification at least one boundary was scored at some horizon, and where a margin is
    /// given, every strategy keeps within it.
    Ok = 0,
    /// A margin is given, and of a strategy it is not shown that it keeps within it.
    NotShown = 3,
    /// A margin is given, and a strategy is worse.
    Worse = 1,
    /// It could not run, nothing could be scored, or every rollout broke. Where a margin is given also: a strategy is not
    /// scored, or the control says that no number can be relied on.
    CouldNotRun = 2,
    /// The user stopped it.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
