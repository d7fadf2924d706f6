//! A provider with rate limits.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_core::future::BoxFuture;
use retrace_model::{Answer, Clock, Model, ModelError, Prices, Prompt, Rules};

use crate::shown::{input_tokens, output_tokens};

/// What a provider lets through. What is none is not limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderLimits {
    /// Requests in a minute.
    pub requests_per_minute: Option<u64>,
    /// Tokens in a minute, of prompts and answers together.
    pub tokens_per_minute: Option<u64>,
    /// How much of the limits can be saved up, as the time in which it comes back.
    pub burst: Duration,
}

impl Default for ProviderLimits {
    /// No limits, and a minute to save them up.
    fn default() -> Self {
        Self { requests_per_minute: None, tokens_per_minute: None, burst: Duration::from_secs(60) }
    }
}

/// A model behind rate limits: what is beyond them is refused as
/// [`RateLimited`](retrace_model::ModelError::RateLimited), at once; the rest is answered after a while.
///
/// Limits are buckets that fill up evenly, as those of most providers. A request takes one from the one, and from the other its
/// tokens; those of an answer are taken when it is there. A request that is refused takes nothing.
#[derive(Debug)]
pub struct LimitedModel<M, C> {
    model: M,
    clock: C,
    latency: Duration,
    tells_wait: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    requests: Bucket,
    tokens: Bucket,
    /// When the buckets were filled last.
    filled: Duration,
    n_answered: u64,
    n_refused: u64,
}

/// What is left of a limit.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    per_second: f64,
    most: f64,
    level: f64,
}

impl<M: Model, C: Clock> LimitedModel<M, C> {
    /// A model with full buckets, which takes `latency` for an answer.
    pub fn new(model: M, clock: C, limits: ProviderLimits, latency: Duration) -> Self {
        let (requests, tokens) = buckets(limits);
        let state = State { requests, tokens, filled: clock.now(), n_answered: 0, n_refused: 0 };
        Self { model, clock, latency, tells_wait: false, state: Mutex::new(state) }
    }

    /// Whether a refusal says how long to wait; it does not unless set.
    #[must_use]
    pub fn telling_the_wait(mut self, tells: bool) -> Self {
        self.tells_wait = tells;
        self
    }

    /// Changes the limits from now on. What was saved up stays, up to what can be.
    pub fn set(&self, limits: ProviderLimits) {
        let mut state = self.filled();
        let (requests, tokens) = buckets(limits);
        state.requests = Bucket { level: state.requests.level.min(requests.most), ..requests };
        state.tokens = Bucket { level: state.tokens.level.min(tokens.most), ..tokens };
    }

    /// How many requests it has answered.
    pub fn n_answered(&self) -> u64 {
        self.filled().n_answered
    }

    /// How many requests were beyond the limits.
    pub fn n_refused(&self) -> u64 {
        self.filled().n_refused
    }

    fn filled(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let passed = now.saturating_sub(state.filled).as_secs_f64();
        state.filled = now;
        state.requests.fill(passed);
        state.tokens.fill(passed);
        state
    }

    /// Takes a request with so many tokens, or says for how long there is no room for it.
    fn admit(&self, tokens: f64) -> Result<(), Duration> {
        let mut state = self.filled();
        let wait = state.requests.until(1.0).max(state.tokens.until(tokens));
        if wait > Duration::ZERO {
            state.n_refused += 1;
            return Err(wait);
        }
        state.requests.level -= 1.0;
        state.tokens.level -= tokens;
        Ok(())
    }
}

fn buckets(limits: ProviderLimits) -> (Bucket, Bucket) {
    let bucket = |per_minute: Option<u64>| {
        let per_second = per_minute.map_or(f64::INFINITY, |n| n as f64 / 60.0);
        // Less than one request could never be made.
        let most = (per_second * limits.burst.as_secs_f64()).max(1.0);
        Bucket { per_second, most, level: most }
    };
    (bucket(limits.requests_per_minute), bucket(limits.tokens_per_minute))
}

impl Bucket {
    fn fill(&mut self, seconds: f64) {
        if self.level < self.most {
            self.level = (self.level + self.per_second * seconds).min(self.most);
        }
    }

    /// How long it takes until so much is there, or all there can be.
    fn until(&self, amount: f64) -> Duration {
        let missing = amount.min(self.most) - self.level;
        // What rounding leaves is no debt.
        if missing <= 1e-9 { Duration::ZERO } else { Duration::from_secs_f64((missing / self.per_second).min(1e9)) }
    }
}

