//! Runs what waits for others, until it is done or the user has had enough.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result};
use retrace_verifier::StopSignal;

use crate::output;

/// How long work that cannot be interrupted may take when everything else has ended.
const LAST_WORK: Duration = Duration::from_secs(10);

/// The user stopped the program.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Runs to the end, or until Ctrl-C; then everything that was started is put down.
pub(crate) fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    on_runtime(unless_stopped(work))
}

/// As [`run`], but the first Ctrl-C only asks the work to stop, which then ends in its own time; a second one puts it down.
pub(crate) fn run_until_asked<T>(signal: &StopSignal, work: impl Future<Output = Result<T>>) -> Result<T> {
    on_runtime(async {
        let mut work = pin!(work);
        tokio::select! {
            done = &mut work => return done,
            Ok(()) = stopped() => signal.stop(),
        }
        output::note("stopping: what is at work is given a moment to finish; once more stops at once");
        unless_stopped(work).await
    })
}

fn on_runtime<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("failed to start the threads of the program")?;
    let done = runtime.block_on(work);
    // What still blocks a thread, such as a folder that is being copied, is not waited for without end.
    runtime.shutdown_timeout(LAST_WORK);
    // Programs are given a moment to end, and their workspaces are removed.
    retrace_process::settle();
    done
}

async fn unless_stopped<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        done = work => done,
        // Without signals to wait for, they end the program as they do any other.
        Ok(()) = stopped() => Err(Interrupted.into()),
    }
}

/// Until the user, or who runs the program, wants it to stop.
#[cfg(unix)]
async fn stopped() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let [mut interrupt, mut terminate, mut hangup] =
        [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?];
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}

/// Until the user wants it to stop.
#[cfg(not(unix))]
async fn stopped() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
