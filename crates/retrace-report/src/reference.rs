//! The table of the reference implementation, ag2's verifier: bootstrap intervals and tests over boundaries, which treat
//! boundaries of one recording as if they had nothing in common.

use num_traits::One;
use retrace_score::{Channels, Estimate};
use retrace_stats::Exact;

use crate::layout::{elide, left, right, width, wrap};
use crate::number::{most_decimals, p_value, signed};
use crate::text::{
    COLUMNS, GAP, NAME, NAME_LINES, SHARE_DECIMALS, cached, entries, failed, kept, meanings, scored, widest,
};
use crate::view::{Row, RowOutcome, View};

/// Fewer boundaries than these get no star.
const FEWEST_STARRED: usize = 10;

/// The widths of the columns beside the name.
struct Widths {
    /// The decimals of a count of actions.
    decimals: usize,
    name: usize,
    scored: usize,
    /// `+0.833 [+0.333,+1.250]*`
    estimate: usize,
    p: usize,
    kept: usize,
    failed: usize,
}

impl Widths {
    /// Those with the most decimals that leave room for the names.
    fn new(view: &View) -> Self {
        let with = |decimals| Self::with_decimals(view, decimals);
        let fewer = (1..=most_decimals(view.horizon)).rev().map(with);
        let mut widths =
            fewer.into_iter().find(|widths| widths.beside_name() + NAME <= COLUMNS).unwrap_or_else(|| with(0));
        widths.name = widths.name.min(COLUMNS.saturating_sub(widths.beside_name())).max(NAME);
        widths
    }

    fn with_decimals(view: &View, decimals: usize) -> Self {
        let share = signed(&Exact::one(), SHARE_DECIMALS).len();
        let counts = view.rows.iter().flat_map(counts);
        let number = counts.map(|count| signed(count, decimals).len()).fold(share, usize::max);
        Self {
            decimals,
            name: widest("strategy", &view.rows, |row| row.name.clone()),
            scored: widest("scored", &view.rows, scored).max(widest("", &view.rows, noop)),
            estimate: 3 * number + 5,
            p: width("<0.001"),
            kept: widest("kept", &view.rows, kept).max(widest("cache", &view.rows, cached)),
            failed: widest("failed ", &view.rows, failed),
        }
    }

    fn beside_name(&self) -> usize {
        4 * GAP + self.scored + self.deltas() + self.kept + self.failed
    }

    /// The columns from wasted to stopped together.
    fn deltas(&self) -> usize {
        2 * self.estimate + self.p + 2 * GAP
    }

    /// Two cells at the left of a line and two at the right, with something between them.
    fn line(&self, name: &str, scored: &str, deltas: &str, kept: &str, failed: &str) -> String {
        [
            left(name, self.name),
            right(scored, self.scored),
            left(deltas, self.deltas()),
            right(kept, self.kept),
            right(failed, self.failed),
        ]
        .join(&" ".repeat(GAP))
    }
}

pub(crate) fn table(view: &View) -> Vec<String> {
    let widths = Widths::new(view);
    let header = [left("wasted", widths.estimate), right("p", widths.p), left("stopped", widths.estimate)];
    let header = header.join(&" ".repeat(GAP));
    let header = widths.line("strategy", "scored", &header, "kept", "failed ");
    let rule = "─".repeat(width(&header));
    let below = widths.line("", "", "", "cache", "");
    let rows = view.rows.iter().flat_map(|row| self::row(row, &widths));
    [header, below, rule].into_iter().chain(rows).collect()
}

fn row(row: &Row, widths: &Widths) -> Vec<String> {
    let names = elide(wrap(&row.name, widths.name), NAME_LINES, widths.name);
    let deltas = match &row.outcome {
        RowOutcome::Scored(scored) => {
            scored_lines(&scored.deltas, &p_value(&scored.permutation_p.upper()), row.n_scored, widths).into()
        }
        RowOutcome::Unscored(reason) => wrap(&format!("not scored: {reason}"), widths.deltas()),
    };
    let scored = [scored(row), noop(row)];
    let kept = [kept(row), cached(row)];
    let failed = failed(row);
    let n_lines = names.len().max(deltas.len()).max(if row.n_noop > 0 || row.cache_kept.is_some() { 2 } else { 1 });
    let lines = (0..n_lines).map(|i| {
        let cell = |cells: &[String]| cells.get(i).cloned().unwrap_or_default();
        let failed = if i == 0 { &*failed } else { "" };
        widths.line(&cell(&names), &cell(&scored), &cell(&deltas), &cell(&kept), failed)
    });
    lines.collect()
}

/// Wasted, p and stopped on one line, and what wasted is made of on two others.
fn scored_lines(deltas: &Channels<Estimate>, p: &str, n_scored: usize, widths: &Widths) -> [String; 3] {
    let cell = |estimate: &Estimate| estimate_cell(estimate, widths.decimals, n_scored);
    let stopped = estimate_cell(&deltas.stopped, SHARE_DECIMALS, n_scored);
    let gap = " ".repeat(GAP);
    [
        [left(&cell(&deltas.wasted), widths.estimate), right(p, widths.p), stopped].join(&gap),
        format!("blocked {}", cell(&deltas.blocked)),
        format!("refetch {}", cell(&deltas.refetch)),
    ]
}

fn estimate_cell(Estimate { mean, interval, .. }: &Estimate, decimals: usize, n_scored: usize) -> String {
    let mean = signed(mean, decimals);
    match interval {
        Some(interval) => {
            let is_starred = n_scored >= FEWEST_STARRED && interval.excludes_zero();
            let star = if is_starred { "*" } else { "" };
            format!("{mean} [{},{}]{star}", signed(&interval.low, decimals), signed(&interval.high, decimals))
        }
        None => mean,
    }
}

/// What is shown of a row in actions.
fn counts(row: &Row) -> impl Iterator<Item = &Exact> {
    let deltas = row.scored().map(|scored| &scored.deltas);
    let estimates = deltas.into_iter().flat_map(|deltas| [&deltas.wasted, &deltas.blocked, &deltas.refetch]);
    estimates.flat_map(|Estimate { mean, interval, .. }| {
        std::iter::once(mean).chain(interval.iter().flat_map(|interval| [&interval.low, &interval.high]))
    })
}

fn noop(row: &Row) -> String {
    if row.n_noop > 0 { format!("{} noop", row.n_noop) } else { String::new() }
}

pub(crate) fn legend(view: &View) -> Vec<String> {
    let what = "Deltas are POST (compacted) minus PRE (raw): means over boundaries, 95% bootstrap intervals; * from ten \
                boundaries on where 0 lies outside, adjusted for nothing.";
    let scored = "boundaries with a delta, of those tested; noop: left unchanged, so zero by definition";
    let p = "sign-flip permutation test of wasted over boundaries, two-sided";
    let [wasted, stopped, kept, cache, failed] = meanings(view);
    let words = [("scored", scored.to_owned()), wasted, ("p", p.to_owned()), stopped, kept, cache, failed];
    wrap(what, COLUMNS).into_iter().chain(entries(words)).collect()
}
