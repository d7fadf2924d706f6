//! What a model is asked.

use retrace_events::{History, ToolSpec};

/// What a model is asked: instructions, a history and the tools it may call.
///
/// It borrows everything, so a prompt costs nothing, however long the history is. Of the history a model is sent what
/// [`History::sent`] gives.
#[derive(Clone, Copy, Debug)]
pub struct Prompt<'a> {
    /// The agent's own system prompt.
    pub instructions: Option<&'a str>,
    /// What happened so far.
    pub history: &'a History,
    /// The tools it may call.
    pub tools: &'a [ToolSpec],
    /// All the randomness that a simulated model may use: equal prompts with equal seeds get equal answers. A
    /// provider ignores it.
    pub seed: u64,
}
