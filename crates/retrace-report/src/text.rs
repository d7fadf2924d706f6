//! A report as text, for a terminal of 100 columns.

use num_traits::One;
use retrace_score::{ArmMeans, Channels, Estimate, Failed};
use retrace_stats::Exact;

use crate::layout::{elide, left, right, width, wrap};
use crate::number::{counted, most_decimals, p_value, percent, plain, signed};
use crate::view::{Row, RowOutcome, View};

/// No line is wider.
pub const COLUMNS: usize = 100;

const GAP: usize = 2;
/// The narrowest column of names, and how many lines a name may take.
const NAME: usize = 8;
const NAME_LINES: usize = 3;

/// The decimals of a share of rollouts, which unlike a count of actions does not grow with the horizon.
const SHARE_DECIMALS: usize = 3;

/// The table of a report, a legend, and the notes.
pub fn text(view: &View) -> String {
    let mut lines = heading(view);
    if !view.rows.is_empty() && view.n_boundaries > 0 {
        lines.push(String::new());
        lines.extend(table(view));
        lines.push(String::new());
        lines.extend(legend(view));
    }
    if !view.notes.is_empty() {
        lines.push(String::new());
        lines.extend(view.notes.iter().flat_map(|note| hanging("* ", note)));
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn heading(view: &View) -> Vec<String> {
    let at = if view.horizon == view.full_horizon {
        format!("horizon {}", view.horizon)
    } else {
        format!("horizon {} of {}", view.horizon, view.full_horizon)
    };
    let model = view.model.as_ref().map(|model| format!(", model {model}")).unwrap_or_default();
    let first = format!(
        "{} from {}, {}{} per arm, {at}{model}",
        counted(view.n_boundaries, "boundary", "boundaries"),
        counted(view.n_recordings, "recording", "recordings"),
        if view.uneven { "up to " } else { "" },
        counted(view.samples, "rollout", "rollouts"),
    );
    let mut lines = wrap(&first, COLUMNS);
    if let Some(pre) = &view.pre {
        lines.extend(wrap(&level(pre, view), COLUMNS));
    }
    lines
}

/// Where PRE stands, so that a delta can be told from a large one.
fn level(pre: &ArmMeans, view: &View) -> String {
    let mean = |value| plain(value, most_decimals(view.horizon));
    format!(
        "PRE: {} of {} actions wasted ({} blocked, {} refetch), {} stopped, {} failed",
        mean(&pre.wasted),
        mean(&pre.actions),
        mean(&pre.blocked),
        mean(&pre.refetch),
        percent(&pre.stopped),
        share(view.pre_failed),
    )
}

/// The widths of the columns beside the name.
struct Widths {
    /// The decimals of a count of actions.
    decimals: usize,
    name: usize,
    scored: usize,
    /// `+0.833 [+0.333,+1.250]`
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
        let widest = |header: &str, cell: &dyn Fn(&Row) -> String| {
            view.rows.iter().map(|row| width(&cell(row))).fold(width(header), usize::max)
        };
        let share = signed(&Exact::one(), SHARE_DECIMALS).len();
        let counts = view.rows.iter().flat_map(Row::counts);
        let number = counts.map(|count| signed(count, decimals).len()).fold(share, usize::max);
        Self {
            decimals,
            name: widest("strategy", &|row| row.name.clone()),
            scored: widest("scored", &scored).max(widest("", &noop)),
            estimate: 3 * number + 4,
            p: width("<0.001"),
            kept: widest("kept", &kept).max(widest("cache", &cached)),
            failed: widest("failed ", &failed),
        }
    }

    fn beside_name(&self) -> usize {
        6 * GAP + self.scored + 2 * self.estimate + self.p + self.kept + self.failed
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

fn table(view: &View) -> Vec<String> {
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
        RowOutcome::Scored { deltas, permutation_p } => {
            let p = permutation_p.as_ref().map_or("none".to_owned(), p_value);
            scored_lines(deltas, &p, widths).into()
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

/// Wasted, p and stopped on one line, and what wasted is made of on another.
fn scored_lines(deltas: &Channels<Estimate>, p: &str, widths: &Widths) -> [String; 2] {
    let cell = |estimate: &Estimate| estimate_cell(estimate, widths.decimals);
    let stopped = estimate_cell(&deltas.stopped, SHARE_DECIMALS);
    let gap = " ".repeat(GAP);
    [
        [left(&cell(&deltas.wasted), widths.estimate), right(p, widths.p), stopped].join(&gap),
        [
            left(&format!("blocked {}", cell(&deltas.blocked)), widths.estimate + GAP + widths.p),
            format!("refetch {}", cell(&deltas.refetch)),
        ]
        .join(&gap),
    ]
}

fn estimate_cell(estimate: &Estimate, decimals: usize) -> String {
    let mean = signed(&estimate.mean, decimals);
    match &estimate.interval {
        Some(interval) => {
            format!("{mean} [{},{}]", signed(&interval.low, decimals), signed(&interval.high, decimals))
        }
        None => mean,
    }
}

impl Row {
    /// What is shown of it in actions.
    fn counts(&self) -> impl Iterator<Item = &Exact> {
        let deltas = match &self.outcome {
            RowOutcome::Scored { deltas, .. } => Some(deltas),
            RowOutcome::Unscored(_) => None,
        };
        let estimates = deltas.into_iter().flat_map(|deltas| [&deltas.wasted, &deltas.blocked, &deltas.refetch]);
        estimates.flat_map(|Estimate { mean, interval }| {
            std::iter::once(mean).chain(interval.iter().flat_map(|interval| [&interval.low, &interval.high]))
        })
    }
}

fn scored(row: &Row) -> String {
    format!("{}/{}", row.n_scored, row.n_tested)
}

fn noop(row: &Row) -> String {
    if row.n_noop > 0 { format!("{} noop", row.n_noop) } else { String::new() }
}

fn kept(row: &Row) -> String {
    row.kept.as_ref().map_or("-".to_owned(), percent)
}

fn cached(row: &Row) -> String {
    row.cache_kept.as_ref().map_or(String::new(), percent)
}

fn failed(row: &Row) -> String {
    format!("{}{}", share(row.failed), if row.marked { '!' } else { ' ' })
}

fn share(failed: Failed) -> String {
    format!("{}/{}", failed.failed, failed.n_rollouts)
}

fn legend(view: &View) -> Vec<String> {
    let actions = counted(view.horizon, "action", "actions");
    let entries = [
        ("scored", "boundaries with a delta, of those tested; noop: left unchanged, so zero by definition"),
        ("wasted", "actions per rollout that failed (blocked) or were executed before (refetch), or both"),
        ("p", "exact sign-flip permutation test of wasted, two-sided"),
        ("stopped", &format!("share of rollouts whose agent ended its turn before {actions}")),
        ("kept", &format!("median share of the tokens that is left (token counts: {})", view.token_counter)),
        ("cache", "median share of these that still starts as before, and that providers bill at a fraction"),
        (
            "failed",
            "POST rollouts that broke off; ! if the arms failed at different rates, an arm lost more than half, or a \
             compaction failed or is flawed",
        ),
    ];
    let what = "Deltas are POST (compacted) minus PRE (raw): means over boundaries, 95% bootstrap intervals.";
    let entries = entries.into_iter().flat_map(|(word, meaning)| hanging(&left(word, 9), meaning));
    wrap(what, COLUMNS).into_iter().chain(entries).collect()
}

/// Text behind a label, its further lines indented as far.
fn hanging(label: &str, text: &str) -> Vec<String> {
    let indent = width(label);
    let lines = wrap(text, COLUMNS - indent).into_iter().enumerate();
    lines.map(|(i, line)| format!("{}{line}", if i == 0 { label.to_owned() } else { " ".repeat(indent) })).collect()
}
