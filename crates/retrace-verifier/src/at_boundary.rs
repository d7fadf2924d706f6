//! A boundary while it is worked on.

use indexmap::IndexMap;
use retrace_events::{Arm, History, Rollout, RolloutKey};
use retrace_score::{BoundaryOutcome, StrategyOutcome, arms_to_run};

use crate::books::{Books, Lost};
use crate::cell::{CompactionOutcome, Setup};
use crate::plan::Site;
use crate::seeds;

/// A boundary while it is worked on.
#[derive(Default)]
pub(crate) struct AtBoundary {
    pub(crate) compactions: IndexMap<String, Option<CompactionOutcome>>,
    rollouts: IndexMap<Arm, Vec<Option<Rollout>>>,
    /// How many rollouts are not finished.
    n_missing: usize,
    /// Whether it is known which rollouts run.
    is_planned: bool,
}

/// A rollout that is to run.
pub(crate) struct Planned {
    pub(crate) key: RolloutKey,
    pub(crate) history: History,
}

impl AtBoundary {
    pub(crate) fn new(setup: &Setup) -> Self {
        let compactions = setup.strategies.keys().map(|name| (name.clone(), None)).collect();
        Self { compactions, ..Self::default() }
    }

    /// Whether all its compactions are there.
    pub(crate) fn is_compacted(&self) -> bool {
        self.compactions.values().all(Option::is_some)
    }

    /// The rollouts that are not finished, once all compactions are there, in an order drawn by chance, so that no arm has
    /// the better hour of a provider. The histories go with them. Finished ones are read again where `keep` says so.
    pub(crate) fn plan(
        &mut self,
        setup: &Setup,
        site: &Site,
        control: Option<&str>,
        books: &Books,
        keep: bool,
    ) -> Result<Vec<Planned>, Lost> {
        let left =
            self.compactions.iter().filter_map(|(name, outcome)| Some((&**name, outcome.as_ref()?.compaction.left())));
        let arms = arms_to_run(left, control);
        let mut planned = Vec::new();
        for arm in arms {
            let history = match &arm {
                Arm::Pre => Some(site.boundary.history()),
                Arm::Post(name) => self.compactions.get_mut(name).and_then(|outcome| outcome.as_mut()?.history.take()),
            };
            let Some(history) = history else { continue };
            // Its clones have the hash from here on, instead of each making it from all events.
            history.sent_hash();
            let mut samples = vec![None; if keep { setup.settings.samples as usize } else { 0 }];
            for sample in 0..setup.settings.samples {
                let recording = site.boundary.trajectory().id().to_owned();
                let key = RolloutKey { recording, cut: site.boundary.cut(), arm: arm.clone(), sample };
                if !books.has_rollout(&key) {
                    planned.push(Planned { key, history: history.clone() });
                } else if keep {
                    samples[sample as usize] = books.rollout(&key)?;
                }
            }
            self.rollouts.insert(arm, samples);
        }
        for outcome in self.compactions.values_mut().flatten() {
            outcome.history = None;
        }
        planned.sort_by_cached_key(|rollout| seeds::of_order(setup.settings.seed, &rollout.key));
        (self.n_missing, self.is_planned) = (planned.len(), true);
        Ok(planned)
    }

    /// Takes in a finished rollout.
    pub(crate) fn add(&mut self, key: &RolloutKey, rollout: Rollout) {
        self.n_missing -= 1;
        let samples = self.rollouts.get_mut(&key.arm);
        if let Some(slot) = samples.and_then(|samples| samples.get_mut(key.sample as usize)) {
            *slot = Some(rollout);
        }
    }

    /// How many rollouts it lacks, at most: while it is not known which run, all may.
    pub(crate) fn n_missing(&self, setup: &Setup) -> usize {
        let all = (1 + setup.strategies.len()) * setup.settings.samples as usize;
        if self.is_planned { self.n_missing } else { all }
    }

    /// What came out of it so far.
    pub(crate) fn into_outcome(mut self, site: &Site) -> BoundaryOutcome {
        let mut take = |arm: Arm| self.rollouts.swap_remove(&arm).into_iter().flatten().flatten().collect::<Vec<_>>();
        let pre = take(Arm::Pre);
        let strategies = self.compactions.into_iter().filter_map(|(name, outcome)| {
            let CompactionOutcome { compaction, lost_task, spend, .. } = outcome?;
            let post = take(Arm::Post(name.clone()));
            Some((name, StrategyOutcome { compaction, lost_task, spend, post }))
        });
        BoundaryOutcome {
            recording: site.boundary.trajectory().id().to_owned(),
            cut: site.boundary.cut(),
            executed: site.boundary.executed(),
            executed_calls: Box::new(site.boundary.clone()),
            pre_size: Some(site.size),
            unusable: site.unusable.clone(),
            strategies: strategies.collect(),
            pre,
        }
    }
}
