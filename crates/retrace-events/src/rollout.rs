//! Rollouts: what an agent did after it was resumed.

use std::any::Any;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::quote::{Quotable, cut_short};
use crate::sent::SentHash;
use crate::spend::Spend;

/// Which history an agent was resumed from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The raw history.
    Pre,
    /// What the strategy of this name keeps.
    Post(String),
}

/// Which rollout it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RolloutKey {
    /// The id of the recording.
    pub recording: String,
    /// The boundary: how many events lie before it.
    pub cut: usize,
    /// The arm.
    pub arm: Arm,
    /// The number of the sample, from 0.
    pub sample: u32,
}

/// What an agent did after it was resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    /// The calls that finished, in the order issued.
    pub actions: Vec<Action>,
    /// Why it ended.
    pub end: EndReason,
    /// How often the model answered.
    #[serde(default)]
    pub n_answers: u32,
    /// What all its model calls spent, those of a compaction of its own included.
    #[serde(flatten)]
    pub spend: Spend,
    /// The hash of what its model was sent of the history that it was resumed from, if the model says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentHash>,
}

/// Why a rollout, or a live run, ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The budget of calls or answers is spent.
    Budget,
    /// The agent ended its turn.
    Answer,
    /// The recording cannot answer a call that was never made in it.
    OffTheRecord {
        /// The call.
        call: String,
    },
    /// Something broke.
    Failed(Failure),
    /// A live run reached its limit of model calls.
    RequestLimit,
    /// A live run reached its limit of tokens.
    TokenLimit,
}

/// What broke, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which part of the set-up.
    pub stage: Stage,
    /// The error, with its causes.
    pub message: String,
}

/// The parts of the set-up that may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Rebuilding the environment.
    Restore,
    /// Asking the model.
    Model,
    /// The environment, while the rollout ran.
    Environment,
    /// The agent itself.
    Agent,
}

impl Failure {
    /// What broke, in the words of an error and its causes.
    pub fn of(stage: Stage, error: &(dyn std::error::Error + 'static)) -> Self {
        Self { stage, message: with_causes(error) }
    }
}

/// What a panic says, if it says anything.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(|text| &**text));
    text.unwrap_or("it gave no reason")
}

/// An error and its causes in one line; a cause that the text before it repeats is left out. Of what is very long, the start
/// and the end: a report and a file keep it.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut said = text.clone();
    for cause in std::iter::successors(error.source(), |cause| cause.source()).map(ToString::to_string) {
        if !said.contains(&cause) {
            text = format!("{text}: {cause}");
            said = cause;
        }
    }
    cut_short(text)
}

impl EndReason {
    /// Whether the rollout broke off, so that it says nothing beyond its finished actions.
    pub fn is_failure(&self) -> bool {
        !matches!(self, Self::Budget | Self::Answer)
    }
}

impl Rollout {
    /// A rollout that broke before it did anything.
    pub fn failed(stage: Stage, message: impl Into<String>) -> Self {
        let end = EndReason::Failed(Failure { stage, message: message.into() });
        Self { actions: Vec::new(), end, n_answers: 0, spend: Spend::default(), sent: None }
    }

    /// Whether it says what the agent does within `horizon` actions: it ended of itself, or finished that many.
    pub fn reaches(&self, horizon: usize) -> bool {
        !self.end.is_failure() || self.actions.len() >= horizon
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pre => f.write_str("PRE"),
            Self::Post(strategy) => f.write_str(strategy),
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget => f.write_str("budget spent"),
            Self::Answer => f.write_str("answered"),
            Self::OffTheRecord { call } => {
                write!(f, "off the record: `{}` was not called in the recording", Quotable(call))
            }
            Self::Failed(failure) => failure.fmt(f),
            Self::RequestLimit => f.write_str("limit of model calls reached"),
            Self::TokenLimit => f.write_str("limit of tokens reached"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Restore => "restore",
            Stage::Model => "model",
            Stage::Environment => "environment",
            Stage::Agent => "agent",
        };
        write!(f, "{stage}: {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Outcome;

    fn rollout(end: EndReason) -> Rollout {
        let actions = vec![
            Action::new("login", " {\"user\": 1.0} ", Outcome::Ok, None),
            Action::new("check", "not json", Outcome::NotFound, Some("ValueError".to_owned())),
        ];
        let spend = Spend { input_tokens: u64::MAX, cache_read_tokens: Some(7), ..Spend::default() };
        Rollout { actions, end, n_answers: 3, spend, sent: None }
    }

    fn ends() -> [EndReason; 6] {
        [
            EndReason::Budget,
            EndReason::Answer,
            EndReason::OffTheRecord { call: "check({})".to_owned() },
            EndReason::Failed(Failure { stage: Stage::Environment, message: "it broke".to_owned() }),
            EndReason::RequestLimit,
            EndReason::TokenLimit,
        ]
    }

    #[test]
    fn a_rollout_is_read_back_as_it_was_written() {
        for rollout in ends().map(rollout) {
            let json = serde_json::to_string(&rollout).unwrap();
            assert_eq!(serde_json::from_str::<Rollout>(&json).unwrap(), rollout, "{json}");
        }
        for arm in [Arm::Pre, Arm::Post("tail".to_owned())] {
            let key = RolloutKey { recording: "shop-1".to_owned(), cut: 3, arm, sample: 1 };
            let json = serde_json::to_string(&key).unwrap();
            assert_eq!(serde_json::from_str::<RolloutKey>(&json).unwrap(), key, "{json}");
        }
    }

    #[test]
    fn a_rollout_is_spelt_as_documented() {
        let json = r#"{"actions":[{"name":"check","arguments":"{}","outcome":"error","error":"E"}],"end":{"failed":{"stage":"model","message":"m"}}}"#;
        let rollout: Rollout = serde_json::from_str(json).unwrap();
        let action = Action::new("check", "{}", Outcome::Error, Some("E".to_owned()));
        let end = EndReason::Failed(Failure { stage: Stage::Model, message: "m".to_owned() });
        let spend = Spend { dollars: None, ..Spend::default() };
        let expected = Rollout { actions: vec![action], end, n_answers: 0, spend, sent: None };
        assert_eq!(rollout, expected);
        for end in
            ["\"budget\"", "\"answer\"", "\"request_limit\"", "\"token_limit\"", r#"{"off_the_record":{"call":"c"}}"#]
        {
            let end: EndReason = serde_json::from_str(end).unwrap();
            assert!(!matches!(end, EndReason::Failed(_)));
        }
        let misspelt = r#"{"name":"check","arguments":"{}","outcome":"ok","outcom":"error"}"#;
        assert!(serde_json::from_str::<Action>(misspelt).is_err());
    }

    #[test]
    fn a_rollout_that_broke_off_reaches_what_it_finished() {
        for end in ends() {
            let broke_off = !matches!(end, EndReason::Budget | EndReason::Answer);
            assert_eq!(end.is_failure(), broke_off);
            let rollout = rollout(end);
            assert!(rollout.reaches(2));
            assert_eq!(rollout.reaches(3), !broke_off);
        }
        assert!(Rollout::failed(Stage::Restore, "no server").reaches(0));
        assert!(!Rollout::failed(Stage::Restore, "no server").reaches(1));
    }

    #[test]
    fn the_call_that_left_the_record_is_escaped() {
        let end = EndReason::OffTheRecord { call: "check\u{1b}[2J({})".to_owned() };
        assert_eq!(end.to_string(), "off the record: `check\\u{1b}[2J({})` was not called in the recording");
    }
}
