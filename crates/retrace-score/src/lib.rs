//! Rollouts in, report data out: burden, deltas and aggregates. A function of its arguments: no clock, no file, no model.
//!
//! ```
//! use std::collections::HashSet;
//!
//! use retrace_score::{PValue, actions_from_events, score_boundary, sign_flip_test};
//! use retrace_events::{EndReason, Event, Outcome, Rollout, Signature, Spend, ToolCall, ToolResult};
//!
//! let rollout = |calls: &[(&str, Outcome)]| {
//!     let events = calls.iter().flat_map(|&(tool, outcome)| {
//!         let call = ToolCall::new("c", tool, "{}");
//!         let result = ToolResult::text_result(&call, outcome, "…");
//!         [Event::calls([call]), Event::results([result])]
//!     });
//!     let actions = actions_from_events(&events.collect::<Vec<_>>());
//!     Rollout { actions, end: EndReason::Answer, n_answers: 3, spend: Spend::default(), sent: None }
//! };
//! let executed = HashSet::from([Signature::of("login", "{}")]);
//!
//! // From the raw history the agent goes on; from the compacted one it fails, and logs in again.
//! let pre = [rollout(&[("stock", Outcome::Ok), ("reorder", Outcome::Ok)])];
//! let post = [rollout(&[("stock", Outcome::Error), ("login", Outcome::Ok)])];
//! let scores = score_boundary(&pre, &post, &executed, &[2])?;
//! let delta = scores[0].score.delta().expect("both arms reach two actions");
//! assert_eq!((delta.blocked.to_string(), delta.refetch.to_string(), delta.wasted.to_string()), ("1".into(), "1".into(), "2".into()));
//!
//! let test = sign_flip_test(&[delta.wasted.clone(), "1/2".parse()?, "1".parse()?]);
//! assert_eq!(test.p, PValue::Exact("1/4".parse()?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * [`Burdens`] counts what one rollout wasted; [`score_boundary`] compares the two arms of a boundary; [`Report::new`]
//!   works out the report of a whole [`Verification`], and a [`Reporter`] that of one whose rollouts are too many to be held.
//! * [`ScoreInput`] reads rollouts that were collected elsewhere, from JSON.
//! * [`Pilot`] reads of a report's JSON what the next run is planned from.
//! * What was executed before a boundary is anything that is [`Executed`]: the [`Boundary`](retrace_events::Boundary)
//!   itself, a set of signatures, or [`ExecutedCalls`].
//!
//! How a report is shown is the business of `retrace-report`. `docs/methods.md` has the formula and the source of each
//! number.

mod aggregate;
mod arms;
mod burden;
mod delta;
mod early;
mod errors;
mod executed;
mod facts;
mod inference;
mod input;
mod judging;
#[cfg(test)]
mod laws;
mod number;
mod pilot;
mod report;
mod reporter;
mod saved;
mod score_input;
mod tally;
#[cfg(test)]
mod vectors;

pub use arms::{Left, arms_to_run};
pub use burden::{Burden, Burdens, Key};
pub use delta::{
    ArmMeans, Channels, Delta, HorizonScore, Score, ScoreError, Side, Unscored, score_boundary, score_boundary_by,
};
pub use early::EarlyStop;
pub use errors::{ErrorCount, Place};
pub use executed::{Executed, ExecutedCalls};
pub use facts::{ArmCounts, BoundaryFacts, StrategyFacts};
pub use inference::{
    ChannelInference, Components, Contrast, Described, Ends, Inference, Intervals, TInterval, Test, UnitSum,
    verdict_words,
};
pub use input::{
    BoundaryOutcome, Compaction, EnvironmentKind, MAX_HORIZON, RecordingFacts, RecordingLength, ReplayDifference,
    ReplayFidelity, Size, StrategyOutcome, Unfinished, UnusableRecording, Verification,
};
pub use judging::{Judging, Margins, Scope, Unit};
pub use pilot::{Pilot, PilotChannel, PilotError, PilotInference, PilotJudging, PilotStrategy};
pub use report::{
    Aggregate, ArmReport, BoundaryReport, BoundaryStrategy, BrokenRollouts, Estimate, Failed, Failures, REPORT_VERSION,
    Report, ReportError, RolloutReport, StrategyReport, UnscoredCount,
};
pub use reporter::Reporter;
pub use saved::Saved;
pub use score_input::{ScoreInput, ScoreInputError};

pub use retrace_events::actions_from_events;
pub use retrace_events::cuts::resumable_cuts;
pub use retrace_stats::{PValue, Verdict, bootstrap_mean, exact_difference, exact_sign_test, sign_flip_test};
