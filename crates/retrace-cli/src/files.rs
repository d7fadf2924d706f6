//! Files: which ones are meant, reading them, and writing them whole or not at all.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use retrace_events::codec::{Read, read_recording};
use retrace_events::{OutcomeRule, Recording};

use crate::failure::hinted;

/// What came of writing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    New,
    Replaced,
    AsBefore,
}

/// The recordings that paths name: files as they are, of a folder every `.jsonl` file in it; each once, a folder's in
/// the order of their names.
pub(crate) fn recordings_in(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.exists() {
            return Err(hinted(
                format!("there is no `{}`", path.display()),
                "name files or folders of recordings; make some of a transcript with `retrace import`",
            ));
        }
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).with_context(|| format!("failed to list `{}`", path.display()))?;
        let mut found = Vec::new();
        for entry in entries {
            let file = entry.with_context(|| format!("failed to list `{}`", path.display()))?.path();
            if file.extension().is_some_and(|extension| extension == "jsonl") && file.is_file() {
                found.push(file);
            }
        }
        if found.is_empty() {
            return Err(hinted(
                format!("no recordings in `{}`", path.display()),
                "recordings are files that end in `.jsonl`; make some of a transcript with `retrace import`",
            ));
        }
        found.sort();
        files.extend(found);
    }
    let mut seen = BTreeSet::new();
    files.retain(|file| seen.insert(file.clone()));
    Ok(files)
}

/// Reads a recording and lets the user's rule decide the outcomes that its source could not tell. A last line that was
/// cut off is left out and reported on stderr.
pub(crate) fn read(file: &Path, rule: Option<&OutcomeRule>) -> Result<Recording> {
    let source = File::open(file).with_context(|| format!("failed to open `{}`", file.display()))?;
    let name = file.display().to_string();
    let Read { mut recording, torn_line } = read_recording(BufReader::with_capacity(1 << 16, source), name)?;
    if let Some(line) = torn_line {
        crate::output::warn(&format!("{}:{line}: the last line was cut off, and is left out", file.display()));
    }
    if let Some(rule) = rule {
        recording.apply_outcome_rule(rule);
    }
    Ok(recording)
}

/// Writes a file whole or not at all. One that is there and differs is replaced only by force.
pub(crate) fn write(file: &Path, bytes: &[u8], force: bool) -> Result<Written> {
    let written = match fs::read(file) {
        Ok(old) if old == bytes => return Ok(Written::AsBefore),
        Ok(_) if !force => {
            return Err(hinted(
                format!("`{}` is there already and holds something else", file.display()),
                "move it away, or replace it with `--force`",
            ));
        }
        Ok(_) => Written::Replaced,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Written::New,
        Err(error) => return Err(error).with_context(|| format!("failed to read `{}`", file.display())),
    };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut whole = tempfile::NamedTempFile::new_in(folder)?;
        whole.write_all(bytes)?;
        whole.as_file().sync_all()?;
        whole.persist(file)?;
        Ok::<_, std::io::Error>(())
    };
    write().with_context(|| format!("failed to write `{}`", file.display()))?;
    Ok(written)
}

/// A file name for an id that anybody may have made up: its letters, digits, dots and dashes, at most 200 bytes of them.
pub(crate) fn name_for(id: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' };
    let name: String = id.chars().map(plain).collect();
    let name = name.trim_start_matches('.');
    let name = &name[..name.floor_char_boundary(200)];
    if name.is_empty() { "recording".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_lead_out_of_the_folder() {
        assert_eq!(name_for("../../etc/passwd"), "-..-etc-passwd");
        assert_eq!(name_for(".."), "recording");
        assert_eq!(name_for("task 2/trial\u{1b}[31m1"), "task-2-trial--31m1");
        assert_eq!(name_for(&"é".repeat(500)).len(), 200);
    }

    #[test]
    fn a_file_that_differs_is_replaced_only_by_force() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.jsonl");
        assert_eq!(write(&file, b"one", false).unwrap(), Written::New);
        assert_eq!(write(&file, b"one", false).unwrap(), Written::AsBefore);
        assert!(write(&file, b"two", false).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"one");
        assert_eq!(write(&file, b"two", true).unwrap(), Written::Replaced);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
