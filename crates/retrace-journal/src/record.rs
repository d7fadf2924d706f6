//! The lines of a journal.

use retrace_events::{Rollout, RolloutKey, Signature, Spend};
use retrace_score::{Compaction, RecordingFacts, Size};
use serde::{Deserialize, Serialize};

use crate::kept::Kept;

/// One line of a journal: something that is known, or finished and paid for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Record {
    /// A recording that is run.
    Recording(RecordingRecord),
    /// A boundary of it.
    Boundary(BoundaryRecord),
    /// What two restored environments showed of whether a recording's world is rebuilt.
    World(WorldRecord),
    /// A finished compaction.
    Compaction(CompactionRecord),
    /// A finished rollout.
    Rollout(RolloutRecord),
    /// Rollouts that say nothing about any strategy, such as those of a run without a key: they run again.
    Withdrawn(Withdrawn),
    /// Recordings that a run which may stop early did not need.
    NotReached(NotReached),
    /// Why a run stopped before its end.
    Stopped(Stopped),
}

/// A recording that is run, and what it executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingRecord {
    /// What is known of it.
    pub facts: RecordingFacts,
    /// Where it is cut: the events before each boundary.
    pub cuts: Vec<usize>,
    /// Its actions, in order: what a later call may repeat.
    pub executed: Vec<ExecutedCall>,
}

/// A call that a recording executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutedCall {
    /// The tool.
    pub name: String,
    /// The JSON text of the arguments.
    pub arguments: String,
}

impl ExecutedCall {
    /// What makes another call the same one.
    pub fn signature(&self) -> Signature {
        Signature::of(&self.name, &self.arguments)
    }
}

/// A boundary of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundaryRecord {
    /// The id of the recording.
    pub recording: String,
    /// Events before it.
    pub cut: usize,
    /// Actions before it.
    pub executed: usize,
    /// How large the raw history is.
    pub size: Size,
    /// Why nothing can run here, if nothing can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
}

/// Whether an environment rebuilds the world of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldRecord {
    /// The id of the recording.
    pub recording: String,
    /// What showed that it does not, if anything did.
    pub difference: Option<String>,
}

/// A finished compaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactionRecord {
    /// The id of the recording.
    pub recording: String,
    /// Events before the boundary.
    pub cut: usize,
    /// The name of the strategy.
    pub strategy: String,
    /// What came of it.
    pub outcome: Compaction,
    /// Whether the first thing the user asked for is gone, and no summary stands in for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost_task: bool,
    /// What it spent.
    pub spend: Spend,
    /// The history to resume from; none where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

/// A finished rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutRecord {
    /// Which one.
    pub key: RolloutKey,
    /// What the agent did.
    pub rollout: Rollout,
}

/// Rollouts that run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withdrawn {
    /// Which ones.
    pub rollouts: Vec<RolloutKey>,
    /// Compactions that run again, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compactions: Vec<CompactionKey>,
    /// Why they say nothing.
    pub reason: String,
}

/// Which compaction it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactionKey {
    /// The id of the recording.
    pub recording: String,
    /// Events before the boundary.
    pub cut: usize,
    /// The name of the strategy.
    pub strategy: String,
}

/// Recordings that were not run, since the others had shown enough. The last such record holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotReached {
    /// Their ids.
    pub recordings: Vec<String>,
}

/// A run that stopped before its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stopped {
    /// Why.
    pub reason: String,
    /// Where it gave up: the first of the rollouts that all failed alike. It and those after it that failed like it run again
    /// when the run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<RolloutKey>,
}

/// Of which boundary a record is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// The id of the recording.
    pub recording: String,
    /// Events before the boundary.
    pub cut: usize,
}
