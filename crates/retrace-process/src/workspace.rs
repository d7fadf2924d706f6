//! Workspaces: copies of a template folder to work in.

use std::fs::{self, DirEntry, FileTimes, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::WorkspaceError;
use crate::removal::remove;
use crate::workspaces::Workspaces;

/// A copy of a template folder, removed when it is dropped.
///
/// If this process is killed before, the copy is removed when the next process makes its first one.
///
/// Files share their blocks with those of the template where the file system can do that, and keep their permissions and
/// the time they were changed. Links stay links; one that leads into the template by its whole path leads into the copy.
/// What a link to elsewhere leads to is neither copied nor removed, and the same for all copies.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    /// Removed after the last of them.
    _all: Arc<Workspaces>,
}

impl Workspace {
    /// A copy of a template. This blocks; its path is the same text each time up to the name of the copy.
    ///
    /// # Errors
    ///
    /// When there is no such folder, it holds what cannot be copied, or the file system refuses. Nothing is left of the
    /// copy then.
    pub fn copy(template: &Path) -> Result<Self, WorkspaceError> {
        let no_template = || WorkspaceError::NoTemplate { template: template.to_owned() };
        let from = template.canonicalize().ok().filter(|path| path.is_dir()).ok_or_else(no_template)?;
        let all = Workspaces::of_this_process()?;
        if all.folder().starts_with(&from) {
            return Err(WorkspaceError::HoldsItself { template: from, folder: all.folder().to_owned() });
        }
        let workspace = Self { path: all.next(), _all: all };
        Copying { template: &from, copy: &workspace.path }.run()?;
        Ok(workspace)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

struct Copying<'a> {
    template: &'a Path,
    copy: &'a Path,
}

impl Copying<'_> {
    fn run(&self) -> Result<(), WorkspaceError> {
        let mut folders = Vec::new();
        let mut waiting = vec![(self.template.to_owned(), self.copy.to_owned())];
        while let Some((from, to)) = waiting.pop() {
            at(&to, fs::create_dir(&to))?;
            folders.push((to.clone(), at(&from, fs::symlink_metadata(&from))?));
            let entries = at(&from, fs::read_dir(&from))?.collect::<io::Result<Vec<_>>>();
            let mut entries = at(&from, entries)?;
            // Some file systems list a folder in the order in which it was filled.
            entries.sort_by_key(DirEntry::file_name);
            for entry in entries {
                let (from, to) = (entry.path(), to.join(entry.file_name()));
                if at(&from, entry.file_type())?.is_dir() {
                    waiting.push((from, to));
                } else {
                    self.entry(&entry, &from, &to)?;
                }
            }
        }
        // Last and from within, since what is put into a folder changes its time, and nothing can be put into some.
        for (folder, metadata) in folders.iter().rev() {
            at(folder, keep_time(folder, metadata))?;
            at(folder, fs::set_permissions(folder, metadata.permissions()))?;
        }
        Ok(())
    }

    /// Copies what is no folder.
    fn entry(&self, entry: &DirEntry, from: &Path, to: &Path) -> Result<(), WorkspaceError> {
        let kind = at(from, entry.file_type())?;
        if kind.is_symlink() {
            let target = at(from, fs::read_link(from))?;
            at(to, link(&self.moved(target), to))
        } else if kind.is_file() {
            // This shares blocks where the file system can.
            at(from, fs::copy(from, to))?;
            at(to, keep_time(to, &at(from, entry.metadata())?))
        } else {
            Err(WorkspaceError::Special { path: from.to_owned() })
        }
    }

    /// Where a link leads to in the copy.
    fn moved(&self, target: PathBuf) -> PathBuf {
        match target.strip_prefix(self.template) {
            Ok(inner) => self.copy.join(inner),
            Err(_) => target,
        }
    }
}

/// Copies the time of the last change.
fn keep_time(path: &Path, metadata: &Metadata) -> io::Result<()> {
    fs::File::open(path)?.set_times(FileTimes::new().set_modified(metadata.modified()?))
}

#[cfg(unix)]
fn link(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "links cannot be copied on this system"))
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, WorkspaceError> {
    result.map_err(|source| WorkspaceError::Io { path: path.to_owned(), source })
}
