//! From a verification to its report: each boundary scored, then each strategy over its boundaries.

use std::collections::HashSet;
use std::mem;

use indexmap::IndexMap;
use num_traits::One;
use retrace_events::{EndReason, Rollout};
use retrace_stats::{Exact, Interval, Level, bootstrap_means, exact_permutation_test, exact_sign_test, median};

use crate::burden::{Burdens, Key};
use crate::delta::{ArmMeans, Channels, Delta, HorizonScore, Score, Side, Unscored, burdens, score_arms};
use crate::errors::{Place, Tally};
use crate::input::{BoundaryOutcome, Compaction, Size, Spend, StrategyOutcome, Verification};
use crate::report::{
    Aggregate, ArmReport, BoundaryReport, BoundaryStrategy, Estimate, Failed, Failures, REPORT_VERSION, RESAMPLES,
    Report, ReportError, RolloutReport, StrategyReport, UnscoredCount,
};

pub(crate) fn report(mut verification: Verification) -> Result<Report, ReportError> {
    check(&verification)?;
    let outcomes = mem::take(&mut verification.boundaries);
    let boundaries: Vec<_> = outcomes.into_iter().map(|outcome| score(outcome, &verification)).collect();
    let mut pre = ArmTally::new(verification.horizon);
    for boundary in &boundaries {
        pre.add(boundary, &boundary.pre);
    }
    let strategies = verification.strategies.iter();
    let strategies = strategies.map(|name| (name.clone(), strategy(name, &boundaries, &verification))).collect();
    Ok(Report {
        version: REPORT_VERSION,
        horizon: verification.horizon,
        samples: verification.samples,
        seed: verification.seed,
        resamples: RESAMPLES,
        token_counter: verification.token_counter,
        control: verification.control,
        recordings: verification.recordings,
        unusable: verification.unusable,
        n_left_out: verification.n_left_out,
        pre: pre.finish(),
        strategies,
        boundaries,
    })
}

fn check(verification: &Verification) -> Result<(), ReportError> {
    if verification.horizon == 0 {
        return Err(ReportError::NoHorizon);
    }
    let mut recordings = HashSet::new();
    for recording in &verification.recordings {
        if !recordings.insert(&recording.id) {
            return Err(ReportError::DuplicateRecording { id: recording.id.clone() });
        }
    }
    let mut strategies = HashSet::new();
    for name in &verification.strategies {
        if !strategies.insert(name) {
            return Err(ReportError::DuplicateStrategy { name: name.clone() });
        }
    }
    if let Some(name) = verification.control.as_ref().filter(|name| !strategies.contains(name)) {
        return Err(ReportError::UnknownControl { name: name.clone() });
    }
    let mut boundaries = HashSet::new();
    for BoundaryOutcome { recording, cut, strategies: tested, .. } in &verification.boundaries {
        let (recording, cut) = (recording.clone(), *cut);
        if !recordings.contains(&recording) {
            return Err(ReportError::UnknownRecording { recording, cut });
        }
        for (name, outcome) in tested {
            let name = name.clone();
            if !strategies.contains(&name) {
                return Err(ReportError::UnknownStrategy { recording, cut, name });
            }
            if matches!(outcome.compaction, Compaction::Failed { .. }) && !outcome.post.is_empty() {
                return Err(ReportError::RolloutsOfFailedCompaction { recording, cut, name });
            }
        }
        if !boundaries.insert((recording.clone(), cut)) {
            return Err(ReportError::DuplicateBoundary { recording, cut });
        }
    }
    Ok(())
}

