//! What the numbers show of each strategy: at the boundaries that were run, and of recordings not yet made.
//!
//! Two channels are judged, wasted and stopped, at the full horizon. Everything else in a report describes.

mod comparison;
mod family;
#[cfg(test)]
mod tests;

use indexmap::IndexMap;
use retrace_stats::{Exact, Level, PValue, Verdict, blind_share, control_gate, verdict};
use serde::{Deserialize, Serialize, Serializer};

use self::comparison::{Baseline, Channel, Column, Comparison};
use self::family::{Family, Tested, test};
use crate::facts::BoundaryFacts;
use crate::input::Verification;
use crate::judging::{Judging, Scope, Units};
use crate::number;
use crate::report::{Report, StrategyReport};

/// What is shown of one strategy.
#[derive(Clone, Debug, Serialize)]
pub struct Inference {
    /// How many recordings, or tasks if these are the unit, have a boundary that is scored.
    pub n_units: usize,
    /// Whether the agent is deterministic, of all that ran: the rollouts of each arm that did not break made the same actions.
    /// They are then one sample, and count as one at the boundaries that were run.
    pub deterministic: bool,
    /// A harm that is confined to a smaller share of recordings had more than one chance in twenty of not occurring in any
    /// of them.
    pub blind: f64,
    /// Actions that failed or were executed before, over the horizon.
    pub wasted: ChannelInference,
    /// Rollouts whose agent ended its turn before the horizon.
    pub stopped: ChannelInference,
    /// What follows.
    #[serde(serialize_with = "word")]
    pub verdict: Verdict,
    /// Whether the verdict would be the same had every POST rollout that failed been as good as can be, and every PRE rollout
    /// as bad; `None` where no harm is shown or no rollout failed.
    pub harm_despite_failures: Option<bool>,
}

/// One strategy held against another, or against the control, which keeps the raw history: POST of the one minus POST of the
/// other at the same boundaries.
#[derive(Clone, Debug, Serialize)]
pub struct Contrast {
    /// The strategy.
    pub strategy: String,
    /// What it is held against.
    pub against: String,
    /// At how many boundaries both are scored, unchanged ones included.
    pub n_scored: usize,
    /// From how many recordings, or tasks if these are the unit.
    pub n_units: usize,
    /// Whether all rollouts of each arm made the same actions.
    pub deterministic: bool,
    /// Actions that failed or were executed before, over the horizon.
    pub wasted: ChannelInference,
    /// Rollouts whose agent ended its turn before the horizon.
    pub stopped: ChannelInference,
}

/// What is shown of one channel of a strategy.
#[derive(Clone, Debug, Serialize)]
pub struct ChannelInference {
    /// The mean over boundaries of POST minus PRE.
    #[serde(serialize_with = "number::exact")]
    pub mean: Exact,
    /// The mean over recordings of their means, each counted once.
    #[serde(serialize_with = "number::exact")]
    pub each_once: Exact,
    /// Whether there is a difference at the boundaries that were run; `None` where an arm has no rollouts anywhere.
    pub p_here: Option<Test>,
    /// Whether there is one on recordings not yet made.
    pub p_new: Test,
    /// Where the run may stop early: the greatest evidence of harm after any recording, of which `p_new` is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<f64>,
    /// The least p that as many recordings can give.
    #[serde(serialize_with = "number::exact")]
    pub p_new_floor: Exact,
    /// The mean on recordings not yet made: at least by an exact sign flip, which few recordings have no end of, and at most by
    /// a limit that holds whatever their distribution.
    #[serde(flatten)]
    pub ends: Ends,
    /// The upper end, had every rollout that failed been as bad as can be; margins are held against this one.
    pub high_completed: f64,
    /// The least true effect that this run would have found four times in five; `None` where it could find none.
    pub detectable: Option<f64>,
    /// Other intervals of the same mean.
    pub intervals: Intervals,
    /// Where the spread comes from; `None` where the boundaries are too few to tell.
    pub components: Option<Components>,
    /// What `high_completed` limits the mean of: each recording, or task, with every rollout that failed as bad as can be.
    pub completed: Vec<UnitSum>,
}

