//! The progress of a verification, on stderr when it is a terminal.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use retrace_verifier::Progress;

/// Draws what a verification tells.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar where there is a terminal to draw it on, else nothing.
    pub(crate) fn new() -> Self {
        let target = if stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style =
            ProgressStyle::with_template("{bar:30} {pos}/{len} rollouts, {msg} failed, {elapsed} so far, {eta} left");
        let bar = ProgressBar::with_draw_target(None, target);
        Self(bar.with_style(style.expect("the template is well formed")).with_message("0"))
    }

    /// Draws one thing that has happened.
    pub(crate) fn draw(&self, progress: &Progress) {
        match progress {
            Progress::Planned { n_rollouts, .. } => self.0.set_length(*n_rollouts as u64),
            Progress::NotNeeded { n_rollouts } => {
                self.0.set_length(self.0.length().unwrap_or(0).saturating_sub(*n_rollouts as u64));
            }
            Progress::RolledOut { end, .. } => {
                if end.is_failure() {
                    let n_failed = self.0.message().parse().unwrap_or(0_u64) + 1;
                    self.0.set_message(n_failed.to_string());
                }
                self.0.inc(1);
            }
            _ => {}
        }
    }
}

impl Bar {
    /// Takes the bar away and says how long it took.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
        let seconds = self.0.elapsed().as_secs_f64();
        eprintln!("{} rollouts in {seconds:.1} s, {} of them failed", self.0.position(), self.0.message());
    }
}
