//! The vectors that tests read.

use retrace_events::tokens::{FourCharacters, Tokens};
use retrace_events::{Event, History};
use retrace_model::{ModelError, ScriptedModel, Step};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{AskModel, CompactContext, CompactError, Compacted, RunSoFar, Strategy, StrategyConfig};

/// What another implementation made of one history.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) input: History,
    pub(crate) row: Value,
}

/// The rows of `strategies/<kind>.jsonl`.
pub(crate) fn read(file: &str) -> impl Iterator<Item = Row> {
    retrace_testing::vectors::rows(file).into_iter().map(Row::new)
}

/// Applies a strategy of this type to each row of a file and holds the outcome, and whether it was due, against it.
pub(crate) fn check_free<S: Strategy + DeserializeOwned>(file: &str) {
    for row in read(file) {
        let strategy: S = row.strategy();
        let mut cx = CompactContext::without_model();
        row.check(pollster::block_on(strategy.compact(&row.input, &mut cx)).unwrap());
        row.check_due(&strategy);
    }
}

/// As [`check_free`], of strategies that may ask a model, read as a configuration has them.
pub(crate) fn check_configured(file: &str) {
    for row in read(file) {
        let config: StrategyConfig = serde_json::from_value(row.row["strategy"].clone()).unwrap();
        let strategy = config.build();
        let failed = ModelError::Refused { message: "no".to_owned() };
        let step = match row.row["summarizer"]["reply"].as_str() {
            Some(reply) => Step::from(reply),
            None => failed.clone().into(),
        };
        let ask = AskModel(ScriptedModel::new(vec![step; 4]));
        let compacted = pollster::block_on(strategy.compact(&row.input, &mut CompactContext::new(&ask, 0)));
        if row.row["error"] == "model" {
            assert_eq!(compacted, Err(CompactError::Model(failed)), "{}", row.name);
        } else {
            row.check(compacted.unwrap());
        }
        row.check_due(&*strategy);
        let n_calls = row.row["summarizer"]["calls"].as_array().map_or(0, Vec::len);
        assert_eq!(ask.0.asked().len(), n_calls, "{}", row.name);
    }
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

    /// Holds whether a strategy is due against the row, if it says so.
    pub(crate) fn check_due(&self, strategy: &dyn Strategy) {
        if let Some(due) = self.row.get("triggered") {
            assert_eq!(strategy.is_due(&self.input, None, &FourCharacters), *due, "{}", self.name);
        }
    }

    pub(crate) fn run_so_far(&self) -> RunSoFar {
        let number = |key: &str| self.row["run"][key].as_u64().unwrap();
        RunSoFar { n_requests: number("requests"), total_tokens: Tokens(number("total_tokens")) }
    }

    /// Holds what came out against the row, which does not say whether it changed.
    pub(crate) fn check_output(&self, compacted: Compacted) {
        let after = if let Compacted::Changed(after) = compacted { after } else { self.input.clone() };
        assert_eq!(after, events(&self.row["output"]), "{}", self.name);
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
