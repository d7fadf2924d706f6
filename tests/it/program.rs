//! Running the program.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What came of a run of the program.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the program in a folder with these arguments.
pub(crate) fn retrace_in(folder: &std::path::Path, args: &[&str]) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_retrace-under-test"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .env_remove("RUST_BACKTRACE")
        .output()
        .unwrap();
    Ended::from(output)
}

/// Runs the program at the root of the workspace with these arguments.
pub(crate) fn retrace(args: &[&str]) -> Ended {
    retrace_in(&root(), args)
}

impl Ended {
    /// The standard output of a run that went well.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self.stdout
    }

    /// The standard output of a run that went well, as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// The standard error of a run that could not do its work and printed no data.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert_eq!((self.code, &*self.stdout), (2, ""), "{}", self.stderr);
        self.stderr
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// A file under `tests/`, as an argument.
pub(crate) fn file(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}
