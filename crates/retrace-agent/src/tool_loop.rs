//! The agent of the house: ask the model, run its calls, and again.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use futures_util::future::join_all;
use retrace_events::tokens::{FourCharacters, TokenCounter};
use retrace_events::{Event, History, ToolCall, ToolResult};
use retrace_strategies::{CompactContext, Compactor};
use tracing::{Instrument, info_span};

use crate::agent::{Agent, AgentError, Turn};
use crate::context::{Halt, RunContext};

/// Asks the model, runs all calls of its response, and asks again, until a response holds no call.
///
/// Calls of one response run in the order issued, or side by side in a toolbox that declares them independent.
#[derive(Clone)]
pub struct ToolLoop {
    compactor: Option<Compactor>,
    counter: Arc<dyn TokenCounter>,
}

impl Default for ToolLoop {
    fn default() -> Self {
        Self { compactor: None, counter: Arc::new(FourCharacters) }
    }
}

impl ToolLoop {
    /// A loop that compacts its history as it grows; every run starts with a copy of this compactor. A compaction that
    /// fails leaves the history as it was, and the run goes on with it.
    pub fn compacting(compactor: Compactor) -> Self {
        Self { compactor: Some(compactor), ..Self::default() }
    }

    /// Counts tokens in this way for its compactions.
    pub fn counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.counter = counter;
        self
    }

    async fn run(&self, mut history: History, cx: &RunContext<'_>) -> Result<Turn, AgentError> {
        let mut compactor = self.compactor.clone();
        let mut n = 0_u64;
        loop {
            n += 1;
            let round = self.round(&mut history, compactor.as_mut(), cx).instrument(info_span!("round", n));
            match round.await {
                Ok(Round::Called) => {}
                Ok(Round::Answered) => return Ok(Turn::Ended(history)),
                Err(AgentError::Halt(Halt::BudgetSpent)) => return Ok(Turn::Stopped(history)),
                Err(error) => return Err(error),
            }
        }
    }

    /// One answer of the model, and the results of its calls.
    async fn round(
        &self,
        history: &mut History,
        compactor: Option<&mut Compactor>,
        cx: &RunContext<'_>,
    ) -> Result<Round, AgentError> {
        if let Some(compactor) = compactor {
            self.compact(history, compactor, cx).await;
        }
        let response = cx.respond(history).await?;
        let calls: Vec<_> = response.tool_calls().cloned().collect();
        history.push(Event::Response(response));
        if calls.is_empty() {
            return Ok(Round::Answered);
        }
        history.push(Event::results(run_calls(&calls, cx).await?));
        Ok(Round::Called)
    }

    /// Compacts the history if it calls for it. What that cost is an event of the run.
    async fn compact(&self, history: &mut History, compactor: &mut Compactor, cx: &RunContext<'_>) {
        // The context gives each question the seed of its model call.
        let mut compacting = CompactContext::new(cx, 0);
        compacting.run = cx.run_so_far();
        compacting.counter = &*self.counter;
        compacting.window = cx.window();
        let pass = compactor.before_request(history, &mut compacting).await;
        if let Some(usage) = pass.usage_event() {
            cx.note(&usage);
        }
    }
}

/// What the model did in a round.
enum Round {
    Called,
    Answered,
}

/// Runs all calls of a response; of calls that get no result, the first one issued says why.
async fn run_calls(calls: &[ToolCall], cx: &RunContext<'_>) -> Result<Vec<ToolResult>, Halt> {
    if cx.calls_are_independent() {
        return join_all(calls.iter().map(|call| cx.call(call))).await.into_iter().collect();
    }
    let mut results = Vec::with_capacity(calls.len());
    for call in calls {
        results.push(cx.call(call).await?);
    }
    Ok(results)
}

impl Agent for ToolLoop {
    fn resume<'a>(&'a self, history: History, cx: &'a RunContext<'a>) -> BoxFuture<'a, Result<Turn, AgentError>> {
        Box::pin(self.run(history, cx))
    }
}
