//! A recording read once for what a verification asks of it: its actions, where it can be cut, what was executed.

use std::collections::HashMap;
use std::sync::Arc;

use crate::action::{Action, answered};
use crate::cuts::{ChosenCuts, ResumablePoint, Spacing, points};
use crate::event::{Event, ToolResult};
use crate::pairing::{Pairing, pair};
use crate::recording::Recording;
use crate::signature::Signature;

/// A recording with its actions, worked out in one pass and shared by all its boundaries.
#[derive(Clone, Debug)]
pub struct Trajectory {
    recording: Recording,
    actions: Vec<RecordedAction>,
    points: Vec<ResumablePoint>,
    n_rounds: usize,
    first_execution: HashMap<Signature, usize>,
    first_use: HashMap<String, usize>,
    findings: Vec<PairingFinding>,
}

/// An action of a recording, with its place and its result.
#[derive(Clone, Debug)]
pub struct RecordedAction {
    /// The call and how it went.
    pub action: Action,
    /// The index of the response that issued the call.
    pub issued_at: usize,
    /// The index of the `tool_results` event that answered it.
    pub answered_at: usize,
    results: Arc<Event>,
    result_idx: usize,
}

/// What does not pair in a recording. None of it is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairingFinding {
    /// A call that was never answered; it is no action.
    UnansweredCall {
        /// The index of its response.
        event: usize,
        /// The tool.
        name: String,
    },
    /// A result that answers no call; it is skipped.
    OrphanResult {
        /// The index of its `tool_results` event.
        event: usize,
        /// The tool.
        name: String,
    },
}

impl RecordedAction {
    /// The result that answered the call.
    pub fn result(&self) -> &ToolResult {
        let Event::ToolResults(round) = &*self.results else {
            unreachable!("a recorded action is made from a `tool_results` event");
        };
        &round.results[self.result_idx]
    }
}

impl Trajectory {
    /// Reads the actions of a recording, in time linear in its length.
    pub fn new(recording: Recording) -> Self {
        let pairing = pair(recording.events.iter().map(|event| &**event));
        let points = points(recording.events.iter().map(|event| &**event), &pairing);
        let mut actions: Vec<_> = answered(&pairing)
            .filter_map(|(call, result)| {
                let answer = call.answer?;
                Some(RecordedAction {
                    action: Action::of(call.call, result),
                    issued_at: call.event,
                    answered_at: answer.event,
                    results: Arc::clone(&recording.events[answer.event]),
                    result_idx: answer.index,
                })
            })
            .collect();
        let n_rounds = rounds(&pairing);
        let findings = findings(&pairing);
        // In the order they were executed, so that the actions before a cut are a prefix; the sort is stable, so
        // actions of one round stay in the order issued.
        actions.sort_by_key(|action| action.answered_at);
        let (mut first_execution, mut first_use) = (HashMap::new(), HashMap::new());
        for (index, recorded) in actions.iter().enumerate() {
            first_execution.entry(recorded.action.signature().clone()).or_insert(index);
            if !first_use.contains_key(recorded.action.name()) {
                first_use.insert(recorded.action.name().to_owned(), index);
            }
        }
        Self { recording, actions, points, n_rounds, first_execution, first_use, findings }
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.recording.header.id
    }

    /// The actions, in the order they were answered; those answered by one event in the order issued.
    pub fn actions(&self) -> &[RecordedAction] {
        &self.actions
    }

    /// How many responses had a call that was answered.
    pub fn n_rounds(&self) -> usize {
        self.n_rounds
    }

    /// Every point at which it can be resumed, in order.
    pub fn resumable_points(&self) -> &[ResumablePoint] {
        &self.points
    }

    /// What does not pair.
    pub fn findings(&self) -> &[PairingFinding] {
        &self.findings
    }

    /// Where it is cut by default.
    pub fn choose_cuts(&self, spacing: &Spacing) -> ChosenCuts {
        spacing.choose(&self.points, self.actions.len())
    }

    /// Whether a call was among the first `executed` actions.
    pub fn has_executed(&self, signature: &Signature, executed: usize) -> bool {
        self.first_execution.get(signature).is_some_and(|&first| first < executed)
    }

    /// Whether a tool was called among the first `executed` actions.
    pub fn has_used(&self, tool: &str, executed: usize) -> bool {
        self.first_use.get(tool).is_some_and(|&first| first < executed)
    }
}

fn rounds(pairing: &Pairing<'_>) -> usize {
    let mut responses: Vec<_> = answered(pairing).map(|(call, _)| call.event).collect();
    responses.dedup();
    responses.len()
}

fn findings(pairing: &Pairing<'_>) -> Vec<PairingFinding> {
    let unanswered = pairing.calls.iter().filter(|call| call.answer.is_none());
    let unanswered =
        unanswered.map(|call| PairingFinding::UnansweredCall { event: call.event, name: call.call.name.clone() });
    let orphans = pairing.orphans.iter();
    let orphans =
        orphans.map(|placed| PairingFinding::OrphanResult { event: placed.event, name: placed.result.name.clone() });
    unanswered.chain(orphans).collect()
}