impl<M: Model, C: Clock> Model for LimitedModel<M, C> {
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
            self.admit(input_tokens(prompt).0 as f64).map_err(|wait| ModelError::RateLimited {
                message: "429 Too Many Requests: the limit is reached".to_owned(),
                // Rounded up, as in a header.
                retry_after: self.tells_wait.then(|| Duration::from_millis(wait.as_millis() as u64 + 1)),
            })?;
            self.clock.sleep(self.latency).await;
            let answer = self.model.respond(prompt).await?;
            let mut state = self.filled();
            state.tokens.level -= output_tokens(&answer.response) as f64;
            state.n_answered += 1;
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use retrace_events::{Event, History};
    use retrace_model::{ScriptedModel, Sleep};

    use super::*;

    /// A clock that goes on when somebody waits.
    #[derive(Clone, Default)]
    struct Hand(Arc<Mutex<Duration>>);

    impl Sleep for Hand {
        fn sleep<'a>(&'a self, time: Duration) -> BoxFuture<'a, ()> {
            *self.0.lock().unwrap() += time;
            Box::pin(std::future::ready(()))
        }
    }

    impl Clock for Hand {
        fn now(&self) -> Duration {
            *self.0.lock().unwrap()
        }
    }

    fn ask(model: &dyn Model, n_characters: usize) -> Result<Answer, ModelError> {
        let history = History::from(vec![Event::request("x".repeat(n_characters))]);
        pollster::block_on(model.respond(&Prompt { instructions: None, history: &history, tools: &[], seed: 0 }))
    }

    fn model(limits: ProviderLimits, latency: u64) -> (LimitedModel<ScriptedModel, Hand>, Hand) {
        let clock = Hand::default();
        let scripted = ScriptedModel::new(vec!["four"; 1000]);
        (LimitedModel::new(scripted, clock.clone(), limits, Duration::from_secs(latency)), clock)
    }

    fn wait(seconds: u64, clock: &Hand) {
        drop(clock.sleep(Duration::from_secs(seconds)));
    }

    #[test]
    fn requests_beyond_the_limit_are_refused_until_there_is_room() {
        let burst = Duration::from_secs(30);
        let limits = ProviderLimits { requests_per_minute: Some(6), burst, ..ProviderLimits::default() };
        let (model, clock) = model(limits, 0);
        let model = model.telling_the_wait(true);
        for _ in 0..3 {
            assert!(ask(&model, 1).is_ok());
        }
        assert_eq!(ask(&model, 1).unwrap_err().retry_after(), Some(Duration::from_millis(10_001)));
        wait(9, &clock);
        assert_eq!(ask(&model, 1).unwrap_err().retry_after(), Some(Duration::from_millis(1_001)));
        wait(1, &clock);
        assert!(ask(&model, 1).is_ok() && ask(&model, 1).is_err());
        wait(1000, &clock);
        assert!((0..3).all(|_| ask(&model, 1).is_ok()) && ask(&model, 1).is_err(), "no more is saved up");
        assert_eq!((model.n_answered(), model.n_refused()), (7, 4));
    }

    #[test]
    fn tokens_are_those_of_prompts_and_of_answers_and_a_prompt_larger_than_the_limit_goes_through() {
        let limits = ProviderLimits { tokens_per_minute: Some(60), ..ProviderLimits::default() };
        let (model, clock) = model(limits, 0);
        assert!(ask(&model, 4 * 50).is_ok());
        // 60 - 50 - 1 are left.
        assert_eq!(ask(&model, 4 * 10).unwrap_err().retry_after(), None);
        assert!(ask(&model, 4 * 9).is_ok());
        wait(60, &clock);
        assert!(ask(&model, 4 * 1000).is_err(), "the answer is still owed");
        wait(1, &clock);
        assert!(ask(&model, 4 * 1000).is_ok());
        wait(900, &clock);
        assert!(ask(&model, 4).is_err());
    }

    #[test]
    fn an_answer_takes_its_time_and_limits_can_change() {
        let limits = ProviderLimits { requests_per_minute: Some(1), ..ProviderLimits::default() };
        let (model, clock) = model(limits, 3);
        assert!(ask(&model, 1).is_ok());
        assert_eq!(clock.now(), Duration::from_secs(3));
        assert!(ask(&model, 1).is_err());
        model.set(ProviderLimits { requests_per_minute: Some(600), ..limits });
        wait(1, &clock);
        assert!((0..5).all(|_| ask(&model, 1).is_ok()));
        model.set(ProviderLimits::default());
        assert!((0..100).all(|_| ask(&model, 1).is_ok()));
    }
}
