//! How much a run may use, and what it has used.

use retrace_events::sent::SentHash;
use retrace_events::{Action, EndReason, Response, Spend};
use retrace_model::Prices;

/// How much a run may use. What is not set is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Tool calls to finish, failed ones and calls of unknown tools included. All calls of one response run, so a run
    /// may finish more.
    pub max_actions: Option<usize>,
    /// Answers of the model. A model call that fails uses none.
    pub max_answers: Option<usize>,
    /// Model calls, failed ones and those of compactions included; for live runs.
    pub max_requests: Option<u64>,
    /// Tokens of all model calls together, as the model reports them; for live runs.
    pub max_total_tokens: Option<u64>,
}

/// What a run has used, and the calls it has finished.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// The calls in the order issued; those that have not finished are empty.
    pub(crate) actions: Vec<Option<Action>>,
    pub(crate) n_finished: usize,
    pub(crate) n_answers: usize,
    /// Answers that the model is being asked for.
    pub(crate) n_asking: usize,
    pub(crate) n_requests: u64,
    /// Those of them that were made beside the run.
    pub(crate) n_early: u64,
    /// What the calls spent that were answered.
    pub(crate) spend: Spend,
    /// What the model was sent when it was asked for its first answer, if it says so.
    pub(crate) sent: Option<SentHash>,
    /// Calls that the model has issued and the agent has not yet made.
    n_issued: usize,
}

impl Budget {
    /// The budget of a rollout: `horizon` actions, and at most as many answers of the model.
    pub fn actions(horizon: usize) -> Self {
        Self { max_actions: Some(horizon), max_answers: Some(horizon), ..Self::default() }
    }

    /// Which limit forbids another model call, if any does. Where it is no answer, one call is left for the answer that
    /// is to follow it.
    pub(crate) fn forbids_request(&self, account: &Account, is_answer: bool) -> Option<EndReason> {
        let spent = |limit: Option<usize>, used| limit.is_some_and(|limit| used >= limit);
        let spent_long = |limit: Option<u64>, used| limit.is_some_and(|limit| used >= limit);
        if is_answer && (spent(self.max_actions, account.n_finished) || spent(self.max_answers, account.n_answers)) {
            Some(EndReason::Budget)
        } else if spent_long(self.max_requests, account.n_requests.saturating_add(u64::from(!is_answer))) {
            Some(EndReason::RequestLimit)
        } else if spent_long(self.max_total_tokens, account.total_tokens()) {
            Some(EndReason::TokenLimit)
        } else {
            None
        }
    }

    /// Whether as many answers are being asked for as are left.
    pub(crate) fn forbids_asking_beside(&self, account: &Account) -> bool {
        self.max_answers.is_some_and(|limit| account.n_answers + account.n_asking >= limit)
    }

    /// Whether another tool call is forbidden: the actions are spent, and the model has issued no call that still
    /// waits to be made.
    pub(crate) fn forbids_call(&self, account: &Account) -> bool {
        account.n_issued == 0 && self.max_actions.is_some_and(|limit| account.actions.len() >= limit)
    }
}

impl Account {
    pub(crate) fn total_tokens(&self) -> u64 {
        self.spend.total_tokens()
    }

    /// Books a response, of the agent's model or of a compaction's, at the prices of the model that gave it.
    pub(crate) fn book_response(
        &mut self,
        response: &Response,
        prices: Option<Prices>,
        sent: Option<SentHash>,
        is_answer: bool,
    ) {
        self.spend.add(Prices::spent(prices, response));
        if is_answer {
            if self.n_answers == 0 {
                self.sent = sent;
            }
            self.n_answers += 1;
            self.n_issued += response.tool_calls().count();
        }
    }

    /// Whether every call that was issued has finished.
    pub(crate) fn is_round_closed(&self) -> bool {
        self.n_issued == 0 && self.n_finished == self.actions.len()
    }

    /// Opens a call and gives its place among the actions.
    pub(crate) fn open_call(&mut self) -> usize {
        self.take_issued();
        self.actions.push(None);
        self.actions.len() - 1
    }

    /// One of the issued calls waits no longer.
    pub(crate) fn take_issued(&mut self) {
        self.n_issued = self.n_issued.saturating_sub(1);
    }

    pub(crate) fn finish_call(&mut self, place: usize, action: Action) {
        self.n_finished += 1;
        self.actions[place] = Some(action);
    }
}
