//! Child processes that end with their owner, and the folders they work in.
//!
//! A [`Process`] runs a [`Program`]. No process is left behind, whatever happens to this one:
//!
//! * Each program leads a process group of its own, so that what it starts ends with it.
//! * A process that is dropped has its standard input closed and gets a moment to end by itself; then its group is asked
//!   to end, then killed. [`settle`] waits for that.
//! * If this process is killed, a *guard*, a shell that waits for its standard input to close, kills the groups that are
//!   left; and a Linux or FreeBSD sends the programs themselves a death signal. That signal is sent when the *thread* that
//!   started a program ends, so one thread starts all of them and lives as long as this process.
//!
//! What a program starts in yet another process group or session, as a daemon does, is out of reach.
//!
//! A [`Workspace`] is a copy of a template folder for one process to work in, removed at its end.
//!
//! ```
//! use retrace_process::{Process, Program};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let mut cat = Process::spawn(&Program::new("cat")).await?;
//! let (mut stdin, mut stdout) = cat.take_pipes().expect("nobody else took them");
//! stdin.write_all(b"hello").await?;
//! drop(stdin);
//! let mut echo = String::new();
//! stdout.read_to_string(&mut echo).await?;
//! assert_eq!(echo, "hello");
//! assert!(cat.end().await.success());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod environment;
mod error;
mod guard;
mod keeper;
mod process;
mod program;
mod removal;
mod shown;
mod stderr_tail;
mod system;
mod workspace;
mod workspaces;

pub use error::{ProcessError, WorkspaceError};
pub use keeper::settle;
pub use process::{Process, Stdin, Stdout};
pub use program::Program;
pub use shown::{Hidden, escaped};
pub use workspace::Workspace;
