//! From a verification to its report: each boundary scored, then each strategy over its boundaries.

use std::collections::{HashMap, HashSet};
use std::mem;

use indexmap::{IndexMap, IndexSet};
use num_traits::{One, Zero};
use retrace_events::{EndReason, Rollout, Spend};
use retrace_stats::{
    Exact, ExactBootstrap, Level, PValue, exact_bootstrap_mean, exact_mean, exact_rates_test, exact_sign_test, median,
    sign_flip_test,
};

use crate::burden::{Burdens, Key};
use crate::delta::{ArmMeans, Channels, HorizonScore, Score, Side, Unscored, burdens, score_arms};
use crate::errors::{Place, Tally};
use crate::inference::Judged;
use crate::input::{BoundaryOutcome, Compaction, MAX_HORIZON, Size, StrategyOutcome, Verification};
use crate::judging::Units;
use crate::report::{
    Aggregate, ArmReport, BoundaryReport, BoundaryStrategy, Estimate, Failed, Failures, REPORT_VERSION, Report,
    ReportError, RolloutReport, StrategyReport, UnscoredCount,
};
use crate::saved::Saved;

impl Report {
    /// Works out the report of a verification.
    ///
    /// The numbers, their formulas and where they come from are in `docs/methods.md`.
    ///
    /// # Errors
    /// [`ReportError`] if the parts of the verification contradict each other.
    pub fn new(mut verification: Verification) -> Result<Self, ReportError> {
        check(&verification)?;
        let outcomes = mem::take(&mut verification.boundaries);
        let boundaries: Vec<_> = outcomes.into_iter().map(|outcome| score(outcome, &verification)).collect();
        let mut pre = ArmTally::new(verification.horizon);
        for boundary in &boundaries {
            pre.add(boundary, &boundary.pre);
        }
        let units = Units::new(verification.judging.unit, &verification.recordings);
        let judged = Judged::new(&verification, &boundaries, &units);
        let (mut inferences, contrasts) = (judged.infer(), judged.contrasts());
        let strategies = verification.strategies.iter().map(|name| {
            let inference = inferences.swap_remove(name);
            (name.clone(), StrategyReport { inference, ..strategy(name, &boundaries, &verification) })
        });
        let strategies = strategies.collect();
        let pre = pre.finish();
        Ok(Report {
            version: REPORT_VERSION,
            horizon: verification.horizon,
            samples: verification.samples,
            seed: verification.seed,
            token_counter: verification.token_counter,
            model: verification.model,
            prices: verification.prices,
            spend: spent(&pre.spend, &strategies),
            control: verification.control,
            recordings: verification.recordings,
            unusable: verification.unusable,
            n_left_out: verification.n_left_out,
            chain: verification.chain,
            judging: verification.judging,
            n_not_reached: verification.n_not_reached,
            pre,
            strategies,
            contrasts,
            boundaries,
        })
    }
}

