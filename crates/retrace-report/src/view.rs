//! What every rendering of a report shows: one horizon, a row for each strategy, and the notes a reader needs.

use retrace_score::{ArmMeans, Channels, Estimate, Failed, Report, StrategyReport};
use retrace_stats::Exact;
use thiserror::Error;

use crate::notes;
use crate::printable;

/// One horizon of a report. All text in it is [`printable`].
#[derive(Clone, Debug)]
pub struct View {
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
    /// What the reader must know, a sentence or more each.
    pub notes: Vec<String>,
}

/// What came out for one strategy.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// At how many boundaries there is a delta.
    pub n_scored: usize,
    /// At how many it was applied.
    pub n_tested: usize,
    /// How many were left unchanged and not run, so that their delta is zero by definition.
    pub n_noop: usize,
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
    Scored {
        /// The mean deltas.
        deltas: Box<Channels<Estimate>>,
        /// The p-value of wasted; `None` if its exact value takes too much work.
        permutation_p: Option<Exact>,
    },
    /// No boundary was scored: why, as the end of a sentence.
    Unscored(String),
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
    /// A report at its full horizon.
    pub fn new(report: &Report) -> Self {
        Self::build(report, report.horizon)
    }

    /// A report at another horizon.
    ///
    /// # Errors
    /// When the report does not have it.
    pub fn at(report: &Report, horizon: usize) -> Result<Self, NoSuchHorizon> {
        if !(1..=report.horizon).contains(&horizon) {
            return Err(NoSuchHorizon { horizon, full: report.horizon });
        }
        Ok(Self::build(report, horizon))
    }

    fn build(report: &Report, horizon: usize) -> Self {
        let rows = report.strategies.iter().map(|(name, strategy)| Row::new(name, strategy, report, horizon)).collect();
        Self {
            horizon,
            full_horizon: report.horizon,
            samples: report.samples,
            uneven: uneven(report),
            n_boundaries: report.boundaries.len(),
            n_recordings: report.recordings.len(),
            model: report.model.as_deref().map(|model| printable(model).into_owned()),
            token_counter: printable(&report.token_counter).into_owned(),
            pre: report.pre.means[horizon - 1].clone(),
            pre_failed: report.pre.failed_at(horizon).expect("the report has this horizon"),
            rows,
            notes: notes::notes(report, horizon),
        }
    }
}

impl Row {
    fn new(name: &str, strategy: &StrategyReport, report: &Report, horizon: usize) -> Self {
        let at = strategy.at(horizon).expect("the report has this horizon");
        let outcome = match &at.deltas {
            Some(deltas) => {
                RowOutcome::Scored { deltas: Box::new(deltas.clone()), permutation_p: at.permutation_p.clone() }
            }
            None => RowOutcome::Unscored(notes::why_unscored(at)),
        };
        let pre = report.pre.failed_at(horizon).expect("the report has this horizon");
        let none_left = strategy.n_failed_compactions + strategy.n_flawed_compactions > 0;
        let few_left = at.pre.is_some() && (pre.leaves_few() || at.failures.paired_post.leaves_few());
        Self {
            name: printable(name).into_owned(),
            n_scored: at.n_scored,
            n_tested: strategy.n_tested,
            n_noop: strategy.n_noop,
            outcome,
            kept: strategy.kept.clone(),
            cache_kept: strategy.cache_kept.clone(),
            failed: at.failures.post,
            marked: at.failures.paired_more.is_some() || few_left || none_left,
        }
    }
}

/// Whether an arm that ran has fewer rollouts than others.
fn uneven(report: &Report) -> bool {
    let mut arms = report.boundaries.iter().flat_map(|boundary| {
        boundary.strategies.values().map(|strategy| strategy.post.len()).chain([boundary.pre.len()])
    });
    arms.any(|n_rollouts| n_rollouts > 0 && n_rollouts < report.samples)
}
