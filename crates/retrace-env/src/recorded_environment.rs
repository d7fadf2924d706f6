//! The recorded environment: answers out of the recording.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_core::future::BoxFuture;
use retrace_events::{Boundary, Signature, ToolSpec, Trajectory};

use crate::derived_tools::derived_tools;
use crate::environment::{Environment, RestoreError, Restored};
use crate::per_recording::PerRecording;
use crate::replay::Replay;
use crate::text::{MAX_TEXT, shorten};
use crate::tool::{CallError, ToolOutput};
use crate::toolbox::{Dispatch, Toolbox};

/// Answers a call out of the recording that its boundary lies in, when that very call was made there.
///
/// Of several occurrences of a [signature](Signature) the next one after the boundary answers that the rollout has not
/// used yet; when there is none, the last one does. Any other call ends the rollout with [`CallError::OffTheRecord`].
/// Arguments are not checked: a recorded call was made against the real tools, and what those would have said to another
/// one is not on the record. Only a tool that is missing from a recording's own list is known to be not found.
///
/// It rebuilds no state and lends results from after the boundary, so a read after a write may get an old answer.
///
/// The tools are those of the recording's header or, where it has none, [derived](derived_tools) from its calls.
#[derive(Default)]
pub struct RecordedEnvironment {
    records: PerRecording<Record>,
}

impl RecordedEnvironment {
    /// An environment for any recordings.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Environment for RecordedEnvironment {
    /// There is no world without a recording.
    fn open(&self) -> BoxFuture<'_, Result<Toolbox, RestoreError>> {
        let source = "it answers out of recordings, and has no world to start from".into();
        Box::pin(std::future::ready(Err(RestoreError::Environment { source })))
    }

    fn restore<'a>(&'a self, boundary: &'a Boundary) -> BoxFuture<'a, Result<Restored, RestoreError>> {
        Box::pin(async move {
            let trajectory = boundary.trajectory();
            let record = self.records.of(trajectory, || Record::of(trajectory));
            let specs = Arc::clone(&record.specs);
            let answers = RecordedAnswers {
                record,
                trajectory: Arc::clone(trajectory),
                executed: boundary.executed(),
                n_used: Mutex::default(),
            };
            Ok(Restored { toolbox: Toolbox::over(specs, answers), replay: Replay::default() })
        })
    }
}

/// Where the calls of a recording stand, shared by all its rollouts.
struct Record {
    specs: Arc<[ToolSpec]>,
    /// The indices of the actions of each signature, in order; never empty.
    occurrences: HashMap<Signature, Vec<usize>>,
}

impl Record {
    fn of(trajectory: &Trajectory) -> Self {
        let recorded = &trajectory.recording().header.tools;
        let specs = if recorded.is_empty() { derived_tools(trajectory).into() } else { recorded.as_slice().into() };
        let mut occurrences: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, recorded) in trajectory.actions().iter().enumerate() {
            occurrences.entry(recorded.action.signature().clone()).or_default().push(index);
        }
        Self { specs, occurrences }
    }
}

/// The answers of one rollout.
struct RecordedAnswers {
    record: Arc<Record>,
    trajectory: Arc<Trajectory>,
    /// The actions before the boundary.
    executed: usize,
    /// How often the rollout has made each call.
    n_used: Mutex<HashMap<Signature, usize>>,
}

impl RecordedAnswers {
    /// The index of the action that answers this call now.
    fn next(&self, signature: Signature) -> Option<usize> {
        let occurrences = self.record.occurrences.get(&signature)?;
        let mut n_used = self.n_used.lock().unwrap_or_else(PoisonError::into_inner);
        let n_used = n_used.entry(signature).or_default();
        let unused = occurrences.partition_point(|&index| index < self.executed) + *n_used;
        *n_used += 1;
        occurrences.get(unused).or(occurrences.last()).copied()
    }

    fn is_known_to_be_missing(&self, name: &str) -> bool {
        let tools = &self.trajectory.recording().header.tools;
        !tools.is_empty() && tools.iter().all(|tool| tool.name != name)
    }
}

impl Dispatch for RecordedAnswers {
    fn dispatch<'a>(&'a self, name: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        Box::pin(async move {
            let signature = Signature::of(name, arguments);
            let call = shorten(&signature.to_string(), MAX_TEXT);
            if let Some(index) = self.next(signature) {
                let result = self.trajectory.actions()[index].result();
                let (content, error) = (result.content.to_vec(), result.error.clone());
                return Ok(ToolOutput { content, outcome: result.outcome, error });
            }
            if self.is_known_to_be_missing(name) {
                return Ok(ToolOutput::not_found(name));
            }
            Err(CallError::OffTheRecord { call })
        })
    }
}

#[cfg(test)]
mod tests {
    use retrace_events::{Event, Header, Outcome, Recording};
    use serde_json::json;

    use super::*;
    use crate::testing::{after, calls, spec};

    const OK: Outcome = Outcome::Ok;

