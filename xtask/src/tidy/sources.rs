//! Sources: files that open with their purpose, stay short, leave nothing open, and reach nothing they should not.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::floors::{FOR_TESTS, HOLDS_A_FILE, LAST_PLAIN_FLOOR, Room};
use crate::Finding;
use crate::copies::SHARED;
use crate::generated::files_below;
use crate::workspace::{Member, Workspace};

/// A longer file has a second reason to change.
const MAX_LINES: usize = 700;

/// What is left open, and what to do about it. Pieced together, so that this file has no finding.
const LEFT_OPEN: &[(&str, &str)] = &[
    (concat!("todo", "!("), "finish it"),
    (concat!("unimplemented", "!("), "finish it"),
    (concat!("#[", "ignore"), "let the test run; a slow one asks `RETRACE_SLOW`"),
    (concat!("```", "ignore"), "let the example compile"),
];

/// What reaches out of the process: a function of its arguments has none of these.
const OUTSIDE: &[&str] = &[
    "fs::",
    "File::open",
    "SystemTime",
    "Instant::now",
    "env::var",
    "TcpStream",
    "process::Command",
    "thread::sleep",
    "thread::spawn",
];

/// Texts of others, copied or made.
const NOT_OURS: &[&str] = &["tests/vectors/", "tests/samples/", "tests/fixtures/"];

/// Every finding in the texts of the workspace.
///
/// # Errors
///
/// When a file cannot be read.
pub fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for place in texts(&workspace.root)? {
        let text = read(&workspace.root, &place)?;
        findings.extend(outside_name(&place, &text));
        if place.ends_with(".rs") {
            findings.extend(purpose(&place, &text));
            findings.extend(length(&place, &text));
            findings.extend(left_open(&place, &text));
        }
    }
    for member in workspace.members.iter().filter(|it| is_core(it)) {
        findings.extend(core(&workspace.root, member)?);
    }
    Ok(findings)
}

/// The paths of our own texts.
fn texts(root: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for place in files_below(root, ".", &["target"])? {
        let is_text = [".rs", ".toml", ".md", ".sh"].iter().any(|end| place.ends_with(end));
        if is_text && !NOT_OURS.iter().any(|folder| place.starts_with(folder)) {
            texts.push(place);
        }
    }
    Ok(texts)
}

fn read(root: &Path, place: &str) -> Result<String> {
    fs::read_to_string(root.join(place)).with_context(|| format!("failed to read `{place}`"))
}

fn purpose(place: &str, text: &str) -> Option<Finding> {
    (!text.starts_with("//!")).then(|| Finding::new(format!("{place}:1"), "open the file with `//!` and its purpose"))
}

fn length(place: &str, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    (lines > MAX_LINES).then(|| {
        Finding::new(place, format!("has {lines} lines, more than {MAX_LINES}: split it by its reasons to change"))
    })
}

fn left_open(place: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for (open, advice) in LEFT_OPEN {
            if line.contains(open) {
                findings.push(Finding::new(format!("{place}:{number}"), format!("`{open}`: {advice}")));
            }
        }
    }
    findings
}

/// The folder beside the checkout is the business of xtask alone.
fn outside_name(place: &str, text: &str) -> Option<Finding> {
    if place.starts_with("xtask/") {
        return None;
    }
    let (number, _) = (1..).zip(text.lines()).find(|(_, line)| line.contains(SHARED))?;
    Some(Finding::new(
        format!("{place}:{number}"),
        format!("names `{SHARED}`: the project stands alone; let `cargo xtask vectors` copy what is needed"),
    ))
}

fn is_core(member: &Member) -> bool {
    ![FOR_TESTS, HOLDS_A_FILE].contains(&&*member.name)
        && Room::of(&member.name).is_some_and(|it| it.floor() <= LAST_PLAIN_FLOOR)
}

/// Where a core crate reaches out of the process, its tests excepted.
fn core(root: &Path, member: &Member) -> Result<Vec<Finding>> {
    let mut sources = Vec::new();
    for place in files_below(root, &format!("{}/src", member.folder), &[])? {
        if place.ends_with(".rs") {
            let text = read(root, &place)?;
            sources.push((place, text));
        }
    }
    let tests: BTreeSet<&str> = sources.iter().flat_map(|(_, text)| test_modules(text)).collect();
    Ok(sources
        .iter()
        .filter(|(place, _)| !place.split(['/', '.']).any(|part| tests.contains(part)))
        .flat_map(|(place, text)| reaching_out(place, text))
        .collect())
}

/// The names of modules that are files of their own and only built for tests.
fn test_modules(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    lines
        .clone()
        .zip(lines.skip(1))
        .filter(|(attribute, _)| *attribute == "#[cfg(test)]")
        .filter_map(|(_, item)| item.strip_suffix(';')?.split_once("mod ").map(|(_, name)| name))
}

