//! Boundaries: the points of a recording at which agents are resumed.

use std::sync::Arc;

use crate::history::History;
use crate::signature::Signature;
use crate::trajectory::{RecordedAction, Trajectory};

/// A point between two rounds of a recording, at which it can be resumed.
#[derive(Clone, Debug)]
pub struct Boundary {
    trajectory: Arc<Trajectory>,
    cut: usize,
    executed: usize,
}

/// A cut at which a recording cannot be resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "recording `{recording}` cannot be cut after {cut} of its {n_events} events: a cut lies right after a \
     `tool_results` event that leaves no call of the newest response waiting"
)]
pub struct NotResumable {
    /// The id of the recording.
    pub recording: String,
    /// The cut that was asked for.
    pub cut: usize,
    /// How many events the recording has.
    pub n_events: usize,
    /// The nearest points at which it can be cut, at most one on either side.
    pub nearest: Vec<usize>,
}

impl Boundary {
    /// The boundary after the first `cut` events.
    ///
    /// # Errors
    /// When the recording cannot be resumed there.
    pub fn new(trajectory: &Arc<Trajectory>, cut: usize) -> Result<Self, NotResumable> {
        let points = trajectory.resumable_points();
        match points.binary_search_by_key(&cut, |point| point.cut) {
            Ok(index) => Ok(Self { trajectory: Arc::clone(trajectory), cut, executed: points[index].executed }),
            Err(index) => Err(NotResumable {
                recording: trajectory.id().to_owned(),
                cut,
                n_events: trajectory.recording().events.len(),
                nearest: points[index.saturating_sub(1)..points.len().min(index + 1)].iter().map(|p| p.cut).collect(),
            }),
        }
    }

    /// The recording it lies in.
    pub fn trajectory(&self) -> &Arc<Trajectory> {
        &self.trajectory
    }

    /// Events before it.
    pub fn cut(&self) -> usize {
        self.cut
    }

    /// Actions before it.
    pub fn executed(&self) -> usize {
        self.executed
    }

    /// The raw history.
    pub fn history(&self) -> History {
        History::prefix(&self.trajectory.recording().events, self.cut)
    }

    /// The actions before it, in the order they were executed.
    pub fn actions(&self) -> &[RecordedAction] {
        &self.trajectory.actions()[..self.executed]
    }

    /// Whether a call was executed before it.
    pub fn has_executed(&self, signature: &Signature) -> bool {
        self.trajectory.has_executed(signature, self.executed)
    }
}
