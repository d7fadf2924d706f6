//! The data of a report: what came out of a whole verification.

use std::sync::Arc;

use indexmap::IndexMap;
use retrace_events::sent::SentHash;
use retrace_events::{Action, EndReason, Failure, Prices, Rollout, Spend};
use retrace_stats::{Exact, Interval, PValue};
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::burden::Burdens;
use crate::delta::{ArmMeans, Channels, HorizonScore, Side, Unscored};
use crate::errors::ErrorCount;
use crate::facts::BoundaryFacts;
use crate::inference::{Contrast, Inference};
use crate::input::{Compaction, EnvironmentKind, MAX_HORIZON, RecordingFacts, Size, Unfinished, UnusableRecording};
use crate::judging::Judging;
use crate::number;
use crate::saved::Saved;

/// The version of the JSON that a report is written as.
pub const REPORT_VERSION: u32 = 1;

/// The data of a report.
///
/// It keeps the scores and counts of each boundary, and no rollout. Serialized it has every horizon and no boundary: those, with
/// the actions of every rollout, are written behind it by `retrace_report::write_report`. An exact number is written as
/// `{"exact": "-5/12", "value": -0.4166666666666667}`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this JSON.
    pub version: u32,
    /// How many actions of a rollout are looked at.
    pub horizon: usize,
    /// How many rollouts each arm of a boundary was given; of arms that were given different numbers the greatest.
    pub samples: usize,
    /// The seed of the run.
    pub seed: u64,
    /// The name of what counted the tokens.
    pub token_counter: String,
    /// The name of the model that the agent asked, where it is known.
    pub model: Option<String>,
    /// What that model's tokens cost, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// What all rollouts and compactions together spent.
    pub spend: Spend,
    /// Which strategy is the control, if one was run.
    pub control: Option<String>,
    /// Every recording that could be used.
    pub recordings: Vec<RecordingFacts>,
    /// What could not be used.
    pub unusable: Vec<UnusableRecording>,
    /// How many boundaries the limit per recording left out.
    pub n_left_out: usize,
    /// Whether a strategy was applied, at each boundary, to what it had left at the one before.
    pub chain: bool,
    /// How strategies are judged.
    pub judging: Judging,
    /// How many recordings with boundaries were not reached, since the run stopped early.
    pub n_not_reached: usize,
    /// What of the run is not finished, if anything is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Unfinished>,
    /// The rollouts from raw histories, of all boundaries and once for all strategies.
    pub pre: ArmReport,
    /// What came out for each strategy, in the user's order.
    pub strategies: IndexMap<String, StrategyReport>,
    /// Each strategy against the control, and then each two of them; adjusted within either. Only what is scored.
    pub contrasts: Vec<Contrast>,
    /// Whether the agent is deterministic, of all that ran.
    #[serde(skip)]
    pub(crate) deterministic: bool,
    /// The rollouts that something broke, whatever they had finished; `None` if nothing did.
    #[serde(skip)]
    pub broken: Option<BrokenRollouts>,
    /// What is kept of each boundary.
    #[serde(skip)]
    pub boundaries: Vec<BoundaryFacts>,
}

/// Rollouts that something broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRollouts {
    /// How many there are.
    pub n: usize,
    /// What broke the first of them.
    pub first: Failure,
}

/// All rollouts of one arm.
#[derive(Clone, Debug, Serialize)]
pub struct ArmReport {
    /// How many ran.
    pub n_rollouts: usize,
    /// How many of them broke off before each horizon, the first for horizon 1.
    pub n_failed: Vec<usize>,
    /// How many of those that broke off before each horizon did so because they made a call that the recording cannot
    /// answer.
    pub n_off_the_record: Vec<usize>,
    /// What broke the rollouts that failed at the full horizon, the most common error first; beyond a thousand different ones
    /// the rest is counted together, as the last. Rollouts that left the record are not among them.
    pub errors: Vec<ErrorCount>,
    /// What the rollouts spent.
    pub spend: Spend,
    /// The means over the boundaries where a rollout reaches each horizon, the first for horizon 1; `None` where there
    /// is no such boundary.
    pub means: Vec<Option<ArmMeans>>,
}

