//! When a verification stops before its end, and why.

use std::fmt;
use std::sync::Arc;

use retrace_events::{EndReason, Failure, Rollout, RolloutKey, Stage};
use tokio::sync::watch;

/// Tells a verification to stop: what is at work is given a moment to finish, and nothing new starts.
#[derive(Clone, Debug)]
pub struct StopSignal(Arc<watch::Sender<bool>>);

impl Default for StopSignal {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl StopSignal {
    /// Gives the signal, for good.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Whether it was given.
    pub fn is_given(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the signal.
    pub(crate) async fn given(&self) {
        let mut receiver = self.0.subscribe();
        if receiver.wait_for(|stopped| *stopped).await.is_err() {
            // Nobody is left to give it.
            std::future::pending::<()>().await;
        }
    }
}

/// Why a verification stopped before its end. What it had finished is there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Somebody gave the [signal](StopSignal).
    Asked,
    /// The first rollouts all failed alike, so that the others would too.
    AllAlike {
        /// How many they were.
        n_rollouts: usize,
        /// How the first failed.
        failure: Failure,
    },
    /// Nothing more may be spent.
    Spent {
        /// Why not, with the limit and its unit.
        reason: String,
    },
    /// What was finished could not be kept.
    NotKept {
        /// Why not, with the causes.
        reason: String,
    },
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("it was asked to"),
            Self::AllAlike { n_rollouts, failure } => {
                write!(f, "the first {n_rollouts} rollouts all failed alike: {failure}")
            }
            Self::Spent { reason } => f.write_str(reason),
            Self::NotKept { reason } => write!(f, "nothing more can be kept: {reason}"),
        }
    }
}

/// Watches whether the first rollouts all fail alike.
#[derive(Debug)]
pub(crate) struct Breaker {
    /// After how many it trips.
    limit: usize,
    /// How many there were, and the first; none once one did not fail like it.
    alike: Option<(usize, Option<(RolloutKey, Rollout)>)>,
}

impl Breaker {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, alike: Some((0, None)) }
    }

    /// Takes in a rollout, and says why to stop if it is time to.
    pub(crate) fn add(&mut self, key: &RolloutKey, rollout: &Rollout) -> Option<Stop> {
        let (n, first) = self.alike.as_mut().filter(|(n, _)| *n < self.limit)?;
        let (_, first) = first.get_or_insert_with(|| (key.clone(), rollout.clone()));
        let EndReason::Failed(failure) = first.end.clone() else {
            self.alike = None;
            return None;
        };
        if !fail_alike(first, rollout) {
            self.alike = None;
            return None;
        }
        *n += 1;
        (*n == self.limit).then_some(Stop::AllAlike { n_rollouts: self.limit, failure })
    }

    /// The first of the rollouts so far, if all failed alike.
    pub(crate) fn first(&self) -> Option<&RolloutKey> {
        let (_, first) = self.alike.as_ref()?;
        first.as_ref().map(|(key, _)| key)
    }
}

/// Whether two rollouts failed, and alike.
pub(crate) fn fail_alike(one: &Rollout, other: &Rollout) -> bool {
    match (&one.end, &other.end) {
        (EndReason::Failed(one), EndReason::Failed(other)) => kind(one) == kind(other),
        _ => false,
    }
}

/// What two failures that are alike have in common: numbers in them, such as those of ports or requests, do not count.
fn kind(failure: &Failure) -> (Stage, String) {
    let message = failure.message.chars().map(|character| if character.is_numeric() { '0' } else { character });
    (failure.stage, message.collect())
}

#[cfg(test)]
mod tests {
    use retrace_events::Arm;

    use super::*;

    fn failed(message: &str) -> Rollout {
        Rollout::failed(Stage::Model, message)
    }

    fn answered() -> Rollout {
        Rollout { end: EndReason::Answer, ..failed("") }
    }

    fn add(breaker: &mut Breaker, rollout: &Rollout) -> Option<Stop> {
        let key = RolloutKey { recording: "a".to_owned(), cut: 3, arm: Arm::Pre, sample: 0 };
        breaker.add(&key, rollout)
    }

    #[test]
    fn it_trips_when_the_first_all_fail_alike() {
        let mut breaker = Breaker::new(3);
        assert_eq!(breaker.first(), None);
        assert_eq!(add(&mut breaker, &failed("refused: request 17")), None);
        assert_eq!(add(&mut breaker, &failed("refused: request 18")), None);
        assert!(breaker.first().is_some());
        let stop = add(&mut breaker, &failed("refused: request 19")).unwrap();
        let expected = "the first 3 rollouts all failed alike: model: refused: request 17";
        assert_eq!(stop.to_string(), expected);
        // Those that are still at work do not trip it again, nor do they close it.
        assert_eq!(add(&mut breaker, &failed("refused: request 20")), None);
        assert_eq!(add(&mut breaker, &answered()), None);
        assert!(breaker.first().is_some());
    }

    #[test]
    fn one_that_differs_keeps_it_closed() {
        for other in [answered(), failed("timed out"), Rollout::failed(Stage::Restore, "refused")] {
            let mut breaker = Breaker::new(2);
            add(&mut breaker, &failed("refused"));
            assert_eq!(add(&mut breaker, &other), None);
            assert!((0..9).all(|_| add(&mut breaker, &failed("refused")).is_none()));
            assert_eq!(breaker.first(), None);
        }
    }
}
