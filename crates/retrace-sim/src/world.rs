//! Worlds: state with tools, from which recordings and environments are made.

use std::sync::{Arc, Mutex};

use retrace_agent::{Budget, Run, ToolLoop};
use retrace_env::{ReplayEnvironment, ToolboxBuilder, ToolboxError};
use retrace_events::{EndReason, Event, Header, History, Recording};
use retrace_model::Model;

/// A simulated world: its whole state, which a clone shares with nobody.
///
/// What its tools answer depends on that state alone, so a replay of the same calls gives the same answers.
pub trait World: Clone + Send + 'static {
    /// The tools that act on a world.
    fn tools(world: &Arc<Mutex<Self>>) -> ToolboxBuilder;

    /// The system prompt of an agent at work in it.
    fn instructions(&self) -> String;

    /// What the user asks for first.
    fn request(&self) -> String;

    /// An environment whose recordings start in this state.
    fn environment(&self) -> ReplayEnvironment {
        ReplayEnvironment::cloned(self.clone(), Self::tools)
    }
}

/// Why a run cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The tools of the world make no toolbox.
    #[error("the tools of the world cannot be used")]
    Toolbox(#[from] ToolboxError),
    /// The run broke off.
    #[error("the run broke off: {reason}")]
    BrokeOff {
        /// Why.
        reason: EndReason,
    },
}

/// Records a run of an agent that starts in this state, until it ends its turn or `max_actions` calls have finished.
///
/// The world itself stays as it is. Nothing is compacted, and the seed fixes the run.
///
/// # Errors
/// When the model gives no answer, or the tools of the world make no toolbox.
pub async fn record<W: World>(
    world: &W,
    id: impl Into<String>,
    model: &dyn Model,
    max_actions: usize,
    seed: u64,
) -> Result<Recording, RecordError> {
    let toolbox = W::tools(&Arc::new(Mutex::new(world.clone()))).build()?;
    let instructions = world.instructions();
    let run = Run {
        history: History::from(vec![Event::request(world.request())]),
        instructions: Some(&instructions),
        model,
        toolbox: &toolbox,
        budget: Budget { max_actions: Some(max_actions), ..Budget::default() },
        seed,
        observer: None,
    };
    let (rollout, history) = run.execute(&ToolLoop::default()).await;
    let history = history.ok_or(RecordError::BrokeOff { reason: rollout.end })?;
    let header = Header {
        model: Some(model.name().to_owned()),
        tools: toolbox.specs().to_vec(),
        instructions: Some(instructions),
        ..Header::new(id)
    };
    Ok(Recording { header, events: history.iter().cloned().collect() })
}
