//! What a reader must know of bootstrap intervals and tests over boundaries.

use std::collections::HashSet;

use retrace_score::{Report, StrategyReport};
use retrace_stats::Exact;

use super::{boundaries, quoted, usable};
use crate::number::{counted, p_value};

/// Fewer boundaries than these say little.
const FEW_BOUNDARIES: usize = 10;

/// Fewer deltas than these that are not zero give no p below 0.05, whatever they are.
const FEW_NONZERO: usize = 6;

pub(super) fn notes(report: &Report, horizon: usize) -> impl Iterator<Item = String> {
    [few_boundaries(report, horizon), least_p(report, horizon), correlated(report)].into_iter().flatten()
}

fn few_boundaries(report: &Report, horizon: usize) -> Option<String> {
    let n = usable(report).count();
    if n < FEW_BOUNDARIES {
        return Some(format!(
            "Only {}: with fewer than {FEW_BOUNDARIES} an interval is often too narrow.",
            boundaries(n)
        ));
    }
    let scored =
        report.strategies.iter().map(|(name, strategy)| (name, strategy.at(horizon).map_or(0, |at| at.n_scored)));
    let few = scored.filter(|&(_, n)| 0 < n && n < FEW_BOUNDARIES);
    let few: Vec<_> = few.map(|(name, n)| format!("{} ({n})", quoted(name))).collect();
    (!few.is_empty()).then(|| {
        format!(
            "Scored at fewer than {FEW_BOUNDARIES} boundaries, where an interval is often too narrow: {}.",
            few.join(", ")
        )
    })
}

/// The least p that the deltas allow, where it is not small.
fn least_p(report: &Report, horizon: usize) -> Option<String> {
    let n_nonzero = |strategy: &StrategyReport| strategy.at(horizon).map_or(0, |at| at.n_nonzero);
    let few = report.strategies.iter().map(|(name, strategy)| (name, n_nonzero(strategy)));
    let few = few.filter(|&(_, n)| 0 < n && n < FEW_NONZERO).map(|(name, n)| {
        let least = Exact::new(2.into(), (1_u64 << n).into());
        format!("{} for {} ({})", p_value(&least), quoted(name), counted(n, "delta", "deltas"))
    });
    let few: Vec<_> = few.collect();
    (!few.is_empty())
        .then(|| format!("Few deltas of wasted are not zero, so p cannot be small: at least {}.", few.join(", ")))
}

fn correlated(report: &Report) -> Option<String> {
    let n = usable(report).count();
    let n_recordings = usable(report).map(|boundary| &boundary.recording).collect::<HashSet<_>>().len();
    (n > n_recordings).then(|| {
        format!(
            "{} come from {}. Those of one recording are alike, which intervals and p do not know: the intervals are \
             likely too narrow and p too small.",
            boundaries(n),
            counted(n_recordings, "recording", "recordings")
        )
    })
}
