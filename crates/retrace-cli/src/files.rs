//! Files: which ones are meant, reading them, and writing them whole or not at all.

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use retrace_events::codec::{Read, read_recording};
use retrace_events::{OutcomeRule, Recording};
use tempfile::NamedTempFile;

use crate::failure::hinted;

/// A file that is about to be written, beside what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum There {
    Nothing,
    TheSame,
    SomethingElse,
}

/// The recordings that paths name: files as they are, of a folder every `.jsonl` file in it; each once, a folder's in
/// the order of their names.
pub(crate) fn recordings_in(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        match fs::metadata(path) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(hinted(
                    format!("there is no `{}`", path.display()),
                    "name files or folders of recordings; make some of a transcript with `retrace import`",
                ));
            }
            Err(error) => return Err(error).with_context(|| format!("failed to read `{}`", path.display())),
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
    // However it is spelled, a file is one file.
    files.retain(|file| seen.insert(fs::canonicalize(file).unwrap_or_else(|_| file.clone())));
    Ok(files)
}

/// The path of a file that is there, as short as it can be said from here.
pub(crate) fn shown(file: &Path) -> String {
    let here = env::current_dir().and_then(|here| here.canonicalize());
    let shown = match (file.canonicalize(), here) {
        (Ok(whole), Ok(here)) => whole.strip_prefix(here).map(Path::to_owned).unwrap_or(file.to_owned()),
        _ => file.to_owned(),
    };
    shown.display().to_string()
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

/// As [`read`], one of several recordings that are told apart by their ids.
pub(crate) fn read_another(
    file: &Path,
    rule: Option<&OutcomeRule>,
    files_by_id: &mut HashMap<String, PathBuf>,
) -> Result<Recording> {
    let recording = read(file, rule)?;
    match files_by_id.insert(recording.header.id.clone(), file.to_owned()) {
        None => Ok(recording),
        Some(other) => Err(hinted(
            format!("`{}` has the id `{}`, as `{}` has", file.display(), recording.header.id, other.display()),
            "give each recording its own `id` in its first line",
        )),
    }
}

/// What lies where a file is to be written.
pub(crate) fn there(file: &Path, bytes: &[u8]) -> Result<There> {
    match fs::read(file) {
        Ok(old) if old == bytes => Ok(There::TheSame),
        Ok(_) => Ok(There::SomethingElse),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(There::Nothing),
        Err(error) => Err(error).with_context(|| format!("failed to look at `{}`", file.display())),
    }
}

/// Writes a file whole or not at all.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut whole = new_file(folder)?;
        whole.write_all(bytes)?;
        whole.as_file().sync_all()?;
        whole.persist(file)?;
        Ok(())
    };
    // Only the kind: the file that the error names is not the user's.
    let written = write().map_err(|error: std::io::Error| std::io::Error::from(error.kind()));
    written.with_context(|| format!("failed to write `{}`", file.display()))
}

/// A new file that becomes another's once it is whole, as readable as any file of the user's.
fn new_file(folder: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
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
    fn a_file_is_written_whole_and_beside_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.jsonl");
        assert_eq!(there(&file, b"one").unwrap(), There::Nothing);
        write(&file, b"one").unwrap();
        assert_eq!(there(&file, b"one").unwrap(), There::TheSame);
        assert_eq!(there(&file, b"two").unwrap(), There::SomethingElse);
        write(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_named_once_however_it_is_spelled() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.jsonl");
        write(&file, b"one").unwrap();
        let files = recordings_in(&[file.clone(), folder.path().join("./a.jsonl"), folder.path().to_owned()]).unwrap();
        assert_eq!(files, [file]);
    }
}
