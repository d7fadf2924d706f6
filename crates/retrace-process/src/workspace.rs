//! Workspaces: copies of a template folder to work in.

use std::fs::{self, FileTimes, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::WorkspaceError;
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
        Copying { template: &from, copy: &workspace.path }.folder(&from, &workspace.path)?;
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

/// Removes a folder and what is in it, as far as it may be removed. Links are not followed.
pub(crate) fn remove(folder: &Path) {
    // A process that was just killed may have made a file meanwhile, and a folder may not be writable.
    for _ in 0..3 {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => unlock(folder),
            _ => return,
        }
    }
}

/// Makes the folders of a tree writable for their owner.
fn unlock(folder: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // It fails on what is not ours, and then the removal fails again.
        let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    }
    let folders = fs::read_dir(folder).into_iter().flatten().flatten();
    folders.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir())).for_each(|entry| unlock(&entry.path()));
}

struct Copying<'a> {
    template: &'a Path,
    copy: &'a Path,
}

impl Copying<'_> {
    fn folder(&self, from: &Path, to: &Path) -> Result<(), WorkspaceError> {
        let metadata = at(from, fs::symlink_metadata(from))?;
        at(to, fs::create_dir(to))?;
        for entry in at(from, fs::read_dir(from))? {
            let entry = at(from, entry)?;
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            let kind = at(&from, entry.file_type())?;
            if kind.is_dir() {
                self.folder(&from, &to)?;
            } else if kind.is_symlink() {
                let target = at(&from, fs::read_link(&from))?;
                at(&to, link(&self.moved(target), &to))?;
            } else if kind.is_file() {
                at(&from, fs::copy(&from, &to))?;
                at(&to, keep_time(&to, &at(&from, entry.metadata())?))?;
            } else {
                return Err(WorkspaceError::Special { path: from });
            }
        }
        // Last, since what is put into a folder changes its time, and nothing can be put into some.
        let keep = keep_time(to, &metadata).and_then(|()| fs::set_permissions(to, metadata.permissions()));
        at(to, keep)
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
    let modified = metadata.modified()?;
    match fs::File::options().read(true).open(path) {
        Ok(file) => file.set_times(FileTimes::new().set_modified(modified)),
        // A file that its owner may not read was not copied in the first place.
        Err(error) => Err(error),
    }
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
