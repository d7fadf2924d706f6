//! An agent that is a program.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use retrace_agent::{Agent, AgentError, Budget, Halt, RunContext, Turn};
use retrace_events::{Event, History, Raw, Response, ToolCall, ToolResult, with_causes};
use retrace_process::escaped;
use tokio::sync::Mutex;

use crate::config::ProgramConfig;
use crate::error::CommandError;
use crate::events::{decode_event, decode_onto, decode_response, decode_result, encode, encode_content, raw};
use crate::host::{Host, Use};
use crate::protocol::{AgentCall, Answer, CallResult, FromProgram, Limits, Report, Respond, Resume, Role, ToProgram};
use crate::told::Told;

/// Wishes of one run that retrace may be at work on at a time.
const MAX_WORK: usize = 1024;

/// An [`Agent`] that is a program.
pub struct CommandAgent(Host);

impl CommandAgent {
    /// Starts the program, in a runtime of tokio with its I/O and time enabled.
    ///
    /// # Errors
    /// When it cannot be started, or is no agent that speaks the protocol.
    pub async fn start(config: &ProgramConfig) -> Result<Self, CommandError> {
        Ok(Self(Host::start(config, Role::Agent, |_| Ok(())).await?))
    }

    /// Its name, as it gives it.
    pub fn name(&self) -> &str {
        &self.0.greeting().name
    }

    /// The names of the tools that it brings itself.
    pub fn own_tools(&self) -> &[String] {
        &self.0.greeting().tools
    }

    /// Whether it can be told from the tools of an environment which tool a call means.
    ///
    /// # Errors
    /// When the agent brings a tool of a name that the environment has, too.
    pub fn check_tools<'a>(&self, environment: impl IntoIterator<Item = &'a str>) -> Result<(), CommandError> {
        match environment.into_iter().find(|name| self.own_tools().iter().any(|own| own == name)) {
            None => Ok(()),
            Some(tool) => Err(CommandError::TwoTools { agent: escaped(self.name()), tool: escaped(tool) }),
        }
    }

    async fn run<'a>(&'a self, history: History, cx: &'a RunContext<'a>) -> Result<Turn, AgentError> {
        self.check_tools(cx.tools().iter().map(|tool| &*tool.name))?;
        let events = encode(&history).map_err(other)?;
        let tools = cx.tools().iter().map(raw).collect::<Result<_, _>>().map_err(other)?;
        let instructions = cx.instructions().map(str::to_owned);
        let (independent, budget, seed) = (cx.calls_are_independent(), limits(cx.budget()), cx.seed());
        let begin = |r#use| Resume { r#use, instructions, events, tools, independent, budget, seed }.into();
        let (run, told) = (self.0.begin(begin).await?, Told::of(history));
        let mut acting = Acting { agent: self, run, told, work: Work::new(), turn: Arc::default(), cx };
        match acting.act().await {
            Err(AgentError::Halt(Halt::BudgetSpent)) => {
                acting.run.hold.why_over = "the budget is spent";
                Ok(Turn::Stopped(acting.told.history()))
            }
            turn => turn,
        }
    }
}

impl Agent for CommandAgent {
    fn resume<'a>(&'a self, history: History, cx: &'a RunContext<'a>) -> BoxFuture<'a, Result<Turn, AgentError>> {
        Box::pin(self.run(history, cx))
    }
}

/// A run of the program.
struct Acting<'a> {
    agent: &'a CommandAgent,
    run: Use,
    told: Told,
    work: Work<'a>,
    /// Whose turn it is, where calls may not run side by side.
    turn: Arc<Mutex<()>>,
    cx: &'a RunContext<'a>,
}

/// What of the program's wishes retrace is at work on, each with the number of the wish.
type Work<'a> = FuturesUnordered<BoxFuture<'a, (u64, Result<Done, Halt>)>>;

/// A wish that was granted.
enum Done {
    Answered(Response),
    /// With its place in the round.
    Called(usize, ToolResult),
}

impl<'a> Acting<'a> {
    /// Grants one wish after another until the turn ends.
    async fn act(&mut self) -> Result<Turn, AgentError> {
        loop {
            let waits = !self.work.is_empty();
            let message = tokio::select! {
                // What is done first, so that no answer is held up by the next wish.
                biased;
                Some((id, done)) = self.work.next() => {
                    self.answer(id, done?)?;
                    continue;
                }
                message = self.run.hear_unless(waits, "act") => message?,
            };
            match message {
                FromProgram::Respond(_) | FromProgram::Call(_) if self.work.len() == MAX_WORK => {
                    return Err(self.broken(format!("asked for more than {MAX_WORK} responses and results at once")));
                }
                FromProgram::Respond(wish) => self.respond(wish)?,
                FromProgram::Call(wish) => self.call(wish)?,
                FromProgram::Report(report) => self.report(report).await?,
                FromProgram::OwnResult(own) => self.own_result(&own.result).await?,
                FromProgram::Note(note) => self.note(&note.event)?,
                FromProgram::Ended(_) if self.work.is_empty() => return Ok(Turn::Ended(self.told.history())),
                FromProgram::Ended(_) => {
                    return Err(self.broken("ended its turn while what it asked for was on its way".to_owned()));
                }
                message => return Err(self.run.hold.unexpected(&message, "what an agent does").into()),
            }
        }
    }

