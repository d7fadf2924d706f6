//! A verification whose results are kept in a folder: what is written of its plan, and what it goes on with.

use std::path::PathBuf;

use indexmap::IndexMap;
use retrace_journal::{
    BoundaryRecord, ExecutedCall, Journal, JournalError, Manifest, NotReached, Opened, Plan as JournalPlan, Record,
    RecordingRecord, RolloutRecord, Run, Shard, Stopped, Withdrawn,
};
use serde_json::{Value, json};

use crate::books::{Books, Lost};
use crate::cell::Setup;
use crate::error::VerifyError;
use crate::plan::{Plan, Site};
use crate::progress::Progress;
use crate::schedule::Outcome;
use crate::stop::fail_alike;

/// The folder of a run, and what decides its results beside the settings.
///
/// All of it is written into the folder, so there must be no key in it.
#[derive(Clone, Debug, Default)]
pub struct RunFolder {
    /// The folder; made where it is not there.
    pub path: PathBuf,
    /// The settings of agent, models and environments. A run does not go on with others.
    pub setup: Value,
    /// The parameters of strategies, by their names; of one that is not here its kind is written.
    pub strategies: IndexMap<String, Value>,
    /// Which share of the boundaries is run, if not all.
    pub shard: Option<Shard>,
}

impl RunFolder {
    /// The manifest of a plan.
    pub(crate) fn manifest(&self, plan: &Plan, setup: &Setup, control: Option<&str>) -> Manifest {
        let settings = &setup.settings;
        let described = |name: &String| self.strategies.get(name).cloned();
        let strategies = setup.strategies.iter().map(|(name, strategy)| {
            let parameters = described(name).unwrap_or_else(|| json!({ "kind": strategy.kind() }));
            (name.clone(), parameters)
        });
        let plan_written = JournalPlan {
            horizon: settings.horizon,
            samples: settings.samples,
            seed: settings.seed,
            spacing: json!(settings.spacing),
            chain: settings.chain,
            stop_early: settings.judging.stop_early,
            token_counter: settings.counter.name().to_owned(),
            model: setup.model.name().to_owned(),
            setup: self.setup.clone(),
            control: control.map(str::to_owned),
            strategies: strategies.collect(),
            recordings: plan.planned.clone(),
            shard: self.shard,
        };
        let manifest = Manifest::new(plan_written, settings.judging, plan.unusable.clone(), plan.n_left_out);
        Manifest { prices: setup.model.prices(), ..manifest }
    }
}

/// Begins a run, or goes on with it: what is known of its boundaries already holds.
pub(crate) fn open(
    folder: &RunFolder,
    plan: &mut Plan,
    setup: &Setup,
    control: Option<&str>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Books, VerifyError> {
    let stop_early = setup.settings.judging.stop_early;
    if let Some(Shard { index, of }) = folder.shard {
        if !(1..=of).contains(&index) {
            return Err(VerifyError::NoSuchShard { index, of });
        }
        if stop_early {
            return Err(VerifyError::EarlyShards);
        }
    }
    let manifest = folder.manifest(plan, setup, control);
    if let Some(shard) = folder.shard {
        plan.keep_shard(shard, setup.settings.chain);
    }
    let Opened { mut run, mut journal } = Journal::open(&folder.path, manifest)?;
    let torn_line = run.torn_line();
    let again = to_run_again(&run, setup.settings.give_up_after)?;
    let n_withdrawn = again.rollouts.len();
    if n_withdrawn + again.compactions.len() > 0 {
        journal.append(&[Record::Withdrawn(again)])?;
        run = Run::read(&folder.path)?;
    }
    let (n_rollouts, spent) = (run.n_rollouts(), run.spent());
    if n_rollouts + n_withdrawn > 0 || torn_line.is_some() {
        progress(Progress::GoesOn { n_rollouts, spent, torn_line, n_withdrawn });
    }
    for (facts, trajectory) in plan.recordings.iter_mut().zip(&plan.trajectories) {
        if let Some(known) = run.recording(trajectory.id()) {
            *facts = known.clone();
        }
    }
    for site in &mut plan.sites {
        site.unusable = run.boundary(&site.key()).flatten().map(str::to_owned);
    }
    let path = &folder.path;
    let books = Books::in_folder(run, journal);
    Ok(books.map_err(|source| JournalError::Io { action: "start to write in", path: path.clone(), source })?)
}

/// What of a run is to run again: the rollouts for which it gave up, or all of a finished one if all failed alike, and where no
/// rollout ran, the compactions that failed. They say something about the set-up, and nothing about any strategy.
fn to_run_again(run: &Run, give_up_after: usize) -> Result<Withdrawn, JournalError> {
    let (mut rollouts, mut compactions) = (Vec::new(), Vec::new());
    if let Some(first) = run.gave_up_at()? {
        for record in run.rollouts_since_giving_up() {
            let RolloutRecord { key, rollout } = record?;
            if fail_alike(&first.rollout, &rollout) {
                rollouts.push(key);
            }
        }
    } else if run.n_rollouts() == 0 {
        compactions = run.failed_compactions()?;
    } else if run.n_rollouts() >= give_up_after || run.is_finished() {
        // One or two of many may have failed alike by chance.
        let mut first = None;
        for record in run.rollouts() {
            let RolloutRecord { key, rollout } = record?;
            if !fail_alike(first.get_or_insert_with(|| rollout.clone()), &rollout) {
                rollouts.clear();
                break;
            }
            rollouts.push(key);
        }
    }
    Ok(Withdrawn { rollouts, compactions, reason: AGAIN.to_owned() })
}

/// Why something runs again.
const AGAIN: &str = "all failed alike";

/// Writes down the recordings and boundaries that are not there yet.
pub(crate) async fn keep_plan(books: &Books, plan: &Plan) -> Result<(), Lost> {
    let Some(run) = books.run() else { return Ok(()) };
    let mut records = Vec::new();
    for ((facts, trajectory), cuts) in plan.recordings.iter().zip(&plan.trajectories).zip(&plan.cuts) {
        if run.recording(&facts.id).is_none() {
            let executed = trajectory.actions().iter().map(|action| ExecutedCall {
                name: action.action.name().to_owned(),
                arguments: action.action.arguments().to_owned(),
            });
            let (facts, cuts, executed) = (facts.clone(), cuts.clone(), executed.collect());
            records.push(Record::Recording(RecordingRecord { facts, cuts, executed }));
        }
    }
    records.extend(plan.sites.iter().filter(|site| run.boundary(&site.key()).is_none()).map(|site| {
        let Site { boundary, size, unusable, .. } = site;
        Record::Boundary(BoundaryRecord {
            recording: boundary.trajectory().id().to_owned(),
            cut: boundary.cut(),
            executed: boundary.executed(),
            size: *size,
            unusable: unusable.clone(),
        })
    }));
    books.keep(records).await
}

/// Writes down how a run ended, where that tells more than what it finished.
pub(crate) async fn keep_end(books: &Books, outcome: &Outcome) {
    let Some(run) = books.run() else { return };
    let stopped =
        outcome.stopped.as_ref().map(|stop| Stopped { reason: stop.to_string(), since: outcome.gave_up_at.clone() });
    let mut records = Vec::new();
    if stopped.is_none() && outcome.not_reached != run.not_reached() {
        records.push(Record::NotReached(NotReached { recordings: outcome.not_reached.clone() }));
    }
    records.extend(stopped.map(Record::Stopped));
    // Where even this cannot be written, the run says so itself.
    let _ = books.keep(records).await;
}
