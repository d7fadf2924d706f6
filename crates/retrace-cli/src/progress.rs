//! The progress of a verification, on stderr when it is a terminal.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use retrace_report::counted;
use retrace_verifier::Progress;

use crate::output::tell;

/// Draws what a verification tells.
pub(crate) struct Bar {
    bar: ProgressBar,
    n_ended: AtomicUsize,
    n_failed: AtomicUsize,
}

impl Bar {
    /// A bar where there is a terminal to draw it on, else nothing.
    pub(crate) fn new() -> Self {
        let target = if stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style =
            ProgressStyle::with_template("{bar:30} {pos}/{len} rollouts, {msg} failed, {elapsed} so far, {eta} left");
        let bar = ProgressBar::with_draw_target(None, target);
        let bar = bar.with_style(style.expect("the template is well formed")).with_message("0");
        Self { bar, n_ended: AtomicUsize::new(0), n_failed: AtomicUsize::new(0) }
    }

    /// Draws one thing that has happened.
    pub(crate) fn draw(&self, progress: &Progress) {
        match progress {
            Progress::Planned { n_rollouts, .. } => self.bar.set_length(*n_rollouts as u64),
            Progress::NotNeeded { n_rollouts } => {
                self.bar.set_length(self.bar.length().unwrap_or(0).saturating_sub(*n_rollouts as u64));
            }
            Progress::RolledOut { end, .. } => {
                if end.is_failure() {
                    let n_failed = self.n_failed.fetch_add(1, Ordering::Relaxed) + 1;
                    self.bar.set_message(n_failed.to_string());
                }
                self.n_ended.fetch_add(1, Ordering::Relaxed);
                self.bar.inc(1);
            }
            _ => {}
        }
    }

    /// Tells something, with the bar out of the way.
    pub(crate) fn above(&self, tell: impl FnOnce()) {
        self.bar.suspend(tell);
    }

    /// Takes the bar away and says how long it took.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
        let seconds = self.bar.elapsed().as_secs_f64();
        let n_failed = self.n_failed.load(Ordering::Relaxed);
        let n_ended = self.n_ended.load(Ordering::Relaxed);
        tell(&format!("{} in {seconds:.1} s, {n_failed} of them failed", counted(n_ended, "rollout", "rollouts")));
    }
}
