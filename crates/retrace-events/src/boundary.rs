//! Boundaries: the points of a recording at which agents are resumed.

use std::sync::Arc;

use crate::history::History;
use crate::quote::Quotable;
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
    "recording `{}` cannot be cut after {cut} of its {n_events} events: a cut lies right after a `tool_results` event \
     that leaves no call of the newest response waiting",
    Quotable(.recording)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Header, Outcome, Recording, ToolCall, ToolResult};

    /// A request and then rounds of one call each: resumable after 3, 5, 7 … events.
    fn trajectory(id: &str, n_rounds: usize) -> Arc<Trajectory> {
        let call = ToolCall::new("c", "check", "{}");
        let result = ToolResult::text_result(&call, Outcome::Ok, "");
        let round = [Event::calls([call]), Event::results([result])];
        let events = [Event::request("go")].into_iter().chain(std::iter::repeat_n(round, n_rounds).flatten());
        Arc::new(Trajectory::new(Recording::new(Header::new(id), events)))
    }

    #[test]
    fn a_cut_that_is_none_names_the_nearest_on_either_side() {
        let nearest = |n_rounds, cut| Boundary::new(&trajectory("r", n_rounds), cut).unwrap_err().nearest;
        assert_eq!(nearest(3, 0), [3]);
        assert_eq!(nearest(3, 2), [3]);
        assert_eq!(nearest(3, 4), [3, 5]);
        assert_eq!(nearest(3, 6), [5, 7]);
        assert_eq!(nearest(3, 8), [7]);
        assert_eq!(nearest(3, usize::MAX), [7]);
        assert_eq!(nearest(0, 1), [0; 0]);
    }

    #[test]
    fn an_error_escapes_the_id_of_the_recording() {
        let error = Boundary::new(&trajectory("run\u{1b}[2J", 1), 2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "recording `run\\u{1b}[2J` cannot be cut after 2 of its 3 events: a cut lies right after a `tool_results` \
             event that leaves no call of the newest response waiting"
        );
    }

    #[test]
    fn histories_of_a_recording_share_its_events() {
        let trajectory = trajectory("r", 3);
        let boundary = Boundary::new(&trajectory, 5).unwrap();
        let history = boundary.history();
        assert_eq!((history.len(), boundary.executed(), boundary.cut()), (5, 2, 5));
        assert!(std::ptr::eq(history.shared().as_ptr(), trajectory.recording().events.as_ptr()));
        assert!(boundary.has_executed(&Signature::of("check", "{ }")));
        assert!(!boundary.has_executed(&Signature::of("check", "{\"room\":7}")));
    }
}
