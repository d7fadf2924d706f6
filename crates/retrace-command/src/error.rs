//! Why a program is of no use.

use std::sync::Arc;

use retrace_process::ProcessError;

/// Why a program gave no answer. A clone tells the same failure of one process to each use that it cost.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The configuration names no program.
    #[error("there is no program to start: `command` is an empty list; give the program and its arguments")]
    NoCommand,
    /// It cannot be started or talked to, ended, did not answer in time, or does not speak the protocol.
    #[error(transparent)]
    Process(#[from] Arc<ProcessError>),
    /// It says itself that it failed.
    #[error("the program `{program}` failed: {message}")]
    Failed {
        /// Its name.
        program: String,
        /// What it said, escaped and cut short.
        message: String,
    },
    /// It brings a tool that the environment has, too.
    #[error(
        "the agent `{agent}` brings a tool `{tool}`, and so does the environment: a call of it could mean either; \
         rename one of them"
    )]
    TwoTools {
        /// The agent.
        agent: String,
        /// The name of both, escaped and cut short.
        tool: String,
    },
}

impl From<ProcessError> for CommandError {
    fn from(error: ProcessError) -> Self {
        Self::Process(Arc::new(error))
    }
}
