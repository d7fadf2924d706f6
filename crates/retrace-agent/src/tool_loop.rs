//! The agent of the house: ask the model, run its calls, and again.

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures_core::future::BoxFuture;
use futures_util::future::join_all;
use retrace_events::tokens::{FourCharacters, TokenCounter};
use retrace_events::{Event, History, Response, ToolCall, ToolResult, ToolSpec};
use retrace_model::{Model, Prices, Prompt};
use retrace_strategies::{Ask, CompactContext, CompactError, Compactor};
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
    models: Vec<(String, Arc<dyn Model>)>,
}

impl Default for ToolLoop {
    fn default() -> Self {
        Self { compactor: None, counter: Arc::new(FourCharacters), models: Vec::new() }
    }
}

impl ToolLoop {
    /// A loop that compacts its history as it grows; every run starts with a copy of this compactor. A compaction that
    /// fails leaves the history as it was, and the run goes on with it. One that is to start early goes on beside the run,
    /// and ends with it.
    ///
    /// Where the compactor grants wishes, the model is offered its [tool](Compactor::tool); a run whose toolbox has a tool
    /// of that name fails at once.
    pub fn compacting(compactor: Compactor) -> Self {
        Self { compactor: Some(compactor), ..Self::default() }
    }

    /// Counts tokens in this way for its compactions.
    #[must_use]
    pub fn counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.counter = counter;
        self
    }

    /// Adds a model that its strategy may ask for by name. Like the run's own, it counts toward the limits of the run.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>, model: Arc<dyn Model>) -> Self {
        self.models.push((name.into(), model));
        self
    }

    async fn run(&self, mut history: History, cx: &RunContext<'_>) -> Result<Turn, AgentError> {
        let mut compactor = self.compactor.clone();
        let tools = tools(cx, compactor.as_ref())?;
        let mut aside = Aside::default();
        let mut n = 0_i64;
        let ended = loop {
            n += 1;
            let round = self.round(&mut history, compactor.as_mut(), &mut aside, &tools, cx);
            let round = round.instrument(info_span!("round", n));
            match round.await {
                Ok(Round::Called) => {}
                Ok(Round::Answered) => break Ok(Turn::Ended(history)),
                Err(AgentError::Halt(Halt::BudgetSpent)) => break Ok(Turn::Stopped(history)),
                Err(error) => break Err(error),
            }
        };
        aside.note(cx);
        ended
    }

    /// One answer of the model, and the results of its calls. `aside` is what goes on beside them.
    async fn round<'a>(
        &'a self,
        history: &mut History,
        mut compactor: Option<&mut Compactor>,
        aside: &mut Aside<'a>,
        tools: &[ToolSpec],
        cx: &'a RunContext<'_>,
    ) -> Result<Round, AgentError> {
        if let Some(compactor) = &mut compactor {
            self.compact(history, compactor, aside, cx).await;
        }
        let response = aside.beside(cx.respond_with(history, tools)).await?;
        let calls: Vec<_> = response.tool_calls().cloned().collect();
        history.push(Event::Response(response));
        if calls.is_empty() {
            return Ok(Round::Answered);
        }
        let own = calls.iter().map(|call| compactor.as_mut()?.answer(call, history, &*self.counter)).collect();
        history.push(Event::results(aside.beside(run_calls(&calls, own, cx)).await?));
        Ok(Round::Called)
    }

    /// Compacts the history if it calls for it, or starts to, beside the run, if it will soon. What that cost is an event
    /// of the run.
    async fn compact<'a>(
        &'a self,
        history: &mut History,
        compactor: &mut Compactor,
        aside: &mut Aside<'a>,
        cx: &'a RunContext<'_>,
    ) {
        let asked = Asked { cx, others: &self.models, is_early: false };
        let mut compacting = self.compacting_in(&asked, cx);
        if compactor.is_due(history, &compacting) {
            // What is on its way costs less than another one.
            aside.finish().await;
        }
        aside.note(cx);
        let pass = compactor.before_request(history, &mut compacting).await;
        if let Some(usage) = pass.usage_event() {
            cx.note(&usage);
        }
        if let Some(start) = compactor.start_early(history, &compacting) {
            aside.work = Some(Box::pin(async move {
                let asked = Asked { cx, others: &self.models, is_early: true };
                start.run(&mut self.compacting_in(&asked, cx)).await
            }));
        }
    }

    /// All that a strategy may reach.
    fn compacting_in<'a>(&'a self, asked: &'a Asked<'_>, cx: &'a RunContext<'_>) -> CompactContext<'a> {
        // It gives each question the seed of its model call.
        let mut compacting = CompactContext::new(asked, 0);
        compacting.run = cx.run_so_far();
        compacting.counter = &*self.counter;
        compacting.window = cx.window();
        compacting.model = Some(cx.model_name());
        compacting
    }
}