/// What came out for one strategy.
#[derive(Clone, Debug, Serialize)]
pub struct StrategyReport {
    /// At how many boundaries it was applied.
    pub n_tested: usize,
    /// At how many of them the compaction failed.
    pub n_failed_compactions: usize,
    /// At how many of them no agent can be resumed from what was kept.
    pub n_flawed_compactions: usize,
    /// At how many of them it left the history as it was.
    pub n_unchanged: usize,
    /// How many of the unchanged ones had no rollouts, so that their delta is zero by definition.
    pub n_noop: usize,
    /// At how many of them there are more tokens after than before.
    pub n_grown: usize,
    /// At how many of them the first thing the user asked for is gone, and no summary stands in for it.
    pub n_lost_task: usize,
    /// At how many of them less than a hundredth of the tokens is left.
    pub n_emptied: usize,
    /// The median share of the tokens that is left, over the boundaries that compacted and had tokens before, scored or
    /// not; an unchanged history counts as 1, and a grown one as more. `None` if there is no such boundary.
    #[serde(serialize_with = "number::option")]
    pub kept: Option<Exact>,
    /// The median share of what is left that still starts as the history before, over the same boundaries as far as it is
    /// known; an unchanged history counts as 1. Providers bill it at a fraction, since their caches go by what prompts
    /// start with.
    #[serde(serialize_with = "number::option")]
    pub cache_kept: Option<Exact>,
    /// What the compactions spent, failed or not.
    pub spend: Spend,
    /// What each model call of an agent that has compacted saves; `None` where nobody counted.
    pub saved: Option<Saved>,
    /// What broke the compactions, the most common error first.
    pub compaction_errors: Vec<ErrorCount>,
    /// What is wrong with the flawed ones, the most common flaw first.
    pub flaws: Vec<ErrorCount>,
    /// The rollouts from what it kept.
    pub post: ArmReport,
    /// What is shown of it, at the boundaries that were run and of recordings not yet made; `None` where nothing is scored at
    /// the full horizon.
    pub inference: Option<Inference>,
    /// What came out at each horizon from 1 to the full one.
    pub horizons: Vec<Aggregate>,
}

/// What came out for one strategy at one horizon.
#[derive(Clone, Debug, Serialize)]
pub struct Aggregate {
    /// How many actions are looked at.
    pub horizon: usize,
    /// At how many boundaries there is a delta, noop ones included.
    pub n_scored: usize,
    /// Why the others have none, with how many: the most common reason first.
    pub unscored: Vec<UnscoredCount>,
    /// The mean delta of each channel over the scored boundaries; `None` if there are none.
    pub deltas: Option<Channels<Estimate>>,
    /// The means of PRE over the scored boundaries where rollouts ran; `None` if there are none.
    pub pre: Option<ArmMeans>,
    /// The means of POST over the same boundaries.
    pub post: Option<ArmMeans>,
    /// How many of the deltas of wasted are not zero: no p of so many is below 2^(1 − `n_nonzero`).
    pub n_nonzero: usize,
    /// The exact sign test on the deltas of wasted; 1 if there are none.
    #[serde(serialize_with = "number::exact")]
    pub sign_test_p: Exact,
    /// The sign-flip permutation test on the deltas of wasted; 1 if there are none.
    #[serde(serialize_with = "number::p_value")]
    pub permutation_p: PValue,
    /// The rollouts that broke off before this horizon.
    pub failures: Failures,
}

/// A mean over boundaries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Estimate {
    /// The mean.
    #[serde(serialize_with = "number::exact")]
    pub mean: Exact,
    /// Its percentile bootstrap interval; `None` for fewer than two boundaries.
    #[serde(serialize_with = "number::interval")]
    pub interval: Option<Interval>,
    /// `exact` if it is that of all resamples, `sampled` where these were too many.
    pub interval_method: Option<&'static str>,
}

/// A reason why boundaries have no delta, and how many it holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnscoredCount {
    /// The reason.
    pub reason: Unscored,
    /// At how many boundaries.
    pub count: usize,
}

