//! The agent of the house: ask the model, run its calls, and again.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use futures_util::future::join_all;
use retrace_events::{Event, History, ToolCall, ToolResult};
use retrace_strategies::{CompactContext, Compacted, Strategy};
use tracing::{Instrument, info_span};

use crate::agent::{Agent, AgentError, Turn};
use crate::context::{Halt, RunContext};

/// Asks the model, runs all calls of its response, and asks again, until a response holds no call.
///
/// Calls of one response run in the order issued, or side by side in a toolbox that declares them independent.
#[derive(Clone, Default)]
pub struct ToolLoop {
    compaction: Option<Compaction>,
}

/// When a live run compacts its history, and how.
#[derive(Clone)]
pub struct Compaction {
    /// What compacts it.
    pub strategy: Arc<dyn Strategy>,
    /// Compact before a model call when more than this many events count; and then not again until there are more
    /// than the last compaction left.
    pub max_events: usize,
}

impl ToolLoop {
    /// A loop that compacts its history as it grows.
    pub fn compacting(compaction: Compaction) -> Self {
        Self { compaction: Some(compaction) }
    }

    async fn run(&self, mut history: History, cx: &RunContext<'_>) -> Result<Turn, AgentError> {
        let mut compacting = self.compaction.as_ref().map(Compacting::new);
        let mut n = 0_u64;
        loop {
            n += 1;
            let round = self.round(&mut history, compacting.as_mut(), cx).instrument(info_span!("round", n));
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
        compacting: Option<&mut Compacting<'_>>,
        cx: &RunContext<'_>,
    ) -> Result<Round, AgentError> {
        if let Some(compacting) = compacting {
            compacting.compact(history, cx).await?;
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
}

/// What the model did in a round.
enum Round {
    Called,
    Answered,
}

/// A compaction, and how large the history may grow before the next one.
struct Compacting<'a> {
    compaction: &'a Compaction,
    max_events: usize,
}

impl<'a> Compacting<'a> {
    fn new(compaction: &'a Compaction) -> Self {
        Self { compaction, max_events: compaction.max_events }
    }

    async fn compact(&mut self, history: &mut History, cx: &RunContext<'_>) -> Result<(), AgentError> {
        if history.n_counting() <= self.max_events {
            return Ok(());
        }
        // The context gives each question the seed of its model call.
        let mut compacting = CompactContext::new(cx, 0);
        compacting.run = cx.run_so_far();
        if let Compacted::Changed(kept) = self.compaction.strategy.compact(history, &mut compacting).await? {
            *history = kept;
        }
        self.max_events = self.compaction.max_events.max(history.n_counting());
        Ok(())
    }
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
