//! What is recorded, as a configuration has it.

use std::path::PathBuf;

/// How much is recorded, and where it goes.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RecordConfig {
    /// The folder of the recordings.
    pub(crate) output: PathBuf,
    /// Runs of each task.
    pub(crate) runs: u32,
    /// Calls after which a run is ended.
    pub(crate) max_actions: usize,
}

impl Default for RecordConfig {
    fn default() -> Self {
        Self { output: PathBuf::from("recordings"), runs: 1, max_actions: 50 }
    }
}

/// A task that the agent is given.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskConfig {
    /// Its name; its recordings are named after it.
    pub(crate) id: String,
    /// What the user asks for.
    pub(crate) request: String,
    /// Where it is done.
    pub(crate) environment: String,
    pub(crate) world_seed: Option<u64>,
    /// The system prompt, in place of the agent's.
    pub(crate) instructions: Option<String>,
}
