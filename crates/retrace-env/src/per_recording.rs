//! What an environment works out once for each recording.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use retrace_events::Trajectory;

/// One `T` for each recording that is alive.
///
/// A recording is known by where it lies, never by its id, so that two of the same id never mix. The weak pointer keeps
/// that place from being given to another one.
pub(crate) struct PerRecording<T>(Mutex<HashMap<usize, Entry<T>>>);

struct Entry<T> {
    recording: Weak<Trajectory>,
    value: Arc<T>,
}

impl<T> PerRecording<T> {
    /// What there is of a recording, made if there is nothing yet.
    pub(crate) fn of(&self, trajectory: &Arc<Trajectory>, make: impl FnOnce() -> T) -> Arc<T> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Arc::as_ptr(trajectory).addr();
        if let Some(known) = entries.get(&place) {
            return Arc::clone(&known.value);
        }
        entries.retain(|_, entry| entry.recording.strong_count() > 0);
        let value = Arc::new(make());
        entries.insert(place, Entry { recording: Arc::downgrade(trajectory), value: Arc::clone(&value) });
        value
    }
}

impl<T> Default for PerRecording<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use retrace_events::{Header, Recording};

    use super::*;

    fn trajectory() -> Arc<Trajectory> {
        Arc::new(Trajectory::new(Recording::new(Header::new("same"), [])))
    }

    #[test]
    fn recordings_of_one_id_never_mix_even_when_one_takes_the_place_of_another() {
        let per_recording = PerRecording::default();
        let kept = trajectory();
        assert_eq!(*per_recording.of(&kept, || 0), 0);
        for n in 1..100 {
            // Dropped at once, so that an allocator would gladly give its place to the next.
            assert_eq!(*per_recording.of(&trajectory(), || n), n);
        }
        assert_eq!(*per_recording.of(&kept, || 100), 0);
    }

    #[test]
    fn what_belongs_to_a_dropped_recording_is_dropped() {
        let per_recording = PerRecording::default();
        let gone = Arc::downgrade(&per_recording.of(&trajectory(), || 1));
        per_recording.of(&trajectory(), || 2);
        assert_eq!(gone.strong_count(), 0);
    }
}
