//! Copies: vectors and real transcripts from a folder beside the checkout, so that the project stands alone.
//!
//! The folder need not be there. Where it is, the copies are compared with it byte for byte; where it is not, with the
//! committed checksums, a file that `sha256sum --check` reads too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use crate::Finding;
use crate::generated::{Files, Generated};

/// A folder beside the checkout, from the root of the workspace.
pub const SHARED: &str = "../shared";

/// What is copied from the folder `vectors` there: numbers computed by another program, with what they mean.
const VECTORS: &[&str] = &[
    "stats/README.md",
    "stats/bounded_mean.jsonl",
    "stats/cr2_t.jsonl",
    "stats/degenerate.jsonl",
    "stats/e_process.jsonl",
    "stats/exact_bootstrap.jsonl",
    "stats/flip_interval.jsonl",
    "stats/here_interval.jsonl",
    "stats/holm_adjust.jsonl",
    "stats/maxt.jsonl",
    "stats/mde.jsonl",
    "stats/no_worse.jsonl",
    "stats/planning.jsonl",
    "stats/recording_bootstrap.jsonl",
    "stats/recording_signflip.jsonl",
    "stats/rollout_permutation.jsonl",
    "stats/signflip.jsonl",
    "stats/variance_components.jsonl",
    "stats/verdict.jsonl",
    "strategies/clamp_oversized.jsonl",
    "strategies/clear_tool_results.jsonl",
    "strategies/config.jsonl",
    "strategies/deduplicate_file_reads.jsonl",
    "strategies/fallback.jsonl",
    "strategies/limit_warner.jsonl",
    "strategies/sliding_window.jsonl",
    "strategies/summarize.jsonl",
    "strategies/summarizing.jsonl",
    "strategies/tail_window.jsonl",
    "strategies/tiered.jsonl",
    "strategies/token_estimate.jsonl",
    "verifier/README.md",
    "verifier/actions.jsonl",
    "verifier/bootstrap.jsonl",
    "verifier/cuts.jsonl",
    "verifier/permutation.jsonl",
    "verifier/report.jsonl",
    "verifier/score.jsonl",
    "verifier/sign.jsonl",
    "verifier/signature.jsonl",
];

/// What is copied from the folder `samples` there: transcripts of real programs, with where they come from.
const SAMPLES: &[&str] = &[
    "SOURCES.md",
    "openai-chat/litellm-call-1757015046.707.json",
    "openai-chat/multi-agent-tool-calls.json",
    "tau-bench/gpt-4o-airline-10-longest.json",
];

const GENERATED: Generated = Generated { command: "cargo xtask vectors", folders: &["tests/vectors", "tests/samples"] };

/// Lines of `<SHA-256>  <path from the root>`, sorted by path.
const CHECKSUMS: &str = "tests/vectors/CHECKSUMS";

/// Copies anew what is missing or differs, and answers with what was written and with what should not be there.
///
/// # Errors
///
/// When there is no folder to copy from, or a file cannot be read or written.
pub fn write(root: &Path) -> Result<(Vec<String>, Vec<Finding>)> {
    let shared = root.join(SHARED);
    ensure!(is_there(&shared), "there is no `{SHARED}` with `vectors` and `samples` to copy from");
    let files = originals(&shared)?;
    let written = GENERATED.write(root, &files)?;
    let written = written.into_iter().map(str::to_owned).collect();
    Ok((written, against_originals(root, &files)?))
}

/// What has drifted from the originals, or from the committed checksums where there are no originals.
///
/// # Errors
///
/// When a file cannot be read, the checksums included.
pub fn check(root: &Path) -> Result<Vec<Finding>> {
    let shared = root.join(SHARED);
    if is_there(&shared) { against_originals(root, &originals(&shared)?) } else { against_checksums(root) }
}

fn is_there(shared: &Path) -> bool {
    shared.join("vectors").is_dir() && shared.join("samples").is_dir()
}

/// Every copy's path from the root of the workspace, and its original's from the folder beside it.
fn copies() -> impl Iterator<Item = (String, PathBuf)> {
    let of = |kind: &'static str, names: &'static [&'static str]| {
        names.iter().map(move |name| (format!("tests/{kind}/{name}"), Path::new(kind).join(name)))
    };
    of("vectors", VECTORS).chain(of("samples", SAMPLES))
}

fn originals(shared: &Path) -> Result<Files> {
    let mut files = Files::new();
    let mut checksums = BTreeMap::new();
    for (place, original) in copies() {
        let contents = fs::read(shared.join(&original))
            .with_context(|| format!("failed to read `{SHARED}/{}`", original.display()))?;
        checksums.insert(place.clone(), sha256(&contents));
        files.insert(place, contents);
    }
    files.insert(CHECKSUMS.to_owned(), print_checksums(&checksums).into_bytes());
    Ok(files)
}

fn against_originals(root: &Path, files: &Files) -> Result<Vec<Finding>> {
    GENERATED.drift(root, files, |expected, contents| expected == contents)
}