/// What one recording says, or one task where these are the unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitSum {
    /// At how many boundaries the strategy was tested.
    pub n_boundaries: u32,
    /// The sum of their differences.
    #[serde(serialize_with = "number::exact", deserialize_with = "number::read_exact")]
    pub sum: Exact,
}

/// A mean, and its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// The mean over boundaries.
    pub mean: Exact,
    /// The ends.
    pub ends: Ends,
    /// How many recordings, or tasks if these are the unit, are scored.
    pub n_units: usize,
}

/// The ends of an interval; `None` where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ends {
    /// The lower one.
    pub low: Option<f64>,
    /// The upper one.
    pub high: Option<f64>,
}

/// Intervals of one mean, 97.5 % at each end.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Intervals {
    /// At the boundaries that were run, from the spread of their rollouts: Welch's t; `None` where an arm has a single
    /// rollout, or no spread.
    pub here: Option<TInterval>,
    /// On recordings not yet made, by sign flips at both ends.
    pub flips: Ends,
    /// The same, at both ends whatever their distribution.
    pub bounded: Ends,
    /// The same by the cluster-robust t interval (CR2); `None` for one recording, or no spread.
    pub cluster_t: Option<TInterval>,
}

/// A t interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TInterval {
    /// The standard error.
    pub se: f64,
    /// The degrees of freedom.
    pub freedom: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Variances of a channel, in squared units of its counts. Those of recordings and boundaries may come out below zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Components {
    /// Between recordings.
    pub recording: f64,
    /// Between boundaries of one recording.
    pub boundary: f64,
    /// Between PRE rollouts of one boundary; `None` where no arm has two.
    pub rollout_pre: Option<f64>,
    /// Between POST rollouts of one boundary.
    pub rollout_post: Option<f64>,
}

/// A p-value, and what it is among those of all strategies and both channels.
#[derive(Clone, Debug, Serialize)]
pub struct Test {
    /// The p-value, two-sided.
    #[serde(flatten, serialize_with = "number::p_value")]
    pub p: PValue,
    /// Adjusted for all strategies and both channels; the control's is not. It is an upper limit where `p` is not exact.
    #[serde(serialize_with = "number::exact")]
    pub adjusted: Exact,
}

/// Who is judged, and by what.
pub(crate) struct Judged<'a> {
    /// The strategies, in the user's order.
    strategies: &'a [String],
    control: Option<&'a str>,
    boundaries: &'a [BoundaryFacts],
    units: &'a Units<'a>,
    /// The full one.
    horizon: usize,
    judging: &'a Judging,
    /// Whether the agent is deterministic.
    deterministic: bool,
    /// Whether the run stopped before its last recording.
    stopped: bool,
}

impl<'a> Judged<'a> {
    /// Those of a verification whose boundaries are scored.
    pub(crate) fn new(
        verification: &'a Verification,
        boundaries: &'a [BoundaryFacts],
        units: &'a Units<'a>,
        deterministic: bool,
    ) -> Self {
        Self {
            strategies: &verification.strategies,
            control: verification.control.as_deref(),
            boundaries,
            units,
            horizon: verification.horizon,
            judging: &verification.judging,
            deterministic,
            stopped: verification.n_not_reached > 0,
        }
    }

