//! The burden of one rollout: which of its actions failed or did again what was done before.

use std::collections::HashSet;

use retrace_events::{Action, Rollout, Signature};
use serde::{Deserialize, Serialize};

use crate::executed::Executed;

/// What makes a call a repeat of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    /// The tool and its arguments, as a [`Signature`](retrace_events::Signature) has them.
    #[default]
    Call,
    /// The tool alone.
    Tool,
}

impl Key {
    /// Whether it is the usual rule.
    pub(crate) fn is_call(&self) -> bool {
        *self == Self::Call
    }
}

/// What a rollout wasted over its first actions.
///
/// `wasted` counts an action that is both blocked and a refetch once, so it lies between the greater of the two counts
/// and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burden {
    /// How many actions there were, at most the horizon.
    pub n_actions: u64,
    /// How many failed.
    pub blocked: u64,
    /// How many were executed before, ahead of the boundary or earlier in the rollout.
    pub refetch: u64,
    /// How many were either.
    pub wasted: u64,
    /// Whether the agent ended its turn before the horizon.
    pub stopped: bool,
}

/// The burden of one rollout at every horizon, worked out in one pass.
///
/// ```
/// use std::collections::HashSet;
///
/// use retrace_events::{Action, EndReason, Outcome, Rollout, Spend};
/// use retrace_score::{Burdens, Key};
///
/// let read = |file: &str, outcome| Action::new("read", format!(r#"{{"file":"{file}"}}"#), outcome, None);
/// let rollout = Rollout {
///     actions: vec![read("a", Outcome::Ok), read("b", Outcome::Error), read("b", Outcome::Error)],
///     end: EndReason::Answer,
///     n_answers: 4,
///     spend: Spend::default(),
///     sent: None,
/// };
/// let executed = HashSet::from([read("a", Outcome::Ok).signature().clone()]);
///
/// let burdens = Burdens::of(&rollout, &executed, Key::Call);
/// let burden = burdens.at(3).expect("the agent ended its turn itself");
/// assert_eq!((burden.blocked, burden.refetch, burden.wasted, burden.stopped), (2, 2, 3, false));
/// assert!(burdens.at(5).is_some_and(|burden| burden.stopped));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burdens {
    /// Over the first 0, 1, 2, … actions.
    prefixes: Vec<Burden>,
    refetches: Vec<bool>,
    broke_off: bool,
}

impl Burdens {
    /// The burden of a rollout from a boundary before which this was executed.
    pub fn of(rollout: &Rollout, executed: &dyn Executed, key: Key) -> Self {
        let mut seen = Seen::default();
        let mut burden = Burden::default();
        let mut prefixes = Vec::with_capacity(rollout.actions.len() + 1);
        let mut refetches = Vec::with_capacity(rollout.actions.len());
        prefixes.push(burden);
        for action in &rollout.actions {
            let refetch = seen.is_repeat(action, executed, key);
            burden.n_actions += 1;
            burden.blocked += u64::from(action.is_blocked());
            burden.refetch += u64::from(refetch);
            burden.wasted += u64::from(refetch || action.is_blocked());
            prefixes.push(burden);
            refetches.push(refetch);
        }
        Self { prefixes, refetches, broke_off: rollout.end.is_failure() }
    }

    /// The burden at a horizon; `None` where the rollout broke off before it, so that nobody knows.
    pub fn at(&self, horizon: usize) -> Option<Burden> {
        let n_actions = self.refetches.len();
        if n_actions >= horizon {
            return Some(self.prefixes[horizon]);
        }
        (!self.broke_off).then_some(Burden { stopped: true, ..self.prefixes[n_actions] })
    }

    /// For each action of the rollout, whether it was executed before.
    pub fn refetches(&self) -> &[bool] {
        &self.refetches
    }
}

/// The calls of a rollout so far. A blocked call is remembered too: trying it again is a repeat.
#[derive(Default)]
struct Seen<'a> {
    signatures: HashSet<&'a Signature>,
    tools: HashSet<&'a str>,
}

impl<'a> Seen<'a> {
    /// Whether an action repeats one from before the boundary or an earlier one; it is seen from then on.
    fn is_repeat(&mut self, action: &'a Action, executed: &dyn Executed, key: Key) -> bool {
        match key {
            Key::Call => !self.signatures.insert(action.signature()) || executed.has_executed(action.signature()),
            Key::Tool => !self.tools.insert(action.name()) || executed.has_used(action.name()),
        }
    }
}
