//! What a verification is told: how much to run, and on what.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use retrace_env::Environment;
use retrace_events::cuts::Spacing;
use retrace_events::tokens::{FourCharacters, TokenCounter};
use retrace_events::{Dollars, Recording, Spend};
use retrace_model::Backoff;
use retrace_score::{EnvironmentKind, Judging, MAX_HORIZON};
use serde_json::Value;

use crate::error::VerifyError;
use crate::limits::TimeLimits;
use crate::pace::RateLimit;

/// How much is run.
#[derive(Clone)]
pub struct Settings {
    /// How many actions of a rollout are looked at.
    pub horizon: usize,
    /// How many rollouts each arm of a boundary is given.
    pub samples: u32,
    /// Where recordings are cut that have no cuts of their own.
    pub spacing: Spacing,
    /// Whether a strategy is applied, at each boundary, to what it left at the one before and what the run added since, as
    /// in production; else to the raw history.
    pub chain: bool,
    /// How strategies are judged; without margins nothing is called safe.
    pub judging: Judging,
    /// How many rollouts and compactions run at once.
    pub concurrency: usize,
    /// What all seeds are made from.
    pub seed: u64,
    /// How long each thing outside the program may take.
    pub limits: TimeLimits,
    /// How often a model is asked again after an error that is transient. Each attempt has the time limit of a model
    /// call.
    pub backoff: Backoff,
    /// How fast models may be asked, by their names. One that has none here is asked as fast as it takes it.
    pub rate_limits: BTreeMap<String, RateLimit>,
    /// How tokens are counted.
    pub counter: Arc<dyn TokenCounter>,
    /// Whether the first rollout of an arm goes alone until its model has answered, so that the others find what they share in
    /// the provider's cache.
    pub warms_caches: bool,
    /// After how many rollouts a run stops if all so far failed alike.
    pub give_up_after: usize,
    /// How long what is at work may take when a run is to stop.
    pub grace: Duration,
    /// What may be spent.
    pub spend_limit: SpendLimit,
}

/// What a run may spend, all that goes on with it together. Once it is spent nothing new starts; what is at work is finished, so that it
/// may be exceeded by that.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpendLimit {
    /// Tokens, of requests and answers together.
    pub tokens: Option<u64>,
    /// Dollars. Needs models whose prices are known.
    pub dollars: Option<Dollars>,
}

impl SpendLimit {
    /// Why nothing more may be spent, if nothing may.
    pub(crate) fn reached_by(&self, spent: &Spend) -> Option<String> {
        if let Some(limit) = self.tokens.filter(|&limit| spent.total_tokens() >= limit) {
            return Some(format!("{limit} tokens are spent"));
        }
        match (self.dollars?, spent.dollars) {
            (limit, None) => Some(format!("it is not known what a call cost, so that {limit} cannot be kept to")),
            (limit, Some(spent)) => (spent >= limit).then(|| format!("{limit} are spent")),
        }
    }
}

impl Default for Settings {
    /// Horizon 5, 3 samples, cuts every 5 actions after the first 3, at most 4 a recording, 4 at once. It gives up after 10 rollouts that all failed alike.
    fn default() -> Self {
        Self {
            horizon: 5,
            samples: 3,
            spacing: Spacing::default(),
            chain: false,
            judging: Judging::default(),
            concurrency: 4,
            seed: 0,
            limits: TimeLimits::default(),
            backoff: Backoff::default(),
            rate_limits: BTreeMap::new(),
            counter: Arc::new(FourCharacters),
            warms_caches: true,
            give_up_after: 10,
            grace: Duration::from_secs(30),
            spend_limit: SpendLimit::default(),
        }
    }
}

impl Settings {
    /// Whether its numbers can be used.
    ///
    /// # Errors
    /// With the first that is out of its range.
    pub fn check(&self) -> Result<(), VerifyError> {
        let numbers = [
            ("horizon", self.horizon as u64, MAX_HORIZON as u64, ""),
            ("samples", self.samples.into(), MAX_SAMPLES.into(), ""),
            ("concurrency", self.concurrency as u64, MAX_CONCURRENCY as u64, ""),
            ("give_up_after", self.give_up_after as u64, u64::MAX, ""),
        ];
        let TimeLimits { model, tool, restore, strategy, rollout } = self.limits;
        let limits = [
            ("limits.model", model),
            ("limits.tool", tool),
            ("limits.restore", restore),
            ("limits.strategy", strategy),
            ("limits.rollout", rollout),
        ];
        let limits =
            limits.map(|(name, limit)| (name, limit.as_millis().try_into().unwrap_or(u64::MAX), MAX_MILLIS, " ms"));
        let rates = self.rate_limits.values().flat_map(|limit| {
            let rates =
                [("requests_per_minute", limit.requests_per_minute), ("tokens_per_minute", limit.tokens_per_minute)];
            rates.into_iter().filter_map(|(name, rate)| Some((name, rate?, MAX_RATE, "")))
        });
        for (setting, value, most, unit) in numbers.into_iter().chain(limits).chain(rates) {
            if !(1..=most).contains(&value) {
                return Err(VerifyError::OutOfRange { setting, value, most, unit });
            }
        }
        Ok(())
    }
}

/// The most rollouts that an arm of a boundary may be given.
const MAX_SAMPLES: u32 = 10_000;

/// The most things that may run at once.
const MAX_CONCURRENCY: usize = 10_000;

/// The highest rate, in things a minute.
const MAX_RATE: u64 = 1_000_000_000_000;

/// The longest time limit, in milliseconds: a year.
const MAX_MILLIS: u64 = 365 * 24 * 60 * 60 * 1000;

/// Recordings that started from one state, and the environment that rebuilds it.
#[derive(Clone)]
pub struct Group {
    pub(crate) recordings: Vec<Recording>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) kind: EnvironmentKind,
    pub(crate) cuts: Option<Vec<usize>>,
    pub(crate) description: Value,
}

impl Group {
    /// Recordings whose state this environment rebuilds.
    pub fn new(recordings: impl IntoIterator<Item = Recording>, environment: Arc<dyn Environment>) -> Self {
        let recordings = recordings.into_iter().collect();
        Self { recordings, environment, kind: EnvironmentKind::Rebuilt, cuts: None, description: Value::Null }
    }

    /// Recordings that answer for themselves, through a
    /// [`RecordedEnvironment`](retrace_env::RecordedEnvironment): no state is rebuilt.
    pub fn recorded(recordings: impl IntoIterator<Item = Recording>) -> Self {
        let environment = Arc::new(retrace_env::RecordedEnvironment::new());
        Self { kind: EnvironmentKind::Recorded, ..Self::new(recordings, environment) }
    }

    /// Says which environment it is, so that a run which is [kept in a folder](crate::RunFolder) does not go on in another.
    #[must_use]
    pub fn described(mut self, description: Value) -> Self {
        self.description = description;
        self
    }

    /// Cuts each recording after these numbers of events, in any order, instead of where the spacing says.
    #[must_use]
    pub fn cuts(mut self, cuts: impl IntoIterator<Item = usize>) -> Self {
        self.cuts = Some(cuts.into_iter().collect());
        self
    }
}
