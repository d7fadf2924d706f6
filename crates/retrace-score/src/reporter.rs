//! From a verification to its report: each boundary checked, scored and let go, then each strategy over what was kept.

use std::collections::HashSet;
use std::mem;

use indexmap::IndexMap;
use num_traits::One;
use retrace_events::{Rollout, Spend};
use retrace_stats::Exact;

use crate::aggregate;
use crate::burden::{Burdens, Key};
use crate::delta::{HorizonScore, Score, Unscored, burdens, score_sums};
use crate::facts::{BoundaryFacts, Sums};
use crate::inference::Judged;
use crate::input::{BoundaryOutcome, Compaction, MAX_HORIZON, Size, StrategyOutcome, Verification};
use crate::judging::Units;
use crate::report::{
    BoundaryReport, BoundaryStrategy, REPORT_VERSION, Report, ReportError, RolloutReport, StrategyReport,
};
use crate::tally::{ArmTally, Rollouts, StrategyTally};

/// Makes a report boundary by boundary, for verifications of which not all rollouts can be held at once.
///
/// Of each boundary it keeps [`BoundaryFacts`]: scores and counts, some bytes for each rollout.
///
/// ```
/// use retrace_score::{Report, Reporter, ScoreInput};
///
/// # let input = ScoreInput::from_json(
/// #     r#"{"horizon": 1, "boundaries": [{"recording": "shop-1", "cut": 9, "history": [],
/// #         "pre": [{"actions": []}], "strategies": {"tail": {"post": [{"actions": []}]}}}]}"#,
/// # )?;
/// let mut verification = input.into_verification();
/// let boundaries = std::mem::take(&mut verification.boundaries);
///
/// let mut reporter = Reporter::new(verification)?;
/// for boundary in boundaries {
///     let scored = reporter.add(boundary)?;
///     assert_eq!(scored.strategies["tail"].post.len(), 1);
/// }
/// let report: Report = reporter.finish();
/// assert_eq!(report.pre.n_rollouts, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reporter {
    /// What is said once.
    verification: Verification,
    recordings: HashSet<String>,
    /// The recording and the cut of each boundary.
    places: HashSet<(String, usize)>,
    boundaries: Vec<BoundaryFacts>,
    pre: ArmTally,
    strategies: Vec<StrategyTally>,
    rollouts: Rollouts,
}

impl Report {
    /// Works out the report of a verification; [`Reporter`] does it for one that is too large to be held.
    ///
    /// The numbers, their formulas and where they come from are in `docs/methods.md`.
    ///
    /// # Errors
    /// [`ReportError`] if the parts of the verification contradict each other.
    pub fn new(verification: Verification) -> Result<Self, ReportError> {
        Ok(Reporter::new(verification)?.finish())
    }

    /// Scores a boundary again as it was scored for this report, so that its rollouts can be written without all of them
    /// having been held.
    pub fn score(&self, boundary: BoundaryOutcome) -> BoundaryReport {
        score(boundary, self.horizon, self.control.as_deref(), self.judging.refetch_by)
    }
}

impl Reporter {
    /// A report of what is said once, and of the boundaries that the verification has already.
    ///
    /// # Errors
    /// [`ReportError`] if the parts of the verification contradict each other.
    pub fn new(mut verification: Verification) -> Result<Self, ReportError> {
        let boundaries = mem::take(&mut verification.boundaries);
        check(&verification)?;
        let horizon = verification.horizon;
        let mut reporter = Self {
            recordings: verification.recordings.iter().map(|recording| recording.id.clone()).collect(),
            places: HashSet::new(),
            boundaries: Vec::with_capacity(boundaries.len()),
            pre: ArmTally::new(horizon),
            strategies: verification.strategies.iter().map(|_| StrategyTally::new(horizon)).collect(),
            rollouts: Rollouts::default(),
            verification,
        };
        for boundary in boundaries {
            reporter.add(boundary)?;
        }
        Ok(reporter)
    }

