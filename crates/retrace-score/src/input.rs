//! What a report is made of: what was run, and what came out at each boundary.

use std::fmt;

use indexmap::IndexMap;
use retrace_events::tokens::Tokens;
use retrace_events::{Prices, Rollout, Spend};
use serde::{Deserialize, Serialize};

use crate::executed::Executed;
use crate::judging::Judging;

/// The largest horizon: everything is worked out at each horizon up to the full one.
pub const MAX_HORIZON: usize = 1_000;

/// A whole verification: what is said once, and its boundaries. What is said once is written as JSON and read back; the
/// boundaries are not part of it, since there may be too many to hold.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// How many actions of a rollout are looked at: deltas are taken at every horizon from 1 to this one.
    pub horizon: usize,
    /// How many rollouts each arm of a boundary was given; of arms that were given different numbers the greatest.
    pub samples: usize,
    /// The seed of the run.
    pub seed: u64,
    /// The name of the model that the agent asked, where it is known.
    pub model: Option<String>,
    /// What that model's tokens cost, where it is known.
    pub prices: Option<Prices>,
    /// The name of what counted the tokens.
    pub token_counter: String,
    /// The names of the strategies, in the user's order.
    pub strategies: Vec<String>,
    /// Which of them is the control, if one was run.
    pub control: Option<String>,
    /// Every recording that could be used, also those with no boundary.
    pub recordings: Vec<RecordingFacts>,
    /// What could not be used.
    pub unusable: Vec<UnusableRecording>,
    /// How many boundaries the limit per recording left out.
    pub n_left_out: usize,
    /// Whether a strategy was applied, at each boundary, to what it had left at the one before and what the run added
    /// since; else to the raw history.
    pub chain: bool,
    /// How strategies are judged.
    pub judging: Judging,
    /// How many recordings with boundaries were not reached, since the run stopped early.
    pub n_not_reached: usize,
    /// What of it is not finished, if anything is.
    pub unfinished: Option<Unfinished>,
    /// What came out, in the order it is reported.
    #[serde(skip)]
    pub boundaries: Vec<BoundaryOutcome>,
}

/// What a verification that is not finished lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unfinished {
    /// How many recordings nothing is known of.
    pub n_recordings: usize,
    /// How many boundaries lack something.
    pub n_boundaries: usize,
    /// How many rollouts these lack, at most.
    pub n_rollouts: usize,
    /// Why it stopped, where it could say so.
    pub reason: Option<String>,
}

/// A recording that was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingFacts {
    /// Its id, one of its own in a verification.
    pub id: String,
    /// The task that the agent was at, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// How long it is; `None` where only its boundaries are known.
    pub length: Option<RecordingLength>,
    /// What its rollouts ran in.
    pub environment: EnvironmentKind,
    /// How faithful its replay was; `None` where nothing was replayed.
    pub replay: Option<ReplayFidelity>,
    /// What showed that two rollouts do not start from the same world: restored twice, the environment answered
    /// otherwise. `None` where nothing was seen.
    pub worlds_differ: Option<String>,
}

impl RecordingFacts {
    /// A recording of which nothing else is known.
    pub fn new(id: impl Into<String>, environment: EnvironmentKind) -> Self {
        Self { id: id.into(), task: None, length: None, environment, replay: None, worlds_differ: None }
    }
}

/// How long a recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingLength {
    /// How many calls it executed.
    pub n_actions: usize,
    /// How many responses had a call that was executed.
    pub n_rounds: usize,
}

/// What rollouts ran in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvironmentKind {
    /// Tools whose state was rebuilt to that of the boundary.
    Rebuilt,
    /// The recording's own results: no state is rebuilt, a later result may be lent, and a call that was never made
    /// ends the rollout.
    Recorded,
    /// Rollouts were collected elsewhere, so it is not known.
    Unknown,
}

/// How faithful the replay of a recording was. A call that succeeded in one and failed in the other is not among
/// these: it fails the rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayFidelity {
    /// How many calls were executed again.
    pub n_replayed: u64,
    /// How many of them answered with other text than was recorded.
    pub n_different: u64,
    /// The first of those.
    pub first_difference: Option<ReplayDifference>,
}

/// A replayed call that answered with other text than was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayDifference {
    /// Which action of its recording it is, from 1.
    pub action: usize,
    /// The call.
    pub call: String,
    /// What was recorded.
    pub recorded: String,
    /// What the replay answered.
    pub replayed: String,
}

/// A recording that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnusableRecording {
    /// Its id, or the file's name where it could not even be read.
    pub name: String,
    /// Why, with the causes.
    pub reason: String,
}

/// What came out at one boundary.
#[derive(Debug)]
pub struct BoundaryOutcome {
    /// The id of the recording, one of [`Verification::recordings`].
    pub recording: String,
    /// Events before the boundary.
    pub cut: usize,
    /// Actions before it.
    pub executed: usize,
    /// What was executed before it, for example the [`Boundary`](retrace_events::Boundary) itself.
    pub executed_calls: Box<dyn Executed + Send + Sync>,
    /// How large the raw history is; `None` where nobody counted.
    pub pre_size: Option<Size>,
    /// Why nothing could run here, with the causes, such as a recording that does not replay; then there are neither
    /// rollouts nor strategies.
    pub unusable: Option<String>,
    /// The rollouts from the raw history, one set for every strategy; none where none ran.
    pub pre: Vec<Rollout>,
    /// What each strategy did, by name. A strategy that is not here was not tested at this boundary.
    pub strategies: IndexMap<String, StrategyOutcome>,
}

/// How large a history is, as it is sent to a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Its events.
    pub events: usize,
    /// Its tokens.
    pub tokens: Tokens,
}

