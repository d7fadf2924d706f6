//! Runs compactions and rollouts, a bounded number at once.
//!
//! Boundaries are taken in order. A boundary's rollouts start when all its compactions are there, ahead of the
//! compactions of later boundaries, so that only a few compacted histories exist at a time and its arms run close together.
//! The first rollout of an arm goes alone until its model has answered, and the others follow: they then find what they
//! share in the provider's cache. In a chain, a compaction also waits for that of the boundary before, whose history it
//! goes on from. Where a run may stop early, a recording waits until the one before is done.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use retrace_env::check_rebuilds;
use retrace_events::{Arm, EndReason, History, Rollout, RolloutKey, Spend};
use retrace_journal::{Record, WorldRecord};
use retrace_score::{BoundaryOutcome, Unfinished};
use retrace_strategies::go_on;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::Instrument;

use crate::at_boundary::{AtBoundary, Planned};
use crate::books::{Books, Lost};
use crate::cell::{CompactionOutcome, Setup};
use crate::limits::Bounded;
use crate::looks::Looks;
use crate::plan::Site;
use crate::progress::Progress;
use crate::stop::{Breaker, Stop, StopSignal};
use crate::warm::Warm;

/// How long what is at work may take to be put down.
const PUT_DOWN: Duration = Duration::from_secs(10);

/// What came out of a run.
#[derive(Default)]
pub(crate) struct Outcome {
    /// What came out at the boundaries, in their order; nothing where a folder keeps it.
    pub(crate) boundaries: Vec<BoundaryOutcome>,
    /// The recordings with boundaries that were not reached, since the run stopped early.
    pub(crate) not_reached: Vec<String>,
    /// What showed that an environment does not rebuild its world, by the index of the recording.
    pub(crate) shared_worlds: Vec<(usize, String)>,
    /// Why it stopped before its end, if it did.
    pub(crate) stopped: Option<Stop>,
    /// What it lacks, if it lacks anything.
    pub(crate) unfinished: Option<Unfinished>,
    /// The first of the rollouts that all failed alike, where that is why it stopped.
    pub(crate) gave_up_at: Option<RolloutKey>,
    /// How many boundaries have their outcomes made.
    n_finished: usize,
    states: Vec<AtBoundary>,
}

impl Outcome {
    /// Makes outcomes of the boundaries before this one.
    pub(crate) fn finish(&mut self, sites: &[Site], before: usize) {
        let finished = self.n_finished..before;
        self.n_finished = before.max(self.n_finished);
        let outcomes = finished.map(|site| std::mem::take(&mut self.states[site]).into_outcome(&sites[site]));
        self.boundaries.extend(outcomes);
    }
}

/// All that a schedule is made from.
pub(crate) struct Task<'a> {
    pub(crate) setup: Arc<Setup>,
    pub(crate) sites: Arc<[Site]>,
    pub(crate) control: Option<&'a str>,
    pub(crate) books: Arc<Books>,
    pub(crate) signal: &'a StopSignal,
    pub(crate) progress: &'a (dyn Fn(Progress) + Sync),
}

enum Job {
    CheckRebuilds { site: usize },
    Compact { site: usize, strategy: String, given: Option<Box<History>> },
    RollOut { site: usize, rollout: Box<Planned>, leads: bool },
}

enum Done {
    CheckedRebuilds { site: usize, difference: Option<String> },
    Compacted { site: usize, strategy: String, outcome: Box<CompactionOutcome>, is_new: bool },
    RolledOut { site: usize, key: RolloutKey, rollout: Rollout },
    Lost(Lost),
}

impl Job {
    fn site(&self) -> usize {
        match self {
            Self::CheckRebuilds { site } | Self::Compact { site, .. } | Self::RollOut { site, .. } => *site,
        }
    }
}

struct Schedule<'a> {
    task: Task<'a>,
    outcome: Outcome,
    looks: Option<Looks>,
    breaker: Breaker,
    spent: Spend,
    /// What starts before all that follows: rollouts, then links of chains, then what is still to come.
    ready: VecDeque<Job>,
    links: VecDeque<Job>,
    upcoming: VecDeque<Job>,
    /// Rollouts that wait for the first of their arm.
    followers: HashMap<(usize, Arm), Vec<Job>>,
    warm: UnboundedSender<(usize, Arm)>,
    running: JoinSet<Done>,
}

