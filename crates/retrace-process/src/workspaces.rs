//! The folder of a process's workspaces, and what killed processes have left.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::{env, process};

use crate::error::WorkspaceError;
use crate::removal::remove;

/// What the names of such folders start with.
const PREFIX: &str = "retrace-workspaces-";
/// The file that the process locks as long as it uses the folder. A folder without it is left alone.
const LOCK: &str = "in-use.lock";

/// The folder in which a process keeps its workspaces: in the folder for temporary files, for its user alone, removed
/// with the last of them.
#[derive(Debug)]
pub(crate) struct Workspaces {
    folder: PathBuf,
    n_made: AtomicU64,
    /// Locked as long as this process lives; the system unlocks it whatever happens.
    _lock: File,
}

impl Workspaces {
    /// The one of this process. The first time, what processes that no longer run have left is removed.
    pub(crate) fn of_this_process() -> Result<Arc<Self>, WorkspaceError> {
        static CURRENT: Mutex<Weak<Workspaces>> = Mutex::new(Weak::new());
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(workspaces) = current.upgrade() {
            return Ok(workspaces);
        }
        let temporary = env::temp_dir();
        remove_leftovers(&temporary);
        let workspaces = Self::make(&temporary).map_err(|source| WorkspaceError::Io { path: temporary, source })?;
        let workspaces = Arc::new(workspaces);
        *current = Arc::downgrade(&workspaces);
        Ok(workspaces)
    }

    fn make(temporary: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let prefix = format!("{PREFIX}{}-", process::id());
        builder.prefix(&prefix);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o700));
        }
        // Removed again if anything fails before it is complete.
        let folder = builder.tempdir_in(temporary)?;
        // Locked before it has its name, so that nobody finds it unlocked.
        let unnamed = folder.path().join("lock");
        let lock = File::create_new(&unnamed)?;
        lock.lock()?;
        fs::rename(&unnamed, folder.path().join(LOCK))?;
        // Links of a template are compared with it.
        let path = folder.path().canonicalize()?;
        let _ = folder.keep();
        Ok(Self { folder: path, n_made: AtomicU64::new(0), _lock: lock })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the next workspace goes.
    pub(crate) fn next(&self) -> PathBuf {
        self.folder.join(format!("{}", self.n_made.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

impl Drop for Workspaces {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Removes the folders of processes that no longer run.
pub(crate) fn remove_leftovers(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) && is_leftover(&entry.path()) {
            remove(&entry.path());
        }
    }
}

/// Whether this is a real folder of our own user with a lock file that nobody holds.
fn is_leftover(folder: &Path) -> bool {
    let lock = folder.join(LOCK);
    let is = |path: &Path, kind: fn(&fs::FileType) -> bool| {
        fs::symlink_metadata(path).is_ok_and(|metadata| kind(&metadata.file_type()) && is_ours(&metadata))
    };
    is(folder, fs::FileType::is_dir)
        && is(&lock, fs::FileType::is_file)
        // Kept until the check is done; whoever made the folder has locked it, or is no more.
        && File::open(&lock).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(unix)]
fn is_ours(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(metadata) == rustix::process::getuid().as_raw()
}

#[cfg(not(unix))]
fn is_ours(_: &fs::Metadata) -> bool {
    true
}
