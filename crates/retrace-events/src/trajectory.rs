//! A recording read once for what a verification asks of it: its actions, where it can be cut, what was executed.

use std::collections::HashMap;
use std::sync::Arc;

use crate::action::Action;
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
        let actions = pairing.executed().map(|(call, answer)| RecordedAction {
            action: Action::of(call.call, answer.result),
            issued_at: call.event,
            answered_at: answer.event,
            results: Arc::clone(&recording.events[answer.event]),
            result_idx: answer.index,
        });
        let mut actions: Vec<_> = actions.collect();
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

    /// What the agent was at, where the recording says so.
    pub fn task(&self) -> Option<&str> {
        self.recording.header.task.as_deref()
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.recording.header.id
    }

    /// The actions, in the order they were answered; those answered by one event in the order issued.
    pub fn actions(&self) -> &[RecordedAction] {
        &self.actions
    }

    /// How many responses had a call that was executed.
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
    let mut responses: Vec<_> = pairing.executed().map(|(call, _)| call.event).collect();
    responses.dedup();
    responses.len()
}

fn findings(pairing: &Pairing<'_>) -> Vec<PairingFinding> {
    let unanswered = pairing.calls.iter().filter(|call| call.answer.is_none());
    let unanswered =
        unanswered.map(|call| PairingFinding::UnansweredCall { event: call.event, name: call.call.name.to_string() });
    let orphans = pairing.orphans.iter();
    let orphans = orphans
        .map(|placed| PairingFinding::OrphanResult { event: placed.event, name: placed.result.name.to_string() });
    unanswered.chain(orphans).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::any_events::any_run;
    use crate::boundary::Boundary;

    proptest! {
        #[test]
        fn the_actions_before_a_cut_are_those_answered_before_it(recording in any_run()) {
            let trajectory = Arc::new(Trajectory::new(recording));
            let events: Vec<_> = trajectory.recording().events.iter().map(|event| &**event).collect();
            for point in trajectory.resumable_points() {
                let boundary = Boundary::new(&trajectory, point.cut).unwrap();
                // As if the run had ended there: what comes after the cut changes nothing of it.
                let pairing = pair(events[..point.cut].iter().copied());
                let mut before: Vec<_> = pairing.executed().collect();
                before.sort_by_key(|(_, answer)| answer.event);
                prop_assert_eq!(boundary.executed(), before.len());
                prop_assert_eq!(boundary.actions().len(), before.len());
                for (recorded, (call, answer)) in boundary.actions().iter().zip(before) {
                    prop_assert_eq!((recorded.issued_at, recorded.answered_at), (call.event, answer.event));
                    prop_assert_eq!(&recorded.action, &Action::of(call.call, answer.result));
                    prop_assert!(std::ptr::eq(recorded.result(), answer.result));
                }
            }
        }

        #[test]
        fn what_was_executed_is_a_set_of_signatures_and_of_tools(recording in any_run()) {
            let trajectory = Trajectory::new(recording);
            let actions = trajectory.actions();
            for executed in 0..=actions.len() {
                let signatures: HashSet<_> = actions[..executed].iter().map(|a| a.action.signature()).collect();
                let tools: HashSet<_> = actions[..executed].iter().map(|a| a.action.name()).collect();
                for recorded in actions {
                    let signature = recorded.action.signature();
                    prop_assert_eq!(trajectory.has_executed(signature, executed), signatures.contains(signature));
                    let tool = recorded.action.name();
                    prop_assert_eq!(trajectory.has_used(tool, executed), tools.contains(tool));
                }
                let never = Signature::of("logout", "{}");
                prop_assert!(!trajectory.has_executed(&never, executed));
                prop_assert!(!trajectory.has_used("logout", executed));
            }
        }

        #[test]
        fn every_call_is_an_action_or_the_agents_own_or_a_finding(recording in any_run()) {
            let trajectory = Trajectory::new(recording);
            let events = &trajectory.recording().events;
            let pairing = pair(events.iter().map(|event| &**event));
            let n_own = pairing.answered().filter(|(_, answer)| answer.result.own).count();
            let n_calls: usize = events.iter().map(|event| event.tool_calls().count()).sum();
            let results = events.iter().map(|event| match &**event {
                Event::ToolResults(round) => round.results.len(),
                _ => 0,
            });
            let unanswered = |finding: &&PairingFinding| matches!(finding, PairingFinding::UnansweredCall { .. });
            let n_unanswered = trajectory.findings().iter().filter(unanswered).count();
            let n_orphans = trajectory.findings().len() - n_unanswered;
            prop_assert_eq!(trajectory.actions().len() + n_own + n_unanswered, n_calls);
            prop_assert_eq!(trajectory.actions().len() + n_own + n_orphans, results.sum::<usize>());
            let rounds: HashSet<_> = trajectory.actions().iter().map(|recorded| recorded.issued_at).collect();
            prop_assert_eq!(trajectory.n_rounds(), rounds.len());
        }
    }
}
