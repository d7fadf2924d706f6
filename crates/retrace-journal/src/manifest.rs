//! The manifest of a run: what it is, before anything has run.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

use retrace_events::Prices;
use retrace_score::{Judging, UnusableRecording};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::error::JournalError;
use crate::plan::Plan;

/// The version of the runs that this crate reads and writes.
pub const JOURNAL_VERSION: u64 = 1;

/// What a run is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the format.
    pub journal: u64,
    /// The version of the program that wrote it last.
    pub retrace: String,
    /// What is run.
    pub plan: Plan,
    /// How strategies are judged, unless a reader wants another judgement.
    pub judging: Judging,
    /// What the tokens of the agent's model cost, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// Recordings that could not be used.
    pub unusable: Vec<UnusableRecording>,
    /// How many boundaries the limit per recording left out.
    pub n_left_out: usize,
}

/// Read before all else, so that another version is not taken for a mistake.
#[derive(Deserialize)]
struct Version {
    journal: u64,
}

impl Manifest {
    /// The manifest of a new run.
    pub fn new(plan: Plan, judging: Judging, unusable: Vec<UnusableRecording>, n_left_out: usize) -> Self {
        let retrace = env!("CARGO_PKG_VERSION").to_owned();
        Self { journal: JOURNAL_VERSION, retrace, plan, judging, prices: None, unusable, n_left_out }
    }

    /// Reads a manifest, if it is there.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, JournalError> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(JournalError::io("read", path)(error)),
        };
        let bad = |source| JournalError::BadManifest { path: path.to_owned(), source };
        let Version { journal: found } = serde_json::from_slice(&text).map_err(bad)?;
        if found != JOURNAL_VERSION {
            return Err(JournalError::UnknownVersion { path: path.to_owned(), found });
        }
        serde_json::from_slice(&text).map(Some).map_err(bad)
    }

    /// Writes it whole or not at all.
    pub(crate) fn write(&self, path: &Path) -> Result<(), JournalError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let write = || {
            let mut file = new_file(folder)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            sync_folder(folder)
        };
        write().map_err(JournalError::io("write", path))
    }
}

/// A new file that becomes the manifest once it is whole, as readable as any file of the user's.
fn new_file(folder: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Makes the names in a folder last, where that takes something.
pub(crate) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
