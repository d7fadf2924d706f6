//! Each strategy at each horizon, over the boundaries where it was tested.

use std::collections::HashMap;

use indexmap::{IndexMap, IndexSet};
use num_traits::Zero;
use retrace_stats::{
    Exact, ExactBootstrap, Level, PValue, exact_bootstrap_mean, exact_mean, exact_rates_test, exact_sign_test,
    sign_flip_test,
};

use crate::delta::{ArmMeans, Channels, Score, Side, Unscored};
use crate::facts::{ArmCounts, BoundaryFacts, StrategyFacts};
use crate::report::{Aggregate, Estimate, Failed, Failures, UnscoredCount};

/// A strategy at each horizon up to the full one.
pub(crate) fn strategy(name: &str, boundaries: &[BoundaryFacts], full: usize) -> Vec<Aggregate> {
    let tested = boundaries.iter().filter_map(|at| at.strategies.get(name).map(|here| Tested { at, here }));
    let n_unusable = boundaries.iter().filter(|at| at.unusable.is_some()).count();
    aggregates(&tested.collect::<Vec<_>>(), n_unusable, full)
}

/// A boundary where a strategy was tested.
struct Tested<'a> {
    at: &'a BoundaryFacts,
    here: &'a StrategyFacts,
}

/// One strategy at each horizon.
fn aggregates(tested: &[Tested], n_unusable: usize, full: usize) -> Vec<Aggregate> {
    let deltas: Vec<_> = (1..=full).map(|horizon| deltas(tested, horizon)).collect();
    let intervals = intervals(&deltas);
    let tests = tests(&deltas);
    let failures = failures(tested, full);
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
pub(crate) fn mean_of_arms(arms: &[&ArmMeans]) -> Option<ArmMeans> {
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
            if at.pre.n_rollouts > 0 && here.post.n_rollouts > 0 {
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
    pub(crate) fn counts(self) -> (usize, usize) {
        (self.failed, self.n_rollouts)
    }

    fn share(self) -> Exact {
        Exact::new(self.failed.into(), self.n_rollouts.max(1).into())
    }

    fn less_one(self) -> Self {
        Self { failed: self.failed.saturating_sub(1), ..self }
    }

    fn add(&mut self, arm: &ArmCounts, horizon: usize) {
        self.n_rollouts += arm.n_rollouts;
        self.failed += arm.n_failed(horizon);
    }
}
