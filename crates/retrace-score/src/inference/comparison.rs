//! One channel of a strategy beside what it is held against, boundary by boundary.

use retrace_stats::{
    Arms, Completion, Exact, FailedRollouts, PValue, Recordings, WorstRecording, completed_difference,
    rollout_permutation_test,
};

use crate::delta::Score;
use crate::facts::{ArmCounts, BoundaryFacts, Reached};
use crate::judging::Units;

/// What is held against what.
#[derive(Clone, Copy)]
pub(super) struct Comparison<'a> {
    pub(super) strategy: &'a str,
    pub(super) baseline: Baseline<'a>,
    pub(super) channel: Channel,
    pub(super) horizon: usize,
    /// Whether the agent is deterministic, so that all rollouts of an arm are one sample.
    pub(super) deterministic: bool,
}

/// What a strategy is held against.
#[derive(Clone, Copy)]
pub(super) enum Baseline<'a> {
    /// The rollouts of the raw history.
    Raw,
    /// These, and those of the control with this name, which keeps the raw history too.
    RawAnd(&'a str),
    /// Those of another strategy.
    Strategy(&'a str),
}

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    Wasted,
    Stopped,
}

impl Channel {
    pub(super) const ALL: [Self; 2] = [Self::Wasted, Self::Stopped];

    /// The counts of the rollouts that reach the horizon.
    fn counts(self, arms: &[&ArmCounts], horizon: usize) -> Vec<u32> {
        let count = |rollout: Reached| match self {
            Self::Wasted => rollout.wasted,
            Self::Stopped => u32::from(rollout.stopped),
        };
        arms.iter().flat_map(|arm| arm.reaching(horizon)).map(count).collect()
    }

    /// The greatest difference that there can be.
    fn bound(self, horizon: usize) -> u32 {
        match self {
            Self::Wasted => u32::try_from(horizon).unwrap_or(u32::MAX),
            Self::Stopped => 1,
        }
    }
}

/// The rollouts of both sides at a boundary.
enum Sides<'a> {
    /// Both have the same history, so that they differ by nothing.
    Same,
    Rolled {
        before: Vec<&'a ArmCounts>,
        after: Vec<&'a ArmCounts>,
    },
}

impl Comparison<'_> {
    /// `None` where the strategy, or what it is held against, was not tested.
    fn at<'a>(&self, boundary: &'a BoundaryFacts) -> Option<Sides<'a>> {
        let tested = |name| {
            let here = boundary.strategies.get(name)?;
            let is_noop = here.scores.get(self.horizon - 1).is_some_and(|score| score.score == Score::Noop);
            // An unchanged history is the raw one, so that its rollouts are, too.
            Some((is_noop, vec![if is_noop { &boundary.pre } else { &here.post }]))
        };
        let (is_noop, after) = tested(self.strategy)?;
        let raw = &boundary.pre;
        let (is_raw, before) = match self.baseline {
            Baseline::Raw => (true, vec![raw]),
            Baseline::RawAnd(control) => {
                // Where no rollout of PRE is scored, nothing is, as in the rest of a report.
                let reaches = raw.n_failed(self.horizon) < raw.n_rollouts;
                let more = boundary.strategies.get(control).filter(|_| reaches).map(|control| &control.post);
                (true, std::iter::once(raw).chain(more).collect())
            }
            Baseline::Strategy(other) => {
                let (is_noop, rollouts) = tested(other)?;
                // The control's history is the raw one, though it has rollouts of its own.
                let keeps_all = boundary.strategies[other].unchanged;
                (is_noop || keeps_all, rollouts)
            }
        };
        Some(if is_noop && is_raw { Sides::Same } else { Sides::Rolled { before, after } })
    }
}

/// One channel of a comparison.
#[derive(Clone)]
pub(super) struct Column {
    /// What was counted, unit by unit, at the boundaries where both were tested.
    units: Vec<Vec<Counted>>,
    pub(super) deterministic: bool,
    pub(super) worst: WorstRecording,
}

/// What was counted at a boundary.
#[derive(Clone)]
enum Counted {
    Same,
    Rolled { before: Vec<u32>, after: Vec<u32>, failed: FailedRollouts },
}

