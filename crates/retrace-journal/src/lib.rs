//! The file of a run: its plan, and every finished rollout and compaction, crash-safe.
//!
//! A run is a folder with a [`Manifest`], which says what is run, and a journal of JSON Lines. A [`Journal`] appends each
//! finished thing and syncs it before its result is used, so that nothing that was paid for is lost, whatever happens to the
//! program; a [`Run`] reads it again, every whole line of it, also while or after it was cut off at any byte. From a run
//! a verification goes on where it was, and its report is worked out again without a model, a key or an environment.
//!
//! ```
//! use retrace_journal::{Journal, Manifest, Opened, Plan, Record, RecordingRecord, Run};
//! use retrace_score::{EnvironmentKind, Judging, RecordingFacts};
//! # use serde_json::json;
//!
//! # let plan: Plan = serde_json::from_value(json!({
//! #     "horizon": 5, "samples": 3, "seed": 0, "spacing": {}, "chain": false, "stop_early": false, "token_counter": "", "model": "",
//! #     "setup": {}, "control": null, "strategies": {},
//! #     "recordings": [{"id": "shop-1", "sha256": "", "environment": null}],
//! # }))?;
//! # let folder = tempfile::tempdir()?;
//! let manifest = Manifest::new(plan, Judging::default(), Vec::new(), 0);
//! let Opened { run, mut journal } = Journal::open(folder.path(), manifest.clone())?;
//! assert!(run.recording("shop-1").is_none());
//! let facts = RecordingFacts::new("shop-1", EnvironmentKind::Rebuilt);
//! journal.append(&[Record::Recording(RecordingRecord { facts, cuts: Vec::new(), executed: Vec::new() })])?;
//! drop(journal);
//!
//! let run = Run::read(folder.path())?;
//! assert!(run.recording("shop-1").is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/formats.md` describes the files. What is not here: when anything runs, which is `retrace-verifier`'s business.

mod error;
mod index;
mod journal;
mod kept;
mod manifest;
mod merge;
mod plan;
mod record;
mod run;
#[cfg(test)]
mod tests;

pub use error::JournalError;
pub use journal::{Journal, Opened};
pub use kept::{Kept, NotThere};
pub use manifest::{JOURNAL_VERSION, Manifest};
pub use merge::merge;
pub use plan::{Difference, Plan, PlannedRecording, Shard};
pub use record::{
    BoundaryRecord, CompactionKey, CompactionRecord, ExecutedCall, NotReached, Record, RecordingRecord, RolloutRecord,
    Site, Stopped, Withdrawn, WorldRecord,
};
pub use run::Run;
