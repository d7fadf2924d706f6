//! Runs what waits for others, until it is done or the user has had enough.

use anyhow::{Context, Result};

/// The user stopped the program.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Runs to the end, or until Ctrl-C; then everything that was started is put down.
pub(crate) fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("failed to start the threads of the program")?;
    let done = runtime.block_on(async {
        tokio::select! {
            done = work => done,
            // Without a signal to wait for, Ctrl-C ends the program as it does any other.
            Ok(()) = tokio::signal::ctrl_c() => Err(Interrupted.into()),
        }
    });
    drop(runtime);
    // Programs are given a moment to end, and their workspaces are removed.
    retrace_process::settle();
    done
}
