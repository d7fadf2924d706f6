//! Traces: what a run of retrace leaves behind in the system.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::install;

/// How long those that were told to end have for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder for temporary files that only one run uses. Whoever works for it has it in its environment.
pub(super) struct Temporary {
    folder: PathBuf,
}

impl Temporary {
    /// An empty one.
    pub(super) fn new(folder: PathBuf) -> Result<Self> {
        install::empty(&folder)?;
        Ok(Self { folder })
    }

    /// Where it is, for the variable `TMPDIR`.
    pub(super) fn path(&self) -> Result<&str> {
        self.folder.to_str().context("the cache has a path that is not UTF-8")
    }

    /// What lies in it, by name.
    pub(super) fn files(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.folder);
        let entries = entries.with_context(|| format!("failed to read `{}`", self.folder.display()))?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    /// The command lines of processes that work for it, where the system lists them under `/proc`.
    pub(super) fn processes(&self) -> Vec<String> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let variable = format!("TMPDIR={}", self.folder.display());
        let is_ours = |process: &Path| {
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|set| set == variable.as_bytes())
        };
        let ours = entries.map(|entry| entry.path()).filter(|process| is_ours(process));
        let command = |process: PathBuf| fs::read_to_string(process.join("cmdline")).unwrap_or_default();
        ours.map(|process| command(process).replace('\0', " ")).collect()
    }

    /// Starts a program, kills it as soon as it has `n` others working for it, and says how many there were. It is an
    /// error if one goes on.
    pub(super) fn kill_at_work(&self, program: &mut Command, n: usize) -> Result<usize> {
        let quiet = program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = quiet.spawn().context("failed to start a program that is to be killed")?;
        let n_others = || Some(self.processes().len().checked_sub(1)?).filter(|others| *others >= n);
        let others = wait_for(n_others);
        child.kill()?;
        child.wait()?;
        let others = others.with_context(|| format!("no {n} processes were started within {PATIENCE:?}"))?;
        let ended = wait_for(|| self.processes().is_empty().then_some(()));
        ended.with_context(|| format!("processes go on: {}", self.processes().join("; ")))?;
        Ok(others)
    }
}

/// Whether the system lists processes with their environments.
pub(super) fn are_listed() -> bool {
    let own = PathBuf::from("/proc/self/environ");
    env::consts::OS == "linux" && own.exists()
}

/// What something gives at last.
fn wait_for<T>(something: impl Fn() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let given = something();
        if given.is_some() || start.elapsed() > PATIENCE {
            return given;
        }
        sleep(Duration::from_millis(20));
    }
}