fn check(verification: &Verification) -> Result<(), ReportError> {
    if !(1..=MAX_HORIZON).contains(&verification.horizon) {
        return Err(ReportError::BadHorizon { horizon: verification.horizon });
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
    for BoundaryOutcome { recording, cut, unusable, pre, strategies: tested, .. } in &verification.boundaries {
        let (recording, cut) = (recording.clone(), *cut);
        if unusable.is_some() && !(pre.is_empty() && tested.is_empty()) {
            return Err(ReportError::OutcomesOfUnusableBoundary { recording, cut });
        }
        if !recordings.contains(&recording) {
            return Err(ReportError::UnknownRecording { recording, cut });
        }
        for (name, outcome) in tested {
            let name = name.clone();
            if !strategies.contains(&name) {
                return Err(ReportError::UnknownStrategy { recording, cut, name });
            }
            if outcome.compaction.leaves_nothing() && !outcome.post.is_empty() {
                return Err(ReportError::RolloutsOfFailedCompaction { recording, cut, name });
            }
        }
        if !boundaries.insert((recording.clone(), cut)) {
            return Err(ReportError::DuplicateBoundary { recording, cut });
        }
    }
    Ok(())
}

/// What all rollouts and compactions spent.
fn spent(pre: &Spend, strategies: &IndexMap<String, StrategyReport>) -> Spend {
    let mut sum = *pre;
    for strategy in strategies.values() {
        sum.add(strategy.post.spend);
        sum.add(strategy.spend);
    }
    sum
}

/// A boundary with its scores.
fn score(outcome: BoundaryOutcome, verification: &Verification) -> BoundaryReport {
    let BoundaryOutcome { recording, cut, executed, executed_calls, pre_size, unusable, pre, strategies } = outcome;
    let pre_burdens = burdens(&pre, &executed_calls, Key::Call);
    let strategies = strategies.into_iter().map(|(name, outcome)| {
        let StrategyOutcome { compaction, lost_task, spend, post } = outcome;
        let post_burdens = burdens(&post, &executed_calls, Key::Call);
        let is_control = verification.control.as_ref() == Some(&name);
        let scores = (1..=verification.horizon).map(|horizon| {
            let score = match compaction {
                Compaction::Failed { .. } => Score::Unscored(Unscored::CompactionFailed),
                Compaction::Flawed { .. } => Score::Unscored(Unscored::CompactionFlawed),
                Compaction::Unchanged if post.is_empty() && !is_control => Score::Noop,
                _ => score_arms(&pre_burdens, &post_burdens, horizon),
            };
            HorizonScore { horizon, score }
        });
        let scores = scores.collect();
        let (kept, cache_kept) = (kept(pre_size, &compaction), cache_kept(&compaction));
        let post = rollouts(post, post_burdens);
        (name, BoundaryStrategy { compaction, lost_task, kept, cache_kept, spend, scores, post })
    });
    let strategies = strategies.collect();
    BoundaryReport { recording, cut, executed, pre_size, unusable, pre: rollouts(pre, pre_burdens), strategies }
}

fn rollouts(arm: Vec<Rollout>, burdens: Vec<Burdens>) -> Vec<RolloutReport> {
    arm.into_iter().zip(burdens).map(|(rollout, burdens)| RolloutReport { rollout, burdens }).collect()
}

/// The share of the tokens that a compaction left.
fn kept(pre: Option<Size>, compaction: &Compaction) -> Option<Exact> {
    let before = pre.filter(|pre| pre.tokens.0 > 0)?.tokens.0;
    match compaction {
        Compaction::Failed { .. } | Compaction::Flawed { .. } => None,
        Compaction::Unchanged => Some(Exact::one()),
        Compaction::Compacted { size, .. } => size.map(|after| Exact::new(after.tokens.0.into(), before.into())),
    }
}

/// The share of what a compaction left that a prompt cache still knows.
fn cache_kept(compaction: &Compaction) -> Option<Exact> {
    match compaction {
        Compaction::Failed { .. } | Compaction::Flawed { .. } => None,
        Compaction::Unchanged => Some(Exact::one()),
        Compaction::Compacted { size, cached } => {
            let whole = size.filter(|size| size.tokens.0 > 0)?.tokens.0;
            cached.map(|cached| Exact::new(cached.0.into(), whole.into()))
        }
    }
}

/// One strategy over the boundaries where it was tested.
fn strategy(name: &str, boundaries: &[BoundaryReport], verification: &Verification) -> StrategyReport {
    let tested: Vec<Tested> =
        boundaries.iter().filter_map(|at| at.strategies.get(name).map(|here| Tested { at, here })).collect();
    let count = |is: fn(&Tested) -> bool| tested.iter().filter(|tested| is(tested)).count();
    let mut post = ArmTally::new(verification.horizon);
    let (mut compaction_errors, mut flaws) = (Tally::default(), Tally::default());
    let mut spend = Spend::default();
    for Tested { at, here } in &tested {
        post.add(at, &here.post);
        spend.add(here.spend);
        let place = || Place::boundary(&at.recording, at.cut);
        match &here.compaction {
            Compaction::Failed { error } => compaction_errors.add(None, error, place),
            Compaction::Flawed { flaw } => flaws.add(None, flaw, place),
            Compaction::Unchanged | Compaction::Compacted { .. } => {}
        }
    }
    let n_unusable = boundaries.iter().filter(|at| at.unusable.is_some()).count();
    let shares: Vec<_> = tested.iter().filter_map(|tested| tested.here.kept.clone()).collect();
    let cached: Vec<_> = tested.iter().filter_map(|tested| tested.here.cache_kept.clone()).collect();
    StrategyReport {
        n_tested: tested.len(),
        n_failed_compactions: count(|tested| matches!(tested.here.compaction, Compaction::Failed { .. })),
        n_flawed_compactions: count(|tested| matches!(tested.here.compaction, Compaction::Flawed { .. })),
        n_unchanged: count(|tested| tested.here.compaction == Compaction::Unchanged),
        n_noop: count(|tested| tested.here.scores.iter().all(|score| score.score == Score::Noop)),
        n_grown: count(|tested| tested.sizes().is_some_and(|(before, after)| after > before)),
        n_lost_task: count(|tested| tested.here.lost_task),
        n_emptied: count(|tested| tested.sizes().is_some_and(|(before, after)| after < before.div_ceil(100))),
        kept: median(&shares),
        cache_kept: median(&cached),
        spend,
        saved: Saved::of(tested.iter().filter_map(Tested::left), verification.prices),
        compaction_errors: compaction_errors.into_counts(),
        flaws: flaws.into_counts(),
        post: post.finish(),
        inference: None,
        horizons: aggregates(&tested, n_unusable, verification),
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
        let Compaction::Compacted { size, .. } = self.here.compaction else { return None };
        Some((self.at.pre_size?.tokens.0, size?.tokens.0))
    }

    /// The same, an unchanged history among them.
    fn left(&self) -> Option<(u64, u64)> {
        let before = self.at.pre_size?.tokens.0;
        if self.here.compaction == Compaction::Unchanged { Some((before, before)) } else { self.sizes() }
    }
}

/// One strategy at each horizon.
fn aggregates(tested: &[Tested], n_unusable: usize, verification: &Verification) -> Vec<Aggregate> {
    let deltas: Vec<_> = (1..=verification.horizon).map(|horizon| deltas(tested, horizon)).collect();
    let intervals = intervals(&deltas);
    let tests = tests(&deltas);
    let failures = failures(tested, verification.horizon);
    let aggregate = |((columns, failures), horizon)| {
        let mut aggregate = aggregate(tested, horizon, columns, failures, &intervals, &tests);
        if n_unusable > 0 {
            aggregate.unscored.insert(0, UnscoredCount { reason: Unscored::Unusable, count: n_unusable });
        }
        aggregate
    };
    deltas.iter().zip(failures).zip(1..).map(aggregate).collect()
}

fn aggregate(
    tested: &[Tested],
    horizon: usize,
    deltas: &Channels<Vec<Exact>>,
    failures: Failures,
    intervals: &HashMap<&[Exact], ExactBootstrap>,
    tests: &HashMap<&[Exact], Tests>,
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
        Score::Scored(scored) => Some((&scored.pre, &scored.post)),
        _ => None,
    });
    let (pre, post): (Vec<_>, Vec<_>) = arms.unzip();
    let estimate = |column: &Vec<Exact>| {
        let bootstrap = intervals.get(column.as_slice());
        let mean = |column: &Vec<Exact>| exact_mean(column).unwrap_or_default();
        Estimate {
            mean: bootstrap.map_or_else(|| mean(column), |bootstrap| bootstrap.mean.clone()),
            interval: bootstrap.map(|bootstrap| bootstrap.interval.clone()),
            interval_method: bootstrap.map(|bootstrap| bootstrap.resamples.method()),
        }
    };
    let Tests { n_nonzero, sign_test_p, permutation_p } = tests[deltas.wasted.as_slice()].clone();
    Aggregate {
        horizon,
        n_scored: deltas.wasted.len(),
        unscored,
        deltas: (!deltas.wasted.is_empty()).then(|| deltas.as_ref().map(estimate)),
        pre: mean_of_arms(&pre),
        post: mean_of_arms(&post),
        n_nonzero,
        sign_test_p,
        permutation_p,
        failures,
    }
}

