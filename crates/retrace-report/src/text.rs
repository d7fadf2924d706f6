//! A report as text, for a terminal of 100 columns.

use retrace_score::{ArmMeans, Channels, Estimate, Failed};

use retrace_stats::Exact;

use crate::layout::{elide, left, right, width, wrap};
use crate::number::{counted, decimals, p_value, percent, plain, signed};
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
    let mut lines = vec![format!(
        "{} from {}, {} per arm, {at}",
        counted(view.n_boundaries, "boundary", "boundaries"),
        counted(view.n_recordings, "recording", "recordings"),
        counted(view.samples, "rollout", "rollouts"),
    )];
    if let Some(pre) = &view.pre {
        lines.extend(wrap(&level(pre, view), COLUMNS));
    }
    lines
}

/// Where PRE stands, so that a delta can be told from a large one.
fn level(pre: &ArmMeans, view: &View) -> String {
    let mean = |value| plain(value, decimals(view.horizon));
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
    name: usize,
    scored: usize,
    /// `+0.833 [+0.333,+1.250]`
    estimate: usize,
    p: usize,
    kept: usize,
    failed: usize,
}

impl Widths {
    fn new(view: &View) -> Self {
        let widest = |header: &str, cell: &dyn Fn(&Row) -> String| {
            view.rows.iter().map(|row| width(&cell(row))).fold(width(header), usize::max)
        };
        let widest_number = |most: usize, decimals| signed(&Exact::from_integer(most.into()), decimals).len();
        let number = widest_number(view.horizon, decimals(view.horizon)).max(widest_number(1, SHARE_DECIMALS));
        let mut widths = Self {
            name: widest("strategy", &|row| row.name.clone()),
            scored: widest("scored", &scored).max(widest("", &noop)),
            estimate: 3 * number + 4,
            p: width("<0.001"),
            kept: widest("kept", &kept),
            failed: widest("failed ", &failed),
        };
        widths.name = widths.name.min(COLUMNS.saturating_sub(widths.beside_name())).max(NAME);
        widths
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
    let rows = view.rows.iter().flat_map(|row| self::row(row, view, &widths));
    [header, rule].into_iter().chain(rows).collect()
}

fn row(row: &Row, view: &View, widths: &Widths) -> Vec<String> {
    let names = elide(wrap(&row.name, widths.name), NAME_LINES, widths.name);
    let deltas = match &row.outcome {
        RowOutcome::Scored { deltas, permutation_p } => {
            let p = permutation_p.as_ref().map_or("none".to_owned(), p_value);
            scored_lines(deltas, &p, view, widths).into()
        }
        RowOutcome::Unscored(reason) => wrap(&format!("not scored: {reason}"), widths.deltas()),
    };
    let scored = [scored(row), noop(row)];
    let (kept, failed) = (kept(row), failed(row));
    let n_lines = names.len().max(deltas.len()).max(if row.n_noop > 0 { 2 } else { 1 });
    let lines = (0..n_lines).map(|i| {
        let cell = |cells: &[String]| cells.get(i).cloned().unwrap_or_default();
        let (kept, failed) = if i == 0 { (&*kept, &*failed) } else { ("", "") };
        widths.line(&cell(&names), &cell(&scored), &cell(&deltas), kept, failed)
    });
    lines.collect()
}

/// Wasted, p and stopped on one line, and what wasted is made of on another.
fn scored_lines(deltas: &Channels<Estimate>, p: &str, view: &View, widths: &Widths) -> [String; 2] {
    let cell = |estimate: &Estimate| estimate_cell(estimate, decimals(view.horizon));
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

fn scored(row: &Row) -> String {
    format!("{}/{}", row.n_scored, row.n_tested)
}

fn noop(row: &Row) -> String {
    if row.n_noop > 0 { format!("{} noop", row.n_noop) } else { String::new() }
}

fn kept(row: &Row) -> String {
    row.kept.as_ref().map_or("-".to_owned(), percent)
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
        ("failed", "POST rollouts that broke off; ! if the arms failed at different rates, or a compaction failed"),
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