/// What a strategy did at one boundary, and the rollouts from what it kept.
#[derive(Clone, Debug)]
pub struct StrategyOutcome {
    /// What came of the compaction.
    pub compaction: Compaction,
    /// Whether the first thing the user asked for is gone, and no summary stands in for it.
    pub lost_task: bool,
    /// What the compaction spent, failed or not.
    pub spend: Spend,
    /// The rollouts from what was kept; none where none ran. An unchanged boundary without any is a delta of zero by
    /// definition, except for the control, whose business is the noise: it is then not scored.
    pub post: Vec<Rollout>,
}

/// What came of a compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Compaction {
    /// There is no history to resume from.
    Failed {
        /// Why, with the causes.
        error: String,
    },
    /// There is another history, and no agent can be resumed from it: a model would refuse it, or it does not end with
    /// the boundary's results.
    Flawed {
        /// What is wrong with it first.
        flaw: String,
    },
    /// The history is what it was.
    Unchanged,
    /// The history is another one.
    Compacted {
        /// How large it is now; `None` where nobody counted.
        size: Option<Size>,
        /// The tokens at its start that the history before also starts with, which a provider's prompt cache still
        /// knows; `None` where nobody counted.
        cached: Option<Tokens>,
    },
}

impl Compaction {
    /// Whether there is nothing to resume from, so that no rollout can run.
    pub fn leaves_nothing(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Flawed { .. })
    }
}

impl fmt::Debug for dyn Executed + Send + Sync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Executed")
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::burden::Key;
    use crate::judging::{Margins, Unit};

    /// Reads back what is written, and refuses it with one more field in any of its objects.
    fn check<T: fmt::Debug + Serialize + DeserializeOwned>(value: &T) {
        let written = serde_json::to_value(value).unwrap();
        let read: T = serde_json::from_str(&written.to_string()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{value:?}"));
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
        for misspelt in with_one_more_field(&written) {
            assert!(serde_json::from_value::<T>(misspelt.clone()).is_err(), "{misspelt}");
        }
    }

    /// The value as many times as it has objects, each time with one more field in another of them.
    fn with_one_more_field(value: &Value) -> Vec<Value> {
        let mut all = Vec::new();
        match value {
            Value::Object(fields) => {
                let mut more = fields.clone();
                more.insert("more".to_owned(), json!(1));
                all.push(Value::Object(more));
                for (name, inner) in fields {
                    all.extend(with_one_more_field(inner).into_iter().map(|inner| {
                        let mut changed = fields.clone();
                        changed[name] = inner;
                        Value::Object(changed)
                    }));
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    all.extend(with_one_more_field(item).into_iter().map(|item| {
                        let mut changed = items.clone();
                        changed[index] = item;
                        Value::Array(changed)
                    }));
                }
            }
            _ => {}
        }
        all
    }

    fn recording(environment: EnvironmentKind) -> RecordingFacts {
        let first_difference = Some(ReplayDifference {
            action: 3,
            call: "stock({})".to_owned(),
            recorded: "4 \u{1b}[2J".to_owned(),
            replayed: "5".to_owned(),
        });
        RecordingFacts {
            id: "shop-1".to_owned(),
            task: Some("tea".to_owned()),
            length: Some(RecordingLength { n_actions: 9, n_rounds: 7 }),
            environment,
            replay: Some(ReplayFidelity { n_replayed: u64::MAX, n_different: 1, first_difference }),
            worlds_differ: Some("`now` answered otherwise".to_owned()),
        }
    }

    #[test]
    fn what_came_of_a_compaction_is_read_back_as_it_was_written() {
        let size = Some(Size { events: 4, tokens: Tokens(u64::MAX) });
        for compaction in [
            Compaction::Failed { error: "429\nslow down".to_owned() },
            Compaction::Flawed { flaw: "a result without its call".to_owned() },
            Compaction::Unchanged,
            Compaction::Compacted { size, cached: Some(Tokens(0)) },
            Compaction::Compacted { size: None, cached: None },
        ] {
            check(&compaction);
        }
    }

    #[test]
    fn what_is_said_once_of_a_verification_is_read_back_as_it_was_written() {
        let environments = [EnvironmentKind::Rebuilt, EnvironmentKind::Recorded, EnvironmentKind::Unknown];
        let mut recordings = Vec::from(environments.map(recording));
        recordings.push(RecordingFacts::new("shop-2", EnvironmentKind::Rebuilt));
        let judging = Judging {
            margins: Margins { wasted: Some(0.1), stopped: None },
            unit: Unit::Task,
            strict: true,
            familywise: true,
            pooled_baseline: true,
            stop_early: true,
            refetch_by: Key::Tool,
        };
        for (model, judging) in [(None, Judging::default()), (Some("sim:shopkeeper".to_owned()), judging)] {
            check(&Verification {
                horizon: 5,
                samples: 3,
                seed: u64::MAX,
                control: model.clone(),
                model,
                prices: Some(Prices { input: 2.0, output: 8.0, cache_read: Some(0.5), cache_write: None }),
                token_counter: "characters / 4".to_owned(),
                strategies: vec!["tail".to_owned(), "clear old".to_owned()],
                recordings: recordings.clone(),
                unusable: vec![UnusableRecording { name: "b.jsonl".to_owned(), reason: "line 1: no JSON".to_owned() }],
                n_left_out: 2,
                chain: true,
                judging,
                n_not_reached: 1,
                unfinished: Some(Unfinished {
                    n_recordings: 1,
                    n_boundaries: 2,
                    n_rollouts: 3,
                    reason: Some("it was asked to".to_owned()),
                }),
                boundaries: Vec::new(),
            });
        }
    }
}
