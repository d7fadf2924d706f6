//! What a verification tells while it runs.

use retrace_events::{EndReason, RolloutKey, Spend};
use retrace_score::{Compaction, ReplayFidelity};

/// One thing that has just happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Progress {
    /// A recording was replayed up to its last boundary.
    Replayed {
        /// The id of the recording.
        recording: String,
        /// How faithful that was; none where no boundary was reached.
        replay: Option<ReplayFidelity>,
        /// How many boundaries it has.
        n_boundaries: usize,
        /// How many of them were not reached, so that nothing will run there.
        n_unusable: usize,
        /// Why the first of those was not.
        reason: Option<String>,
    },
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
    /// It goes on with a run that is there.
    GoesOn {
        /// How many rollouts are finished.
        n_rollouts: usize,
        /// What was spent.
        spent: Spend,
        /// The number of the journal's last line, if that was cut off and is left out.
        torn_line: Option<usize>,
        /// How many rollouts run again, since they had all failed alike.
        n_withdrawn: usize,
    },
    /// It stops before its end; what is at work is given a moment.
    Stopping {
        /// How many compactions and rollouts are at work.
        n_running: usize,
    },
    /// A rollout ended.
    RolledOut {
        /// Which one.
        key: RolloutKey,
        /// Why it ended.
        end: EndReason,
    },
}
