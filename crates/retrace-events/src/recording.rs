//! One recorded run of an agent: a header and the events.

use std::sync::Arc;

use crate::event::{Event, Outcome, OutcomeSource, ToolResult};
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
    /// Names what the agent was at; several recordings may be of one task.
    pub task: Option<String>,
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

    /// Lets a rule of the user decide the outcomes that the source could not tell, and only those. Histories that were
    /// cut from the recording before keep the events as they were.
    ///
    /// Returns how many results the rule looked at.
    pub fn apply_outcome_rule(&mut self, rule: &OutcomeRule) -> usize {
        let undecided = |result: &ToolResult| result.outcome_from == Some(OutcomeSource::Unknown);
        let mut judged = 0;
        for event in Arc::make_mut(&mut self.events) {
            if !matches!(&**event, Event::ToolResults(round) if round.results.iter().any(undecided)) {
                continue;
            }
            let Event::ToolResults(round) = Arc::make_mut(event) else { continue };
            for result in round.results.iter_mut().filter(|result| undecided(result)) {
                judged += 1;
                result.outcome = if rule.is_failure(&result.text()) { Outcome::Error } else { Outcome::Ok };
                result.outcome_from = Some(OutcomeSource::Rule);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;
    use crate::part::ToolCall;

    #[test]
    fn a_rule_decides_what_is_unknown_and_nothing_else() {
        use OutcomeSource::{Event as EventType, ExitCode, Flag, Rule, Unknown};
        let result = |text: &str, outcome, outcome_from| ToolResult {
            outcome_from,
            ..ToolResult::text_result(&ToolCall::new("c", "check", "{}"), outcome, text)
        };
        let decided = [
            Event::request("Error: not a result"),
            Event::results(
                [None, Some(Flag), Some(EventType), Some(ExitCode), Some(Rule)]
                    .map(|from| result("Error: said to be fine", Outcome::Ok, from)),
            ),
            Event::results([result("fine, said to be a failure", Outcome::Error, Some(Flag))]),
        ];
        let undecided = Event::results([
            result("Error: no such user", Outcome::Ok, Some(Unknown)),
            result("Error: said to be fine", Outcome::Ok, Some(Flag)),
            result("42", Outcome::Error, Some(Unknown)),
        ]);
        let ruled = Event::results([
            result("Error: no such user", Outcome::Error, Some(Rule)),
            result("Error: said to be fine", Outcome::Ok, Some(Flag)),
            result("42", Outcome::Ok, Some(Rule)),
        ]);
        let mut recording = Recording::new(Header::new("r"), decided.clone().into_iter().chain([undecided.clone()]));
        let (before, history) = (recording.clone(), History::new(Arc::clone(&recording.events)));

        let rule = OutcomeRule::prefix("Error").unwrap();
        assert_eq!(recording.apply_outcome_rule(&rule), 2);
        let events: Vec<_> = recording.events.iter().map(|event| Event::clone(event)).collect();
        assert_eq!(events, decided.into_iter().chain([ruled]).collect::<Vec<_>>());
        assert_eq!(history.last().map(|event| &**event), Some(&undecided));
        for (now, before) in recording.events.iter().zip(before.events.iter()).take(3) {
            assert!(Arc::ptr_eq(now, before), "an event that the rule does not change is not copied");
        }
        assert_eq!(recording.apply_outcome_rule(&OutcomeRule::prefix("4").unwrap()), 0);
    }
}
