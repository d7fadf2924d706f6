//! Trying again when trying again may help.

use std::time::Duration;

use futures_core::future::BoxFuture;
use retrace_events::Prices;

use crate::model::{Answer, Model, ModelError};
use crate::prompt::Prompt;
use crate::rules::Rules;
use crate::seed::mix;

/// Waits. The floors that know no clock are handed one of these.
pub trait Sleep: Send + Sync {
    /// Returns once this much time has passed.
    fn sleep<'a>(&'a self, time: Duration) -> BoxFuture<'a, ()>;
}

/// How often a model is asked again, and how long is waited before.
///
/// Before the n-th repetition (from 0) the wait is `first_wait · 2ⁿ`, at most `longest_wait`, less up to half of it
/// by chance, so that many callers do not come back at once; and never less than the provider asks for. The chance
/// is drawn from the prompt's seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// How often a prompt is sent at most; 1 never repeats.
    pub max_attempts: u32,
    /// The wait before the first repetition.
    pub first_wait: Duration,
    /// The longest wait of our own choosing.
    pub longest_wait: Duration,
    /// The longest wait that a provider may ask for; if it asks for more, the error stands.
    pub longest_retry_after: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
            longest_retry_after: Duration::from_secs(120),
        }
    }
}

impl Backoff {
    /// The wait before repetition `n` (from 0) after `error`, or none if the error stands.
    pub fn wait(&self, n: u32, error: &ModelError, seed: u64) -> Option<Duration> {
        let asked = error.retry_after().unwrap_or_default();
        let is_last = n >= self.max_attempts.saturating_sub(1);
        if !error.is_transient() || is_last || asked > self.longest_retry_after {
            return None;
        }
        let full = self.first_wait.saturating_mul(2_u32.saturating_pow(n)).min(self.longest_wait);
        // The upper half of the number, as a share of what fits it.
        let share = (mix(seed, u64::from(n)) >> 32) as f64 / f64::from(u32::MAX);
        Some(full.mul_f64(1.0 - share / 2.0).max(asked))
    }
}

/// A model that is asked again when its error is transient.
#[derive(Clone, Debug)]
pub struct Retry<M, S> {
    model: M,
    sleep: S,
    backoff: Backoff,
}

impl<M: Model, S: Sleep> Retry<M, S> {
    /// Asks `model`, waiting with `sleep` between attempts.
    pub fn new(model: M, sleep: S, backoff: Backoff) -> Self {
        Self { model, sleep, backoff }
    }
}

impl<M: Model, S: Sleep> Model for Retry<M, S> {
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
            let mut n = 0;
            loop {
                let error = match self.model.respond(prompt).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => error,
                };
                let Some(wait) = self.backoff.wait(n, &error, prompt.seed) else { return Err(error) };
                self.sleep.sleep(wait).await;
                n += 1;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;
    use retrace_events::History;

    use super::*;
    use crate::ScriptedModel;

    /// A clock that only writes down what it was asked for.
    #[derive(Default)]
    struct Waits(Mutex<Vec<Duration>>);

    impl Sleep for &Waits {
        fn sleep<'a>(&'a self, time: Duration) -> BoxFuture<'a, ()> {
            self.0.lock().unwrap().push(time);
            Box::pin(std::future::ready(()))
        }
    }

    fn limited(retry_after: Option<u64>) -> ModelError {
        ModelError::RateLimited { message: "slow down".to_owned(), retry_after: retry_after.map(Duration::from_secs) }
    }

    fn ask(script: Vec<crate::Step>, seed: u64) -> (Result<Answer, ModelError>, Vec<Duration>, usize) {
        let (model, waits) = (ScriptedModel::new(script), Waits::default());
        let history = History::from(Vec::new());
        let prompt = Prompt { instructions: None, history: &history, tools: &[], seed };
        let retry = Retry::new(model, &waits, Backoff::default());
        let answer = pollster::block_on(retry.respond(&prompt));
        let n_asked = retry.model.asked().len();
        (answer, waits.0.into_inner().unwrap(), n_asked)
    }

    #[test]
    fn a_transient_error_is_tried_again_and_a_refusal_is_not() {
        let (answer, waits, _) = ask(vec![limited(None).into(), limited(None).into(), "done".into()], 1);
        assert_eq!(answer.unwrap().response.text(), "done");
        assert_eq!(waits.len(), 2);

        let refused = ModelError::Refused { message: "no such model".to_owned() };
        let (answer, waits, _) = ask(vec![refused.clone().into(), "never asked".into()], 1);
        assert_eq!((answer.unwrap_err(), waits.len()), (refused, 0));
    }

    #[test]
    fn it_gives_up_after_the_last_attempt_with_the_last_error() {
        let (answer, waits, n_asked) = ask((0..9).map(|i| limited(Some(i)).into()).collect(), 1);
        assert_eq!(answer.unwrap_err(), limited(Some(4)));
        assert_eq!((waits.len(), n_asked), (4, 5));
    }

    #[test]
    fn the_provider_is_given_the_time_it_asks_for_but_not_any_time() {
        let (_, waits, _) = ask(vec![limited(Some(100)).into(), "done".into()], 1);
        assert_eq!(waits, [Duration::from_secs(100)]);
        let (answer, waits, _) = ask(vec![limited(Some(121)).into(), "never asked".into()], 1);
        assert_eq!((answer.unwrap_err(), waits.len()), (limited(Some(121)), 0));
    }

    proptest! {
        #[test]
        fn waits_double_up_to_a_limit_and_lose_at_most_half(n in 0_u32..40, seed: u64) {
            let backoff = Backoff { max_attempts: 50, ..Backoff::default() };
            let wait = backoff.wait(n, &limited(None), seed).unwrap();
            let full = backoff.first_wait.saturating_mul(2_u32.saturating_pow(n)).min(backoff.longest_wait);
            prop_assert!(wait <= full && wait >= full / 2);
            prop_assert_eq!(backoff.wait(n, &limited(None), seed), Some(wait));
        }
    }
}
