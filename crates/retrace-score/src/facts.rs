//! What a report keeps of each boundary: its scores, and the counts of its rollouts. No action, and no text of a rollout.

use std::num::NonZeroU64;
use std::sync::Arc;

use indexmap::IndexMap;
use retrace_events::Rollout;
use retrace_stats::exact_ratio;

use crate::burden::Burdens;
use crate::delta::{ArmMeans, HorizonScore};
use crate::input::Compaction;
use crate::report::{BoundaryReport, BoundaryStrategy, RolloutReport};

/// What a report keeps of a boundary.
#[derive(Clone, Debug)]
pub struct BoundaryFacts {
    /// The id of the recording.
    pub recording: String,
    /// Events before the boundary.
    pub cut: usize,
    /// Why nothing could run here, if nothing could.
    pub unusable: Option<String>,
    /// The rollouts from the raw history.
    pub pre: ArmCounts,
    /// Each strategy that was tested here.
    pub strategies: IndexMap<String, StrategyFacts>,
}

/// What a report keeps of a strategy at a boundary.
#[derive(Clone, Debug)]
pub struct StrategyFacts {
    /// Whether it left the history as it was.
    pub unchanged: bool,
    /// What came out at each horizon from 1 to the full one.
    pub scores: Arc<[HorizonScore]>,
    /// The rollouts from what was kept.
    pub post: ArmCounts,
}

/// The rollouts of one arm of a boundary, counted at every horizon.
///
/// It takes four bytes for each rollout and two for each of its actions within the full horizon.
#[derive(Clone, Debug, Default)]
pub struct ArmCounts {
    /// How many rollouts there are.
    pub n_rollouts: usize,
    /// How many of them had an answer of the model.
    pub n_answered: usize,
    /// How many of those do not say what the model was sent.
    pub n_unseen: usize,
    /// How far each rollout came, in the order they ran.
    extents: Vec<Extent>,
    /// How many of the first 1, 2, … actions of each rollout were wasted, rollout after rollout.
    wasted: Vec<u16>,
    /// At horizon 1, 2, …; beyond the last of these all are alike.
    sums: Vec<Sums>,
}

/// How far a rollout came.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// Its actions, at most the full horizon.
    n_actions: u16,
    broke_off: bool,
}

/// The rollouts of an arm at one horizon, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) n_rollouts: usize,
    /// How many of them reach the horizon; the sums are over these.
    n_scored: usize,
    blocked: u64,
    refetch: u64,
    wasted: u64,
    stopped: u64,
    actions: u64,
}

/// What is judged of a rollout that reaches a horizon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) wasted: u32,
    pub(crate) stopped: bool,
}

impl BoundaryFacts {
    /// What is kept of a boundary, up to the full horizon.
    pub(crate) fn of(boundary: &BoundaryReport, full: usize) -> Self {
        let strategies = boundary.strategies.iter();
        Self {
            recording: boundary.recording.clone(),
            cut: boundary.cut,
            unusable: boundary.unusable.clone(),
            pre: ArmCounts::of(&boundary.pre, full),
            strategies: strategies.map(|(name, here)| (name.clone(), StrategyFacts::of(here, full))).collect(),
        }
    }

    /// Whether this was kept of a boundary: it lies at the same place, and each arm has as many rollouts.
    pub fn is_of(&self, boundary: &BoundaryReport) -> bool {
        let BoundaryReport { recording, cut, pre, strategies, .. } = boundary;
        let alike = |(name, here): (_, &BoundaryStrategy)| {
            self.strategies.get::<String>(name).is_some_and(|facts| facts.post.n_rollouts == here.post.len())
        };
        (&self.recording, self.cut, self.pre.n_rollouts) == (recording, *cut, pre.len())
            && self.strategies.len() == strategies.len()
            && strategies.iter().all(alike)
    }

    /// The arms: that of the raw history, and one for each strategy.
    pub fn arms(&self) -> impl Iterator<Item = &ArmCounts> {
        std::iter::once(&self.pre).chain(self.strategies.values().map(|strategy| &strategy.post))
    }
}

