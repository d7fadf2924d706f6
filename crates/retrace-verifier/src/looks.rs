//! Where a run may stop early: what has been seen after each recording.

use retrace_score::EarlyStop;

use crate::cell::Setup;
use crate::plan::Site;
use crate::schedule::{Outcome, Task};
use crate::settings::Settings;

/// The looks of a run that may stop early. A recording waits until the one before is done.
pub(crate) struct Looks {
    early: EarlyStop,
    /// The recording that is at work.
    recording: Option<usize>,
}

impl Looks {
    pub(crate) fn new(setup: &Setup, control: Option<&str>) -> Self {
        let judged = setup.strategies.keys().filter(|name| control != Some(name)).cloned();
        let Settings { horizon, judging, .. } = &setup.settings;
        Self { early: EarlyStop::new(judged, *horizon, judging.refetch_by), recording: None }
    }

    /// Whether a boundary is of the recording that is at work.
    pub(crate) fn lets(&self, site: usize, sites: &[Site]) -> bool {
        self.recording == Some(sites[site].recording)
    }

    /// Looks at what has come out before the recording of a boundary, all of which is done, and says whether that recording is
    /// to be run.
    pub(crate) fn look(&mut self, site: usize, task: &Task<'_>, outcome: &mut Outcome) -> bool {
        let sites = &task.sites;
        let recording = sites[site].recording;
        let first = (0..=site).rev().take_while(|&other| sites[other].recording == recording).last().unwrap_or(site);
        let n_seen = outcome.boundaries.len();
        outcome.finish(sites, first);
        self.early.add(&outcome.boundaries[n_seen..]);
        if task.books.run().is_some() {
            // They are in the folder, and nobody asks for them any more.
            outcome.boundaries.clear();
        }
        if self.early.is_over() {
            let left = sites[first..].chunk_by(|one, next| one.recording == next.recording);
            outcome.not_reached = left.map(|sites| sites[0].boundary.trajectory().id().to_owned()).collect();
            return false;
        }
        self.recording = Some(recording);
        true
    }
}
