//! A process that may be killed: this test program, started again to run one of its tests as a part.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take that is expected to happen.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// Set in the process that plays a part.
const PART: &str = "RETRACE_PROCESS_PART";

/// Runs the test of this name in a process of its own, where [`is_part`] is true.
pub(crate) struct Helper {
    pub(crate) child: Child,
    lines: BufReader<ChildStdout>,
}

/// Whether this process plays a part.
pub(crate) fn is_part() -> bool {
    env::var_os(PART).is_some()
}

impl Helper {
    pub(crate) fn start(test: &str, env: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(PART, "1").envs(env.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// What it says next behind `key=`.
    pub(crate) fn told(&mut self, key: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "it ended without telling `{key}`");
            if let Some((_, value)) = line.trim_end().split_once(&format!("{key}=")) {
                return value.to_owned();
            }
        }
    }

    /// `kill -9`, and no time to clean up.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a process runs; one that waits to be reaped does not.
pub(crate) fn runs(id: &str) -> bool {
    let ps = Command::new("ps").args(["-o", "stat=", "-p", id.trim()]).output().unwrap();
    let stat = String::from_utf8(ps.stdout).unwrap();
    !stat.trim().is_empty() && !stat.trim().starts_with('Z')
}

/// Waits for what has to come.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