/// Failed rollouts of both arms at one horizon. They bias a delta where the arms fail at different rates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failures {
    /// POST.
    pub post: Failed,
    /// PRE, at every boundary where the strategy was tested.
    pub pre: Failed,
    /// The arm with the greater share of failed rollouts by those two counts; `None` if neither has.
    pub more: Option<Side>,
    /// PRE, only at the boundaries where both arms have rollouts: the others have no delta to bias.
    pub paired_pre: Failed,
    /// POST at the same boundaries.
    pub paired_post: Failed,
    /// Fisher's exact test of those two counts, two-sided.
    #[serde(serialize_with = "number::exact")]
    pub paired_p: Exact,
    /// The arm with the greater share of failed rollouts where both arms ran, if it is more than noise: it has the
    /// greater share even if one fewer of its rollouts had failed, and `paired_p` is at most 1/20 or the shares are at
    /// least 1/4 apart. `None` if neither has.
    pub paired_more: Option<Side>,
}

/// How many rollouts failed, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Failed {
    /// How many failed.
    pub failed: usize,
    /// How many ran.
    pub n_rollouts: usize,
}

/// What came out at one boundary, with its rollouts.
#[derive(Clone, Debug, Serialize)]
pub struct BoundaryReport {
    /// The id of the recording.
    pub recording: String,
    /// Events before the boundary.
    pub cut: usize,
    /// Actions before it.
    pub executed: usize,
    /// How large the raw history is.
    pub pre_size: Option<Size>,
    /// Why nothing could run here, if nothing could.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
    /// The rollouts from the raw history.
    pub pre: Vec<RolloutReport>,
    /// What each strategy did that was tested here.
    pub strategies: IndexMap<String, BoundaryStrategy>,
}

/// What one strategy did at one boundary.
#[derive(Clone, Debug, Serialize)]
pub struct BoundaryStrategy {
    /// What came of the compaction.
    pub compaction: Compaction,
    /// Whether the first thing the user asked for is gone, and no summary stands in for it.
    pub lost_task: bool,
    /// The share of the tokens that is left, where it is known.
    #[serde(serialize_with = "number::option")]
    pub kept: Option<Exact>,
    /// The share of what is left that still starts as the history before, where it is known.
    #[serde(serialize_with = "number::option")]
    pub cache_kept: Option<Exact>,
    /// What the compaction spent.
    pub spend: Spend,
    /// What came out at each horizon from 1 to the full one.
    pub scores: Arc<[HorizonScore]>,
    /// The rollouts from what was kept.
    pub post: Vec<RolloutReport>,
}

/// A rollout, with what each of its actions is counted as.
#[derive(Clone, Debug)]
pub struct RolloutReport {
    /// The rollout.
    pub rollout: Rollout,
    /// Its burden at every horizon.
    pub burdens: Burdens,
}

/// Why a verification cannot be reported: its parts contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The horizon is out of its range.
    #[error("`horizon` is {horizon}, and must be from 1 to {MAX_HORIZON}")]
    BadHorizon {
        /// The horizon.
        horizon: usize,
    },
    /// Two recordings have one id.
    #[error("two recordings have the id `{id}`")]
    DuplicateRecording {
        /// The id.
        id: String,
    },
    /// Two strategies have one name.
    #[error("two strategies have the name `{name}`")]
    DuplicateStrategy {
        /// The name.
        name: String,
    },
    /// The control is no strategy.
    #[error("the control `{name}` is not among the strategies")]
    UnknownControl {
        /// Its name.
        name: String,
    },
    /// A boundary lies in a recording that is not there.
    #[error("the boundary at {cut} is in `{recording}`, which is not among the recordings")]
    UnknownRecording {
        /// The id of the recording.
        recording: String,
        /// Events before the boundary.
        cut: usize,
    },
    /// A boundary is there twice.
    #[error("the boundary at {cut} of `{recording}` is there twice")]
    DuplicateBoundary {
        /// The id of the recording.
        recording: String,
        /// Events before the boundary.
        cut: usize,
    },
    /// A boundary has a strategy that is not there.
    #[error("the boundary at {cut} of `{recording}` has `{name}`, which is not among the strategies")]
    UnknownStrategy {
        /// The id of the recording.
        recording: String,
        /// Events before the boundary.
        cut: usize,
        /// The name of the strategy.
        name: String,
    },
    /// A compaction failed or is flawed, and still there are rollouts from what it kept.
    #[error(
        "the boundary at {cut} of `{recording}` has rollouts of `{name}`, whose compaction failed or is flawed there"
    )]
    RolloutsOfFailedCompaction {
        /// The id of the recording.
        recording: String,
        /// Events before the boundary.
        cut: usize,
        /// The name of the strategy.
        name: String,
    },
    /// Nothing could run at a boundary, and still something did.
    #[error("the boundary at {cut} of `{recording}` is unusable, and has rollouts or strategies")]
    OutcomesOfUnusableBoundary {
        /// The id of the recording.
        recording: String,
        /// Events before the boundary.
        cut: usize,
    },
}