/// Runs everything. Nothing makes it fail: what breaks is an outcome.
pub(crate) async fn run(task: Task<'_>) -> Outcome {
    let (warm, mut warmed) = unbounded_channel();
    let mut schedule = Schedule::new(task, warm);
    schedule.run(&mut warmed).await;
    schedule.finish().await
}

impl<'a> Schedule<'a> {
    fn new(task: Task<'a>, warm: UnboundedSender<(usize, Arm)>) -> Self {
        let (setup, sites) = (&task.setup, &task.sites);
        let states = sites.iter().map(|_| AtBoundary::new(setup)).collect();
        let mut upcoming = VecDeque::new();
        for (site, at) in sites.iter().enumerate().filter(|(_, at)| at.unusable.is_none()) {
            let id = at.boundary.trajectory().id();
            let is_checked = || task.books.run().is_some_and(|run| run.world(id).is_some() || !run.lacks(id));
            if at.checks_rebuilds && !is_checked() {
                upcoming.push_back(Job::CheckRebuilds { site });
            }
            // All but the first boundary of a chain wait for the one before.
            if !setup.settings.chain || previous(sites, site).is_none() {
                let compact = |strategy: &String| Job::Compact { site, strategy: strategy.clone(), given: None };
                upcoming.extend(setup.strategies.keys().map(compact));
            }
        }
        Self {
            outcome: Outcome { states, ..Outcome::default() },
            looks: setup.settings.judging.stop_early.then(|| Looks::new(setup, task.control)),
            breaker: Breaker::new(setup.settings.give_up_after),
            spent: task.books.spent(),
            ready: VecDeque::new(),
            links: VecDeque::new(),
            upcoming,
            followers: HashMap::new(),
            warm,
            running: JoinSet::new(),
            task,
        }
    }

