//! What every rendering of a report shows: one horizon, a row for each strategy, and the notes a reader needs.

use num_traits::Zero;
use retrace_score::{
    ArmMeans, BoundaryFacts, ChannelInference, Channels, Contrast, Described, Ends, Estimate, Failed, Report, Scope,
    StrategyReport, Unit, Verdict,
};
use retrace_stats::{Exact, PValue};
use thiserror::Error;

use crate::notes;
use crate::printable;

/// What of a report is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// How many actions of the rollouts; `None` for all.
    pub horizon: Option<usize>,
    /// What the intervals speak of.
    pub scope: Scope,
    /// Which numbers.
    pub style: Style,
}

/// Which numbers of a report are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// What is shown, with a verdict for each strategy.
    #[default]
    Verdict,
    /// Those of the reference implementation, ag2's verifier: bootstrap intervals and tests over boundaries.
    Reference,
}

/// One horizon of a report. All text in it is [`printable`].
#[derive(Clone, Debug)]
pub struct View {
    /// What is looked at.
    pub look: Look,
    /// How many actions are looked at.
    pub horizon: usize,
    /// How many the rollouts had.
    pub full_horizon: usize,
    /// How many rollouts each arm of a boundary was given, or at most was.
    pub samples: usize,
    /// Whether an arm that ran was given fewer.
    pub uneven: bool,
    /// How many boundaries there are.
    pub n_boundaries: usize,
    /// How many recordings were read, with boundaries or without.
    pub n_recordings: usize,
    /// What new ones are expected to be.
    pub unit: Unit,
    /// Whether the run might stop after any recording.
    pub stops_early: bool,
    /// The model that the agent asked, where it is known.
    pub model: Option<String>,
    /// What counted the tokens.
    pub token_counter: String,
    /// The means of PRE, where any rollout reaches the horizon.
    pub pre: Option<ArmMeans>,
    /// The rollouts of PRE that failed.
    pub pre_failed: Failed,
    /// The strategies, in the user's order.
    pub rows: Vec<Row>,
    /// The control, and the strategies held against it; none at a smaller horizon.
    pub against_control: Option<(String, Vec<ContrastRow>)>,
    /// What the reader must know, a sentence or more each.
    pub notes: Vec<String>,
}

/// What came out for one strategy.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Whether it is the control, which is not judged.
    pub is_control: bool,
    /// What is said of it; `None` at a smaller horizon.
    pub verdict: Option<Verdict>,
    /// At how many boundaries there is a delta.
    pub n_scored: usize,
    /// At how many it was applied.
    pub n_tested: usize,
    /// How many were left unchanged and not run, so that their delta is zero by definition.
    pub n_noop: usize,
    /// How many units, recordings or tasks, are scored.
    pub n_units: usize,
    /// The deltas, or why there are none.
    pub outcome: RowOutcome,
    /// The median share of the tokens that is left.
    pub kept: Option<Exact>,
    /// The median share of what is left that a prompt cache still knows.
    pub cache_kept: Option<Exact>,
    /// The rollouts of POST that failed.
    pub failed: Failed,
    /// Whether the arms failed at different rates where both ran, fewer than half of the rollouts of one of them are
    /// scored, or a compaction failed or is flawed. The notes say more.
    pub marked: bool,
}

/// The deltas of a row, or why there are none.
#[derive(Clone, Debug)]
pub enum RowOutcome {
    /// At least one boundary was scored.
    Scored(Box<Scored>),
    /// No boundary was scored: why, as the end of a sentence.
    Unscored(String),
}

/// The deltas of a row.
#[derive(Clone, Debug)]
pub struct Scored {
    /// The mean deltas, with bootstrap intervals over boundaries.
    pub deltas: Channels<Estimate>,
    /// The means of blocked and refetch, which wasted is made of; none where it is held against more than PRE.
    pub parts: Option<[Exact; 2]>,
    /// The sign-flip p of wasted over boundaries.
    pub permutation_p: PValue,
    /// Wasted and stopped.
    pub channels: [Shown; 2],
}

/// What is shown of a channel.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The mean over boundaries.
    pub mean: Exact,
    /// Its interval.
    pub ends: Ends,
    /// Whether there is a difference; none at a smaller horizon.
    pub p: Option<Ps>,
}

/// Both p-values of a channel, adjusted for all strategies and channels; the control's are not.
#[derive(Clone, Debug)]
pub struct Ps {
    /// At the boundaries that were run; `None` where an arm has no rollouts anywhere.
    pub here: Option<Exact>,
    /// Of recordings not yet made.
    pub new: Exact,
    /// Whether it is the least that so few recordings can give; no matter below 0.001.
    pub at_floor: bool,
}

/// A strategy held against the control.
#[derive(Clone, Debug)]
pub struct ContrastRow {
    /// Its name.
    pub name: String,
    /// At how many boundaries both are scored.
    pub n_scored: usize,
    /// Wasted and stopped.
    pub channels: [Shown; 2],
}

/// A horizon that a report does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there is no horizon {horizon}: the report has those from 1 to {full}")]
pub struct NoSuchHorizon {
    /// The horizon that was asked for.
    pub horizon: usize,
    /// The full horizon of the report.
    pub full: usize,
}

impl NoSuchHorizon {
    /// What to do next.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self.horizon {
            0 => "the smallest horizon is 1",
            _ => "to look further ahead, run again with a greater horizon",
        })
    }
}

impl View {
    /// A report at its full horizon, with its verdicts.
    pub fn new(report: &Report) -> Self {
        Self::build(report, report.horizon, Look::default())
    }

