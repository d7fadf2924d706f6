//! Runs compactions and rollouts, a bounded number at once.
//!
//! Boundaries are taken in order. A boundary's rollouts start when all its compactions are there, ahead of the
//! compactions of later boundaries, so that only a few compacted histories exist at a time. In a chain, a compaction also
//! waits for that of the boundary before, whose history it goes on from. Where a run may stop early, a recording waits until
//! the one before is done.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use indexmap::IndexMap;
use retrace_env::check_rebuilds;
use retrace_events::{Arm, History, Rollout, RolloutKey};
use retrace_score::{BoundaryOutcome, Compaction, EarlyStop, StrategyOutcome};
use retrace_strategies::go_on;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::Instrument;

use crate::cell::{CompactionOutcome, Setup};
use crate::limits::Bounded;
use crate::plan::Site;
use crate::progress::Progress;
use crate::seeds;

/// What came out at the boundaries, in their order.
pub(crate) struct Outcome {
    pub(crate) boundaries: Vec<BoundaryOutcome>,
    /// How many recordings with boundaries were not reached, since the run stopped early.
    pub(crate) n_not_reached: usize,
    /// What showed that an environment does not rebuild its world, by the index of the recording.
    pub(crate) shared_worlds: Vec<(usize, String)>,
}

enum Job {
    CheckRebuilds { site: usize },
    Compact { site: usize, strategy: String, given: Box<History> },
    RollOut { site: usize, key: RolloutKey, history: Box<History> },
}

enum Done {
    CheckedRebuilds { site: usize, difference: Option<String> },
    Compacted { site: usize, strategy: String, outcome: Box<CompactionOutcome> },
    RolledOut { site: usize, key: RolloutKey, rollout: Rollout },
}

impl Job {
    fn site(&self) -> usize {
        match self {
            Self::CheckRebuilds { site } | Self::Compact { site, .. } | Self::RollOut { site, .. } => *site,
        }
    }
}

/// A boundary while it is worked on.
#[derive(Default)]
struct Progressing {
    compactions: IndexMap<String, Option<CompactionOutcome>>,
    rollouts: IndexMap<Arm, Vec<Option<Rollout>>>,
}

