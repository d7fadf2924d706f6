//! Processes: programs that run.

use std::future::Future;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use crate::error::ProcessError;
use crate::keeper::{self, Owned};
use crate::program::Program;
use crate::shown::{Hidden, escaped};
use crate::stderr_tail::StderrTail;

/// What is written to a program.
pub type Stdin = ChildStdin;
/// What a program writes.
pub type Stdout = ChildStdout;

/// How long a program whose pipe has broken may take to end, so that its end can be told as the reason.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A program that runs, with piped standard input and output.
///
/// When it is dropped, the program ends: its standard input is closed, after a second its group is asked to end, after
/// another it is killed. That happens in the background; [`end`](Self::end) and [`settle`](crate::settle) wait for it.
/// Pipes that were taken are to be dropped before.
pub struct Process {
    program: String,
    withheld: Vec<String>,
    hidden: Hidden,
    stderr: Arc<StderrTail>,
    pipes: Option<(Stdin, Stdout)>,
    // Dropped after the pipe to its standard input.
    owned: Owned,
}

impl Process {
    /// Starts a program, in a runtime of tokio with its I/O and time enabled.
    ///
    /// # Errors
    ///
    /// When it cannot be started. One that ends right away is no error here, but that of the first
    /// [`timed`](Self::timed) answer.
    pub async fn spawn(program: &Program) -> Result<Self, ProcessError> {
        let (command, inherited) = program.command()?;
        let fail = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => {
                ProcessError::NotFound { program: program.name(), searched: !program.command.contains(['/', '\\']) }
            }
            io::ErrorKind::PermissionDenied => ProcessError::NotExecutable { program: program.name() },
            _ => ProcessError::Spawn { program: program.name(), source },
        };
        let mut owned = keeper::start(command).await.map_err(fail)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (owned.stdin.take(), owned.stdout.take(), owned.stderr.take())
        else {
            return Err(fail(io::Error::other("it has no pipes")));
        };
        let pipes = (Stdin::from_std(stdin).map_err(fail)?, Stdout::from_std(stdout).map_err(fail)?);
        let stderr = ChildStderr::from_std(stderr).map_err(fail)?;
        let hidden = inherited.hidden;
        let tail = Arc::new(StderrTail::new(hidden.clone()));
        tokio::spawn({
            let tail = Arc::clone(&tail);
            async move { tail.drain(stderr).await }
        });
        let (program, withheld) = (program.name(), inherited.withheld);
        Ok(Self { program, withheld, hidden, stderr: tail, pipes: Some(pipes), owned })
    }

    /// The id of the process, and of its group.
    pub fn id(&self) -> u32 {
        self.owned.id()
    }

    /// Its name as messages show it: no folders, no arguments, which may hold a secret.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Its standard input and output, for the first who asks.
    pub fn take_pipes(&mut self) -> Option<(Stdin, Stdout)> {
        self.pipes.take()
    }

    /// Keeps something, such as a [`Workspace`](crate::Workspace), until the process has ended and this was dropped.
    pub fn keep(&self, belonging: impl Send + 'static) {
        self.owned.keep(Box::new(belonging));
    }

    /// The last lines that it wrote to its standard error, on one line, escaped and cut short, without the values of
    /// variables whose names look like secrets.
    pub fn stderr(&self) -> String {
        self.stderr.shown()
    }

    /// Text that it wrote, as an error may quote it: [`escaped`](crate::escaped), and without the values of variables whose
    /// names look like secrets.
    pub fn quoted(&self, text: &str) -> String {
        self.hidden.escaped(text)
    }

    /// The same of a text that goes on where it was cut, perhaps within such a value.
    pub fn quoted_start(&self, text: &str) -> String {
        escaped(self.hidden.strip_start(text).as_str())
    }

    /// How it ended, if it has.
    pub fn status(&self) -> Option<ExitStatus> {
        *self.owned.status().borrow()
    }

    /// Waits until it has ended.
    pub async fn ended(&self) -> ExitStatus {
        let mut status = self.owned.status();
        // The sender lives as long as the process.
        status.wait_for(Option::is_some).await.ok().and_then(|status| *status).unwrap_or_default()
    }

    /// What `work` gives, in which an answer of the program is waited for; `doing` says for what, as a verb.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](ProcessError::TimedOut). That the program ended is for `work` to see, as the end of its standard
    /// output, so that what it said last is heard; [`failure`](Self::failure) then tells why.
    pub async fn timed<T>(
        &self,
        doing: &str,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, ProcessError> {
        tokio::time::timeout(limit, work).await.map_err(|_| ProcessError::TimedOut {
            program: self.program.clone(),
            doing: doing.to_owned(),
            limit,
            stderr: self.stderr(),
        })
    }

    /// The error to tell when the program cannot be talked to: how it ended if it has, or does within half a second, else
    /// the `problem`, as a predicate.
    pub async fn failure(&self, problem: impl Into<String>) -> ProcessError {
        let last_words = async {
            let status = self.ended().await;
            self.stderr.ended().await;
            status
        };
        // Something that has left the group may hold the standard error open.
        let status = tokio::time::timeout(LAST_WORDS, last_words).await.ok().or_else(|| self.status());
        let Some(status) = status else { return self.broken(problem) };
        let (program, stderr, withheld) = (self.program.clone(), self.stderr(), self.withheld.clone());
        ProcessError::Died { program, status, stderr, withheld }
    }

    /// The error to tell when the program runs and what it says cannot be used; the `problem` is a predicate.
    pub fn broken(&self, problem: impl Into<String>) -> ProcessError {
        ProcessError::Broken { program: self.program.clone(), problem: problem.into(), stderr: self.stderr() }
    }

    /// Ends the program, and waits until it has ended and what it [keeps](Self::keep) was dropped.
    pub async fn end(self) -> ExitStatus {
        let (status, mut is_over) = (self.owned.status(), self.owned.is_over());
        drop(self);
        // The sender is dropped after that.
        let _ = is_over.wait_for(|is_over| *is_over).await;
        let status = *status.borrow();
        status.unwrap_or_default()
    }
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").field("program", &self.program).field("id", &self.id()).finish_non_exhaustive()
    }
}
