//! The table of verdicts: what is shown of each strategy, at the boundaries that were run and beyond them.

use num_traits::Zero;
use retrace_score::{Scope, Verdict, verdict_words};
use retrace_stats::Exact;

use crate::layout::{elide, left, right, width, wrap};
use crate::number::{most_decimals, p_value, signed};
use crate::text::{
    COLUMNS, GAP, NAME, NAME_LINES, SHARE_DECIMALS, cached, entries, failed, kept, meanings, scored, unit_words, widest,
};
use crate::view::{ContrastRow, Ps, Row, RowOutcome, Scored, Shown, View};

/// As wide as a p-value gets: `<0.001`, `0.250f`.
const P: usize = 6;

/// The widths of the columns.
struct Widths {
    /// The decimals of a count of actions.
    decimals: usize,
    name: usize,
    n: usize,
    wasted: usize,
    stopped: usize,
    kept: usize,
    failed: usize,
}

/// A line of a row, column by column; wasted and both p together.
#[derive(Default)]
struct Line<'a> {
    name: &'a str,
    n: &'a str,
    wasted: &'a str,
    stopped: &'a str,
    kept: &'a str,
    failed: &'a str,
}

impl Widths {
    /// Those with the most decimals that leave room for the names.
    fn new(view: &View) -> Self {
        let verdicts = view.rows.iter().filter_map(verdict).map(width).max().unwrap_or_default();
        let least = NAME.max(verdicts);
        let with = |decimals| Self::with_decimals(view, decimals);
        let fewer = (1..=most_decimals(view.horizon)).rev().map(with);
        let mut widths =
            fewer.into_iter().find(|widths| widths.beside_name() + least <= COLUMNS).unwrap_or_else(|| with(0));
        widths.name = widths.name.max(least).min(COLUMNS.saturating_sub(widths.beside_name())).max(NAME);
        widths
    }

    fn with_decimals(view: &View, decimals: usize) -> Self {
        let contrasts = view.against_control.iter().flat_map(|(_, rows)| rows).map(|row| &row.channels);
        let rows = view.rows.iter().filter_map(Row::scored).map(|scored| &scored.channels);
        let channels: Vec<_> = rows.chain(contrasts).collect();
        let units = unit_words(view.unit).0;
        let scored_rows: Vec<_> = view.rows.iter().filter_map(Row::scored).collect();
        let wasted = widest("+0 [+0,+0]", &channels, |[wasted, _]| estimate(wasted, decimals));
        let of_which = widest("", &scored_rows, |scored| of_which(scored, decimals));
        Self {
            decimals,
            name: widest("strategy", &view.rows, |row| row.name.clone()),
            n: widest("", &view.rows, scored).max(width(heading(units))),
            wasted: wasted.max(of_which.saturating_sub(2 * (GAP + P))),
            stopped: widest("here <0.001, new <0.001", &channels, |[_, stopped]| estimate(stopped, SHARE_DECIMALS)),
            kept: widest("cache", &view.rows, kept).max(widest("cache", &view.rows, cached)),
            failed: widest("failed ", &view.rows, failed),
        }
    }

    /// Wasted and both p.
    fn tested(&self) -> usize {
        self.wasted + 2 * (GAP + P)
    }

    /// These and stopped.
    fn deltas(&self) -> usize {
        self.tested() + GAP + self.stopped
    }

    fn beside_name(&self) -> usize {
        4 * GAP + self.n + self.deltas() + self.kept + self.failed
    }

    fn line(&self, Line { name, n, wasted, stopped, kept, failed }: &Line<'_>) -> String {
        let gap = " ".repeat(GAP);
        // A reason why nothing is scored runs on to where stopped would stand.
        let deltas =
            if stopped.is_empty() { (*wasted).to_owned() } else { left(wasted, self.tested()) + &gap + stopped };
        [
            left(name, self.name),
            right(n, self.n),
            left(&deltas, self.deltas()),
            right(kept, self.kept),
            right(failed, self.failed),
        ]
        .join(&gap)
    }

    /// Wasted with its p-values on one line, and what it is made of on another.
    fn wasted(&self, [shown, _]: &[Shown; 2], of_which: &str) -> [String; 2] {
        let first = left(&estimate(shown, self.decimals), self.wasted);
        let first = match &shown.p {
            Some(p) => [first, right(&here(p), P), right(&new(p), P)].join(&" ".repeat(GAP)),
            None => first,
        };
        [first, of_which.to_owned()]
    }
}

/// The second line of the column of names: what is said of a strategy. The control is not judged.
fn verdict(row: &Row) -> Option<&'static str> {
    let verdict = row.verdict.as_ref()?;
    (!row.is_control || *verdict == Verdict::Invalid).then(|| verdict_words(verdict))
}

/// The word over the count of units.
fn heading(unit: &str) -> &str {
    if unit == "recording" { "rec" } else { unit }
}

/// A row for each strategy, and one for each held against the control.
pub(crate) fn table(view: &View) -> Vec<String> {
    let widths = Widths::new(view);
    let mut lines = header(view, &widths, "kept", "failed ");
    lines.push("─".repeat(width(&lines[0])));
    lines.extend(view.rows.iter().flat_map(|row| self::row(row, &widths)));
    if let Some((control, rows)) = &view.against_control {
        lines.push(String::new());
        lines.extend(wrap(
            &format!("The same against `{control}`, so that what resuming does by itself cancels out:"),
            COLUMNS,
        ));
        lines.push(String::new());
        lines.extend(rows.iter().flat_map(|row| contrast(row, &widths)));
    }
    lines
}