/// The deltas at the boundaries that are scored at a horizon.
fn deltas(tested: &[Tested], horizon: usize) -> Channels<Vec<Exact>> {
    let mut columns = Channels::<Vec<Exact>>::default();
    for Channels { blocked, refetch, wasted, stopped, harm } in
        tested.iter().filter_map(|tested| tested.here.scores[horizon - 1].score.delta())
    {
        columns.blocked.push(blocked);
        columns.refetch.push(refetch);
        columns.wasted.push(wasted);
        columns.stopped.push(stopped);
        columns.harm.push(harm);
    }
    columns
}

/// The interval of each column of two deltas or more. It depends on nothing else, so horizons and channels with the same
/// column have it in common: beyond the end of the rollouts all horizons have.
fn intervals(deltas: &[Channels<Vec<Exact>>]) -> HashMap<&[Exact], ExactBootstrap> {
    let columns = deltas.iter().flat_map(|c| [&c.blocked, &c.refetch, &c.wasted, &c.stopped, &c.harm]);
    let columns: IndexSet<_> = columns.map(Vec::as_slice).filter(|column| column.len() > 1).collect();
    let bootstrap = |column| {
        let bootstrap = exact_bootstrap_mean(column, Level::PERCENT_95);
        (column, bootstrap.expect("there are two deltas at least, and fewer than 2^32"))
    };
    columns.into_iter().map(bootstrap).collect()
}

/// What is tested of the deltas of wasted.
#[derive(Clone)]
struct Tests {
    n_nonzero: usize,
    sign_test_p: Exact,
    permutation_p: PValue,
}