impl StrategyFacts {
    fn of(here: &BoundaryStrategy, full: usize) -> Self {
        Self {
            unchanged: here.compaction == Compaction::Unchanged,
            scores: Arc::clone(&here.scores),
            post: ArmCounts::of(&here.post, full),
        }
    }
}

impl ArmCounts {
    pub(crate) fn of(arm: &[RolloutReport], full: usize) -> Self {
        let is_answered = |rollout: &&Rollout| rollout.n_answers > 0;
        let answered = arm.iter().map(|rollout| &rollout.rollout).filter(is_answered);
        let burdens = || arm.iter().map(|rollout| &rollout.burdens);
        let n_actions = |burdens: &Burdens| burdens.refetches().len().min(full);
        let longest = burdens().map(n_actions).max();
        // No rollout has more to count past the end of the longest one.
        let horizons = longest.map_or(0, |longest| full.min(longest + 1));
        let mut wasted = Vec::with_capacity(burdens().map(n_actions).sum());
        for burdens in burdens() {
            wasted.extend((1..=n_actions(burdens)).filter_map(|n| burdens.at(n)).map(|burden| narrow(burden.wasted)));
        }
        let extent = |rollout: &RolloutReport| Extent {
            n_actions: narrow(n_actions(&rollout.burdens) as u64),
            broke_off: rollout.rollout.end.is_failure(),
        };
        Self {
            n_rollouts: arm.len(),
            n_answered: answered.clone().count(),
            n_unseen: answered.filter(|rollout| rollout.sent.is_none()).count(),
            extents: arm.iter().map(extent).collect(),
            wasted,
            sums: (1..=horizons).map(|horizon| Sums::of(burdens(), horizon)).collect(),
        }
    }

    /// How many rollouts broke off before a horizon.
    pub fn n_failed(&self, horizon: usize) -> usize {
        let sums = self.at(horizon);
        sums.n_rollouts - sums.n_scored
    }

    /// The rollouts at a horizon, which is at least 1.
    pub(crate) fn at(&self, horizon: usize) -> Sums {
        self.sums.get(horizon - 1).or(self.sums.last()).copied().unwrap_or_default()
    }

    /// The rollouts that reach a horizon, in the order they ran.
    pub(crate) fn reaching(&self, horizon: usize) -> impl Iterator<Item = Reached> {
        let mut rest = &self.wasted[..];
        self.extents.iter().filter_map(move |&Extent { n_actions, broke_off }| {
            let (own, after) = rest.split_at(n_actions.into());
            rest = after;
            let wasted = own[..own.len().min(horizon)].last().copied().unwrap_or_default();
            let stopped = own.len() < horizon;
            (!(stopped && broke_off)).then_some(Reached { wasted: wasted.into(), stopped })
        })
    }
}

/// A count of actions up to a horizon, none of which is greater than [`MAX_HORIZON`](crate::MAX_HORIZON).
fn narrow(count: u64) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

impl Sums {
    pub(crate) fn of<'a>(arm: impl IntoIterator<Item = &'a Burdens>, horizon: usize) -> Self {
        let mut sums = Self::default();
        for burdens in arm {
            sums.n_rollouts += 1;
            let Some(burden) = burdens.at(horizon) else { continue };
            sums.n_scored += 1;
            sums.blocked += burden.blocked;
            sums.refetch += burden.refetch;
            sums.wasted += burden.wasted;
            sums.stopped += u64::from(burden.stopped);
            sums.actions += burden.n_actions;
        }
        sums
    }

    /// `None` if no rollout reaches the horizon.
    pub(crate) fn means(&self) -> Option<ArmMeans> {
        let n = NonZeroU64::new(self.n_scored as u64)?;
        let mean = |sum: u64| exact_ratio(sum.into(), n);
        Some(ArmMeans {
            blocked: mean(self.blocked),
            refetch: mean(self.refetch),
            wasted: mean(self.wasted),
            stopped: mean(self.stopped),
            actions: mean(self.actions),
        })
    }
}
