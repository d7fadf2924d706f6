//! The filesystem and the memory server of MCP's own project: two runs each are recorded, replayed, and three strategies
//! verified on them, each rollout in a copy of the workspace. Nothing is left behind.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::bench::Bench;
use super::traces::{self, Temporary};
use crate::install;

const CONFIG: &str = "examples/live/files.toml";
const PACKAGES: &str = "examples/live/files";
const PROJECT: &str = "examples/live/files/project";

const RECORDINGS: &str = "docs/live/files";
const REPLAY: &str = "docs/live/files-replay.txt";
const REPORT: &str = "docs/live/files.txt";
/// Where the verification is kept.
const RUN: &str = "target/live/runs/files";

pub(super) fn run(bench: &Bench) -> Result<()> {
    bench.say(&format!("installing the packages of `{PACKAGES}`, unless they are in the cache"));
    let path = install::path_with(&install::node(&bench.root(PACKAGES), &bench.cached("files"))?)?;
    bench.build(&[])?;
    let temporary = Temporary::new(bench.cached("files-temporary"))?;
    let with_servers = [("PATH", &*path), ("TMPDIR", temporary.path()?)];
    let project = contents(bench)?;

    bench.remove(RECORDINGS)?;
    bench.retrace(&["record", "--config", CONFIG], &with_servers)?;
    nothing_is_left(bench, &temporary, &project)?;
    let replay = bench.retrace(&["replay", "--config", CONFIG], &with_servers)?;
    bench.write(REPLAY, &replay)?;
    nothing_is_left(bench, &temporary, &project)?;
    bench.remove(RUN)?;
    if traces::are_listed() {
        bench.say("retrace verify, killed at work; what it had finished, the next goes on with");
        let verify = &["verify", "--config", CONFIG, "--run", RUN];
        let n = temporary.kill_at_work(&mut bench.command(verify, &with_servers), 4)?;
        let left = temporary.files()?.join(", ");
        bench.say(&format!("{n} processes worked for it and have ended; the next run removes `{left}`"));
    }
    let report = bench.retrace(&["verify", "--config", CONFIG, "--run", RUN], &with_servers)?;
    bench.write(REPORT, &report)?;
    nothing_is_left(bench, &temporary, &project)?;
    bench.say(&format!("the report is in `{REPORT}`, what replays in `{REPLAY}`"));
    Ok(())
}

/// No workspace, no server, and no change of what the workspaces are copies of.
fn nothing_is_left(bench: &Bench, temporary: &Temporary, project: &[(String, String)]) -> Result<()> {
    ensure!(contents(bench)? == project, "a rollout has changed `{PROJECT}`, of which it was to have a copy");
    let files = temporary.files()?;
    ensure!(files.is_empty(), "temporary files were left behind: {}", files.join(", "));
    let processes = temporary.processes();
    ensure!(processes.is_empty(), "processes were left behind: {}", processes.join("; "));
    bench.say(&format!("no server and no workspace is left behind, and `{PROJECT}` is as it was"));
    Ok(())
}

/// What the project holds, by path.
fn contents(bench: &Bench) -> Result<Vec<(String, String)>> {
    let (mut found, mut folders) = (Vec::new(), vec![bench.root(PROJECT)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("failed to read `{}`", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).with_context(|| format!("failed to read `{}`", path.display()))?;
                found.push((path.display().to_string(), text));
            }
        }
    }
    found.sort();
    Ok(found)
}