/// The tests of each column of wasted, once for all horizons with the same one.
fn tests(deltas: &[Channels<Vec<Exact>>]) -> HashMap<&[Exact], Tests> {
    let mut tests = HashMap::new();
    for column in deltas.iter().map(|columns| columns.wasted.as_slice()) {
        tests.entry(column).or_insert_with(|| Tests {
            n_nonzero: column.iter().filter(|delta| !delta.is_zero()).count(),
            sign_test_p: exact_sign_test(column).p,
            permutation_p: sign_flip_test(column).p,
        });
    }
    tests
}

/// The mean over boundaries of each mean of an arm.
fn mean_of_arms(arms: &[&ArmMeans]) -> Option<ArmMeans> {
    let mean_of = |field: fn(&ArmMeans) -> &Exact| exact_mean(arms.iter().map(|arm| field(arm))).unwrap_or_default();
    (!arms.is_empty()).then(|| ArmMeans {
        blocked: mean_of(|arm| &arm.blocked),
        refetch: mean_of(|arm| &arm.refetch),
        wasted: mean_of(|arm| &arm.wasted),
        stopped: mean_of(|arm| &arm.stopped),
        actions: mean_of(|arm| &arm.actions),
    })
}

/// The failed rollouts at each horizon. Counts stay as they are over many horizons, and so is their test made once.
fn failures(tested: &[Tested], full: usize) -> Vec<Failures> {
    let mut tests: HashMap<[Failed; 2], Exact> = HashMap::new();
    let at = |horizon| {
        let [mut pre, mut post, mut paired_pre, mut paired_post] = [Failed::default(); 4];
        for Tested { at, here } in tested {
            pre.add(&at.pre, horizon);
            post.add(&here.post, horizon);
            if !at.pre.is_empty() && !here.post.is_empty() {
                paired_pre.add(&at.pre, horizon);
                paired_post.add(&here.post, horizon);
            }
        }
        let test = || exact_rates_test(paired_pre.counts(), paired_post.counts());
        let paired_p = tests.entry([paired_pre, paired_post]).or_insert_with(test).clone();
        let paired_more = more(paired_pre, paired_post).filter(|more| {
            let (more, less) = match more {
                Side::Pre => (paired_pre, paired_post),
                Side::Post => (paired_post, paired_pre),
            };
            let rare = paired_p <= Exact::new(1.into(), 20.into());
            let far = || more.share() - less.share() >= Exact::new(1.into(), 4.into());
            more.less_one().exceeds(less) && (rare || far())
        });
        Failures { post, pre, more: more(pre, post), paired_pre, paired_post, paired_p, paired_more }
    };
    (1..=full).map(at).collect()
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
    fn counts(self) -> (usize, usize) {
        (self.failed, self.n_rollouts)
    }

    fn share(self) -> Exact {
        Exact::new(self.failed.into(), self.n_rollouts.max(1).into())
    }

    fn less_one(self) -> Self {
        Self { failed: self.failed.saturating_sub(1), ..self }
    }

    fn add(&mut self, arm: &[RolloutReport], horizon: usize) {
        self.n_rollouts += arm.len();
        self.failed += arm.iter().filter(|rollout| !rollout.rollout.reaches(horizon)).count();
    }
}

/// The rollouts of an arm, counted boundary by boundary.
struct ArmTally {
    failed: Vec<Failed>,
    n_off_the_record: Vec<usize>,
    errors: Tally,
    spend: Spend,
    means: Vec<Vec<ArmMeans>>,
}

impl ArmTally {
    fn new(horizon: usize) -> Self {
        Self {
            failed: vec![Failed::default(); horizon],
            n_off_the_record: vec![0; horizon],
            errors: Tally::default(),
            spend: Spend::default(),
            means: vec![Vec::new(); horizon],
        }
    }

    fn add(&mut self, boundary: &BoundaryReport, arm: &[RolloutReport]) {
        let full = self.failed.len();
        for (sample, RolloutReport { rollout, .. }) in arm.iter().enumerate() {
            self.spend.add(rollout.spend);
            if !rollout.reaches(full) {
                self.errors.add_rollout(rollout, || Place::rollout(&boundary.recording, boundary.cut, sample, rollout));
            }
        }
        for horizon in 1..=full {
            self.failed[horizon - 1].add(arm, horizon);
            self.n_off_the_record[horizon - 1] += n_off_the_record(arm, horizon);
            self.means[horizon - 1].extend(ArmMeans::of(arm.iter().map(|rollout| &rollout.burdens), horizon));
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

/// How many rollouts left the record before a horizon.
fn n_off_the_record(arm: &[RolloutReport], horizon: usize) -> usize {
    let is_off = |rollout: &Rollout| matches!(rollout.end, EndReason::OffTheRecord { .. });
    arm.iter().filter(|RolloutReport { rollout, .. }| is_off(rollout) && !rollout.reaches(horizon)).count()
}

#[cfg(test)]
mod tests;
