//! One run of an agent, from a history to a rollout.

#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::pin::pin;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use retrace_env::{CallError, Toolbox};
use retrace_events::{EndReason, Failure, History, Rollout, Stage, panic_text};
use retrace_model::Model;

use crate::agent::{Agent, AgentError, Turn};
use crate::budget::Budget;
use crate::context::{Ended, Halt, Observer, RunContext};

/// All that one run of an agent takes.
pub struct Run<'a> {
    /// Where the agent starts.
    pub history: History,
    /// The agent's own system prompt.
    pub instructions: Option<&'a str>,
    /// The model it may ask.
    pub model: &'a dyn Model,
    /// The tools it may call.
    pub toolbox: &'a Toolbox,
    /// How much it may use.
    pub budget: Budget,
    /// What the seeds of its prompts are made from.
    pub seed: u64,
    /// Who is shown what happens, as it happens.
    pub observer: Option<&'a Observer<'a>>,
}

impl Run<'_> {
    /// Runs the agent to its end: what it did, and its history if it did not fail.
    ///
    /// Nothing makes it fail: a run that breaks off, or panics, is a rollout that says why and keeps what it had
    /// finished.
    pub async fn execute(self, agent: &dyn Agent) -> (Rollout, Option<History>) {
        self.execute_until(agent, std::future::pending()).await
    }

    /// As [`execute`](Self::execute), but stops the agent when `deadline` is there, whose text says why.
    pub async fn execute_until(
        self,
        agent: &dyn Agent,
        deadline: impl Future<Output = String>,
    ) -> (Rollout, Option<History>) {
        let cx = RunContext::new(self.instructions, self.model, self.toolbox, self.budget, self.seed, self.observer);
        // Made inside the future that is watched: an agent may panic before it returns one.
        let turn = AssertUnwindSafe(async { agent.resume(self.history, &cx).await }).catch_unwind();
        let turn = match select(pin!(turn), pin!(deadline)).await {
            Either::Left((Ok(turn), _)) => turn,
            Either::Left((Err(panic), _)) => Err(other(format!("the agent panicked: {}", panic_text(&*panic)))),
            Either::Right((message, _)) => Err(other(message)),
        };
        let (account, ended, unasked) = cx.into_parts();
        // A call that did not finish leaves a gap, and what was done behind it is not what the agent did next.
        let actions: Vec<_> = account.actions.into_iter().map_while(|action| action).collect();
        let spent_actions = self.budget.max_actions.is_some_and(|limit| actions.len() >= limit);
        // A strategy sees a limit of the run as a failed question.
        let ended = match &turn {
            Err(AgentError::Compact(_)) => ended.or(unasked.map(Ended::Limit)),
            _ => ended,
        };
        let (end, history) = match (turn, ended) {
            (_, Some(Ended::Call { error: CallError::OffTheRecord { call }, .. })) => {
                (EndReason::OffTheRecord { call }, None)
            }
            (_, Some(Ended::Call { error, .. })) => (failed(Stage::Environment, &error), None),
            (Ok(Turn::Ended(history) | Turn::Stopped(history)), _) if spent_actions => {
                (EndReason::Budget, Some(history))
            }
            (Ok(Turn::Ended(history)), _) => (EndReason::Answer, Some(history)),
            (Ok(Turn::Stopped(history)), ended) => (limit(ended), Some(history)),
            (Err(AgentError::Halt(Halt::BudgetSpent)), ended) => (limit(ended), None),
            (Err(AgentError::Compact(_)), Some(Ended::Limit(reason))) => (reason, None),
            (Err(AgentError::Halt(Halt::Model(error))), _) => (failed(Stage::Model, &error), None),
            (Err(error), _) => (failed(Stage::Agent, &error), None),
        };
        let rollout = Rollout {
            actions,
            end,
            n_answers: u32::try_from(account.n_answers).unwrap_or(u32::MAX),
            spend: account.spend,
            sent: account.sent,
        };
        (rollout, history)
    }
}

fn other(message: String) -> AgentError {
    AgentError::Other { message }
}

fn limit(ended: Option<Ended>) -> EndReason {
    match ended {
        Some(Ended::Limit(reason)) => reason,
        _ => EndReason::Budget,
    }
}

fn failed(stage: Stage, error: &(dyn std::error::Error + 'static)) -> EndReason {
    EndReason::Failed(Failure::of(stage, error))
}