impl ReportError {
    /// What to do next.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::BadHorizon { .. } => None,
            Self::DuplicateRecording { .. } => Some("give every recording an id of its own"),
            Self::DuplicateStrategy { .. } => Some("rename one of them"),
            Self::UnknownControl { .. } => Some("name one of the strategies, or none for no control"),
            Self::UnknownRecording { .. } => Some("add the recording, or leave the boundary out"),
            Self::DuplicateBoundary { .. } => {
                Some("put what all strategies did there into one boundary, or correct the `cut` of one of the two")
            }
            Self::UnknownStrategy { .. } => Some("add it to the strategies, or leave out what it did"),
            Self::RolloutsOfFailedCompaction { .. } => {
                Some("leave out the rollouts or, if there was something to resume from, the error or flaw")
            }
            Self::OutcomesOfUnusableBoundary { .. } => Some("leave out what ran there, or why nothing could"),
        }
    }
}

impl Report {
    /// The boundaries at which nothing could run, each with the reason.
    pub fn unusable_boundaries(&self) -> impl Iterator<Item = (&BoundaryFacts, &str)> {
        self.boundaries.iter().filter_map(|boundary| Some((boundary, boundary.unusable.as_deref()?)))
    }

    /// Whether rollouts ran in the recorded environment, which rebuilds no state.
    pub fn has_recorded_environment(&self) -> bool {
        self.recordings.iter().any(|recording| recording.environment == EnvironmentKind::Recorded)
    }
}

impl StrategyReport {
    /// What came out at a horizon; `None` beyond the full one, and for 0.
    pub fn at(&self, horizon: usize) -> Option<&Aggregate> {
        self.horizons.get(horizon.checked_sub(1)?)
    }
}

impl Failed {
    /// Whether fewer than half of the rollouts are left to be scored.
    pub fn leaves_few(self) -> bool {
        self.failed > self.n_rollouts - self.failed
    }

    /// Whether its share of failed rollouts is greater than that of `other`; an arm without rollouts has none.
    pub(crate) fn exceeds(self, other: Self) -> bool {
        let share = |one: Self, another: Self| one.failed as u128 * another.n_rollouts.max(1) as u128;
        share(self, other) > share(other, self)
    }
}

impl ArmReport {
    /// The rollouts that broke off before a horizon; `None` beyond the full one, and for 0.
    pub fn failed_at(&self, horizon: usize) -> Option<Failed> {
        let failed = *self.n_failed.get(horizon.checked_sub(1)?)?;
        Some(Failed { failed, n_rollouts: self.n_rollouts })
    }

    /// Those of them that left the record; `None` beyond the full horizon, and for 0.
    pub fn off_the_record_at(&self, horizon: usize) -> Option<Failed> {
        let failed = *self.n_off_the_record.get(horizon.checked_sub(1)?)?;
        Some(Failed { failed, n_rollouts: self.n_rollouts })
    }
}

impl Serialize for RolloutReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Rollout { actions, end, n_answers, spend, sent } = &self.rollout;
        let actions = actions.iter().zip(self.burdens.refetches());
        RolloutFields {
            actions: actions.map(|(action, &refetch)| ActionFields { action, refetch }).collect(),
            end,
            n_answers: *n_answers,
            spend: *spend,
            sent: *sent,
        }
        .serialize(serializer)
    }
}

#[derive(Serialize)]
struct RolloutFields<'a> {
    actions: Vec<ActionFields<'a>>,
    end: &'a EndReason,
    n_answers: u32,
    #[serde(flatten)]
    spend: Spend,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<SentHash>,
}

#[derive(Serialize)]
struct ActionFields<'a> {
    #[serde(flatten)]
    action: &'a Action,
    refetch: bool,
}
