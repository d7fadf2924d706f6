//! How strategies are judged: what a user decides before anything runs.

use std::collections::HashMap;

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

use crate::burden::Key;
use crate::input::RecordingFacts;

/// How strategies are judged. It is part of a verification's plan, since a rule that is chosen after a look at the numbers
/// proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judging {
    /// The greatest differences that are acceptable, if they were given.
    pub margins: Margins,
    /// What new ones are expected to be: the unit of all that is said beyond the boundaries that were run.
    pub unit: Unit,
    /// Whether harm on new ones is only claimed where a limit shows it that holds for every distribution, too.
    pub strict: bool,
    /// Whether the claims of safety of all strategies hold together with 97.5 % confidence, and not each by itself.
    pub familywise: bool,
    /// Whether the control's rollouts count as rollouts of the raw history, which they are: the baseline then has twice as
    /// many.
    pub pooled_baseline: bool,
    /// Whether the run looks after every recording, and stops when harm of every strategy is shown. Harm on new recordings is
    /// then shown by [evidence](crate::EarlyStop) that may be looked at at any time, and nothing is tested at these
    /// boundaries. It takes recordings as the unit and PRE alone as the baseline.
    pub stop_early: bool,
    /// What makes a call a repeat, and so a refetch. JSON without it means the usual rule, that a call is repeated with its
    /// arguments.
    #[serde(default, skip_serializing_if = "Key::is_call")]
    pub refetch_by: Key,
}

/// The greatest mean differences that are acceptable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margins {
    /// In wasted actions over the horizon.
    pub wasted: Option<f64>,
    /// In shares of rollouts.
    pub stopped: Option<f64>,
}

/// What is a sample of those not yet made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Each recording.
    #[default]
    Recording,
    /// Each task: recordings of one task say nothing of others. A recording without a task is one of its own.
    Task,
}

/// What an interval speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Recordings like these that are not yet made.
    #[default]
    New,
    /// The boundaries that were run.
    Here,
}

/// Which recordings are of one unit.
pub(crate) struct Units<'a> {
    /// The number of each recording's unit, by its id.
    numbers: HashMap<&'a str, usize>,
    n: usize,
}

impl<'a> Units<'a> {
    pub(crate) fn new(unit: Unit, recordings: &'a [RecordingFacts]) -> Self {
        let mut units = IndexSet::new();
        let numbers = recordings.iter().map(|recording| {
            let task = recording.task.as_deref().filter(|_| unit == Unit::Task);
            let own = task.is_none().then_some(&*recording.id);
            (&*recording.id, units.insert_full((task, own)).0)
        });
        Self { numbers: numbers.collect(), n: units.len() }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.n
    }

    /// The number of the unit of a recording.
    pub(crate) fn of(&self, recording: &str) -> usize {
        self.numbers[recording]
    }
}
