//! Recorded runs of the airline of τ-bench, replayed over a server of that benchmark, and three strategies verified there.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::bench::Bench;
use crate::install;

const CONFIG: &str = "examples/live/airline.toml";
const REQUIREMENTS: &str = "examples/live/airline/requirements.txt";
const TRANSCRIPTS: &str = "tests/samples/tau-bench/gpt-4o-airline-10-longest.json";

/// Where the configuration looks for the recordings. What is imported is imported again in a moment.
const RECORDINGS: &str = "target/live/airline";

const REPLAY: &str = "docs/live/airline-replay.txt";
const DIFFERENCES: &str = "docs/live/airline-differences.txt";
const REPORT: &str = "docs/live/airline.txt";
/// Where the verification is kept.
const RUN: &str = "target/live/runs/airline";

pub(super) fn run(bench: &Bench) -> Result<()> {
    let python = bench.python(REQUIREMENTS, "airline")?;
    bench.build(&[])?;
    let path = install::path_with(python.parent().context("Python is in no folder")?)?;
    let with_server = [("PATH", &*path)];

    bench.remove(RECORDINGS)?;
    bench.retrace(&["import", TRANSCRIPTS, "-o", RECORDINGS], &[])?;
    let replay = bench.retrace(&["replay", "--config", CONFIG], &with_server)?;
    bench.write(REPLAY, &replay)?;
    bench.write(DIFFERENCES, &differences(bench, &python, &path)?)?;
    bench.say("verifying takes about ten minutes: the server writes its whole data base after each call");
    bench.remove(RUN)?;
    let report = bench.retrace(&["verify", "--config", CONFIG, "--run", RUN], &with_server)?;
    bench.write(REPORT, &report)?;
    bench.say(&format!("the report is in `{REPORT}`, what replays in `{REPLAY}`, and why not in `{DIFFERENCES}`"));
    Ok(())
}

/// Why answers differ, as a program of its own finds it, without retrace.
fn differences(bench: &Bench, python: &Path, path: &str) -> Result<String> {
    bench.say("sorting the answers that differ by reason");
    let mut sort = Command::new(python);
    sort.arg(bench.root("examples/live/airline/differences.py")).arg(bench.root(RECORDINGS));
    sort.env("PATH", path).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = sort.output().context("failed to start Python")?;
    let sorted = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "there is a difference that has no reason yet:\n{sorted}");
    Ok(sorted)
}
