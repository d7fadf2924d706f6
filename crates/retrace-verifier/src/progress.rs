//! What a verification tells while it runs.

use retrace_events::{EndReason, RolloutKey};
use retrace_score::Compaction;

/// One thing that has just happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Progress {
    /// The boundaries are known.
    Planned {
        /// How many boundaries there are.
        n_boundaries: usize,
        /// How many compactions will run.
        n_compactions: usize,
        /// How many rollouts will run at most.
        n_rollouts: usize,
    },
    /// A strategy was applied.
    Compacted {
        /// The id of the recording.
        recording: String,
        /// The boundary: events before it.
        cut: usize,
        /// The name of the strategy.
        strategy: String,
        /// What came of it.
        compaction: Compaction,
    },
    /// Planned rollouts that will not run, since a compaction failed or changed nothing.
    NotNeeded {
        /// How many.
        n_rollouts: usize,
    },
    /// A rollout ended.
    RolledOut {
        /// Which one.
        key: RolloutKey,
        /// Why it ended.
        end: EndReason,
    },
}