/// A boundary with its scores.
fn score(outcome: BoundaryOutcome, verification: &Verification) -> BoundaryReport {
    let BoundaryOutcome { recording, cut, executed, history, pre_size, pre, strategies } = outcome;
    let pre_burdens = burdens(&pre, &history, Key::Call);
    let strategies = strategies.into_iter().map(|(name, outcome)| {
        let StrategyOutcome { compaction, spend, post } = outcome;
        let post_burdens = burdens(&post, &history, Key::Call);
        let is_control = verification.control.as_ref() == Some(&name);
        let scores = (1..=verification.horizon).map(|horizon| {
            let score = match compaction {
                Compaction::Failed { .. } => Score::Unscored(Unscored::CompactionFailed),
                Compaction::Unchanged if post.is_empty() && !is_control => Score::Noop,
                _ => score_arms(&pre_burdens, &post_burdens, horizon),
            };
            HorizonScore { horizon, score }
        });
        let scores = scores.collect();
        let kept = kept(pre_size, &compaction);
        (name, BoundaryStrategy { compaction, kept, spend, scores, post: rollouts(post, post_burdens) })
    });
    let strategies = strategies.collect();
    BoundaryReport { recording, cut, executed, pre_size, pre: rollouts(pre, pre_burdens), strategies }
}

fn rollouts(arm: Vec<Rollout>, burdens: Vec<Burdens>) -> Vec<RolloutReport> {
    arm.into_iter().zip(burdens).map(|(rollout, burdens)| RolloutReport { rollout, burdens }).collect()
}

/// The share of the tokens that a compaction left.
fn kept(pre: Option<Size>, compaction: &Compaction) -> Option<Exact> {
    let before = pre.filter(|pre| pre.tokens.0 > 0)?.tokens.0;
    match compaction {
        Compaction::Failed { .. } => None,
        Compaction::Unchanged => Some(Exact::one()),
        Compaction::Compacted { size } => size.map(|after| Exact::new(after.tokens.0.into(), before.into())),
    }
}

/// One strategy over the boundaries where it was tested.
fn strategy(name: &str, boundaries: &[BoundaryReport], verification: &Verification) -> StrategyReport {
    let tested: Vec<Tested> =
        boundaries.iter().filter_map(|at| at.strategies.get(name).map(|here| Tested { at, here })).collect();
    let count = |is: fn(&Tested) -> bool| tested.iter().filter(|tested| is(tested)).count();
    let mut post = ArmTally::new(verification.horizon);
    let mut compaction_errors = Tally::default();
    let mut spend = Spend::default();
    for Tested { at, here } in &tested {
        post.add(at, &here.post);
        spend.add(here.spend);
        if let Compaction::Failed { error } = &here.compaction {
            compaction_errors.add(None, error, || place(at, None));
        }
    }
    let shares: Vec<_> = tested.iter().filter_map(|tested| tested.here.kept.clone()).collect();
    StrategyReport {
        n_tested: tested.len(),
        n_failed_compactions: count(|tested| matches!(tested.here.compaction, Compaction::Failed { .. })),
        n_unchanged: count(|tested| tested.here.compaction == Compaction::Unchanged),
        n_noop: count(|tested| tested.here.scores.iter().all(|score| score.score == Score::Noop)),
        n_grown: count(|tested| tested.sizes().is_some_and(|(before, after)| after > before)),
        n_emptied: count(|tested| tested.sizes().is_some_and(|(before, after)| after < before.div_ceil(100))),
        kept: median(&shares),
        spend,
        compaction_errors: compaction_errors.into_counts(),
        post: post.finish(),
        horizons: aggregates(&tested, verification),
    }
}

/// A boundary where a strategy was tested.
struct Tested<'a> {
    at: &'a BoundaryReport,
    here: &'a BoundaryStrategy,
}

impl Tested<'_> {
    /// The tokens before and after a compaction.
    fn sizes(&self) -> Option<(u64, u64)> {
        let Compaction::Compacted { size } = self.here.compaction else { return None };
        Some((self.at.pre_size?.tokens.0, size?.tokens.0))
    }
}

/// One strategy at each horizon.
fn aggregates(tested: &[Tested], verification: &Verification) -> Vec<Aggregate> {
    let deltas: Vec<Deltas> = (1..=verification.horizon).map(|horizon| Deltas::new(tested, horizon)).collect();
    let intervals = intervals(&deltas, verification.seed);
    let aggregates = deltas.into_iter().zip(intervals).zip(1..);
    aggregates.map(|((deltas, intervals), horizon)| aggregate(tested, horizon, deltas, intervals)).collect()
}