/// What the model did in a round.
enum Round {
    Called,
    Answered,
}

/// What goes on beside the run, and what it cost once it has ended.
#[derive(Default)]
struct Aside<'a> {
    work: Option<BoxFuture<'a, Option<Event>>>,
    usage: Option<Event>,
}

impl Aside<'_> {
    /// Does something else meanwhile.
    async fn beside<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = pin!(other);
        poll_fn(|cx| {
            if let Some(Poll::Ready(usage)) = self.work.as_mut().map(|work| work.as_mut().poll(cx)) {
                (self.work, self.usage) = (None, usage);
            }
            other.as_mut().poll(cx)
        })
        .await
    }

    /// Waits for its end.
    async fn finish(&mut self) {
        if let Some(work) = self.work.take() {
            self.usage = work.await;
        }
    }

    /// Makes what it cost an event of the run, between two rounds.
    fn note(&mut self, cx: &RunContext<'_>) {
        if let Some(usage) = self.usage.take() {
            cx.note(&usage);
        }
    }
}

/// The tools that the model is offered: those of the toolbox, and the one by which it wishes for a compaction.
fn tools<'a>(cx: &RunContext<'a>, compactor: Option<&Compactor>) -> Result<Cow<'a, [ToolSpec]>, AgentError> {
    let Some(own) = compactor.and_then(Compactor::tool) else { return Ok(Cow::Borrowed(cx.tools())) };
    if cx.tools().iter().any(|tool| tool.name == own.name) {
        let message = format!("the environment has a tool `{}`, and so has the agent", own.name);
        return Err(AgentError::Other { message });
    }
    Ok(cx.tools().iter().cloned().chain([own]).collect())
}

/// Runs all calls of a response but those that have an answer of the agent's own; of calls that get no result, the first
/// one issued says why.
async fn run_calls(
    calls: &[ToolCall],
    own: Vec<Option<ToolResult>>,
    cx: &RunContext<'_>,
) -> Result<Vec<ToolResult>, Halt> {
    let run = calls.iter().zip(own).map(|(call, own)| async move {
        match own {
            Some(result) => {
                cx.own_result(&result);
                Ok(result)
            }
            None => cx.call(call).await,
        }
    });
    if cx.calls_are_independent() {
        return join_all(run).await.into_iter().collect();
    }
    let mut results = Vec::with_capacity(calls.len());
    for result in run {
        results.push(result.await?);
    }
    Ok(results)
}

/// Whom a strategy asks: the run's own model, and others by their names.
struct Asked<'a> {
    cx: &'a RunContext<'a>,
    others: &'a [(String, Arc<dyn Model>)],
    /// Whether it is asked beside the run.
    is_early: bool,
}

impl Asked<'_> {
    fn named(&self, model: Option<&str>) -> Option<&dyn Model> {
        let named = self.others.iter().find(|(name, _)| Some(&**name) == model);
        named.map(|(_, other)| &**other)
    }
}

impl Ask for Asked<'_> {
    fn ask<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        model: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Response, CompactError>> {
        Box::pin(self.cx.ask_model(model, self.named(model), prompt, self.is_early))
    }

    fn prices(&self, model: Option<&str>) -> Option<Prices> {
        self.cx.model_asked(model, self.named(model))?.prices()
    }
}

impl Agent for ToolLoop {
    fn resume<'a>(&'a self, history: History, cx: &'a RunContext<'a>) -> BoxFuture<'a, Result<Turn, AgentError>> {
        Box::pin(self.run(history, cx))
    }
}
