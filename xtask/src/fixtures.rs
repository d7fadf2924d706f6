//! Fixtures: made-up inputs under `tests/fixtures/`, each written by a builder, so that none is edited to fit a test.
//!
//! To add one, write a function from nothing to bytes in a module of its kind, and a [`Fixture`] for it in that module's
//! list. It must give the same bytes every time.

mod openai_chat;
mod recordings;

use std::path::Path;

use anyhow::{Result, ensure};

use crate::Finding;
use crate::generated::{Files, Generated};

/// A file and its builder.
#[derive(Debug, Clone, Copy)]
pub struct Fixture {
    /// From `tests/fixtures/`, with `/` between the parts.
    pub path: &'static str,
    /// What it is, as its row in the folder's README says.
    pub what: &'static str,
    /// Makes its contents, the same every time.
    pub build: fn() -> Vec<u8>,
}

const GENERATED: Generated = Generated { command: "cargo xtask fixtures", folders: &["tests/fixtures"] };

/// Every fixture, kind by kind.
pub fn all() -> impl Iterator<Item = Fixture> {
    [recordings::ALL, openai_chat::ALL].into_iter().flatten().copied()
}

/// Writes anew what is missing or differs, and answers with what was written and with what should not be there.
///
/// # Errors
///
/// When two fixtures have one path, or a file cannot be read or written.
pub fn write(root: &Path) -> Result<(Vec<String>, Vec<Finding>)> {
    let files = build(all())?;
    let written = GENERATED.write(root, &files)?;
    let written = written.into_iter().map(str::to_owned).collect();
    Ok((written, drift(root, &files)?))
}

/// What has drifted from the builders.
///
/// # Errors
///
/// When two fixtures have one path, or a file cannot be read.
pub fn check(root: &Path) -> Result<Vec<Finding>> {
    drift(root, &build(all())?)
}

fn drift(root: &Path, files: &Files) -> Result<Vec<Finding>> {
    GENERATED.drift(root, files, |expected, contents| expected == contents)
}

/// The contents of the fixtures, and a README that lists them.
fn build(fixtures: impl Iterator<Item = Fixture>) -> Result<Files> {
    let mut files = Files::new();
    let mut readme = String::from(
        "# Fixtures\n\nMade up, and written by `cargo xtask fixtures`: change a builder in `xtask/src/fixtures/`, not a file here.\n\n\
         | file | what it is |\n|---|---|\n",
    );
    for Fixture { path, what, build } in fixtures {
        readme.push_str(&format!("| `{path}` | {what} |\n"));
        let before = files.insert(format!("tests/fixtures/{path}"), build());
        ensure!(before.is_none(), "two fixtures are named `{path}`");
    }
    let before = files.insert("tests/fixtures/README.md".to_owned(), readme.into_bytes());
    ensure!(before.is_none(), "a fixture is named `README.md`");
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_builder_gives_the_same_bytes_twice() {
        for fixture in all() {
            assert_eq!((fixture.build)(), (fixture.build)(), "{}", fixture.path);
        }
    }

    #[test]
    fn what_was_written_does_not_drift_and_a_change_by_hand_is_found() {
        let root = tempfile::tempdir().unwrap();
        let (written, findings) = write(root.path()).unwrap();
        assert_eq!(written.len(), all().count() + 1);
        assert_eq!(findings, []);
        assert_eq!(check(root.path()).unwrap(), []);

        fs::write(root.path().join("tests/fixtures/recordings/tiny.jsonl"), "{}").unwrap();
        fs::write(root.path().join("tests/fixtures/by_hand.jsonl"), "{}").unwrap();
        let places: Vec<_> = check(root.path()).unwrap().into_iter().map(|it| it.place).collect();
        assert_eq!(places, ["tests/fixtures/by_hand.jsonl", "tests/fixtures/recordings/tiny.jsonl"]);
    }

    #[test]
    fn two_fixtures_of_one_path_are_refused() {
        let one = Fixture { path: "a.json", what: "one", build: Vec::new };
        let error = build([one, one].into_iter()).unwrap_err();
        assert!(error.to_string().contains("`a.json`"), "{error}");
    }
}
