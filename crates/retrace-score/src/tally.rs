//! What is counted of boundaries while they pass by.

use retrace_events::{EndReason, Failure, Prices, Spend};
use retrace_stats::{Exact, median};

use crate::aggregate::mean_of_arms;
use crate::delta::Score;
use crate::errors::{Place, Tally};
use crate::facts::ArmCounts;
use crate::input::{Compaction, Size};
use crate::report::{ArmReport, BoundaryReport, BoundaryStrategy, BrokenRollouts, RolloutReport, StrategyReport};
use crate::saved::SavedTally;

/// The rollouts of all arms.
#[derive(Debug, Default)]
pub(crate) struct Rollouts {
    pub(crate) broken: Option<BrokenRollouts>,
    /// Whether some arm has several rollouts that did not break.
    repeated: bool,
    /// Whether those of some arm made other actions than each other.
    differ: bool,
}

impl Rollouts {
    /// Takes in an arm.
    pub(crate) fn add(&mut self, arm: &[RolloutReport]) {
        for rollout in arm {
            if let EndReason::Failed(first) = &rollout.rollout.end {
                self.broken.get_or_insert_with(|| BrokenRollouts { n: 0, first: Failure::clone(first) }).n += 1;
            }
        }
        let is_whole = |rollout: &&RolloutReport| matches!(rollout.rollout.end, EndReason::Answer | EndReason::Budget);
        let whole: Vec<_> = arm.iter().filter(is_whole).collect();
        self.repeated |= whole.len() > 1;
        self.differ |= whole.windows(2).any(|pair| pair[0].rollout.actions != pair[1].rollout.actions);
    }

    /// Whether the agent is deterministic, of all that ran: in every arm, the rollouts that did not break made the same
    /// actions, and some arm has several.
    pub(crate) fn are_deterministic(&self) -> bool {
        self.repeated && !self.differ
    }
}

/// The rollouts of an arm.
#[derive(Debug)]
pub(crate) struct ArmTally {
    n_off_the_record: Vec<usize>,
    errors: Tally,
    spend: Spend,
}

impl ArmTally {
    pub(crate) fn new(full: usize) -> Self {
        Self { n_off_the_record: vec![0; full], errors: Tally::default(), spend: Spend::default() }
    }

    pub(crate) fn add(&mut self, boundary: &BoundaryReport, arm: &[RolloutReport]) {
        let full = self.n_off_the_record.len();
        for (sample, RolloutReport { rollout, .. }) in arm.iter().enumerate() {
            self.spend.add(rollout.spend);
            if !rollout.reaches(full) {
                self.errors.add_rollout(rollout, || Place::rollout(&boundary.recording, boundary.cut, sample, rollout));
            }
            if matches!(rollout.end, EndReason::OffTheRecord { .. }) {
                // It left the record before every horizon that its actions do not reach.
                self.n_off_the_record.iter_mut().skip(rollout.actions.len()).for_each(|n| *n += 1);
            }
        }
    }

    /// With the counts of the same rollouts, boundary by boundary.
    pub(crate) fn finish<'a>(self, arms: impl Iterator<Item = &'a ArmCounts>) -> ArmReport {
        let arms: Vec<_> = arms.collect();
        let horizons = 1..=self.n_off_the_record.len();
        let means = |horizon| {
            let means: Vec<_> = arms.iter().filter_map(|arm| arm.at(horizon).means()).collect();
            mean_of_arms(&means.iter().collect::<Vec<_>>())
        };
        ArmReport {
            n_rollouts: arms.iter().map(|arm| arm.n_rollouts).sum(),
            means: horizons.clone().map(means).collect(),
            n_failed: horizons.map(|horizon| arms.iter().map(|arm| arm.n_failed(horizon)).sum()).collect(),
            n_off_the_record: self.n_off_the_record,
            errors: self.errors.into_counts(),
            spend: self.spend,
        }
    }
}

/// What a strategy did at the boundaries where it was tested.
#[derive(Debug)]
pub(crate) struct StrategyTally {
    n_tested: usize,
    n_failed: usize,
    n_flawed: usize,
    n_unchanged: usize,
    n_noop: usize,
    n_grown: usize,
    n_lost_task: usize,
    n_emptied: usize,
    kept: Vec<Exact>,
    cache_kept: Vec<Exact>,
    spend: Spend,
    saved: SavedTally,
    errors: Tally,
    flaws: Tally,
    post: ArmTally,
}

impl StrategyTally {
    pub(crate) fn new(full: usize) -> Self {
        Self {
            n_tested: 0,
            n_failed: 0,
            n_flawed: 0,
            n_unchanged: 0,
            n_noop: 0,
            n_grown: 0,
            n_lost_task: 0,
            n_emptied: 0,
            kept: Vec::new(),
            cache_kept: Vec::new(),
            spend: Spend::default(),
            saved: SavedTally::default(),
            errors: Tally::default(),
            flaws: Tally::default(),
            post: ArmTally::new(full),
        }
    }

    pub(crate) fn add(&mut self, at: &BoundaryReport, here: &BoundaryStrategy) {
        let place = || Place::boundary(&at.recording, at.cut);
        self.n_tested += 1;
        match &here.compaction {
            Compaction::Failed { error } => {
                self.n_failed += 1;
                self.errors.add(None, error, place);
            }
            Compaction::Flawed { flaw } => {
                self.n_flawed += 1;
                self.flaws.add(None, flaw, place);
            }
            Compaction::Unchanged => {
                self.n_unchanged += 1;
                if let Some(Size { tokens, .. }) = at.pre_size {
                    self.saved.add(tokens.0, tokens.0);
                }
            }
            Compaction::Compacted { size, .. } => {
                if let (Some(before), Some(after)) = (at.pre_size, size) {
                    let (before, after) = (before.tokens.0, after.tokens.0);
                    self.saved.add(before, after);
                    self.n_grown += usize::from(after > before);
                    self.n_emptied += usize::from(after < before.div_ceil(100));
                }
            }
        }
        self.n_noop += usize::from(here.scores.iter().all(|score| score.score == Score::Noop));
        self.n_lost_task += usize::from(here.lost_task);
        self.kept.extend(here.kept.clone());
        self.cache_kept.extend(here.cache_kept.clone());
        self.spend.add(here.spend);
        self.post.add(at, &here.post);
    }

    /// With the counts of its rollouts; without what is said of its horizons.
    pub(crate) fn finish<'a>(
        self,
        posts: impl Iterator<Item = &'a ArmCounts>,
        prices: Option<Prices>,
    ) -> StrategyReport {
        StrategyReport {
            n_tested: self.n_tested,
            n_failed_compactions: self.n_failed,
            n_flawed_compactions: self.n_flawed,
            n_unchanged: self.n_unchanged,
            n_noop: self.n_noop,
            n_grown: self.n_grown,
            n_lost_task: self.n_lost_task,
            n_emptied: self.n_emptied,
            kept: median(&self.kept),
            cache_kept: median(&self.cache_kept),
            spend: self.spend,
            saved: self.saved.finish(prices),
            compaction_errors: self.errors.into_counts(),
            flaws: self.flaws.into_counts(),
            post: self.post.finish(posts),
            inference: None,
            horizons: Vec::new(),
        }
    }
}