fn header(view: &View, widths: &Widths, kept: &str, failed: &str) -> Vec<String> {
    let is_full = view.horizon == view.full_horizon;
    let wasted = left("wasted", widths.wasted);
    let wasted = if is_full { [wasted, right("p here", P), right("p new", P)].join(&" ".repeat(GAP)) } else { wasted };
    let first = Line { name: "strategy", n: "n", wasted: &wasted, stopped: "stopped", kept, failed };
    let second = Line {
        name: if is_full { "verdict" } else { "" },
        n: heading(unit_words(view.unit).0),
        wasted: "of which",
        stopped: if is_full { "its p" } else { "" },
        kept: "cache",
        failed: "noop ",
    };
    vec![widths.line(&first), widths.line(&second)]
}

fn row(row: &Row, widths: &Widths) -> Vec<String> {
    let names = elide(wrap(&row.name, widths.name), NAME_LINES, widths.name);
    let verdict = verdict(row).into_iter().flat_map(|verdict| wrap(verdict, widths.name));
    let names: Vec<_> = names.into_iter().chain(verdict).collect();
    let (wasted, stopped) = match &row.outcome {
        RowOutcome::Scored(scored) => {
            let of_which = of_which(scored, widths.decimals);
            (widths.wasted(&scored.channels, &of_which).to_vec(), stopped(&scored.channels))
        }
        RowOutcome::Unscored(reason) => (wrap(&format!("not scored: {reason}"), widths.deltas()), Vec::new()),
    };
    let n = [scored(row), row.n_units.to_string()];
    let kept = [kept(row), cached(row)];
    let failed = [failed(row), format!("{} ", row.n_noop)];
    lines(widths, &[&names, &n, &wasted, &stopped, &kept, &failed])
}

/// What wasted is made of, if there is any.
fn of_which(scored: &Scored, decimals: usize) -> String {
    let Some(parts) = scored.parts.as_ref().filter(|parts| parts.iter().any(|part| !part.is_zero())) else {
        return String::new();
    };
    let [blocked, refetch] = parts.each_ref().map(|part| signed(part, decimals));
    format!("blocked {}, refetch {}", blocked.trim(), refetch.trim())
}

fn contrast(row: &ContrastRow, widths: &Widths) -> Vec<String> {
    let names = elide(wrap(&row.name, widths.name), NAME_LINES, widths.name);
    let [wasted, _] = widths.wasted(&row.channels, "");
    lines(widths, &[&names, &[row.n_scored.to_string()], &[wasted], &stopped(&row.channels), &[], &[]])
}

/// Cells of several lines each, side by side.
fn lines(widths: &Widths, cells: &[&[String]; 6]) -> Vec<String> {
    let n_lines = cells.iter().map(|lines| lines.len()).max().unwrap_or_default();
    let line = |i: usize| {
        let [name, n, wasted, stopped, kept, failed] = cells.map(|lines| lines.get(i).map_or("", String::as_str));
        widths.line(&Line { name, n, wasted, stopped, kept, failed })
    };
    (0..n_lines).map(line).collect()
}

/// Stopped on one line and, if there is any difference, its p-values on another.
fn stopped([_, shown]: &[Shown; 2]) -> Vec<String> {
    let p = shown.p.as_ref().filter(|_| !shown.mean.is_zero());
    let p = p.map(|p| format!("here {}, new {}", here(p), new(p)));
    [estimate(shown, SHARE_DECIMALS)].into_iter().chain(p).collect()
}

fn here(p: &Ps) -> String {
    p.here.as_ref().map_or("-".to_owned(), p_value)
}

fn new(p: &Ps) -> String {
    format!("{}{}", p_value(&p.new), if p.at_floor { "f" } else { "" })
}

/// `+1.139 [none,+3.877]`
fn estimate(Shown { mean, ends, .. }: &Shown, decimals: usize) -> String {
    let mean = signed(mean, decimals);
    let end = |end: Option<f64>| {
        let end = end.and_then(Exact::from_float);
        end.map_or("none".to_owned(), |end| signed(&end, decimals).trim().to_owned())
    };
    match (ends.low, ends.high) {
        (None, None) => mean,
        (low, high) => format!("{mean} [{},{}]", end(low), end(high)),
    }
}

/// What the columns are.
pub(crate) fn legend(view: &View) -> Vec<String> {
    let (one, many) = unit_words(view.unit);
    let speaks = match view.look.scope {
        Scope::New => format!("the mean to expect on {many} like these lies"),
        Scope::Here => "it would settle at these boundaries with ever more rollouts".to_owned(),
    };
    let what = format!(
        "Means over boundaries of POST (compacted) minus PRE (raw), and in brackets where {speaks}, 97.5% sure at each \
         end."
    );
    let new = if view.stops_early {
        "By evidence that may be looked at after each".to_owned()
    } else {
        format!("By flipping the sign of each {one}; f: no smaller one is possible with so few")
    };
    let tested = [
        ("p here", "is there a difference at these boundaries? By exchanging rollouts between the arms".to_owned()),
        (
            "p new",
            format!(
                "and on {many} not yet made? {new}. Both p are adjusted for all strategies and for wasted and stopped; \
                 intervals are not"
            ),
        ),
    ];
    let is_full = view.horizon == view.full_horizon;
    let n = ("n", format!("boundaries with a delta, of those tested; under it the {many} they come from"));
    let [wasted, stopped, kept, cache, failed] = meanings(view);
    let noop = ("noop", "boundaries left unchanged, whose delta is zero by definition".to_owned());
    let words = [n, wasted].into_iter().chain(tested.into_iter().filter(|_| is_full));
    let more = [stopped, kept, cache, failed, noop];
    wrap(&what, COLUMNS).into_iter().chain(entries(words.chain(more))).collect()
}
