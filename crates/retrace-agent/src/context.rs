//! All that an agent may reach: a model and tools, within a budget.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_core::future::BoxFuture;
use futures_util::FutureExt;
use retrace_env::{CallError, Toolbox};
use retrace_events::sent::SentHash;
use retrace_events::tokens::Tokens;
use retrace_events::{Action, EndReason, Event, History, Response, ToolCall, ToolResult, ToolSpec, panic_text};
use retrace_model::{Answer, Model, ModelError, Prices, Prompt, mix};
use retrace_strategies::{Ask, CompactError, RunSoFar};
use tracing::{Instrument, info_span};

use crate::budget::{Account, Budget};

/// The most calls of one answer: all of them run, and a model that has run wild does not stop by itself.
const MAX_CALLS: usize = 1000;

/// Hands an agent its model and its tools, keeps the account, and ends the run when the budget is spent.
pub struct RunContext<'a> {
    instructions: Option<&'a str>,
    model: &'a dyn Model,
    toolbox: &'a Toolbox,
    budget: Budget,
    seed: u64,
    observer: Option<&'a Observer<'a>>,
    state: Mutex<State>,
}

/// Is shown each response when it has come, and the results of its calls when all of them are there, or when the run goes
/// on without the others.
pub type Observer<'a> = dyn Fn(&Event) + Send + Sync + 'a;

/// Why a run goes no further, though nothing is wrong with the agent.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Halt {
    /// A limit of the budget is reached.
    #[error("the budget is spent")]
    BudgetSpent,
    /// The model gave no answer.
    #[error("the model gave no answer")]
    Model(#[source] ModelError),
    /// The environment cannot answer a call.
    #[error("a call got no result")]
    Call(#[source] CallError),
}

#[derive(Default)]
struct State {
    account: Account,
    /// Results that the observer has not been shown, each with the place of its call among the actions.
    results: Vec<(usize, ToolResult)>,
    /// The first thing that ended the run.
    end: Option<Ended>,
    /// The limit that forbade a question of a strategy: it ends the run only if the agent gives up for it.
    unasked: Option<EndReason>,
}

/// What a model is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// The next response of the agent.
    Answer,
    /// What a strategy wants to know.
    Question,
    /// The same, beside the run.
    EarlyQuestion,
}

/// What ended a run before the agent did.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    Limit(EndReason),
    Call { place: usize, error: CallError },
}

impl<'a> RunContext<'a> {
    pub(crate) fn new(
        instructions: Option<&'a str>,
        model: &'a dyn Model,
        toolbox: &'a Toolbox,
        budget: Budget,
        seed: u64,
        observer: Option<&'a Observer<'a>>,
    ) -> Self {
        Self { instructions, model, toolbox, budget, seed, observer, state: Mutex::default() }
    }

