//! How fast a model is asked: no faster than it is said to take it, and slower once it refuses.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_core::future::BoxFuture;
use retrace_events::tokens::{TokenCounter, Tokens, count_sent};
use retrace_model::{Answer, Backoff, Model, ModelError, Prices, Prompt, Rules};
use tokio::sync::{Mutex as Queue, Notify};
use tokio::time::{Instant, timeout_at};

/// What may be asked of a model in a minute. What is not set is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests, refused ones included.
    pub requests_per_minute: Option<u64>,
    /// Tokens of prompts and answers together. Those of a prompt are estimated before it is sent, and corrected by what the
    /// provider reports.
    pub tokens_per_minute: Option<u64>,
}

/// A model that is asked when it is the caller's turn, with a pace that all share who ask it.
///
/// Turns come in the order of the callers, when the [`RateLimit`] has room. That is kept within every second, not every
/// minute, so that a provider that counts in shorter times is not overrun.
///
/// From the first refusal ([`RateLimited`](ModelError::RateLimited)) on, the number of calls in flight is limited, too,
/// by a *window*, until it has grown to the configured concurrency. A refusal makes it smaller by the factor 0.85, or
/// by half if fewer calls were answered since the last time than fit in it; refusals of calls that were sent before
/// that count once. An answer makes a window of w larger by 1 ∕ w, but at most by a twentieth of it. Turns are spread
/// over the time that an answer takes on average, one every time ∕ w, so that a window may be smaller than one.
///
/// All wait for as long as a refusal asks for; where it does not say, and nobody was answered since the refusal before,
/// for as long as the backoff has it. The refused call itself takes its next turn, and no attempt is used up by that.
/// It is an error only if the model asks for a longer wait than the backoff allows, or has answered nobody for that
/// long.
///
/// # Source
/// Additive increase and multiplicative decrease: Chiu & Jain 1989, *Analysis of the increase and decrease algorithms
/// for congestion avoidance in computer networks*.
pub(crate) struct Paced<M> {
    model: M,
    pace: Arc<Pace>,
    counter: Arc<dyn TokenCounter>,
}

/// The pace of one model, whoever asks it.
pub(crate) struct Pace {
    /// So many calls are in flight at most once it has been refused, until nothing limits them any more.
    concurrency: f64,
    backoff: Backoff,
    limit: RateLimit,
    /// Whoever holds it has the next turn.
    queue: Queue<()>,
    /// Told when a turn is over.
    changed: Notify,
    state: Mutex<State>,
}

struct State {
    requests: Option<Allowance>,
    tokens: Option<Allowance>,
    n_in_flight: usize,
    /// The most calls in flight, infinite while nothing limits them.
    window: f64,
    /// No turn comes before.
    held_until: Instant,
    /// How long the next refusal holds up everybody that does not say so itself.
    hold: Duration,
    /// No turn comes before, so that turns are spread.
    next_turn: Instant,
    /// How long an answer takes on average, in seconds; lately answered calls count more.
    latency: f64,
    /// How often the window was made smaller.
    n_slowed: u64,
    /// How many calls were answered since.
    n_answered: u64,
    /// Since when nobody was answered, if the last word was a refusal.
    refused_since: Option<Instant>,
}

/// What is left of a limit. It may be overdrawn, and then has to fill up first.
struct Allowance {
    per_second: f64,
    most: f64,
    left: f64,
    at: Instant,
}

/// What a refusal leaves of the window.
const SLOWER: f64 = 0.85;

/// What it leaves where the window was far too large.
const MUCH_SLOWER: f64 = 0.5;

/// The most that an answer adds to a window, as a part of it.
const FASTER: f64 = 0.05;

/// The smallest window.
const SMALLEST: f64 = 0.01;

/// The weight of a new answer in the average of their times.
const NEWEST: f64 = 0.125;

/// How much of a limit may be saved up, in seconds.
const BURST: f64 = 1.0;

impl Pace {
    pub(crate) fn new(limit: RateLimit, concurrency: usize, backoff: Backoff) -> Self {
        let now = Instant::now();
        let allowance = |per_minute: Option<u64>| {
            let per_second = per_minute? as f64 / 60.0;
            let most = (per_second * BURST).max(1.0);
            Some(Allowance { per_second, most, left: most, at: now })
        };
        let state = State {
            requests: allowance(limit.requests_per_minute),
            tokens: allowance(limit.tokens_per_minute),
            n_in_flight: 0,
            window: f64::INFINITY,
            held_until: now,
            hold: Duration::ZERO,
            next_turn: now,
            latency: 0.0,
            n_slowed: 0,
            n_answered: 0,
            refused_since: None,
        };
        let (queue, changed, state) = (Queue::new(()), Notify::new(), Mutex::new(state));
        Self { concurrency: concurrency as f64, backoff, limit, queue, changed, state }
    }