    /// What is shown of all strategies that have a boundary that is scored, by name.
    pub(crate) fn infer(&self) -> IndexMap<String, Inference> {
        let strategies =
            self.strategies.iter().map(|name| (name, self.columns(name, baseline(name, self.control, self.judging))));
        let scored = strategies.filter(|(_, columns)| columns[0].n_scored() > 0);
        let (control, family): (Vec<_>, Vec<_>) = scored.partition(|(name, _)| self.control == Some(&***name));
        let (names, family): (Vec<_>, Vec<_>) = family.into_iter().unzip();
        let safety = Level::PERCENT_95.shared_by(names.len() as u32).filter(|_| self.judging.familywise);
        let safety = safety.unwrap_or(Level::PERCENT_95);
        let despite_failures = self.despite_failures(&family);
        let of_control = test(control.iter().flat_map(|(_, columns)| columns.clone()).collect(), Family::Alone);
        let gate: Vec<_> = of_control.iter().filter_map(|tested| Some(tested.here.as_ref()?.upper())).collect();
        let gate_fired = control_gate(&gate).fired;
        let family = self.test(family.into_iter().flatten().collect());
        let names = names.into_iter().chain(control.iter().map(|(name, _)| *name));
        let tested = family.chunks_exact(2).chain(of_control.chunks_exact(2));
        let despite_failures = despite_failures.into_iter().map(Some).chain(std::iter::repeat(None));
        let inferred = names.zip(tested).zip(despite_failures).map(|((name, tested), despite_failures)| {
            let margins = [self.judging.margins.wasted, self.judging.margins.stopped];
            // An upper end is no limit any more where it was looked for until harm was found.
            let margins = margins.map(|margin| margin.filter(|_| !self.stopped));
            let evidence = |(tested, margin): (&Tested, _)| tested.evidence(margin, self.judging.strict, safety);
            let evidence: Vec<_> = tested.iter().zip(margins).map(evidence).collect();
            let verdict = verdict(gate_fired, &evidence, Level::PERCENT_95);
            let column = &tested[0].column;
            let inference = Inference {
                n_units: column.n_units(),
                deterministic: column.deterministic,
                blind: blind_share(column.n_units(), Level::PERCENT_95),
                wasted: tested[0].inference(evidence[0].high),
                stopped: tested[1].inference(evidence[1].high),
                harm_despite_failures: despite_failures.filter(|_| shows_harm(&verdict)).map(|other| other == verdict),
                verdict,
            };
            (name.clone(), inference)
        });
        let mut inferences: IndexMap<_, _> = inferred.collect();
        inferences.sort_by_cached_key(|name, _| self.strategies.iter().position(|other| other == name));
        inferences
    }

    /// Each strategy against the control, and then each pair of the others, later against earlier.
    pub(crate) fn contrasts(&self) -> Vec<Contrast> {
        let others: Vec<_> =
            self.strategies.iter().filter(|name| self.control != Some(name)).map(String::as_str).collect();
        let to_control = self.control.map(|control| others.iter().map(|&name| (name, control)).collect());
        let pairs =
            others.iter().enumerate().flat_map(|(i, &name)| others[..i].iter().map(move |&other| (name, other)));
        let pairs: Vec<_> = pairs.collect();
        // All against the control are one family. Pairs are too many to be flipped together, so each is one by itself, of as
        // many as there are.
        let n_pairs = pairs.len();
        let families =
            to_control.map(|all| (1, all)).into_iter().chain(pairs.into_iter().map(|pair| (n_pairs, vec![pair])));
        families.flat_map(|(n_families, pairs)| self.contrast(pairs, n_families)).collect()
    }

    /// The contrasts of one of so many families.
    fn contrast(&self, pairs: Vec<(&str, &str)>, n_families: usize) -> Vec<Contrast> {
        let columns = pairs.into_iter().map(|pair| (pair, self.columns(pair.0, Baseline::Strategy(pair.1))));
        let (pairs, columns): (Vec<_>, Vec<_>) = columns.filter(|(_, columns)| columns[0].n_scored() > 0).unzip();
        let mut tested = self.test(columns.into_iter().flatten().collect());
        tested.iter_mut().for_each(|tested| tested.among(n_families));
        let contrasts = pairs.into_iter().zip(tested.chunks_exact(2)).map(|((strategy, against), tested)| {
            let column = &tested[0].column;
            let [wasted, stopped] =
                [&tested[0], &tested[1]].map(|tested| tested.inference(tested.high_completed(Level::PERCENT_95)));
            Contrast {
                strategy: strategy.to_owned(),
                against: against.to_owned(),
                n_scored: column.n_scored(),
                n_units: column.n_units(),
                deterministic: column.deterministic,
                wasted,
                stopped,
            }
        });
        contrasts.collect()
    }

