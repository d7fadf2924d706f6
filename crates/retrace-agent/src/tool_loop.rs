//! The agent of the house: ask the model, run its calls, and again.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use futures_util::future::try_join_all;
use retrace_events::{Event, History, ToolCall, ToolResult};
use retrace_strategies::{CompactContext, Compacted, Strategy};
use tracing::{Instrument, info_span};

use crate::agent::{Agent, AgentError, Turn};
use crate::context::{Halt, RunContext, mix};

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
        let mut most_events = self.compaction.as_ref().map_or(usize::MAX, |compaction| compaction.max_events);
        for n in 1_u64.. {
            let round = async {
                if let Some(compaction) = &self.compaction
                    && counting(&history) > most_events
                {
                    let mut compacting = CompactContext::new(cx, mix(n, 0));
                    compacting.run = cx.run_so_far();
                    match compaction.strategy.compact(&history, &mut compacting).await? {
                        Compacted::Unchanged => {}
                        Compacted::Changed(kept) => history = kept,
                    }
                    most_events = compaction.max_events.max(counting(&history));
                }
                let response = match cx.respond(&history).await {
                    Ok(response) => response,
                    Err(Halt::BudgetSpent) => return Ok(Some(true)),
                    Err(halt) => return Err(AgentError::from(halt)),
                };
                let calls: Vec<_> = response.tool_calls().cloned().collect();
                history.push(Event::Response(response));
                if calls.is_empty() {
                    return Ok(Some(false));
                }
                history.push(Event::results(run_calls(&calls, cx).await?));
                Ok(None)
            };
            match round.instrument(info_span!("round", n)).await? {
                None => {}
                Some(true) => return Ok(Turn::Stopped(history)),
                Some(false) => return Ok(Turn::Ended(history)),
            }
        }
        unreachable!("the loop ends only from inside")
    }
}

async fn run_calls(calls: &[ToolCall], cx: &RunContext<'_>) -> Result<Vec<ToolResult>, Halt> {
    if cx.calls_are_independent() {
        return try_join_all(calls.iter().map(|call| cx.call(call))).await;
    }
    let mut results = Vec::with_capacity(calls.len());
    for call in calls {
        results.push(cx.call(call).await?);
    }
    Ok(results)
}

fn counting(history: &History) -> usize {
    history.events().filter(|event| event.counts()).count()
}

impl Agent for ToolLoop {
    fn resume<'a>(&'a self, history: History, cx: &'a RunContext<'a>) -> BoxFuture<'a, Result<Turn, AgentError>> {
        Box::pin(self.run(history, cx))
    }
}
