//! A report as text, for a terminal of 100 columns: a heading, a table, what its columns are, and the notes.

use retrace_score::{ArmMeans, Failed, Unit};

use crate::layout::{left, width, wrap};
use crate::number::{counted, most_decimals, percent, plain};
use crate::view::{Row, Style, View};
use crate::{reference, table};

/// No line is wider.
pub const COLUMNS: usize = 100;

/// Between two columns.
pub(crate) const GAP: usize = 2;

/// The narrowest column of names.
pub(crate) const NAME: usize = 8;

/// How many lines a name may take.
pub(crate) const NAME_LINES: usize = 3;

/// The decimals of a share of rollouts, which unlike a count of actions does not grow with the horizon.
pub(crate) const SHARE_DECIMALS: usize = 3;

/// The table of a report, a legend, and the notes.
pub fn text(view: &View) -> String {
    let mut lines = heading(view);
    if !view.rows.is_empty() && view.n_boundaries > 0 {
        let (table, legend) = match view.look.style {
            Style::Verdict => (table::table(view), table::legend(view)),
            Style::Reference => (reference::table(view), reference::legend(view)),
        };
        for part in [table, legend] {
            lines.push(String::new());
            lines.extend(part);
        }
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

/// How many of its boundaries are scored.
pub(crate) fn scored(row: &Row) -> String {
    format!("{}/{}", row.n_scored, row.n_tested)
}

/// The share of the tokens that is left.
pub(crate) fn kept(row: &Row) -> String {
    row.kept.as_ref().map_or("-".to_owned(), percent)
}

/// The share of these that a cache still knows.
pub(crate) fn cached(row: &Row) -> String {
    row.cache_kept.as_ref().map_or(String::new(), percent)
}

/// The rollouts that failed, with the mark.
pub(crate) fn failed(row: &Row) -> String {
    format!("{}{}", share(row.failed), if row.marked { '!' } else { ' ' })
}

/// What a unit is called, one and many.
pub(crate) fn unit_words(unit: Unit) -> (&'static str, &'static str) {
    match unit {
        Unit::Recording => ("recording", "recordings"),
        Unit::Task => ("task", "tasks"),
    }
}

fn share(failed: Failed) -> String {
    format!("{}/{}", failed.failed, failed.n_rollouts)
}

/// The widest of a header and the cells under it.
pub(crate) fn widest<T>(header: &str, rows: &[T], cell: impl Fn(&T) -> String) -> usize {
    rows.iter().map(|row| width(&cell(row))).fold(width(header), usize::max)
}

/// What the columns are that both tables have: wasted, stopped, kept, cache and failed.
pub(crate) fn meanings(view: &View) -> [(&'static str, String); 5] {
    let actions = counted(view.horizon, "action", "actions");
    let wasted = "actions per rollout that failed (blocked) or were executed before (refetch), or both";
    let cache = "median share of these that still starts as before, and that providers bill at a fraction";
    let failed = "POST rollouts that broke off; ! if the arms failed at different rates, an arm lost more than half, or a \
                  compaction failed or is flawed";
    [
        ("wasted", wasted.to_owned()),
        ("stopped", format!("share of rollouts whose agent ended its turn before {actions}")),
        ("kept", format!("median share of the tokens that is left (token counts: {})", view.token_counter)),
        ("cache", cache.to_owned()),
        ("failed", failed.to_owned()),
    ]
}

/// Words with their meanings, one under the other.
pub(crate) fn entries<'a>(entries: impl IntoIterator<Item = (&'a str, String)>) -> impl Iterator<Item = String> {
    entries.into_iter().flat_map(|(word, meaning)| hanging(&left(word, 9), &meaning))
}

/// Text behind a label, its further lines indented as far.
fn hanging(label: &str, text: &str) -> Vec<String> {
    let indent = width(label);
    let lines = wrap(text, COLUMNS - indent).into_iter().enumerate();
    lines.map(|(i, line)| format!("{}{line}", if i == 0 { label.to_owned() } else { " ".repeat(indent) })).collect()
}
