//! Why a program gives no answer, and why it gets no folder to work in.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a program gives no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// There is no such program.
    #[error(
        "there is no program `{program}`: {}",
        if *.searched { "it is in no folder of PATH; install it, or give its whole path" } else { "the path leads to no file" }
    )]
    NotFound {
        /// Its name.
        program: String,
        /// Whether `PATH` was searched for it.
        searched: bool,
    },
    /// The file may not be executed.
    #[error("the program `{program}` may not be executed: `chmod +x` makes a file a program")]
    NotExecutable {
        /// Its name.
        program: String,
    },
    /// The folder that it is to work in does not exist.
    #[error("the program `{program}` cannot work in `{}`: there is no such folder", .folder.display())]
    NoFolder {
        /// Its name.
        program: String,
        /// The folder.
        folder: PathBuf,
    },
    /// The operating system takes no such text.
    #[error("the program `{program}` cannot be started: {what} has a zero character")]
    BadText {
        /// Its name.
        program: String,
        /// What holds it.
        what: &'static str,
    },
    /// It could not be started for some other reason.
    #[error("the program `{program}` could not be started")]
    Spawn {
        /// Its name.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It ended while an answer of it was waited for.
    #[error("the program `{program}` ended with {status}{}{}", said(.stderr), without(.withheld))]
    Died {
        /// Its name.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its standard error, escaped and cut short.
        stderr: String,
        /// The variables that it did not inherit because their names look like secrets.
        withheld: Vec<String>,
    },
    /// It did not answer in time.
    #[error("the program `{program}` did not {doing} within {}{}", seconds(.limit), said(.stderr))]
    TimedOut {
        /// Its name.
        program: String,
        /// What was waited for, as a verb.
        doing: String,
        /// How long.
        limit: Duration,
        /// The last lines of its standard error, escaped and cut short.
        stderr: String,
    },
    /// It runs, but what it says cannot be used.
    #[error("the program `{program}` {problem}{}", said(.stderr))]
    Broken {
        /// Its name.
        program: String,
        /// What it does wrong, as a predicate.
        problem: String,
        /// The last lines of its standard error, escaped and cut short.
        stderr: String,
    },
}

/// Why there is no copy of a template folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The template is no folder.
    #[error("the workspace `{}` cannot be copied: there is no such folder", .template.display())]
    NoTemplate {
        /// The template.
        template: PathBuf,
    },
    /// The template holds the folder of the copies.
    #[error("the workspace `{}` cannot be copied: it holds `{}`, the folder of the copies; set TMPDIR to one elsewhere", .template.display(), .folder.display())]
    HoldsItself {
        /// The template.
        template: PathBuf,
        /// The folder of the copies.
        folder: PathBuf,
    },
    /// A file that is neither a file, a folder nor a link.
    #[error("the workspace cannot be copied: `{}` is no file, folder or link", .path.display())]
    Special {
        /// The file.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("the workspace cannot be copied: `{}`", .path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; the last it wrote to stderr: `{stderr}`") }
}

fn without(withheld: &[String]) -> String {
    if withheld.is_empty() {
        return String::new();
    }
    format!("; it does not inherit `{}`: `pass_env` gives it what it needs", withheld.join("`, `"))
}

fn seconds(limit: &Duration) -> String {
    let text = format!("{:.3}", limit.as_secs_f64());
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} s")
}
