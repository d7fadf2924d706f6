//! Removal of folders in which a stranger's program has worked.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

/// Removes a folder and what is in it, as far as it may be removed. Links are not followed.
pub(crate) fn remove(folder: &Path) {
    // A process that was just killed may have made a file meanwhile.
    for _ in 0..3 {
        if remove_tree(folder).is_ok() {
            return;
        }
    }
}

/// Removes the folders of a folder by moving up what they hold, until there is none: a tree may be deeper than a path is
/// long, a stack is high, or files may be open.
fn remove_tree(top: &Path) -> io::Result<()> {
    let mut n_moved = 0_u64;
    loop {
        let entries = entries(top)?;
        if entries.is_empty() {
            return fs::remove_dir(top);
        }
        for entry in entries {
            if !is_folder(&entry)? {
                fs::remove_file(entry.path())?;
                continue;
            }
            for inner in self::entries(&entry.path())? {
                if is_folder(&inner)? {
                    unlock(&inner.path());
                    fs::rename(inner.path(), free_name(top, &mut n_moved))?;
                } else {
                    fs::remove_file(inner.path())?;
                }
            }
            fs::remove_dir(entry.path())?;
        }
    }
}

/// What is in a folder, which is made writable for its owner.
fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    unlock(folder);
    fs::read_dir(folder)?.collect()
}

fn is_folder(entry: &DirEntry) -> io::Result<bool> {
    Ok(entry.file_type()?.is_dir())
}

fn free_name(top: &Path, n_moved: &mut u64) -> PathBuf {
    loop {
        *n_moved += 1;
        let name = top.join(format!(".removed-{n_moved}"));
        if fs::symlink_metadata(&name).is_err() {
            return name;
        }
    }
}

#[cfg(unix)]
fn unlock(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;

    // It fails on what is not ours, and then the removal fails too.
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
}

#[cfg(not(unix))]
fn unlock(_: &Path) {}