/// Runs everything. Nothing makes it fail: what breaks is an outcome.
pub(crate) async fn run(
    setup: &Arc<Setup>,
    sites: &Arc<[Site]>,
    control: Option<&str>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Outcome {
    let mut outcome = Outcome { boundaries: Vec::new(), n_not_reached: 0, shared_worlds: Vec::new() };
    let mut states: Vec<_> = sites.iter().map(|_| Progressing::new(setup)).collect();
    let mut looks = setup.settings.judging.stop_early.then(|| Looks::new(setup, control));
    let usable = sites.iter().enumerate().filter(|(_, site)| site.unusable.is_none());
    let upcoming = usable.flat_map(|(index, site)| {
        let check = site.checks_rebuilds.then_some(Job::CheckRebuilds { site: index });
        // All but the first boundary of a chain wait for the one before.
        let starts = !setup.settings.chain || previous(sites, index).is_none();
        let names = starts.then(|| setup.strategies.keys()).into_iter().flatten();
        let compactions = names.map(move |name| Job::Compact {
            site: index,
            strategy: name.clone(),
            given: Box::new(site.boundary.history()),
        });
        check.into_iter().chain(compactions)
    });
    let mut upcoming = upcoming.peekable();
    let mut ready: VecDeque<Job> = VecDeque::new();
    let mut links: VecDeque<Job> = VecDeque::new();
    let mut running = JoinSet::new();
    loop {
        while running.len() < setup.settings.concurrency {
            let idle = running.is_empty();
            let may_start = |job: &Job| match &mut looks {
                None => true,
                Some(looks) => {
                    looks.lets(job.site(), sites) || idle && looks.look(job.site(), sites, &mut states, &mut outcome)
                }
            };
            let next = || upcoming.next_if(may_start);
            let Some(job) = ready.pop_front().or_else(|| links.pop_front()).or_else(next) else { break };
            running.spawn(work(Arc::clone(setup), Arc::clone(sites), job).in_current_span());
        }
        let done = match running.join_next().await {
            None => break,
            Some(Ok(done)) => done,
            // Strategies, agents and tools are caught where they run, so this is a fault of the scheduler's own.
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
        };
        match done {
            Done::CheckedRebuilds { site, difference } => {
                outcome.shared_worlds.extend(difference.map(|difference| (sites[site].recording, difference)));
            }
            Done::Compacted { site: index, strategy, outcome } => {
                let (site, state) = (&sites[index], &mut states[index]);
                progress(Progress::Compacted {
                    recording: site.boundary.trajectory().id().to_owned(),
                    cut: site.boundary.cut(),
                    strategy: strategy.clone(),
                    compaction: outcome.compaction.clone(),
                });
                if let Some(next) = next(sites, index).filter(|_| setup.settings.chain) {
                    let events = &site.boundary.trajectory().recording().events;
                    let added = &events[site.boundary.cut()..sites[next].boundary.cut()];
                    let given = go_on(&site.boundary.history(), &outcome.left, added, &*setup.settings.counter);
                    let given = Box::new(given);
                    links.push_back(Job::Compact { site: next, strategy: strategy.clone(), given });
                }
                state.compactions[&strategy] = Some(*outcome);
                if state.compactions.values().all(Option::is_some) {
                    let jobs = state.rollouts(setup, site, index, control);
                    let n_planned = setup.settings.samples as usize * (1 + setup.strategies.len());
                    if jobs.len() < n_planned {
                        progress(Progress::NotNeeded { n_rollouts: n_planned - jobs.len() });
                    }
                    ready.extend(jobs);
                }
            }
            Done::RolledOut { site, key, rollout } => {
                if let Some(slot) = states[site].rollouts.get_mut(&key.arm) {
                    let end = rollout.end.clone();
                    slot[key.sample as usize] = Some(rollout);
                    progress(Progress::RolledOut { key, end });
                }
            }
        }
    }
    drop(upcoming);
    if outcome.n_not_reached > 0 {
        let n_boundaries = sites[outcome.boundaries.len()..].iter().filter(|site| site.unusable.is_none()).count();
        let n_rollouts = n_boundaries * (1 + setup.strategies.len()) * setup.settings.samples as usize;
        progress(Progress::NotNeeded { n_rollouts });
    } else {
        finish(&mut outcome, &mut states, sites, sites.len());
    }
    outcome
}

/// Makes outcomes of the boundaries before this one.
fn finish(outcome: &mut Outcome, states: &mut [Progressing], sites: &[Site], before: usize) {
    let finished = outcome.boundaries.len()..before;
    outcome.boundaries.extend(finished.map(|site| mem::take(&mut states[site]).into_outcome(&sites[site])));
}

/// Where a run may stop early: what has been seen after each recording.
struct Looks {
    early: EarlyStop,
    /// The recording that is at work.
    recording: Option<usize>,
}

impl Looks {
    fn new(setup: &Setup, control: Option<&str>) -> Self {
        let judged = setup.strategies.keys().filter(|name| control != Some(name)).cloned();
        Self {
            early: EarlyStop::new(judged, setup.settings.horizon, setup.settings.judging.refetch_by),
            recording: None,
        }
    }

    /// Whether a boundary is of the recording that is at work.
    fn lets(&self, site: usize, sites: &[Site]) -> bool {
        self.recording == Some(sites[site].recording)
    }

    /// Looks at what has come out before the recording of a boundary, all of which is done, and says whether that recording is
    /// to be run.
    fn look(&mut self, site: usize, sites: &[Site], states: &mut [Progressing], outcome: &mut Outcome) -> bool {
        let recording = sites[site].recording;
        let first = (0..=site).rev().take_while(|&other| sites[other].recording == recording).last().unwrap_or(site);
        let n_seen = outcome.boundaries.len();
        finish(outcome, states, sites, first);
        self.early.add(&outcome.boundaries[n_seen..]);
        if self.early.is_over() {
            let left = sites[first..].chunk_by(|one, next| one.recording == next.recording);
            outcome.n_not_reached = left.count();
            return false;
        }
        self.recording = Some(recording);
        true
    }
}

async fn work(setup: Arc<Setup>, sites: Arc<[Site]>, job: Job) -> Done {
    match job {
        Job::CheckRebuilds { site } => {
            let (limits, Site { boundary, environment, .. }) = (setup.settings.limits, &sites[site]);
            // What fails here is seen again, and counted, in the rollouts.
            let environment = Bounded { environment: &**environment, limits };
            let check = check_rebuilds(&environment, boundary);
            let difference = timeout(limits.rollout, check).await.ok().and_then(Result::ok).flatten();
            Done::CheckedRebuilds { site, difference: difference.map(|difference| difference.to_string()) }
        }
        Job::Compact { site, strategy, given } => {
            let outcome = Box::new(setup.compact(&sites[site], &strategy, *given).await);
            Done::Compacted { site, strategy, outcome }
        }
        Job::RollOut { site, key, history } => {
            let rollout = setup.roll_out(&sites[site], &key, *history).await;
            Done::RolledOut { site, key, rollout }
        }
    }
}

/// The usable boundary of the same recording before this one, if there is one.
fn previous(sites: &[Site], index: usize) -> Option<usize> {
    let of_recording = |other: &usize| sites[*other].recording == sites[index].recording;
    (0..index).rev().take_while(of_recording).find(|other| sites[*other].unusable.is_none())
}

/// The usable boundary of the same recording after this one, if there is one.
fn next(sites: &[Site], index: usize) -> Option<usize> {
    let of_recording = |other: &usize| sites[*other].recording == sites[index].recording;
    (index + 1..sites.len()).take_while(of_recording).find(|other| sites[*other].unusable.is_none())
}

impl Progressing {
    fn new(setup: &Setup) -> Self {
        let compactions = setup.strategies.keys().map(|name| (name.clone(), None)).collect();
        Self { compactions, rollouts: IndexMap::new() }
    }

    /// The rollouts of a boundary whose compactions are all there, in an order drawn by chance, so that no arm has the
    /// better hour of a provider. The histories go with them.
    fn rollouts(&mut self, setup: &Setup, site: &Site, index: usize, control: Option<&str>) -> Vec<Job> {
        let mut arms = Vec::new();
        let mut any_but_control_worked = false;
        for (name, outcome) in &mut self.compactions {
            let Some(CompactionOutcome { compaction, history, .. }) = outcome else { continue };
            let is_control = control == Some(&**name);
            let history = history.take();
            any_but_control_worked |= !is_control && history.is_some();
            let runs = match compaction {
                Compaction::Compacted { .. } => true,
                // The rollouts would be those of PRE, and only the control's business is how those differ.
                Compaction::Unchanged => is_control,
                Compaction::Failed { .. } | Compaction::Flawed { .. } => false,
            };
            arms.extend(history.filter(|_| runs).map(|history| (Arm::Post(name.clone()), history)));
        }
        let only_the_control = self.compactions.len() == usize::from(control.is_some());
        if arms.is_empty() || !(any_but_control_worked || only_the_control) {
            return Vec::new();
        }
        arms.insert(0, (Arm::Pre, site.boundary.history()));
        let mut jobs = Vec::new();
        for (arm, history) in arms {
            // Its clones have the hash from here on, instead of each making it from all events.
            history.sent_hash();
            for sample in 0..setup.settings.samples {
                let recording = site.boundary.trajectory().id().to_owned();
                let key = RolloutKey { recording, cut: site.boundary.cut(), arm: arm.clone(), sample };
                jobs.push((key, history.clone()));
            }
            self.rollouts.insert(arm, vec![None; setup.settings.samples as usize]);
        }
        jobs.sort_by_cached_key(|(key, _)| seeds::of_order(setup.settings.seed, key));
        jobs.into_iter().map(|(key, history)| Job::RollOut { site: index, key, history: Box::new(history) }).collect()
    }

    fn into_outcome(mut self, site: &Site) -> BoundaryOutcome {
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
