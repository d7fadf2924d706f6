//! What a strategy kept, written as what is the same as in the recording and what is new.

use std::collections::HashMap;
use std::sync::Arc;

use retrace_events::{Event, History};
use serde::{Deserialize, Serialize};

/// A compacted history beside the recording it was made from.
///
/// Most events of most compacted histories are events of the recording, so only the others are written out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Kept(Vec<Piece>);

/// Some events of a compacted history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Piece {
    /// The events of the recording from one index to before another.
    Same(usize, usize),
    /// An event that is not in the recording.
    New(Arc<Event>),
}

/// A compacted history that refers to events that the recording does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("events {from} to {to} of a recording of {n_events}")]
pub struct NotThere {
    from: usize,
    to: usize,
    n_events: usize,
}

impl Kept {
    /// Takes a history apart.
    pub fn of(history: &History, recording: &[Arc<Event>]) -> Self {
        let places: HashMap<*const Event, usize> =
            recording.iter().enumerate().map(|(index, event)| (Arc::as_ptr(event), index)).collect();
        let mut pieces: Vec<Piece> = Vec::new();
        for event in history.iter() {
            match (places.get(&Arc::as_ptr(event)), pieces.last_mut()) {
                (Some(&index), Some(Piece::Same(_, end))) if *end == index => *end += 1,
                (Some(&index), _) => pieces.push(Piece::Same(index, index + 1)),
                (None, _) => pieces.push(Piece::New(Arc::clone(event))),
            }
        }
        Self(pieces)
    }

    /// Puts the history together again.
    ///
    /// # Errors
    /// When the recording is too short for it.
    pub fn history(&self, recording: &[Arc<Event>]) -> Result<History, NotThere> {
        let mut events = Vec::new();
        for piece in &self.0 {
            match *piece {
                Piece::Same(from, to) => {
                    let n_events = recording.len();
                    events.extend_from_slice(recording.get(from..to).ok_or(NotThere { from, to, n_events })?);
                }
                Piece::New(ref event) => events.push(Arc::clone(event)),
            }
        }
        Ok(History::new(events))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_history_is_put_together_as_it_was(n in 0_usize..12, kept in vec((any::<bool>(), 0_usize..12), 0..20)) {
            let recording: Vec<_> = (0..n).map(|index| Arc::new(Event::request(index.to_string()))).collect();
            let history = kept.into_iter().map(|(is_new, index)| match recording.get(index) {
                Some(event) if !is_new => Arc::clone(event),
                _ => Arc::new(Event::request("new")),
            });
            let history = History::new(history.collect::<Vec<_>>());
            let written = serde_json::to_string(&Kept::of(&history, &recording)).unwrap();
            let read: Kept = serde_json::from_str(&written).unwrap();
            let again = read.history(&recording).unwrap();
            prop_assert_eq!(&again, &history);
            prop_assert_eq!(again.sent_hash(), history.sent_hash());
        }
    }

    #[test]
    fn what_stands_in_the_recording_is_not_written_again() {
        let recording: Vec<_> = ["a", "b", "c", "d"].map(|text| Arc::new(Event::request(text))).to_vec();
        let summary = Arc::new(Event::request("so far"));
        let history = History::new([&[summary], &recording[1..]].concat());
        let written = serde_json::to_string(&Kept::of(&history, &recording)).unwrap();
        assert_eq!(written, r#"[{"new":{"type":"request","content":"so far"}},{"same":[1,4]}]"#);
    }

    #[test]
    fn an_event_that_is_not_there_is_an_error_and_no_panic() {
        for kept in [r#"[{"same":[0,2]}]"#, r#"[{"same":[2,1]}]"#, r#"[{"same":[18446744073709551615,3]}]"#] {
            let kept: Kept = serde_json::from_str(kept).unwrap();
            assert!(kept.history(&[Arc::new(Event::request("a"))]).is_err());
        }
    }
}