fn against_checksums(root: &Path) -> Result<Vec<Finding>> {
    let text = fs::read_to_string(root.join(CHECKSUMS)).with_context(|| format!("failed to read `{CHECKSUMS}`"))?;
    let mut checksums = read_checksums(&text)?;
    let mut findings = Vec::new();
    for (place, _) in copies() {
        if !checksums.contains_key(&place) {
            findings.push(Finding::new(
                CHECKSUMS,
                format!("lacks `{place}`: run `{}` where `{SHARED}` is", GENERATED.command),
            ));
        }
    }
    for place in checksums.keys() {
        if !copies().any(|(copy, _)| copy == *place) {
            findings.push(Finding::new(CHECKSUMS, format!("lists `{place}`, which is not copied: remove its line")));
        }
    }
    checksums.insert(CHECKSUMS.to_owned(), sha256(text.as_bytes()));
    findings.extend(GENERATED.drift(root, &checksums, |expected, contents| *expected == sha256(contents))?);
    Ok(findings)
}

fn sha256(contents: &[u8]) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(contents) {
        write!(hex, "{byte:02x}").expect("writing to a string does not fail");
    }
    hex
}

fn print_checksums(checksums: &BTreeMap<String, String>) -> String {
    checksums.iter().map(|(place, hash)| format!("{hash}  {place}\n")).collect()
}

fn read_checksums(text: &str) -> Result<BTreeMap<String, String>> {
    (1..)
        .zip(text.lines())
        .map(|(number, line)| {
            let (hash, place) = line
                .split_once("  ")
                .with_context(|| format!("`{CHECKSUMS}` line {number} is not a checksum, two spaces and a path"))?;
            Ok((place.to_owned(), hash.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkout with originals beside it, each made of its own name.
    struct Made {
        _folder: tempfile::TempDir,
        root: PathBuf,
        shared: PathBuf,
    }

    fn made() -> Made {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("checkout");
        let shared = folder.path().join("shared");
        fs::create_dir(&root).unwrap();
        for (_, original) in copies() {
            let path = shared.join(&original);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, original.to_str().unwrap()).unwrap();
        }
        Made { _folder: folder, root, shared }
    }

    fn checked(root: &Path) -> Vec<String> {
        check(root).unwrap().iter().map(Finding::to_string).collect()
    }

    #[test]
    fn copies_equal_their_originals_and_later_their_checksums() {
        let Made { _folder, root, shared } = made();
        let (written, findings) = write(&root).unwrap();
        assert_eq!(written.len(), VECTORS.len() + SAMPLES.len() + 1);
        assert_eq!(findings, []);
        assert_eq!(checked(&root), [""; 0]);
        fs::remove_dir_all(shared).unwrap();
        assert_eq!(checked(&root), [""; 0]);
    }

    #[test]
    fn drift_is_found_with_and_without_the_originals() {
        let Made { _folder, root, shared } = made();
        write(&root).unwrap();
        fs::write(root.join("tests/vectors/verifier/cuts.jsonl"), "changed").unwrap();
        fs::remove_file(root.join("tests/samples/SOURCES.md")).unwrap();
        fs::write(root.join("tests/samples/own.json"), "{}").unwrap();
        let expected = [
            "tests/samples/SOURCES.md: is missing: run `cargo xtask vectors`",
            "tests/samples/own.json: is not made by `cargo xtask vectors`: delete it, or add it to what is made",
            "tests/vectors/verifier/cuts.jsonl: has drifted: run `cargo xtask vectors`",
        ];
        assert_eq!(checked(&root), expected);
        fs::remove_dir_all(shared).unwrap();
        assert_eq!(checked(&root), expected);
    }

    #[test]
    fn a_changed_original_is_found_and_copied_anew() {
        let Made { _folder, root, shared } = made();
        write(&root).unwrap();
        fs::write(shared.join("vectors/verifier/sign.jsonl"), "newer").unwrap();
        assert_eq!(
            checked(&root),
            [
                "tests/vectors/CHECKSUMS: has drifted: run `cargo xtask vectors`",
                "tests/vectors/verifier/sign.jsonl: has drifted: run `cargo xtask vectors`",
            ]
        );
        let (written, findings) = write(&root).unwrap();
        assert_eq!(written, ["tests/vectors/CHECKSUMS", "tests/vectors/verifier/sign.jsonl"]);
        assert_eq!(findings, []);
    }

    #[test]
    fn checksums_that_are_not_those_of_the_list_are_found() {
        let Made { _folder, root, shared } = made();
        write(&root).unwrap();
        fs::remove_dir_all(shared).unwrap();
        let text = fs::read_to_string(root.join(CHECKSUMS)).unwrap();
        fs::write(root.join(CHECKSUMS), text.replace("verifier/sign.jsonl", "verifier/sine.jsonl")).unwrap();
        let found = checked(&root);
        assert!(found[0].contains("lacks `tests/vectors/verifier/sign.jsonl`"), "{found:?}");
        assert!(found[1].contains("lists `tests/vectors/verifier/sine.jsonl`"), "{found:?}");
    }

    #[test]
    fn without_originals_nothing_is_copied_and_without_checksums_nothing_is_proven() {
        let Made { _folder, root, shared } = made();
        fs::remove_dir_all(shared).unwrap();
        assert!(write(&root).unwrap_err().to_string().contains("to copy from"));
        assert!(check(&root).is_err());
        fs::create_dir_all(root.join("tests/vectors")).unwrap();
        fs::write(root.join(CHECKSUMS), "no checksum\n").unwrap();
        assert!(check(&root).unwrap_err().to_string().contains("line 1"));
    }

    #[test]
    fn the_checksum_is_sha_256() {
        // The digest of "abc" in FIPS 180-2, appendix B.1.
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
