//! What may go wrong with the folder of a run.

use std::io;
use std::path::{Path, PathBuf};

use crate::kept::NotThere;
use crate::manifest::JOURNAL_VERSION;
use crate::plan::Difference;

/// Why a run's folder cannot be read or written. What was in it before still is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// A file cannot be read or written.
    #[error("failed to {action} `{}`", path.display())]
    Io {
        /// What was tried, such as "open".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The folder holds no run.
    #[error("there is no run in `{}`", folder.display())]
    NoRun {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds something else than a run.
    #[error("`{}` holds files, and no run", folder.display())]
    NotARun {
        /// The folder.
        folder: PathBuf,
    },
    /// Another program writes to the run.
    #[error("another program is at work on the run in `{}`", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// It was written by a version of this program that is not known here.
    #[error("`{}` has the version {found} of the format; {JOURNAL_VERSION} is known here", path.display())]
    UnknownVersion {
        /// The manifest.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// The manifest is none.
    #[error("`{}` is no manifest of a run", path.display())]
    BadManifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it, and where.
        #[source]
        source: serde_json::Error,
    },
    /// A whole line that is no record.
    #[error("{}:{line}: no record of a run", path.display())]
    BadLine {
        /// The journal.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it, and where.
        #[source]
        source: serde_json::Error,
    },
    /// A record that does not go with those before it.
    #[error("{}:{line}: {what}", path.display())]
    Misplaced {
        /// The journal.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What does not go together.
        what: String,
    },
    /// A compacted history does not go with its recording.
    #[error("`{}`: what `{strategy}` kept at {cut} of `{recording}` has events that are not there", path.display())]
    BadHistory {
        /// The journal.
        path: PathBuf,
        /// The id of the recording.
        recording: String,
        /// Events before the boundary.
        cut: usize,
        /// The name of the strategy.
        strategy: String,
        /// Which events.
        #[source]
        source: NotThere,
    },
    /// The run is one of another plan.
    #[error("the run in `{}` has another plan: {difference}", folder.display())]
    OtherPlan {
        /// The folder.
        folder: PathBuf,
        /// The first field that differs.
        difference: Difference,
    },
    /// Nothing more is written, since something could not be.
    #[error("nothing more is written to `{}`: {reason}", path.display())]
    Stopped {
        /// The journal.
        path: PathBuf,
        /// What happened before.
        reason: String,
    },
    /// Two runs that are to be merged are not parts of one.
    #[error("the runs in `{}` and `{}` are not of one plan: {difference}", one.display(), other.display())]
    NotOfOnePlan {
        /// A folder.
        one: PathBuf,
        /// Another.
        other: PathBuf,
        /// The first field that differs.
        difference: Difference,
    },
    /// Two runs that are to be merged are the same shard, or not shards at all.
    #[error("the runs in `{}` and `{}` are not different shards", one.display(), other.display())]
    NotShards {
        /// A folder.
        one: PathBuf,
        /// Another.
        other: PathBuf,
    },
}

impl JournalError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("make room on the disk; the same command then goes on where it was")
            }
            Self::NoRun { .. } => Some("name the folder of a run, as `retrace verify` tells it"),
            Self::NotARun { .. } => Some("name a folder that is not there yet or empty"),
            Self::Locked { .. } => Some("wait for its end, or name another folder"),
            Self::UnknownVersion { .. } => Some("read it with the version of the program that wrote it"),
            Self::BadManifest { .. } | Self::BadLine { .. } | Self::Misplaced { .. } | Self::BadHistory { .. } => Some(
                "the file was changed by something else; restore it from a copy, or begin a new run in another folder",
            ),
            Self::OtherPlan { .. } => Some(
                "a run goes on only as what it was, with more samples, recordings or strategies; for anything else name another \
                 folder, or put the field back",
            ),
            Self::NotOfOnePlan { .. } => Some("merge only the shards of one verification"),
            Self::NotShards { .. } => Some("name each shard once"),
            _ => None,
        }
    }
}
