//! Folders whose files a command makes: writing them, and finding what has drifted.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

use crate::Finding;
use crate::workspace::slashed;

/// Contents by path from the root of the workspace, with `/` between the parts.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A command and the folders that it alone fills.
#[derive(Debug, Clone, Copy)]
pub struct Generated {
    /// What to run to make the files anew, such as `cargo xtask fixtures`.
    pub command: &'static str,
    /// Folders from the root of the workspace.
    pub folders: &'static [&'static str],
}

impl Generated {
    /// Writes those of `files` that are missing or differ, and says which.
    ///
    /// Nothing is ever deleted: what should not be there is for [`Generated::drift`] to find.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written.
    pub fn write<'a>(&self, root: &Path, files: &'a Files) -> Result<Vec<&'a str>> {
        let mut written = Vec::new();
        for (place, contents) in files {
            if read(root, place)?.as_ref() == Some(contents) {
                continue;
            }
            let path = root.join(place);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).with_context(|| format!("failed to create the folder of `{place}`"))?;
            }
            fs::write(&path, contents).with_context(|| format!("failed to write `{place}`"))?;
            written.push(place.as_str());
        }
        Ok(written)
    }

    /// What is missing, differs or is not expected. `is_same` compares what is expected of a file with its contents.
    ///
    /// # Errors
    ///
    /// When a file or folder cannot be read.
    pub fn drift<T>(
        &self,
        root: &Path,
        expected: &BTreeMap<String, T>,
        is_same: impl Fn(&T, &[u8]) -> bool,
    ) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        for (place, of_it) in expected {
            match read(root, place)? {
                None => findings.push(Finding::new(place, format!("is missing: run `{}`", self.command))),
                Some(contents) if !is_same(of_it, &contents) => {
                    findings.push(Finding::new(place, format!("has drifted: run `{}`", self.command)));
                }
                Some(_) => {}
            }
        }
        for folder in self.folders {
            for place in files_below(root, folder, &[])? {
                if !expected.contains_key(&place) {
                    let advice = format!("is not made by `{}`: delete it, or add it to what is made", self.command);
                    findings.push(Finding::new(place, advice));
                }
            }
        }
        findings.sort();
        Ok(findings)
    }
}

fn read(root: &Path, place: &str) -> Result<Option<Vec<u8>>> {
    match fs::read(root.join(place)) {
        Ok(contents) => Ok(Some(contents)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("failed to read `{place}`")),
    }
}

/// The paths, from `root`, of all files below `folder`, sorted; none when there is no such folder.
///
/// Hidden files and folders, and folders whose name is in `without`, are passed over.
///
/// # Errors
///
/// When a folder cannot be read.
pub fn files_below(root: &Path, folder: &str, without: &[&str]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![root.join(folder)];
    while let Some(path) = open.pop() {
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.with_context(|| format!("failed to read the folder `{}`", path.display()))?,
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("failed to read the folder `{}`", path.display()))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') || without.contains(&name.as_ref()) {
                continue;
            }
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let place = path.strip_prefix(root).unwrap_or(&path);
                let place = place.strip_prefix(".").unwrap_or(place);
                found.push(slashed(place));
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: Generated = Generated { command: "make it", folders: &["made"] };

    fn files(pairs: &[(&str, &str)]) -> Files {
        pairs.iter().map(|(place, text)| (place.to_string(), text.as_bytes().to_vec())).collect()
    }

    fn drift(root: &Path, files: &Files) -> Vec<String> {
        let findings = MADE.drift(root, files, |expected, contents| expected == contents).unwrap();
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn what_was_written_has_not_drifted_and_is_not_written_twice() {
        let root = tempfile::tempdir().unwrap();
        let files = files(&[("made/a.txt", "a"), ("made/deep/b.txt", "b")]);
        assert_eq!(MADE.write(root.path(), &files).unwrap(), ["made/a.txt", "made/deep/b.txt"]);
        assert_eq!(drift(root.path(), &files), [""; 0]);
        assert_eq!(MADE.write(root.path(), &files).unwrap(), [""; 0]);
    }

    #[test]
    fn a_changed_a_missing_and_an_extra_file_are_found() {
        let root = tempfile::tempdir().unwrap();
        let files = files(&[("made/a.txt", "a"), ("made/b.txt", "b"), ("made/c.txt", "c")]);
        MADE.write(root.path(), &files).unwrap();
        fs::write(root.path().join("made/a.txt"), "A").unwrap();
        fs::remove_file(root.path().join("made/b.txt")).unwrap();
        fs::create_dir(root.path().join("made/deep")).unwrap();
        fs::write(root.path().join("made/deep/extra.txt"), "").unwrap();
        assert_eq!(
            drift(root.path(), &files),
            [
                "made/a.txt: has drifted: run `make it`",
                "made/b.txt: is missing: run `make it`",
                "made/deep/extra.txt: is not made by `make it`: delete it, or add it to what is made",
            ]
        );
        assert_eq!(MADE.write(root.path(), &files).unwrap(), ["made/a.txt", "made/b.txt"]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_missing_files_and_no_error() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(drift(root.path(), &files(&[("made/a.txt", "a")])), ["made/a.txt: is missing: run `make it`"]);
    }

    #[test]
    fn a_walk_passes_over_hidden_files_and_folders_it_shall_leave_out() {
        let root = tempfile::tempdir().unwrap();
        for place in ["a.rs", ".git/config", "target/b.rs", "deep/c.rs"] {
            let path = root.path().join(place);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(files_below(root.path(), ".", &["target"]).unwrap(), ["a.rs", "deep/c.rs"]);
    }
}