    fn columns(&self, strategy: &str, baseline: Baseline) -> [Column; 2] {
        let deterministic = self.deterministic;
        Channel::ALL.map(|channel| {
            let comparison = Comparison { strategy, baseline, channel, horizon: self.horizon, deterministic };
            Column::new(&comparison, self.boundaries, self.units)
        })
    }

    /// The columns of all strategies, adjusted for each other; by evidence that may be looked at at any time, if the run was.
    fn test(&self, columns: Vec<Column>) -> Vec<Tested> {
        let n_columns = columns.len() as u32;
        let mut tested = test(columns, Family::Together);
        if self.judging.stop_early {
            tested.iter_mut().for_each(|tested| tested.look_at_any_time(n_columns));
        }
        tested
    }

    /// The verdict on each strategy, margins apart, if every failed rollout spoke against harm; empty if none failed.
    fn despite_failures(&self, family: &[[Column; 2]]) -> Vec<Verdict> {
        if !family.iter().flatten().any(Column::has_failures) {
            return Vec::new();
        }
        let columns = family.iter().flatten().map(Column::favoured).collect();
        let tested = self.test(columns);
        let verdicts = tested.chunks_exact(2).map(|tested| {
            let evidence: Vec<_> =
                tested.iter().map(|tested| tested.evidence(None, self.judging.strict, Level::PERCENT_95)).collect();
            verdict(false, &evidence, Level::PERCENT_95)
        });
        verdicts.collect()
    }
}

impl Report {
    /// What is said of a strategy: INVALID of all if it is of any, and NOT SCORED where there is nothing to judge.
    pub fn verdict(&self, strategy: &StrategyReport) -> Verdict {
        let mut inferences = self.strategies.values().filter_map(|strategy| strategy.inference.as_ref());
        match &strategy.inference {
            _ if inferences.any(|inference| inference.verdict == Verdict::Invalid) => Verdict::Invalid,
            Some(inference) => inference.verdict,
            None => Verdict::NotScored,
        }
    }

    /// The means of wasted and stopped at a horizon, with the ends of their intervals; adjusted for nothing, and below the full
    /// horizon no more than a description. `None` where nothing is scored, or there is no such strategy or horizon.
    pub fn described_at(&self, strategy: &str, horizon: usize, scope: Scope) -> Option<[Described; 2]> {
        self.strategies.get(strategy)?.at(horizon)?.deltas.as_ref()?;
        let units = Units::new(self.judging.unit, &self.recordings);
        let baseline = baseline(strategy, self.control.as_deref(), &self.judging);
        let deterministic = self.deterministic;
        Some(Channel::ALL.map(|channel| {
            let comparison = Comparison { strategy, baseline, channel, horizon, deterministic };
            family::described(&Column::new(&comparison, &self.boundaries, &units), scope)
        }))
    }
}

/// What a strategy is held against.
fn baseline<'a>(strategy: &str, control: Option<&'a str>, judging: &Judging) -> Baseline<'a> {
    match control {
        Some(control) if judging.pooled_baseline && control != strategy => Baseline::RawAnd(control),
        _ => Baseline::Raw,
    }
}

fn shows_harm(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Worse | Verdict::WorseHere)
}

/// A verdict as reports have it.
fn word<S: Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(verdict_words(verdict))
}

/// A verdict in the words of a report.
pub fn verdict_words(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Invalid => "INVALID",
        Verdict::NotScored => "NOT SCORED",
        Verdict::WithinMargin { .. } => "WITHIN MARGIN",
        Verdict::Worse => "WORSE",
        Verdict::WorseHere => "WORSE HERE",
        _ => "NOT SHOWN",
    }
}
