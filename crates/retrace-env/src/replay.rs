//! Replay: recorded calls executed again.

use std::hash::{DefaultHasher, Hash, Hasher};

use retrace_events::{Action, Boundary, Outcome, OutcomeSource, RecordedAction, Trajectory, with_causes};

use crate::digests::Digests;
use crate::environment::RestoreError;
use crate::text::{MAX_TEXT, shorten, where_they_part};
use crate::tool::ToolOutput;
use crate::toolbox::Toolbox;

/// How faithfully a world was rebuilt: what the recorded calls before the boundary answered when they were executed
/// again.
///
/// A call that answers another text than it did is no error, since a clock or an id may be in it; but the history that
/// the agent resumes from then speaks of another world than the one it acts on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Calls that were executed again.
    pub n_calls: usize,
    /// Those of them that answered the recorded text.
    pub n_same_text: usize,
    /// The first that did not.
    pub first_difference: Option<Difference>,
    /// What the answers were, so that two restores can be compared.
    pub(crate) digests: Digests,
}

/// A call whose text differs from the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The call, cut short.
    pub call: String,
    /// Which action of the recording it is, from 1.
    pub position: usize,
    /// The recorded text where the two part, cut short.
    pub recorded: String,
    /// The text of now where the two part, cut short.
    pub replayed: String,
}

/// Executes the actions before a boundary in a toolbox that is in the state its recording started from, one after the
/// other, in the order they were executed; those of one round in the order issued.
///
/// A recorded failure may fail again in any way. Where the recording could not tell whether a call worked, the same text
/// is taken for the same outcome.
///
/// # Errors
/// When a call that worked now fails or the reverse, or has no result.
pub async fn replay(boundary: &Boundary, toolbox: &Toolbox) -> Result<Replay, RestoreError> {
    let mut replay = Replay::default();
    for recorded in boundary.actions() {
        replay.execute(boundary.trajectory().id(), recorded, toolbox).await?;
    }
    Ok(replay)
}

/// How far a recording replays, from its first action to its last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Calls that the recording has.
    pub n_actions: usize,
    /// Calls that were executed again; fewer where one had no result.
    pub n_calls: usize,
    /// Those of them that worked if they had worked, and failed if they had failed.
    pub n_same_outcome: usize,
    /// Those of them that answered the recorded text.
    pub n_same_text: usize,
    /// The first call with another outcome: which action it is, from 1, and what happened.
    pub first_other_outcome: Option<(usize, String)>,
    /// The first call with another text.
    pub first_difference: Option<Difference>,
    /// Why the replay broke off, if it did.
    pub broke_off: Option<String>,
}

/// Executes all actions of a recording in a toolbox that is in the state it started from, as [`replay`] does, but goes on
/// where an outcome is another one. Behind such a call the world is no longer the recorded one.
pub async fn compare(trajectory: &Trajectory, toolbox: &Toolbox) -> Comparison {
    let mut replay = Replay::default();
    let mut comparison = Comparison { n_actions: trajectory.actions().len(), ..Comparison::default() };
    for (recorded, position) in trajectory.actions().iter().zip(1..) {
        match replay.execute(trajectory.id(), recorded, toolbox).await {
            Ok(()) => comparison.n_same_outcome += 1,
            Err(error @ RestoreError::ReplayMismatch { .. }) => {
                comparison.first_other_outcome.get_or_insert_with(|| (position, error.to_string()));
            }
            Err(error) => {
                comparison.broke_off = Some(with_causes(&error));
                break;
            }
        }
        comparison.n_calls = position;
    }
    Comparison { n_same_text: replay.n_same_text, first_difference: replay.first_difference, ..comparison }
}

impl Replay {
    /// Executes the next recorded action.
    pub(crate) async fn execute(
        &mut self,
        recording: &str,
        recorded: &RecordedAction,
        toolbox: &Toolbox,
    ) -> Result<(), RestoreError> {
        let action = &recorded.action;
        let position = self.n_calls + 1;
        let output = toolbox.call(action.name(), action.arguments()).await.map_err(|source| RestoreError::Call {
            recording: recording.to_owned(),
            call: call_text(action),
            position,
            source,
        })?;
        let (now, before) = (output.text(), recorded.result().text());
        let is_unknown = recorded.result().outcome_from == Some(OutcomeSource::Unknown);
        self.n_calls = position;
        if action.is_blocked() != output.outcome.is_blocked() && !(is_unknown && now == before) {
            return Err(RestoreError::ReplayMismatch {
                recording: recording.to_owned(),
                call: call_text(action),
                position,
                recorded: action.outcome(),
                replayed: output.outcome,
                text: shorten(&now, MAX_TEXT),
            });
        }
        self.digests.push(digest(output.outcome, &now));
        if now == before {
            self.n_same_text += 1;
        } else if self.first_difference.is_none() {
            let (recorded, replayed) = where_they_part(&before, &now);
            self.first_difference = Some(Difference { call: call_text(action), position, recorded, replayed });
        }
        Ok(())
    }
}

/// The call as messages show it.
pub(crate) fn call_text(action: &Action) -> String {
    shorten(&action.signature().to_string(), MAX_TEXT)
}

/// A hash of an answer, the same for the whole of a process.
fn digest(outcome: Outcome, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (outcome, text).hash(&mut hasher);
    hasher.finish()
}

/// Whether two answers say the same.
pub(crate) fn is_same_answer(a: &ToolOutput, b: &ToolOutput) -> bool {
    a.outcome == b.outcome && a.text() == b.text()
}