    /// Waits for a turn of a prompt with so many tokens.
    async fn turn(&self, tokens: Tokens) -> Turn<'_> {
        let _next = self.queue.lock().await;
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // What changes from here on is heard.
            changed.as_mut().enable();
            let now = Instant::now();
            let taken = self.state().take(now, tokens, &self.backoff);
            match taken {
                Ok(n_slowed) => return Turn { pace: self, tokens, sent: now, n_slowed },
                Err(Some(until)) => drop(timeout_at(until, changed).await),
                Err(None) => changed.await,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes a turn, and gives how often the pace has slowed down by now; or says until when to wait, or that another turn
    /// must be over first.
    fn take(&mut self, now: Instant, tokens: Tokens, backoff: &Backoff) -> Result<u64, Option<Instant>> {
        if self.n_in_flight as f64 >= self.window.ceil() {
            return Err(None);
        }
        let amounts = [(&mut self.requests, 1.0), (&mut self.tokens, tokens.0 as f64)];
        let allowed = amounts.map(|(limit, amount)| limit.as_mut().map_or(now, |limit| limit.allows(now, amount)));
        let until = self.held_until.max(self.next_turn).max(allowed[0]).max(allowed[1]);
        if until > now {
            return Err(Some(until));
        }
        take_from(&mut self.requests, 1.0);
        take_from(&mut self.tokens, tokens.0 as f64);
        let apart = Duration::from_secs_f64(self.latency / self.window).min(backoff.longest_wait);
        // One that comes a little late does not make all that follow late.
        self.next_turn = now.max(self.next_turn + apart);
        self.n_in_flight += 1;
        Ok(self.n_slowed)
    }

    /// A call was answered after this time.
    fn answered(&mut self, time: Duration, concurrency: f64) {
        self.n_answered += 1;
        let newest = if self.latency == 0.0 { 1.0 } else { NEWEST };
        self.latency += newest * (time.as_secs_f64() - self.latency);
        (self.refused_since, self.hold) = (None, Duration::ZERO);
        self.window += (1.0 / self.window).min(self.window * FASTER);
        if self.window >= concurrency {
            self.window = f64::INFINITY;
        }
    }

    /// A call was refused that was sent when the pace had slowed down `n_slowed` times.
    fn refused(&mut self, now: Instant, retry_after: Option<Duration>, n_slowed: u64, backoff: &Backoff) {
        let is_first = n_slowed == self.n_slowed;
        if let Some(wait) = retry_after.or(is_first.then_some(self.hold)) {
            self.held_until = self.held_until.max(now + wait);
        }
        if is_first {
            let window = self.window.min(self.n_in_flight as f64);
            let left = if (self.n_answered as f64) < window { MUCH_SLOWER } else { SLOWER };
            self.window = (window * left).max(SMALLEST);
            self.hold = (self.hold * 2).clamp(backoff.first_wait, backoff.longest_wait.max(backoff.first_wait));
            (self.n_slowed, self.n_answered) = (self.n_slowed + 1, 0);
        }
    }
}

fn take_from(limit: &mut Option<Allowance>, amount: f64) {
    if let Some(limit) = limit {
        limit.left -= amount;
    }
}

impl Allowance {
    /// From when on so much may be taken, or the most that there can be.
    fn allows(&mut self, now: Instant, amount: f64) -> Instant {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + self.per_second * passed).min(self.most), now);
        let missing = amount.min(self.most) - self.left;
        // What rounding leaves is no debt; and a year is as good as never.
        if missing <= 1e-6 { now } else { now + Duration::from_secs_f64((missing / self.per_second).min(YEAR)) }
    }
}

/// In seconds.
const YEAR: f64 = 365.0 * 24.0 * 3600.0;

/// A call in flight. The turn is over when this is dropped.
struct Turn<'a> {
    pace: &'a Pace,
    tokens: Tokens,
    sent: Instant,
    n_slowed: u64,
}

impl Turn<'_> {
    /// Takes in what came of the call, and says whether it is to take another turn.
    fn came_to(self, answer: &Result<Answer, ModelError>) -> bool {
        let Pace { concurrency, backoff, .. } = self.pace;
        let (mut state, now) = (self.pace.state(), Instant::now());
        match answer {
            Ok(answer) => {
                state.answered(now - self.sent, *concurrency);
                if let Some(usage) = &answer.response.usage {
                    take_from(&mut state.tokens, usage.total_tokens() as f64 - self.tokens.0 as f64);
                }
                false
            }
            Err(ModelError::RateLimited { retry_after, .. }) => {
                take_from(&mut state.tokens, -(self.tokens.0 as f64));
                if retry_after.is_some_and(|wait| wait > backoff.longest_retry_after) {
                    return false;
                }
                state.refused(now, *retry_after, self.n_slowed, backoff);
                let since = *state.refused_since.get_or_insert(now);
                now.saturating_duration_since(since) <= backoff.longest_retry_after
            }
            Err(_) => false,
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.pace.state().n_in_flight -= 1;
        self.pace.changed.notify_waiters();
    }
}

impl<M: Model> Paced<M> {
    pub(crate) fn new(model: M, pace: Arc<Pace>, counter: Arc<dyn TokenCounter>) -> Self {
        Self { model, pace, counter }
    }

    /// The tokens of a prompt, where they count.
    fn tokens(&self, prompt: &Prompt<'_>) -> Tokens {
        if self.pace.limit.tokens_per_minute.is_none() {
            return Tokens::default();
        }
        let mut units = self.counter.units(prompt.instructions.unwrap_or_default());
        for tool in prompt.tools {
            units += self.counter.units(tool.description.as_deref().unwrap_or_default());
            units += self.counter.units(&tool.parameters.to_string());
        }
        self.counter.tokens(units) + count_sent(&*self.counter, prompt.history)
    }
}

impl<M: Model> Model for Paced<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn rules(&self) -> Rules {
        self.model.rules()
    }

    fn prices(&self) -> Option<Prices> {
        self.model.prices()
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            let tokens = self.tokens(prompt);
            loop {
                let turn = self.pace.turn(tokens).await;
                let answer = self.model.respond(prompt).await;
                if !turn.came_to(&answer) {
                    return answer;
                }
            }
        })
    }
}