    async fn run(&mut self, warmed: &mut UnboundedReceiver<(usize, Arm)>) {
        let signal = self.task.signal;
        // Once it is to stop, no longer than this.
        let mut until = None;
        loop {
            if signal.is_given() {
                self.stop(Stop::Asked);
            }
            if self.outcome.stopped.is_none() {
                self.start();
            }
            if let (Some(stop), None) = (&self.outcome.stopped, until) {
                (self.task.progress)(Progress::Stopping { n_running: self.running.len() });
                // What cannot be kept is not waited for.
                let grace = match stop {
                    Stop::NotKept { .. } => Duration::ZERO,
                    _ => self.task.setup.settings.grace,
                };
                until = Some(Instant::now() + grace);
            }
            let is_late = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                done = self.running.join_next() => match done {
                    None => break,
                    Some(Ok(done)) => self.take(done),
                    // Strategies, agents and tools are caught where they run, so this is a fault of the scheduler's own.
                    Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
                },
                Some((site, arm)) = warmed.recv() => self.follow(site, arm),
                () = signal.given(), if self.outcome.stopped.is_none() => {}
                () = is_late => {
                    // What computes without awaiting cannot be put down, and is not waited for without end.
                    let _ = timeout(PUT_DOWN, self.running.shutdown()).await;
                    break;
                }
            }
        }
    }

    /// Starts what may start.
    fn start(&mut self) {
        while self.running.len() < self.task.setup.settings.concurrency {
            let Some(job) = self.next() else { break };
            if let Some(reason) =
                self.task.setup.settings.spend_limit.reached_by(&self.spent).filter(|_| self.is_paid(&job))
            {
                return self.stop(Stop::Spent { reason });
            }
            let Task { setup, sites, books, .. } = &self.task;
            let work = work(Arc::clone(setup), Arc::clone(sites), Arc::clone(books), self.warm.clone(), job);
            self.running.spawn(work.in_current_span());
        }
    }

    /// Whether a job may ask a model: what was finished before does not.
    fn is_paid(&self, job: &Job) -> bool {
        match job {
            Job::CheckRebuilds { .. } => false,
            Job::Compact { site, strategy, .. } => {
                let key = self.task.sites[*site].key();
                !self.task.books.run().is_some_and(|run| run.has_compaction(&key, strategy))
            }
            Job::RollOut { .. } => true,
        }
    }

    fn next(&mut self) -> Option<Job> {
        if let Some(job) = self.ready.pop_front().or_else(|| self.links.pop_front()) {
            return Some(job);
        }
        let site = self.upcoming.front()?.site();
        let may_start = match &mut self.looks {
            None => true,
            Some(looks) if looks.lets(site, &self.task.sites) => true,
            Some(looks) => self.running.is_empty() && looks.look(site, &self.task, &mut self.outcome),
        };
        may_start.then(|| self.upcoming.pop_front()).flatten()
    }

    fn take(&mut self, done: Done) {
        match done {
            Done::CheckedRebuilds { site, difference } => {
                let recording = self.task.sites[site].recording;
                self.outcome.shared_worlds.extend(difference.map(|difference| (recording, difference)));
            }
            Done::Compacted { site, strategy, outcome, is_new } => self.compacted(site, strategy, *outcome, is_new),
            Done::RolledOut { site, key, rollout } => self.rolled_out(site, key, rollout),
            Done::Lost(lost) => self.stop(not_kept(&lost)),
        }
    }

    fn compacted(&mut self, index: usize, strategy: String, mut outcome: CompactionOutcome, is_new: bool) {
        let Task { setup, sites, progress, .. } = &self.task;
        let site = &sites[index];
        progress(Progress::Compacted {
            recording: site.boundary.trajectory().id().to_owned(),
            cut: site.boundary.cut(),
            strategy: strategy.clone(),
            compaction: outcome.compaction.clone(),
        });
        if let (Some(left), Some(next)) = (outcome.left.take(), next(sites, index)) {
            let events = &site.boundary.trajectory().recording().events;
            let added = &events[site.boundary.cut()..sites[next].boundary.cut()];
            let given = Some(Box::new(go_on(&site.boundary.history(), &left, added, &*setup.settings.counter)));
            self.links.push_back(Job::Compact { site: next, strategy: strategy.clone(), given });
        }
        if is_new {
            self.spent.add(outcome.spend);
        }
        let state = &mut self.outcome.states[index];
        state.compactions[&strategy] = Some(outcome);
        if state.is_compacted() {
            self.plan(index);
        }
    }

    /// The rollouts of a boundary whose compactions are all there.
    fn plan(&mut self, site: usize) {
        let Task { setup, sites, control, books, progress, .. } = &self.task;
        let keep = self.keeps();
        let state = &mut self.outcome.states[site];
        let planned = match state.plan(setup, &sites[site], *control, books, keep) {
            Ok(planned) => planned,
            Err(lost) => return self.stop(not_kept(&lost)),
        };
        let n_at_most = setup.settings.samples as usize * (1 + setup.strategies.len());
        if planned.len() < n_at_most {
            progress(Progress::NotNeeded { n_rollouts: n_at_most - planned.len() });
        }
        let warms = setup.settings.warms_caches && setup.settings.samples > 1;
        for rollout in planned {
            let arm = (site, rollout.key.arm.clone());
            let job = |leads| Job::RollOut { site, rollout: Box::new(rollout), leads };
            match self.followers.get_mut(&arm) {
                Some(followers) => followers.push(job(false)),
                None => {
                    self.ready.push_back(job(warms));
                    if warms {
                        self.followers.insert(arm, Vec::new());
                    }
                }
            }
        }
    }

    /// Whether finished rollouts stay in memory: where nothing else keeps them, or they are looked at.
    fn keeps(&self) -> bool {
        self.task.books.run().is_none() || self.looks.is_some()
    }

    /// The first rollout of an arm has its answer: the others start, ahead of all that is ready.
    fn follow(&mut self, site: usize, arm: Arm) {
        for job in self.followers.remove(&(site, arm)).into_iter().flatten().rev() {
            self.ready.push_front(job);
        }
    }

    fn rolled_out(&mut self, site: usize, key: RolloutKey, rollout: Rollout) {
        // However it ended, nobody waits for its answer any more.
        self.follow(site, key.arm.clone());
        self.spent.add(rollout.spend);
        if let Some(stop) = self.breaker.add(&key, &rollout) {
            self.stop(stop);
        }
        let end: EndReason = rollout.end.clone();
        self.outcome.states[site].add(&key, rollout);
        (self.task.progress)(Progress::RolledOut { key, end });
    }

    /// Stops, for the first of several reasons.
    fn stop(&mut self, stop: Stop) {
        self.outcome.stopped.get_or_insert(stop);
    }

    async fn finish(mut self) -> Outcome {
        let Task { setup, sites, progress, books, .. } = &self.task;
        if !self.outcome.not_reached.is_empty() {
            let n_boundaries = sites[self.outcome.n_finished..].iter().filter(|site| site.unusable.is_none()).count();
            let n_rollouts = n_boundaries * (1 + setup.strategies.len()) * setup.settings.samples as usize;
            progress(Progress::NotNeeded { n_rollouts });
            return self.outcome;
        }
        if matches!(self.outcome.stopped, Some(Stop::AllAlike { .. })) {
            self.outcome.gave_up_at = self.breaker.first().cloned();
        }
        let usable = self.outcome.states.iter().zip(&**sites).filter(|(_, site)| site.unusable.is_none());
        let missing: Vec<_> = usable.map(|(state, _)| state.n_missing(setup)).filter(|&n| n > 0).collect();
        let reason = self.outcome.stopped.as_ref().map(ToString::to_string);
        self.outcome.unfinished = (!missing.is_empty()).then(|| Unfinished {
            n_recordings: 0,
            n_boundaries: missing.len(),
            n_rollouts: missing.iter().sum(),
            reason,
        });
        if books.run().is_none() {
            self.outcome.finish(sites, sites.len());
        }
        self.outcome
    }
}