fn aggregate(
    tested: &[Tested],
    horizon: usize,
    Deltas { scored, columns }: Deltas,
    intervals: Option<Channels<Interval>>,
) -> Aggregate {
    let scores = || tested.iter().map(|tested| &tested.here.scores[horizon - 1].score);
    let mut unscored: IndexMap<Unscored, usize> = IndexMap::new();
    for score in scores() {
        if let Score::Unscored(reason) = score {
            *unscored.entry(*reason).or_default() += 1;
        }
    }
    let mut unscored: Vec<_> = unscored.into_iter().map(|(reason, count)| UnscoredCount { reason, count }).collect();
    unscored.sort_by_key(|unscored| std::cmp::Reverse(unscored.count));
    let arms = scores().filter_map(|score| match score {
        Score::Scored(Delta { pre, post, .. }) => Some((pre, post)),
        _ => None,
    });
    let (pre, post): (Vec<_>, Vec<_>) = arms.unzip();
    let means = (!scored.is_empty()).then(|| columns.as_ref().map(|column| mean(column.iter())));
    Aggregate {
        horizon,
        n_scored: scored.len(),
        unscored,
        sign_test_p: exact_sign_test(&columns.wasted).p,
        permutation_p: exact_permutation_test(&columns.wasted).ok().map(|test| test.p),
        deltas: means.map(|means| estimates(means, intervals)),
        pre: mean_of_arms(&pre),
        post: mean_of_arms(&post),
        failures: failures(tested, horizon),
    }
}

/// The deltas of a strategy at one horizon.
struct Deltas {
    /// Which of the tested boundaries have one.
    scored: Vec<usize>,
    /// The deltas there.
    columns: Channels<Vec<Exact>>,
}

impl Deltas {
    fn new(tested: &[Tested], horizon: usize) -> Self {
        let mut scored = Vec::new();
        let mut columns = Channels::<Vec<Exact>>::default();
        for (index, tested) in tested.iter().enumerate() {
            if let Some(delta) = tested.here.scores[horizon - 1].score.delta() {
                scored.push(index);
                columns.push(delta);
            }
        }
        Self { scored, columns }
    }
}

impl Channels<Vec<Exact>> {
    fn push(&mut self, delta: Channels<Exact>) {
        let Channels { blocked, refetch, wasted, stopped, harm } = delta;
        self.blocked.push(blocked);
        self.refetch.push(refetch);
        self.wasted.push(wasted);
        self.stopped.push(stopped);
        self.harm.push(harm);
    }
}

/// The interval of each channel at each horizon. Horizons with the same boundaries share their draws, as all channels do.
fn intervals(deltas: &[Deltas], seed: u64) -> Vec<Option<Channels<Interval>>> {
    let mut intervals = Vec::with_capacity(deltas.len());
    for alike in deltas.chunk_by(|one, next| one.scored == next.scored) {
        if alike[0].scored.len() < 2 {
            intervals.extend(alike.iter().map(|_| None));
            continue;
        }
        let columns = alike.iter().flat_map(|Deltas { columns: c, .. }| {
            [&c.blocked, &c.refetch, &c.wasted, &c.stopped, &c.harm].map(Vec::as_slice)
        });
        let columns: Vec<_> = columns.collect();
        let bootstraps = bootstrap_means(&columns, RESAMPLES, Level::PERCENT_95, seed)
            .expect("the columns are of equal length, with two boundaries at least and fewer than 2^32");
        let mut bootstraps = bootstraps.into_iter().map(|bootstrap| bootstrap.interval);
        let mut next = || bootstraps.next().expect("each column has its interval");
        intervals.extend(alike.iter().map(|_| Some(Channels::default().map(|(): ()| next()))));
    }
    intervals
}

fn estimates(means: Channels<Exact>, intervals: Option<Channels<Interval>>) -> Channels<Estimate> {
    let intervals = intervals.map_or_else(Channels::default, |intervals| intervals.map(Some));
    let estimate = |mean, interval| Estimate { mean, interval };
    Channels {
        blocked: estimate(means.blocked, intervals.blocked),
        refetch: estimate(means.refetch, intervals.refetch),
        wasted: estimate(means.wasted, intervals.wasted),
        stopped: estimate(means.stopped, intervals.stopped),
        harm: estimate(means.harm, intervals.harm),
    }
}

