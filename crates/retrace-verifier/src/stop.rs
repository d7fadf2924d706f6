//! When a verification stops before its end, and why.

use std::fmt;
use std::sync::Arc;

use retrace_events::{EndReason, Failure, Rollout, Stage};
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
    /// What may be spent is.
    Spent {
        /// The limit, with its unit.
        limit: String,
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
            Self::Spent { limit } => write!(f, "{limit} are spent"),
            Self::NotKept { reason } => write!(f, "nothing more can be kept: {reason}"),
        }
    }
}

/// Watches whether all rollouts of a run fail alike.
#[derive(Debug)]
pub(crate) struct Breaker {
    /// After how many it trips.
    limit: usize,
    /// How many there were, and how the first failed; none once one did not.
    alike: Option<(usize, Option<Failure>)>,
}

impl Breaker {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, alike: Some((0, None)) }
    }

    /// Takes in a rollout, and says why to stop if it is time to.
    pub(crate) fn add(&mut self, rollout: &Rollout) -> Option<Stop> {
        let (n, first) = self.alike.as_mut()?;
        let EndReason::Failed(failure) = &rollout.end else {
            self.alike = None;
            return None;
        };
        let first = first.get_or_insert_with(|| failure.clone());
        if kind(first) != kind(failure) {
            self.alike = None;
            return None;
        }
        *n += 1;
        (*n == self.limit).then(|| Stop::AllAlike { n_rollouts: *n, failure: first.clone() })
    }

    /// Whether there were rollouts, and all failed alike.
    pub(crate) fn saw_nothing_else(&self) -> bool {
        self.alike.as_ref().is_some_and(|(n, _)| *n > 0)
    }
}

/// What two failures that are alike have in common: numbers in them, such as those of ports or requests, do not count.
fn kind(failure: &Failure) -> (Stage, String) {
    let message = failure.message.chars().map(|character| if character.is_numeric() { '0' } else { character });
    (failure.stage, message.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(message: &str) -> Rollout {
        Rollout::failed(Stage::Model, message)
    }

    fn answered() -> Rollout {
        Rollout { end: EndReason::Answer, ..failed("") }
    }

    #[test]
    fn it_trips_when_the_first_all_fail_alike() {
        let mut breaker = Breaker::new(3);
        assert!(!breaker.saw_nothing_else());
        assert_eq!(breaker.add(&failed("refused: request 17")), None);
        assert_eq!(breaker.add(&failed("refused: request 18")), None);
        assert!(breaker.saw_nothing_else());
        let stop = breaker.add(&failed("refused: request 19")).unwrap();
        let expected = "the first 3 rollouts all failed alike: model: refused: request 17";
        assert_eq!(stop.to_string(), expected);
        // Those that are still at work do not trip it again.
        assert_eq!(breaker.add(&failed("refused: request 20")), None);
    }

    #[test]
    fn one_that_differs_keeps_it_closed() {
        for other in [answered(), failed("timed out"), Rollout::failed(Stage::Restore, "refused")] {
            let mut breaker = Breaker::new(2);
            breaker.add(&failed("refused"));
            assert_eq!(breaker.add(&other), None);
            assert!((0..9).all(|_| breaker.add(&failed("refused")).is_none()));
            assert!(!breaker.saw_nothing_else());
        }
    }
}