    /// Takes in one more boundary; the report has them in this order. Handed back is the boundary with its scores and its
    /// rollouts, of which only [`BoundaryFacts`] are kept.
    ///
    /// # Errors
    /// [`ReportError`] if the boundary contradicts the rest of the verification; it is then left out.
    pub fn add(&mut self, boundary: BoundaryOutcome) -> Result<BoundaryReport, ReportError> {
        self.check(&boundary)?;
        let Verification { horizon, control, judging, strategies: names, .. } = &self.verification;
        let boundary = score(boundary, *horizon, control.as_deref(), judging.refetch_by);
        self.places.insert((boundary.recording.clone(), boundary.cut));
        self.rollouts.add(&boundary.pre);
        boundary.strategies.values().for_each(|here| self.rollouts.add(&here.post));
        self.pre.add(&boundary, &boundary.pre);
        for (name, tally) in names.iter().zip(&mut self.strategies) {
            if let Some(here) = boundary.strategies.get(name) {
                tally.add(&boundary, here);
            }
        }
        self.boundaries.push(BoundaryFacts::of(&boundary, *horizon));
        Ok(boundary)
    }

    /// The report of all boundaries so far.
    pub fn finish(self) -> Report {
        let Self { verification, boundaries, pre, strategies, rollouts, .. } = self;
        let horizon = verification.horizon;
        let units = Units::new(verification.judging.unit, &verification.recordings);
        let deterministic = rollouts.are_deterministic();
        let judged = Judged::new(&verification, &boundaries, &units, deterministic);
        let (mut inferences, contrasts) = (judged.infer(), judged.contrasts());
        let strategies = verification.strategies.iter().zip(strategies).map(|(name, tally)| {
            let posts = boundaries.iter().filter_map(|at| Some(&at.strategies.get(name)?.post));
            let inference = inferences.swap_remove(name);
            let horizons = aggregate::strategy(name, &boundaries, horizon);
            (name.clone(), StrategyReport { inference, horizons, ..tally.finish(posts, verification.prices) })
        });
        let strategies = strategies.collect();
        let pre = pre.finish(boundaries.iter().map(|at| &at.pre));
        Report {
            version: REPORT_VERSION,
            horizon,
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
            unfinished: verification.unfinished,
            pre,
            strategies,
            contrasts,
            deterministic,
            broken: rollouts.broken,
            boundaries,
        }
    }

    fn check(&self, boundary: &BoundaryOutcome) -> Result<(), ReportError> {
        let BoundaryOutcome { recording, cut, unusable, pre, strategies: tested, .. } = boundary;
        let (recording, cut) = (recording.clone(), *cut);
        if unusable.is_some() && !(pre.is_empty() && tested.is_empty()) {
            return Err(ReportError::OutcomesOfUnusableBoundary { recording, cut });
        }
        if !self.recordings.contains(&recording) {
            return Err(ReportError::UnknownRecording { recording, cut });
        }
        for (name, outcome) in tested {
            let name = name.clone();
            if !self.verification.strategies.contains(&name) {
                return Err(ReportError::UnknownStrategy { recording, cut, name });
            }
            if outcome.compaction.leaves_nothing() && !outcome.post.is_empty() {
                return Err(ReportError::RolloutsOfFailedCompaction { recording, cut, name });
            }
        }
        if self.places.contains(&(recording.clone(), cut)) {
            return Err(ReportError::DuplicateBoundary { recording, cut });
        }
        Ok(())
    }
}

/// Checks what is said once.
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
    match verification.control.as_ref().filter(|name| !strategies.contains(name)) {
        Some(name) => Err(ReportError::UnknownControl { name: name.clone() }),
        None => Ok(()),
    }
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
fn score(outcome: BoundaryOutcome, full: usize, control: Option<&str>, refetch_by: Key) -> BoundaryReport {
    let BoundaryOutcome { recording, cut, executed, executed_calls, pre_size, unusable, pre, strategies } = outcome;
    let pre_burdens = burdens(&pre, &executed_calls, refetch_by);
    let pre_sums: Vec<_> = (1..=full).map(|horizon| Sums::of(&pre_burdens, horizon)).collect();
    let strategies = strategies.into_iter().map(|(name, outcome)| {
        let StrategyOutcome { compaction, lost_task, spend, post } = outcome;
        let post_burdens = burdens(&post, &executed_calls, refetch_by);
        let is_control = control == Some(&*name);
        let scores = (1..).zip(&pre_sums).map(|(horizon, pre)| {
            let score = match compaction {
                Compaction::Failed { .. } => Score::Unscored(Unscored::CompactionFailed),
                Compaction::Flawed { .. } => Score::Unscored(Unscored::CompactionFlawed),
                Compaction::Unchanged if post.is_empty() && !is_control => Score::Noop,
                _ => score_sums(*pre, Sums::of(&post_burdens, horizon)),
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

#[cfg(test)]
mod tests;