impl Counted {
    fn arms(&self) -> Arms<'_> {
        match self {
            Self::Same => Arms::Unchanged,
            Self::Rolled { before, after, .. } => Arms::Rollouts { pre: before, post: after },
        }
    }

    /// Whether there is a difference.
    fn is_scored(&self) -> bool {
        match self {
            Self::Same => true,
            Self::Rolled { before, after, .. } => !before.is_empty() && !after.is_empty(),
        }
    }

    fn failed(&self) -> FailedRollouts {
        match self {
            Self::Same => FailedRollouts { pre: 0, post: 0 },
            Self::Rolled { failed, .. } => *failed,
        }
    }

    /// With every failed rollout as good as can be after, and as bad before.
    fn favoured(&self, bound: u32) -> Self {
        let Self::Rolled { before, after, failed } = self else { return Self::Same };
        let fill = |counts: &[u32], failed: u32, each| {
            counts.iter().copied().chain(std::iter::repeat_n(each, failed as usize)).collect()
        };
        Self::Rolled {
            before: fill(before, failed.pre, bound),
            after: fill(after, failed.post, 0),
            failed: FailedRollouts { pre: 0, post: 0 },
        }
    }
}

impl Column {
    pub(super) fn new(comparison: &Comparison<'_>, boundaries: &[BoundaryFacts], units: &Units<'_>) -> Self {
        let Comparison { channel, horizon, .. } = *comparison;
        let mut counted = vec![Vec::new(); units.len()];
        for boundary in boundaries {
            counted[units.of(&boundary.recording)].extend(comparison.at(boundary).map(|sides| match sides {
                Sides::Same => Counted::Same,
                Sides::Rolled { before, after } => {
                    let [pre, post] = [&before, &after].map(|arms| channel.counts(arms, horizon));
                    let failed = |arms: &[&ArmCounts]| arms.iter().map(|arm| arm.n_failed(horizon) as u32).sum();
                    let failed = FailedRollouts { pre: failed(&before), post: failed(&after) };
                    Counted::Rolled { before: pre, after: post, failed }
                }
            }));
        }
        let boundaries = counted.iter().map(Vec::len).max().unwrap_or_default() as u32;
        let worst = WorstRecording { boundaries, bound: channel.bound(horizon) };
        Self { units: counted, deterministic: comparison.deterministic, worst }
    }

    /// The differences of the boundaries that are scored.
    pub(super) fn differences(&self) -> Vec<Vec<Exact>> {
        let of_unit = |unit: &Vec<Counted>| unit.iter().filter_map(|counted| counted.arms().difference()).collect();
        self.units.iter().map(of_unit).collect()
    }

    /// The differences of all boundaries, had failed rollouts been as bad as can be.
    pub(super) fn completed(&self) -> Recordings {
        let completed = |counted: &Counted| {
            completed_difference(&counted.arms(), counted.failed(), self.worst.bound, Completion::Adverse)
        };
        let units: Vec<Vec<_>> = self.units.iter().map(|unit| unit.iter().map(completed).collect()).collect();
        Recordings::new(units.iter().map(Vec::as_slice))
    }

    /// With every failed rollout as good as can be after, and as bad before.
    pub(super) fn favoured(&self) -> Self {
        let of_unit = |unit: &Vec<Counted>| unit.iter().map(|counted| counted.favoured(self.worst.bound)).collect();
        Self { units: self.units.iter().map(of_unit).collect(), ..*self }
    }

    pub(super) fn has_failures(&self) -> bool {
        self.units.iter().flatten().any(|counted| counted.failed() != FailedRollouts { pre: 0, post: 0 })
    }

    /// At how many boundaries there is a difference.
    pub(super) fn n_scored(&self) -> usize {
        self.units.iter().flatten().filter(|counted| counted.is_scored()).count()
    }

    /// How many units have such a boundary.
    pub(super) fn n_units(&self) -> usize {
        let is_scored = |unit: &&Vec<Counted>| unit.iter().any(Counted::is_scored);
        self.units.iter().filter(is_scored).count()
    }

    /// The counts of what is one sample each, unit by unit: of a deterministic agent the first of each side.
    pub(super) fn samples(&self) -> Vec<Vec<Arms<'_>>> {
        let sample = |arms| match arms {
            Arms::Rollouts { pre, post } if self.deterministic => {
                Arms::Rollouts { pre: &pre[..pre.len().min(1)], post: &post[..post.len().min(1)] }
            }
            arms => arms,
        };
        self.units.iter().map(|unit| unit.iter().map(|counted| sample(counted.arms())).collect()).collect()
    }

    /// Whether there is a difference at these boundaries; `None` where a side has no rollouts anywhere.
    pub(super) fn p_here(&self) -> Option<PValue> {
        rollout_permutation_test(&self.samples().concat()).ok().map(|test| test.p)
    }
}
