//! Rollouts in, report data out: burden, deltas and aggregates.

pub mod executed;
pub mod input;

pub use executed::{Executed, ExecutedCalls};
pub use input::{
    BoundaryOutcome, Compaction, EnvironmentKind, RecordingFacts, RecordingLength, ReplayDifference, ReplayFidelity,
    Size, Spend, StrategyOutcome, UnusableRecording, Verification,
};