    fn shop() -> Arc<Trajectory> {
        calls(&[
            ("look", r#"{"item":"tea"}"#, OK, "7 left"),
            ("look", r#"{"item":"rice"}"#, OK, "3 left"),
            ("look", r#"{"item":"tea"}"#, OK, "6 left"),
            ("sell", "", Outcome::NotFound, "no such tool"),
            ("look", r#"{"item":"tea"}"#, Outcome::Error, "closed"),
        ])
    }

    fn with_tools(trajectory: &Trajectory, tools: Vec<ToolSpec>) -> Arc<Trajectory> {
        let events = trajectory.recording().events.iter().map(|event| Event::clone(event));
        Arc::new(Trajectory::new(Recording::new(Header { tools, ..Header::new("shop-1") }, events)))
    }

    fn restore(environment: &RecordedEnvironment, boundary: &Boundary) -> Toolbox {
        let restored = pollster::block_on(environment.restore(boundary)).unwrap();
        assert_eq!(restored.replay, Replay::default());
        restored.toolbox
    }

    fn call(toolbox: &Toolbox, name: &str, arguments: &str) -> Result<ToolOutput, CallError> {
        pollster::block_on(toolbox.call(name, arguments))
    }

    fn texts(toolbox: &Toolbox, calls: &[&str]) -> Vec<String> {
        calls.iter().map(|arguments| call(toolbox, "look", arguments).unwrap().text()).collect()
    }

    #[test]
    fn the_next_unused_occurrence_answers_and_then_the_last() {
        let trajectory = shop();
        let (tea, rice) = (r#"{"item":"tea"}"#, r#"{"item":"rice"}"#);
        let environment = RecordedEnvironment::new();
        let after_one = restore(&environment, &after(&trajectory, 1));
        assert_eq!(texts(&after_one, &[tea, rice, tea, tea]), ["6 left", "3 left", "closed", "closed"]);
        // Of the other boundary one occurrence of each lies ahead; the rice was looked at before it, and answers all the same.
        let after_two = restore(&environment, &after(&trajectory, 3));
        assert_eq!(texts(&after_two, &[tea, tea, rice, rice]), ["closed", "closed", "3 left", "3 left"]);
        assert_eq!(call(&after_two, "look", tea).unwrap().outcome, Outcome::Error);
    }

    #[test]
    fn rollouts_use_up_nothing_of_each_other() {
        let (trajectory, environment) = (shop(), RecordedEnvironment::new());
        let toolboxes = [1, 1, 1].map(|n_rounds| restore(&environment, &after(&trajectory, n_rounds)));
        for toolbox in &toolboxes {
            assert_eq!(texts(toolbox, &[r#"{ "item" : "tea" }"#]), ["6 left"]);
        }
    }

    #[test]
    fn another_call_is_off_the_record_and_named() {
        let toolbox = restore(&RecordedEnvironment::new(), &after(&shop(), 1));
        for (name, arguments, text) in [
            ("look", r#"{"item": "coffee"}"#, r#"look({"item":"coffee"})"#),
            ("look", "", "look({})"),
            ("look", "{", "look({)"),
            ("order", "{}", "order({})"),
        ] {
            let error = call(&toolbox, name, arguments).unwrap_err();
            assert_eq!(error, CallError::OffTheRecord { call: text.to_owned() });
        }
        let long = format!(r#"{{"item":"{}"}}"#, "x".repeat(10_000));
        assert!(call(&toolbox, "look", &long).unwrap_err().to_string().len() < 300);
    }

    #[test]
    fn a_tool_missing_from_the_recordings_own_list_is_not_found_unless_its_call_is_on_record() {
        let tools = vec![spec("look", json!({"type": "object", "required": ["place"]}))];
        let trajectory = with_tools(&shop(), tools.clone());
        let toolbox = restore(&RecordedEnvironment::new(), &after(&trajectory, 1));
        assert_eq!(**toolbox.specs(), tools[..]);
        assert_eq!(call(&toolbox, "order", "{}").unwrap(), ToolOutput::not_found("order"));
        assert_eq!(call(&toolbox, "sell", "{}").unwrap().text(), "no such tool");
        // It was made against the real tool, whatever the schema says of it.
        assert_eq!(texts(&toolbox, &[r#"{"item":"tea"}"#]), ["6 left"]);
    }

    #[test]
    fn derived_tools_stand_in_for_a_list_and_are_shared() {
        let (trajectory, environment) = (shop(), RecordedEnvironment::new());
        let (a, b) = (restore(&environment, &after(&trajectory, 1)), restore(&environment, &after(&trajectory, 2)));
        assert_eq!(**a.specs(), derived_tools(&trajectory)[..]);
        assert!(Arc::ptr_eq(a.specs(), b.specs()));
    }

    #[test]
    fn recordings_of_one_id_answer_for_themselves() {
        let environment = RecordedEnvironment::new();
        for text in ["1", "2", "3"] {
            let trajectory = calls(&[("look", "{}", OK, text), ("look", "{}", OK, text)]);
            assert_eq!(texts(&restore(&environment, &after(&trajectory, 1)), &["{}"]), [text]);
        }
    }
}