fn mean<'a>(values: impl ExactSizeIterator<Item = &'a Exact>) -> Exact {
    let n = values.len();
    values.sum::<Exact>() / Exact::from_integer(n.into())
}

/// The mean over boundaries of each mean of an arm.
fn mean_of_arms(arms: &[&ArmMeans]) -> Option<ArmMeans> {
    let mean_of = |field: fn(&ArmMeans) -> &Exact| mean(arms.iter().map(|arm| field(arm)));
    (!arms.is_empty()).then(|| ArmMeans {
        blocked: mean_of(|arm| &arm.blocked),
        refetch: mean_of(|arm| &arm.refetch),
        wasted: mean_of(|arm| &arm.wasted),
        stopped: mean_of(|arm| &arm.stopped),
        actions: mean_of(|arm| &arm.actions),
    })
}

fn failures(tested: &[Tested], horizon: usize) -> Failures {
    let [mut pre, mut paired_pre, mut post] = [Failed::default(); 3];
    for Tested { at, here } in tested {
        pre.add(&at.pre, horizon);
        post.add(&here.post, horizon);
        if !here.post.is_empty() {
            paired_pre.add(&at.pre, horizon);
        }
    }
    Failures { post, pre, more: more(pre, post), paired_pre, paired_more: more(paired_pre, post) }
}

/// The arm with the greater share of failed rollouts.
fn more(pre: Failed, post: Failed) -> Option<Side> {
    match (pre.exceeds(post), post.exceeds(pre)) {
        (true, _) => Some(Side::Pre),
        (_, true) => Some(Side::Post),
        _ => None,
    }
}

impl Failed {
    fn add(&mut self, arm: &[RolloutReport], horizon: usize) {
        self.n_rollouts += arm.len();
        self.failed += arm.iter().filter(|rollout| !rollout.rollout.reaches(horizon)).count();
    }
}

/// The rollouts of an arm, counted boundary by boundary.
struct ArmTally {
    failed: Vec<Failed>,
    n_off_the_record: usize,
    errors: Tally,
    spend: Spend,
    means: Vec<Vec<ArmMeans>>,
}

impl ArmTally {
    fn new(horizon: usize) -> Self {
        Self {
            failed: vec![Failed::default(); horizon],
            n_off_the_record: 0,
            errors: Tally::default(),
            spend: Spend::default(),
            means: vec![Vec::new(); horizon],
        }
    }

    fn add(&mut self, boundary: &BoundaryReport, arm: &[RolloutReport]) {
        let full = self.failed.len();
        for (sample, RolloutReport { rollout, .. }) in arm.iter().enumerate() {
            self.spend.add(Spend::of(rollout));
            self.n_off_the_record += usize::from(matches!(rollout.end, EndReason::OffTheRecord { .. }));
            if !rollout.reaches(full) {
                self.errors.add_rollout(rollout, || place(boundary, Some(sample)));
            }
        }
        for (horizon, (failed, means)) in (1..).zip(self.failed.iter_mut().zip(&mut self.means)) {
            failed.add(arm, horizon);
            means.extend(ArmMeans::of(arm.iter().map(|rollout| &rollout.burdens), horizon));
        }
    }

    fn finish(self) -> ArmReport {
        let means = self.means.iter().map(|means| mean_of_arms(&means.iter().collect::<Vec<_>>()));
        ArmReport {
            n_rollouts: self.failed[0].n_rollouts,
            means: means.collect(),
            n_failed: self.failed.into_iter().map(|failed| failed.failed).collect(),
            n_off_the_record: self.n_off_the_record,
            errors: self.errors.into_counts(),
            spend: self.spend,
        }
    }
}

fn place(boundary: &BoundaryReport, sample: Option<usize>) -> Place {
    Place { recording: boundary.recording.clone(), cut: boundary.cut, sample }
}
