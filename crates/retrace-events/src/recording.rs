//! One recorded run of an agent: a header and the events.

use std::sync::Arc;

use crate::event::{Event, Outcome, OutcomeSource};
use crate::outcome_rule::OutcomeRule;
use crate::raw::Extra;

/// The version of the recording format that this crate reads and writes.
pub const FORMAT_VERSION: u64 = 1;

/// One agent run.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Whose run it is.
    pub header: Header,
    /// The events, in the order the agent saw them; shared by every history cut from it.
    pub events: Arc<[Arc<Event>]>,
}

/// The first line of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// Names the recording in reports.
    pub id: String,
    /// The agent's own system prompt. It is not part of the history, and no strategy sees it.
    pub instructions: Option<String>,
    /// The model that was recorded.
    pub model: Option<String>,
    /// The tools the agent had; empty when the source does not say.
    pub tools: Vec<ToolSpec>,
    /// Fields retrace does not know.
    pub extra: Extra,
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub parameters: serde_json::Value,
    /// Fields retrace does not know.
    pub extra: Extra,
}

impl Recording {
    /// A recording of these events.
    pub fn new(header: Header, events: impl IntoIterator<Item = Event>) -> Self {
        Self { header, events: events.into_iter().map(Arc::new).collect() }
    }

    /// Lets a rule of the user decide the outcomes that the source could not tell, and only those.
    ///
    /// Returns how many results the rule looked at.
    pub fn apply_outcome_rule(&mut self, rule: &OutcomeRule) -> usize {
        let mut judged = 0;
        let undecided = |event: &Event| match event {
            Event::ToolResults(round) => round.results.iter().any(|r| r.outcome_from == Some(OutcomeSource::Unknown)),
            _ => false,
        };
        let events = self.events.iter().map(|event| {
            if !undecided(event) {
                return Arc::clone(event);
            }
            let mut event = Event::clone(event);
            if let Event::ToolResults(round) = &mut event {
                for result in round.results.iter_mut().filter(|r| r.outcome_from == Some(OutcomeSource::Unknown)) {
                    judged += 1;
                    result.outcome = if rule.is_failure(&result.text()) { Outcome::Error } else { Outcome::Ok };
                    result.outcome_from = Some(OutcomeSource::Rule);
                }
            }
            Arc::new(event)
        });
        self.events = events.collect();
        judged
    }
}

impl Header {
    /// A header with nothing but an id.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }
}

impl ToolSpec {
    /// The schema of a tool of which nothing is known: any object.
    pub fn any_arguments() -> serde_json::Value {
        serde_json::json!({"type": "object"})
    }
}
