//! Rollouts in, report data out: burden, deltas and aggregates.

mod aggregate;
mod burden;
mod delta;
mod errors;
mod executed;
mod input;
mod number;
mod report;
mod score_input;
#[cfg(test)]
mod vectors;

pub use burden::{Burden, Burdens, Key};
pub use delta::{
    ArmMeans, Channels, Delta, HorizonScore, Score, ScoreError, Side, Unscored, score_boundary, score_boundary_by,
};
pub use errors::{ErrorCount, Place};
pub use executed::{Executed, ExecutedCalls};
pub use input::{
    BoundaryOutcome, Compaction, EnvironmentKind, RecordingFacts, RecordingLength, ReplayDifference, ReplayFidelity,
    Size, Spend, StrategyOutcome, UnusableRecording, Verification,
};
pub use report::{
    Aggregate, ArmReport, BoundaryReport, BoundaryStrategy, Estimate, Failed, Failures, REPORT_VERSION, RESAMPLES,
    Report, ReportError, RolloutReport, StrategyReport, UnscoredCount,
};
pub use score_input::{ScoreInput, ScoreInputError};

pub use retrace_events::actions_from_events;
pub use retrace_events::cuts::resumable_cuts;
pub use retrace_stats::{bootstrap_mean, exact_difference, exact_permutation_test, exact_sign_test};