    /// Gives the program what it asked for.
    fn answer(&mut self, id: u64, done: Done) -> Result<(), AgentError> {
        let r#use = self.run.hold.number();
        let message: ToProgram = match done {
            Done::Answered(response) => {
                let event = Event::Response(response);
                let response = raw(&event).map_err(other)?;
                self.told.push(event);
                Answer { r#use, id, response }.into()
            }
            Done::Called(place, result) => {
                let (outcome, error) = (result.outcome, result.error.clone());
                let content = encode_content(&result).map_err(other)?;
                self.told.result(place, result);
                self.go_on()?;
                CallResult { r#use, id, content, outcome, error }.into()
            }
        };
        Ok(self.run.hold.tell(message)?)
    }

    /// A run whose budget is spent goes no further than its round.
    fn go_on(&self) -> Result<(), Halt> {
        let is_spent = self.told.is_round_closed() && self.work.is_empty() && self.cx.is_spent();
        if is_spent { Err(Halt::BudgetSpent) } else { Ok(()) }
    }

    fn respond(&mut self, wish: Respond) -> Result<(), AgentError> {
        let mut history = self.told.history();
        if let Some(events) = wish.events {
            history = decode_onto(&history, &events).map_err(|problem| self.broken(problem))?;
            self.told.rewrite(history.clone());
        }
        let cx = self.cx;
        self.work.push(Box::pin(async move { (wish.id, cx.respond(&history).await.map(Done::Answered)) }));
        Ok(())
    }

    fn call(&mut self, wish: AgentCall) -> Result<(), AgentError> {
        let call = ToolCall::new(wish.call_id, wish.name, wish.arguments);
        let Some(place) = self.told.make_call(&call) else {
            return Err(self.broken(format!(
                "called `{}` with the id `{}`, which no call of its newest response has: a response is reported before its \
                 calls are made",
                escaped(&call.name),
                escaped(&call.id)
            )));
        };
        let cx = self.cx;
        let turn = (!cx.calls_are_independent()).then(|| Arc::clone(&self.turn));
        self.work.push(Box::pin(async move {
            // Those who wait are served in the order they came.
            let _turn = match &turn {
                Some(turn) => Some(turn.lock().await),
                None => None,
            };
            (wish.id, cx.call(&call).await.map(|result| Done::Called(place, result)))
        }));
        Ok(())
    }

    async fn report(&mut self, report: Report) -> Result<(), AgentError> {
        let response = decode_response(&report.response).map_err(|problem| self.broken(problem))?;
        let reported = self.cx.report(&response, report.sent).await;
        self.told.push(Event::Response(response));
        Ok(reported?)
    }

    /// What one of its own tools answered is no action; a call that it refused itself is one.
    async fn own_result(&mut self, result: &Raw) -> Result<(), AgentError> {
        let result = decode_result(result).map_err(|problem| self.broken(problem))?;
        if self.agent.own_tools().iter().any(|own| *own == result.name) {
            let result = ToolResult { own: true, ..result };
            self.cx.own_result(&result);
            self.told.own_result(result);
            return Ok(());
        }
        let tool = escaped(&result.name);
        if !result.outcome.is_blocked() {
            return Err(self.broken(format!(
                "answered a call of `{tool}` itself: only tools that its greeting lists are its own, and only a failure can \
                 come of a call that it did not make"
            )));
        }
        let Some(call) = self.told.own_result(result.clone()) else {
            return Err(self.broken(format!("refused a call of `{tool}` that its newest response does not hold")));
        };
        self.cx.refuse(&call, &result).await?;
        Ok(self.go_on()?)
    }

    fn note(&mut self, event: &Raw) -> Result<(), AgentError> {
        let event = decode_event(event).map_err(|problem| self.broken(problem))?;
        if matches!(event, Event::Response(_) | Event::ToolResults(_)) {
            return Err(self.broken(format!("noted a `{}` event, which is told in a message of its own", event.kind())));
        }
        self.cx.note(&event);
        self.told.push(event);
        Ok(())
    }

    fn broken(&self, problem: String) -> AgentError {
        self.run.hold.broken(problem).into()
    }
}

fn limits(budget: &Budget) -> Limits {
    let whole = |limit: Option<usize>| limit.map(|limit| u64::try_from(limit).unwrap_or(u64::MAX));
    Limits {
        actions: whole(budget.max_actions),
        answers: whole(budget.max_answers),
        requests: budget.max_requests,
        total_tokens: budget.max_total_tokens,
    }
}

fn other(message: String) -> AgentError {
    AgentError::Other { message }
}

impl From<CommandError> for AgentError {
    fn from(error: CommandError) -> Self {
        other(with_causes(&error))
    }
}
