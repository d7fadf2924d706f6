//! What a report is made of: what was run, and what came out at each boundary.

use std::fmt;

use indexmap::IndexMap;
use retrace_events::tokens::Tokens;
use retrace_events::{Prices, Rollout, Spend};
use serde::Serialize;

use crate::executed::Executed;
use crate::judging::Judging;

/// The largest horizon: everything is worked out at each horizon up to the full one.
pub const MAX_HORIZON: usize = 1_000;

/// A whole verification: what is said once, and its boundaries.
#[derive(Debug)]
pub struct Verification {
    /// How many actions of a rollout are looked at: deltas are taken at every horizon from 1 to this one.
    pub horizon: usize,
    /// How many rollouts each arm of a boundary was given; of arms that were given different numbers the greatest.
    pub samples: usize,
    /// The seed of the run.
    pub seed: u64,
    /// The name of the model that the agent asked, where it is known.
    pub model: Option<String>,
    /// What that model's tokens cost, where it is known.
    pub prices: Option<Prices>,
    /// The name of what counted the tokens.
    pub token_counter: String,
    /// The names of the strategies, in the user's order.
    pub strategies: Vec<String>,
    /// Which of them is the control, if one was run.
    pub control: Option<String>,
    /// Every recording that could be used, also those with no boundary.
    pub recordings: Vec<RecordingFacts>,
    /// What could not be used.
    pub unusable: Vec<UnusableRecording>,
    /// How many boundaries the limit per recording left out.
    pub n_left_out: usize,
    /// Whether a strategy was applied, at each boundary, to what it had left at the one before and what the run added
    /// since; else to the raw history.
    pub chain: bool,
    /// How strategies are judged.
    pub judging: Judging,
    /// How many recordings with boundaries were not reached, since the run stopped early.
    pub n_not_reached: usize,
    /// What came out, in the order it is reported.
    pub boundaries: Vec<BoundaryOutcome>,
}

/// A recording that was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordingFacts {
    /// Its id, one of its own in a verification.
    pub id: String,
    /// The task that the agent was at, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// How long it is; `None` where only its boundaries are known.
    pub length: Option<RecordingLength>,
    /// What its rollouts ran in.
    pub environment: EnvironmentKind,
    /// How faithful its replay was; `None` where nothing was replayed.
    pub replay: Option<ReplayFidelity>,
    /// What showed that two rollouts do not start from the same world: restored twice, the environment answered
    /// otherwise. `None` where nothing was seen.
    pub worlds_differ: Option<String>,
}

impl RecordingFacts {
    /// A recording of which nothing else is known.
    pub fn new(id: impl Into<String>, environment: EnvironmentKind) -> Self {
        Self { id: id.into(), task: None, length: None, environment, replay: None, worlds_differ: None }
    }
}

/// How long a recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RecordingLength {
    /// How many calls it executed.
    pub n_actions: usize,
    /// How many responses had a call that was executed.
    pub n_rounds: usize,
}

/// What rollouts ran in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvironmentKind {
    /// Tools whose state was rebuilt to that of the boundary.
    Rebuilt,
    /// The recording's own results: no state is rebuilt, a later result may be lent, and a call that was never made
    /// ends the rollout.
    Recorded,
    /// Rollouts were collected elsewhere, so it is not known.
    Unknown,
}

/// How faithful the replay of a recording was. A call that succeeded in one and failed in the other is not among
/// these: it fails the rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplayFidelity {
    /// How many calls were executed again.
    pub n_replayed: u64,
    /// How many of them answered with other text than was recorded.
    pub n_different: u64,
    /// The first of those.
    pub first_difference: Option<ReplayDifference>,
}

/// A replayed call that answered with other text than was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayDifference {
    /// Which action of its recording it is, from 1.
    pub action: usize,
    /// The call.
    pub call: String,
    /// What was recorded.
    pub recorded: String,
    /// What the replay answered.
    pub replayed: String,
}

/// A recording that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnusableRecording {
    /// Its id, or the file's name where it could not even be read.
    pub name: String,
    /// Why, with the causes.
    pub reason: String,
}

/// What came out at one boundary.
#[derive(Debug)]
pub struct BoundaryOutcome {
    /// The id of the recording, one of [`Verification::recordings`].
    pub recording: String,
    /// Events before the boundary.
    pub cut: usize,
    /// Actions before it.
    pub executed: usize,
    /// What was executed before it, for example the [`Boundary`](retrace_events::Boundary) itself.
    pub executed_calls: Box<dyn Executed + Send + Sync>,
    /// How large the raw history is; `None` where nobody counted.
    pub pre_size: Option<Size>,
    /// Why nothing could run here, with the causes, such as a recording that does not replay; then there are neither
    /// rollouts nor strategies.
    pub unusable: Option<String>,
    /// The rollouts from the raw history, one set for every strategy; none where none ran.
    pub pre: Vec<Rollout>,
    /// What each strategy did, by name. A strategy that is not here was not tested at this boundary.
    pub strategies: IndexMap<String, StrategyOutcome>,
}

/// How large a history is, as it is sent to a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Its events.
    pub events: usize,
    /// Its tokens.
    pub tokens: Tokens,
}

/// What a strategy did at one boundary, and the rollouts from what it kept.
#[derive(Clone, Debug)]
pub struct StrategyOutcome {
    /// What came of the compaction.
    pub compaction: Compaction,
    /// Whether the first thing the user asked for is gone, and no summary stands in for it.
    pub lost_task: bool,
    /// What the compaction spent, failed or not.
    pub spend: Spend,
    /// The rollouts from what was kept; none where none ran. An unchanged boundary without any is a delta of zero by
    /// definition, except for the control, whose business is the noise: it is then not scored.
    pub post: Vec<Rollout>,
}

/// What came of a compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compaction {
    /// There is no history to resume from.
    Failed {
        /// Why, with the causes.
        error: String,
    },
    /// There is another history, and no agent can be resumed from it: a model would refuse it, or it does not end with
    /// the boundary's results.
    Flawed {
        /// What is wrong with it first.
        flaw: String,
    },
    /// The history is what it was.
    Unchanged,
    /// The history is another one.
    Compacted {
        /// How large it is now; `None` where nobody counted.
        size: Option<Size>,
        /// The tokens at its start that the history before also starts with, which a provider's prompt cache still
        /// knows; `None` where nobody counted.
        cached: Option<Tokens>,
    },
}

impl Compaction {
    /// Whether there is nothing to resume from, so that no rollout can run.
    pub fn leaves_nothing(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Flawed { .. })
    }
}

impl fmt::Debug for dyn Executed + Send + Sync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Executed")
    }
}
