//! The vectors that tests read.

use retrace_events::{Event, History};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Compacted;

/// What another implementation made of one history.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) input: History,
    row: Value,
}

/// The rows of `strategies/<kind>.jsonl`.
pub(crate) fn read(file: &str) -> impl Iterator<Item = Row> {
    retrace_testing::vectors::rows(file).into_iter().map(Row::new)
}

impl Row {
    fn new(row: Value) -> Self {
        Self { name: row["name"].to_string(), input: events(&row["input"]), row }
    }

    pub(crate) fn strategy<S: DeserializeOwned>(&self) -> S {
        let mut config = self.row["strategy"].clone();
        config.as_object_mut().unwrap().remove("kind");
        serde_json::from_value(config).unwrap()
    }

    pub(crate) fn summarizer_reply(&self) -> &str {
        self.row["summarizer"]["reply"].as_str().unwrap()
    }

    /// The indices of the events that each call was shown.
    pub(crate) fn summarizer_calls(&self) -> Vec<Vec<usize>> {
        let calls = self.row["summarizer"]["calls"].as_array().unwrap();
        calls.iter().map(|call| serde_json::from_value(call["events"].clone()).unwrap()).collect()
    }

    pub(crate) fn check(&self, compacted: Compacted) {
        match compacted {
            Compacted::Unchanged => assert_eq!(self.row["changed"], false, "{}", self.name),
            Compacted::Changed(history) => {
                assert_eq!(self.row["changed"], true, "{}", self.name);
                assert_eq!(history, events(&self.row["output"]), "{}", self.name);
            }
        }
    }
}

fn events(value: &Value) -> History {
    History::from(serde_json::from_value::<Vec<Event>>(value.clone()).unwrap())
}
