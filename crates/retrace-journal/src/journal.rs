//! Writing a run: each finished thing is on the disk before its result is used.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::JournalError;
use crate::manifest::{Manifest, sync_folder};
use crate::record::Record;
use crate::run::{JOURNAL, LOCK, MANIFEST, Run};

/// The journal of a run that is at work. No other program writes to it; that ends with this program, however it ends.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    failed: Option<String>,
    /// Held as long as it is open.
    _lock: File,
}

/// A run that is about to begin, or to go on.
#[derive(Debug)]
pub struct Opened {
    /// What it has finished already.
    pub run: Run,
    /// Where it writes what it finishes.
    pub journal: Journal,
}

impl Journal {
    /// Begins a run in a folder, or goes on with the one that is there.
    ///
    /// A journal whose last line was cut off loses that line, which [`Run::torn_line`] tells.
    ///
    /// # Errors
    /// When there is a run of another plan, another program is at work on it, the folder holds something else, or it cannot
    /// be read or written. Then nothing in it has changed.
    pub fn open(folder: &Path, manifest: Manifest) -> Result<Opened, JournalError> {
        let manifest_path = folder.join(MANIFEST);
        if Manifest::read(&manifest_path)?.is_none() {
            match begin(folder) {
                // Another program has begun it in this moment.
                Err(_) if Manifest::read(&manifest_path)?.is_some() => {}
                begun => begun?,
            }
        }
        let lock = lock(folder)?;
        let path = folder.join(JOURNAL);
        // Read again, now that nobody else writes.
        match Manifest::read(&manifest_path)? {
            Some(old) if old == manifest => {}
            Some(old) => {
                let run = Run::of(folder, old)?;
                match run.begun_plan().goes_on_as(&manifest.plan) {
                    Ok(()) => {}
                    // Nobody loses anything, so it begins again.
                    Err(_) if run.has_nothing_finished() => {
                        File::create(&path).map_err(JournalError::io("create", &path))?;
                    }
                    Err(difference) => {
                        return Err(JournalError::OtherPlan { folder: folder.to_owned(), difference });
                    }
                }
                manifest.write(&manifest_path)?;
            }
            None => {
                File::create(&path).map_err(JournalError::io("create", &path))?;
                manifest.write(&manifest_path)?;
            }
        }
        let run = Run::of(folder, manifest)?;
        let file = OpenOptions::new().write(true).open(&path).map_err(JournalError::io("open", &path))?;
        let mut journal = Self { path, file, failed: None, _lock: lock };
        journal.cut(run.end())?;
        Ok(Opened { run, journal })
    }

    #[cfg(test)]
    pub(crate) fn replace_file(&mut self, file: File) {
        self.file = file;
    }

    /// Cuts off what is not a whole line.
    fn cut(&mut self, end: u64) -> Result<(), JournalError> {
        let cut = |file: &mut File| {
            if file.metadata()?.len() > end {
                file.set_len(end)?;
                file.sync_all()?;
            }
            file.seek(SeekFrom::Start(end))
        };
        cut(&mut self.file).map(drop).map_err(JournalError::io("cut", &self.path))
    }

    /// Appends records, and returns once they are on the disk.
    ///
    /// # Errors
    /// When that fails. What was written before is not touched, and from then on nothing is written any more.
    pub fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        if let Some(reason) = self.failed.clone() {
            return Err(JournalError::Stopped { path: self.path.clone(), reason });
        }
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, record)
                .map_err(|error| JournalError::io("write", &self.path)(error.into()))?;
            lines.push(b'\n');
        }
        let written = self.file.write_all(&lines).and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            self.failed = Some(error.to_string());
            JournalError::io("write", &self.path)(error)
        })
    }
}

/// Makes the folder of a new run.
fn begin(folder: &Path) -> Result<(), JournalError> {
    fs::create_dir_all(folder).map_err(JournalError::io("create", folder))?;
    let entries = fs::read_dir(folder).map_err(JournalError::io("list", folder))?;
    for entry in entries {
        let entry = entry.map_err(JournalError::io("list", folder))?;
        // A program that was stopped at its very beginning leaves no more than empty files, and what was to be the manifest.
        let name = entry.file_name();
        let is_ours = name == LOCK || name == JOURNAL;
        let is_empty = entry.metadata().map_err(JournalError::io("look at", &entry.path()))?.len() == 0;
        if !(is_ours && is_empty || name.to_string_lossy().starts_with(".tmp")) {
            return Err(JournalError::NotARun { folder: folder.to_owned() });
        }
    }
    sync_folder(folder).map_err(JournalError::io("write", folder))
}

fn lock(folder: &Path) -> Result<File, JournalError> {
    let path = folder.join(LOCK);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(JournalError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::Locked { folder: folder.to_owned() }),
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::WouldBlock => {
            Err(JournalError::Locked { folder: folder.to_owned() })
        }
        Err(TryLockError::Error(error)) => Err(JournalError::io("lock", &path)(error)),
    }
}