fn not_kept(lost: &Lost) -> Stop {
    Stop::NotKept { reason: retrace_events::with_causes(&**lost) }
}

async fn work(
    setup: Arc<Setup>,
    sites: Arc<[Site]>,
    books: Arc<Books>,
    warm: UnboundedSender<(usize, Arm)>,
    job: Job,
) -> Done {
    try_work(&setup, &sites, &books, warm, job).await.unwrap_or_else(Done::Lost)
}

/// Does a job, unless it was done before, and returns once what came of it is kept.
async fn try_work(
    setup: &Setup,
    sites: &[Site],
    books: &Books,
    warm: UnboundedSender<(usize, Arm)>,
    job: Job,
) -> Result<Done, Lost> {
    let at = &sites[job.site()];
    Ok(match job {
        Job::CheckRebuilds { site } => {
            let Site { boundary, environment, .. } = at;
            // What fails here is seen again, and counted, in the rollouts.
            let environment = Bounded { environment: &**environment, limits: setup.settings.limits };
            let check = timeout(setup.settings.limits.rollout, check_rebuilds(&environment, boundary)).await;
            let Ok(Ok(difference)) = check else { return Ok(Done::CheckedRebuilds { site, difference: None }) };
            let difference = difference.map(|difference| difference.to_string());
            let recording = boundary.trajectory().id().to_owned();
            books.keep(vec![Record::World(WorldRecord { recording, difference: difference.clone() })]).await?;
            Done::CheckedRebuilds { site, difference }
        }
        Job::Compact { site, strategy, given } => {
            let given = given.map_or_else(|| at.boundary.history(), |given| *given);
            let (outcome, is_new) = match books.compaction(at, &strategy, &given)? {
                Some(outcome) => (outcome, false),
                None => {
                    let outcome = setup.compact(at, &strategy, given).await;
                    books.keep_compaction(at, &strategy, &outcome).await?;
                    (outcome, true)
                }
            };
            let left = outcome.left.filter(|_| setup.settings.chain);
            Done::Compacted { site, strategy, outcome: Box::new(CompactionOutcome { left, ..outcome }), is_new }
        }
        Job::RollOut { site, rollout, leads } => {
            let Planned { key, history } = *rollout;
            let warm = leads.then(|| Warm::new(warm, (site, key.arm.clone())));
            let rollout = setup.roll_out(at, &key, history, warm).await;
            books.keep_rollout(&key, &rollout).await?;
            Done::RolledOut { site, key, rollout }
        }
    })
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