    /// The agent's own system prompt.
    pub fn instructions(&self) -> Option<&'a str> {
        self.instructions
    }

    /// The tools the model may call.
    pub fn tools(&self) -> &'a [ToolSpec] {
        self.toolbox.specs()
    }

    /// Whether the calls of one response may run side by side.
    pub fn calls_are_independent(&self) -> bool {
        self.toolbox.is_independent()
    }

    /// How much the run may use.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What the seeds of its prompts are made from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether the budget forbids another answer.
    pub fn is_spent(&self) -> bool {
        self.budget.forbids_request(&self.state().account, true).is_some()
    }

    /// The name of the model.
    pub fn model_name(&self) -> &'a str {
        self.model.name()
    }

    /// The context window of the model, if it is known.
    pub fn window(&self) -> Option<Tokens> {
        self.model.rules().window
    }

    /// What the run has used so far.
    pub fn run_so_far(&self) -> RunSoFar {
        let state = self.state();
        RunSoFar { n_requests: state.account.n_requests, total_tokens: Tokens(state.account.total_tokens()) }
    }

    /// Asks the model for the next response to a history.
    ///
    /// # Errors
    /// When the budget is spent, before the model is asked; and when the model gives no answer, or one with more than a
    /// thousand calls.
    pub async fn respond(&self, history: &History) -> Result<Response, Halt> {
        self.respond_with(history, self.tools()).await
    }

    /// As [`respond`](Self::respond), but offers these tools: an agent may have some of its own.
    ///
    /// # Errors
    /// As [`respond`](Self::respond).
    pub async fn respond_with(&self, history: &History, tools: &[ToolSpec]) -> Result<Response, Halt> {
        let prompt = Prompt { instructions: self.instructions, history, tools, seed: self.seed };
        self.request(self.model, &prompt, Purpose::Answer).await
    }

    /// Books a response that the agent got from a model of its own, and the hash of what that model was sent. Nobody
    /// knows what it cost.
    ///
    /// # Errors
    /// When the budget was spent before, or it has more than a thousand calls: then only the tokens are booked.
    pub async fn report(&self, response: &Response, sent: Option<SentHash>) -> Result<(), Halt> {
        let limit = {
            let mut state = self.state();
            let limit = self.budget.forbids_request(&state.account, true);
            state.account.n_requests += 1;
            if let Some(reason) = &limit {
                state.end.get_or_insert(Ended::Limit(reason.clone()));
            }
            limit
        };
        if limit.is_none() {
            self.check_calls(response, None)?;
        }
        self.book(response, None, sent, limit.is_none());
        if limit.is_none() {
            return Ok(());
        }
        yield_once().await;
        Err(Halt::BudgetSpent)
    }

    /// Takes in the result of a call that a tool of the agent's own answered. It is no action, and marked as
    /// [`own`](ToolResult::own).
    pub fn own_result(&self, result: &ToolResult) {
        let mut state = self.state();
        state.account.take_issued();
        let place = state.account.actions.len();
        state.keep(place, &ToolResult { own: true, ..result.clone() }, self.observer);
    }

    /// Takes in an event that the agent adds to its history and that is neither a response nor results, such as a
    /// request of its harness.
    pub fn note(&self, event: &Event) {
        self.state().show(event, self.observer);
    }

    /// Makes a call and gives its result; a failed call is a result.
    ///
    /// # Errors
    /// When the budget is spent, and when the environment cannot answer.
    pub async fn call(&self, call: &ToolCall) -> Result<ToolResult, Halt> {
        let place = self.open_call().await?;
        let span = info_span!("execute_tool", name = &*call.name);
        match self.toolbox.call(&call.name, &call.arguments).instrument(span).await {
            Ok(output) => {
                let result = output.into_result(call);
                self.finish_call(place, call, &result);
                Ok(result)
            }
            Err(error) => {
                let mut state = self.state();
                // Of calls side by side the first one issued counts, whichever breaks first.
                let is_first = match &state.end {
                    None => true,
                    Some(Ended::Call { place: other, .. }) => place < *other,
                    Some(Ended::Limit(_)) => false,
                };
                if is_first {
                    state.end = Some(Ended::Call { place, error: error.clone() });
                }
                Err(Halt::Call(error))
            }
        }
    }

    /// Takes in a call that the agent did not make: it refused it itself, such as one of a tool that it does not know,
    /// and the model was shown `result`. It is an action like any other.
    ///
    /// # Errors
    /// When the budget is spent.
    pub async fn refuse(&self, call: &ToolCall, result: &ToolResult) -> Result<(), Halt> {
        let place = self.open_call().await?;
        self.finish_call(place, call, result);
        Ok(())
    }

    /// The place of a further action.
    async fn open_call(&self) -> Result<usize, Halt> {
        let place = {
            let mut state = self.state();
            if state.end.is_none() && self.budget.forbids_call(&state.account) {
                state.end = Some(Ended::Limit(EndReason::Budget));
            }
            state.end.is_none().then(|| state.account.open_call())
        };
        if place.is_none() {
            yield_once().await;
        }
        place.ok_or(Halt::BudgetSpent)
    }

    fn finish_call(&self, place: usize, call: &ToolCall, result: &ToolResult) {
        let mut state = self.state();
        state.account.finish_call(place, Action::of(call, result));
        state.keep(place, result, self.observer);
    }

    /// Asks a model within the limits of the run. The seed of the prompt is made from that of the run and the number
    /// of the model call. What is asked beside the run is numbered by itself, since nobody knows when its turn comes.
    async fn request(&self, model: &dyn Model, prompt: &Prompt<'_>, purpose: Purpose) -> Result<Response, Halt> {
        let is_answer = purpose == Purpose::Answer;
        let seed = {
            let mut state = self.state();
            if let Some(reason) = self.budget.forbids_request(&state.account, is_answer) {
                if is_answer {
                    state.end.get_or_insert(Ended::Limit(reason));
                } else {
                    state.unasked.get_or_insert(reason);
                }
                None
            } else if is_answer && self.budget.forbids_asking_beside(&state.account) {
                None
            } else {
                state.account.n_requests += 1;
                state.account.n_asking += usize::from(is_answer);
                let account = &mut state.account;
                Some(if purpose == Purpose::EarlyQuestion {
                    account.n_early += 1;
                    mix(mix(self.seed, u64::MAX), account.n_early)
                } else {
                    mix(self.seed, account.n_requests - account.n_early)
                })
            }
        };
        let Some(seed) = seed else {
            yield_once().await;
            return Err(Halt::BudgetSpent);
        };
        let _asking = is_answer.then(|| Asking(self));
        let prompt = Prompt { seed, ..*prompt };
        let span = info_span!("chat", model = model.name());
        // Made inside the future that is watched: a model may panic before it returns one.
        let answer = AssertUnwindSafe(async { model.respond(&prompt).await }.instrument(span)).catch_unwind().await;
        let answer = answer.unwrap_or_else(|panic| {
            Err(ModelError::Unusable { message: format!("the model panicked: {}", panic_text(&*panic)) })
        });
        let Answer { response, sent } = answer.map_err(Halt::Model)?;
        if sent.is_some_and(|sent| sent != prompt.history.sent_hash()) {
            self.book(&response, model.prices(), None, false);
            let message = "the model was not sent the history that it was to answer".to_owned();
            return Err(Halt::Model(ModelError::Unusable { message }));
        }
        if is_answer {
            self.check_calls(&response, model.prices())?;
        }
        self.book(&response, model.prices(), sent, is_answer);
        Ok(response)
    }

    /// Refuses an answer with more calls than anybody would run, of which only the tokens are booked.
    fn check_calls(&self, response: &Response, prices: Option<Prices>) -> Result<(), Halt> {
        let n_calls = response.tool_calls().count();
        if n_calls <= MAX_CALLS {
            return Ok(());
        }
        self.book(response, prices, None, false);
        let message = format!("{n_calls} calls in one answer, of which at most {MAX_CALLS} are run");
        Err(Halt::Model(ModelError::Unusable { message }))
    }

    /// Books the tokens of a response and, if it is an answer, the answer, which is shown.
    fn book(&self, response: &Response, prices: Option<Prices>, sent: Option<SentHash>, is_answer: bool) {
        let mut state = self.state();
        state.account.book_response(response, prices, sent, is_answer);
        if is_answer && self.observer.is_some() {
            state.show(&Event::Response(response.clone()), self.observer);
        }
    }

    /// Puts a question of a strategy to the model that it names: the run's own, or another. It counts toward the limits of
    /// the run.
    pub(crate) async fn ask_model(
        &self,
        name: Option<&str>,
        other: Option<&dyn Model>,
        question: &Prompt<'_>,
        is_early: bool,
    ) -> Result<Response, CompactError> {
        let Some(model) = self.model_asked(name, other) else {
            return Err(CompactError::UnknownModel { name: name.unwrap_or_default().to_owned() });
        };
        let purpose = if is_early { Purpose::EarlyQuestion } else { Purpose::Question };
        self.request(model, question, purpose).await.map_err(|halt| match halt {
            Halt::Model(error) => error.into(),
            halt => CompactError::Other { message: halt.to_string() },
        })
    }

    /// The model that a question goes to: the run's own, or another; none that only has a name.
    pub(crate) fn model_asked<'b>(&'b self, name: Option<&str>, other: Option<&'b dyn Model>) -> Option<&'b dyn Model> {
        let is_own = name.is_none_or(|name| name == self.model.name());
        other.or_else(|| is_own.then_some(self.model))
    }

    /// The account, what ended the run, and what forbade a question of a strategy.
    pub(crate) fn into_parts(self) -> (Account, Option<Ended>, Option<EndReason>) {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        // The last round may have broken off.
        state.show_results(self.observer);
        (state.account, state.end, state.unasked)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Keeps a result for the observer until its round is closed.
    fn keep(&mut self, place: usize, result: &ToolResult, observer: Option<&Observer<'_>>) {
        if observer.is_some() {
            self.results.push((place, result.clone()));
        }
        if self.account.is_round_closed() {
            self.show_results(observer);
        }
    }

    /// Shows an event, and before it what there is of a round that was left open.
    fn show(&mut self, event: &Event, observer: Option<&Observer<'_>>) {
        self.show_results(observer);
        if let Some(observer) = observer {
            observer(event);
        }
    }

    fn show_results(&mut self, observer: Option<&Observer<'_>>) {
        let Some(observer) = observer.filter(|_| !self.results.is_empty()) else { return };
        self.results.sort_by_key(|(place, _)| *place);
        observer(&Event::results(self.results.drain(..).map(|(_, result)| result)));
    }
}

/// An answer that the model is being asked for; one that does not come is given back to the budget.
struct Asking<'a>(&'a RunContext<'a>);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.state().account.n_asking -= 1;
    }
}

/// Lets others run, so that an agent that does not stop when its budget is spent can be stopped.
pub(crate) async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Questions of a strategy go to the run's own model and count toward the run's limits.
impl Ask for RunContext<'_> {
    fn ask<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        model: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Response, CompactError>> {
        Box::pin(self.ask_model(model, None, prompt, false))
    }

    fn prices(&self, model: Option<&str>) -> Option<Prices> {
        self.model_asked(model, None)?.prices()
    }
}
