//! What a command makes: folders of files and parts of files, writing them, and finding what has drifted.

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

/// A command and the part of a file that it alone fills: what stands between two lines.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// What to run to make the part anew.
    pub command: &'static str,
    /// The file, from the root of the workspace.
    pub place: &'static str,
    /// The line before the part.
    pub begin: &'static str,
    /// The line after it.
    pub end: &'static str,
}

impl Section {
    /// What stands there.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or has no such part.
    pub fn read(&self, root: &Path) -> Result<String> {
        let text = self.file(root)?;
        let (from, to) = self.part(&text)?;
        Ok(text[from..to].to_owned())
    }

    /// Puts `contents` there.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or written, or has no such part.
    pub fn write(&self, root: &Path, contents: &str) -> Result<()> {
        let mut text = self.file(root)?;
        let (from, to) = self.part(&text)?;
        text.replace_range(from..to, contents);
        fs::write(root.join(self.place), text).with_context(|| format!("failed to write `{}`", self.place))
    }

    /// The finding, if something other than `contents` stands there.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or has no such part.
    pub fn drift(&self, root: &Path, contents: &str) -> Result<Option<Finding>> {
        let same = self.read(root)? == contents;
        Ok((!same).then(|| Finding::new(self.place, format!("has drifted: run `{}`", self.command))))
    }

    fn file(&self, root: &Path) -> Result<String> {
        fs::read_to_string(root.join(self.place)).with_context(|| format!("failed to read `{}`", self.place))
    }

    /// From where to where it is.
    fn part(&self, text: &str) -> Result<(usize, usize)> {
        let after = |line: &str, from: usize| {
            let line = format!("{line}\n");
            let at = from + text[from..].find(&line)?;
            Some((at, at + line.len()))
        };
        let part = after(self.begin, 0).and_then(|(_, from)| Some((from, after(self.end, from)?.0)));
        part.with_context(|| format!("`{}` lacks the line `{}` or, after it, `{}`", self.place, self.begin, self.end))
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

    const PART: Section = Section { command: "make it", place: "a.md", begin: "<!-- from -->", end: "<!-- to -->" };

    #[test]
    fn only_what_stands_between_the_lines_is_written() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a.md");
        fs::write(&file, "before\n<!-- from -->\nold\n<!-- to -->\nafter\n").unwrap();
        assert_eq!(PART.read(root.path()).unwrap(), "old\n");
        let drifted = PART.drift(root.path(), "new\n").unwrap().unwrap();
        assert_eq!(drifted.to_string(), "a.md: has drifted: run `make it`");
        PART.write(root.path(), "new\n").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "before\n<!-- from -->\nnew\n<!-- to -->\nafter\n");
        assert_eq!(PART.drift(root.path(), "new\n").unwrap(), None);
    }

    #[test]
    fn a_file_without_the_lines_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        for text in ["", "<!-- from -->\n", "<!-- to -->\n<!-- from -->\n"] {
            fs::write(root.path().join("a.md"), text).unwrap();
            assert!(PART.write(root.path(), "new\n").is_err(), "{text}");
            assert_eq!(fs::read_to_string(root.path().join("a.md")).unwrap(), text);
        }
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