fn reaching_out(place: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    for (idx, line) in lines.iter().enumerate() {
        // The tests close a file.
        if *line == "#[cfg(test)]"
            && lines.get(idx + 1).is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'))
        {
            break;
        }
        if line.starts_with("//") {
            continue;
        }
        for name in OUTSIDE.iter().filter(|name| has_word(line, name)) {
            let advice = format!("`{name}`: a core crate is a function of its arguments; let the caller pass it");
            findings.push(Finding::new(format!("{place}:{}", idx + 1), advice));
        }
    }
    findings
}

/// Whether `word` stands in `line` and is not the end of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(in_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_open_with_its_purpose_is_found() {
        assert_eq!(purpose("a.rs", "//! Ports.\n"), None);
        for text in ["", "use std::fmt;\n//! Ports.\n", "// Ports.\n", "\n//! Ports.\n"] {
            assert_eq!(purpose("a.rs", text).unwrap().place, "a.rs:1", "{text:?}");
        }
    }

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(length("a.rs", &"//! A.\n".repeat(MAX_LINES)), None);
        let found = length("a.rs", &"//! A.\n".repeat(MAX_LINES + 1)).unwrap();
        assert!(found.advice.starts_with("has 701 lines"), "{found}");
    }

    #[test]
    fn what_is_left_open_is_found_with_its_line() {
        for (open, _) in LEFT_OPEN {
            let found = left_open("a.rs", &format!("//! A.\nfn f() {{\n    {open}\n}}\n"));
            assert_eq!(found.len(), 1, "{open}");
            assert_eq!(found[0].place, "a.rs:3");
        }
        assert_eq!(left_open("a.rs", "//! What is to do.\n#[must_use]\nfn f() {}\n"), []);
    }

    #[test]
    fn the_folder_beside_the_checkout_is_named_in_xtask_alone() {
        let text = format!("first\nsee {SHARED}/vectors\n");
        assert_eq!(outside_name("docs/methods.md", &text).unwrap().place, "docs/methods.md:2");
        assert_eq!(outside_name("xtask/src/copies.rs", &text), None);
        assert_eq!(outside_name("docs/methods.md", "shared histories\n"), None);
    }

    #[test]
    fn a_core_crate_that_reaches_out_is_found() {
        for line in ["let text = std::fs::read(path)?;", "let now = Instant::now();", "use std::time::SystemTime;"] {
            let found = reaching_out("a.rs", &format!("//! A.\nfn f() {{\n    {line}\n}}\n"));
            assert_eq!(found.len(), 1, "{line}");
            assert_eq!(found[0].place, "a.rs:3");
        }
    }

    #[test]
    fn docs_tests_and_longer_names_do_not_reach_out() {
        let text = "\
//! Call `std::fs::read` yourself.
use crate::prefs::Prefs;
/// std::env::var
fn f() {}
#[cfg(test)]
mod tests {
    use std::fs::read;
}
";
        assert_eq!(reaching_out("a.rs", text), []);
    }

    #[test]
    fn code_behind_a_test_item_or_a_test_module_of_its_own_file_is_still_read() {
        for item in ["mod cases;", "fn only_in_tests() {\n}"] {
            let text = format!("//! A.\n#[cfg(test)]\n{item}\nfn f() {{ std::fs::read(p); }}\n");
            assert_eq!(reaching_out("a.rs", &text).len(), 1, "{item}");
        }
        let text = "//! A.\n#[cfg(test)]\nmod cases;\nfn f() {}\n";
        assert_eq!(test_modules(text).collect::<Vec<_>>(), ["cases"]);
        assert_eq!(test_modules("#[cfg(test)]\npub(crate) mod cases;\n").collect::<Vec<_>>(), ["cases"]);
        assert_eq!(test_modules("mod cases;\n#[cfg(test)]\nmod tests {\n").count(), 0);
    }

    #[test]
    fn a_test_module_in_its_own_file_is_not_core_code() {
        let root = tempfile::tempdir().unwrap();
        let src = root.path().join("crates/a/src");
        fs::create_dir_all(&src).unwrap();
        fs::write(src.join("lib.rs"), "//! A.\n#[cfg(test)]\nmod cases;\nmod open;\n").unwrap();
        fs::write(src.join("cases.rs"), "//! Cases.\nuse std::fs::read;\n").unwrap();
        fs::write(src.join("open.rs"), "//! Open.\nuse std::fs::read;\n").unwrap();
        let member = Member { name: "a".into(), folder: "crates/a".into(), uses: Vec::new(), has_example: true };
        let found = core(root.path(), &member).unwrap();
        let places: Vec<_> = found.iter().map(|it| it.place.as_str()).collect();
        assert_eq!(places, ["crates/a/src/open.rs:2"]);
    }
}