    /// Another look at a report.
    ///
    /// # Errors
    /// When the report does not have the horizon.
    pub fn of(report: &Report, look: Look) -> Result<Self, NoSuchHorizon> {
        let horizon = look.horizon.unwrap_or(report.horizon);
        if !(1..=report.horizon).contains(&horizon) {
            return Err(NoSuchHorizon { horizon, full: report.horizon });
        }
        Ok(Self::build(report, horizon, look))
    }

    fn build(report: &Report, horizon: usize, look: Look) -> Self {
        let row = |(name, strategy): (&String, _)| Row::new(name, strategy, report, horizon, look.scope);
        Self {
            look,
            horizon,
            full_horizon: report.horizon,
            samples: report.samples,
            uneven: uneven(report),
            n_boundaries: report.boundaries.len(),
            n_recordings: report.recordings.len(),
            unit: report.judging.unit,
            stops_early: report.judging.stop_early,
            model: report.model.as_deref().map(|model| printable(model).into_owned()),
            token_counter: printable(&report.token_counter).into_owned(),
            pre: report.pre.means[horizon - 1].clone(),
            pre_failed: report.pre.failed_at(horizon).expect("the report has this horizon"),
            rows: report.strategies.iter().map(row).collect(),
            against_control: (horizon == report.horizon).then(|| against_control(report, look.scope)).flatten(),
            notes: notes::notes(report, horizon, look.style),
        }
    }
}

impl Row {
    fn new(name: &str, strategy: &StrategyReport, report: &Report, horizon: usize, scope: Scope) -> Self {
        let at = strategy.at(horizon).expect("the report has this horizon");
        let is_full = horizon == report.horizon;
        let inference = strategy.inference.as_ref();
        let mut n_units = 0;
        let outcome = match &at.deltas {
            Some(deltas) => {
                let channels;
                (n_units, channels) = match inference.filter(|_| is_full) {
                    Some(it) => (it.n_units, [&it.wasted, &it.stopped].map(|channel| Shown::of(channel, scope))),
                    None => described(report, name, horizon, scope),
                };
                RowOutcome::Scored(Box::new(Scored {
                    deltas: deltas.clone(),
                    parts: (!report.judging.pooled_baseline)
                        .then(|| [&deltas.blocked, &deltas.refetch].map(|it| it.mean.clone())),
                    permutation_p: at.permutation_p.clone(),
                    channels,
                }))
            }
            None => RowOutcome::Unscored(notes::why_unscored(at)),
        };
        let pre = report.pre.failed_at(horizon).expect("the report has this horizon");
        let none_left = strategy.n_failed_compactions + strategy.n_flawed_compactions > 0;
        let few_left = at.pre.is_some() && (pre.leaves_few() || at.failures.paired_post.leaves_few());
        Self {
            name: printable(name).into_owned(),
            is_control: report.control.as_deref() == Some(name),
            verdict: is_full.then(|| report.verdict(strategy)),
            n_scored: at.n_scored,
            n_tested: strategy.n_tested,
            n_noop: strategy.n_noop,
            n_units,
            outcome,
            kept: strategy.kept.clone(),
            cache_kept: strategy.cache_kept.clone(),
            failed: at.failures.post,
            marked: at.failures.paired_more.is_some() || few_left || none_left,
        }
    }

    /// Its deltas, if it is scored.
    pub fn scored(&self) -> Option<&Scored> {
        match &self.outcome {
            RowOutcome::Scored(scored) => Some(scored),
            RowOutcome::Unscored(_) => None,
        }
    }
}

impl Shown {
    fn of(channel: &ChannelInference, scope: Scope) -> Self {
        let ends = match (scope, channel.intervals.here) {
            (Scope::New, _) => channel.ends,
            (Scope::Here, Some(here)) => Ends { low: Some(here.low), high: Some(here.high) },
            (Scope::Here, None) => Ends { low: None, high: None },
        };
        Self { mean: channel.mean.clone(), ends, p: Some(Ps::of(channel)) }
    }
}

impl Ps {
    fn of(channel: &ChannelInference) -> Self {
        let adjusted = &channel.p_new.adjusted;
        Self {
            here: channel.p_here.as_ref().map(|p| p.adjusted.clone()),
            new: adjusted.clone(),
            at_floor: *adjusted == channel.p_new_floor
                && !channel.mean.is_zero()
                && *adjusted >= Exact::new(1.into(), 1000.into()),
        }
    }
}

/// At a smaller horizon than the full one.
fn described(report: &Report, name: &str, horizon: usize, scope: Scope) -> (usize, [Shown; 2]) {
    let described = report.described_at(name, horizon, scope).expect("the strategy is scored at this horizon");
    (described[0].n_units, described.map(|Described { mean, ends, .. }| Shown { mean, ends, p: None }))
}

fn against_control(report: &Report, scope: Scope) -> Option<(String, Vec<ContrastRow>)> {
    let control = report.control.as_deref()?;
    let contrasts = report.contrasts.iter().filter(|contrast| contrast.against == control);
    let row = |Contrast { strategy, n_scored, wasted, stopped, .. }: &Contrast| ContrastRow {
        name: printable(strategy).into_owned(),
        n_scored: *n_scored,
        channels: [wasted, stopped].map(|channel| Shown::of(channel, scope)),
    };
    let rows: Vec<_> = contrasts.map(row).collect();
    (!rows.is_empty()).then(|| (printable(control).into_owned(), rows))
}

/// Whether an arm that ran has fewer rollouts than others.
fn uneven(report: &Report) -> bool {
    let mut arms = report.boundaries.iter().flat_map(BoundaryFacts::arms);
    arms.any(|arm| arm.n_rollouts > 0 && arm.n_rollouts < report.samples)
}
