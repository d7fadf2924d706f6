//! What a verification takes, as text.

use retrace_events::Dollars;
use retrace_report::layout::{left, right, width, wrap};
use retrace_report::{COLUMNS, counted, printable};

use super::cost::{ANSWER_CHARS, Cost, Share};
use crate::setup::price;

/// What a name has at least.
const NAME: usize = 8;

const HEADER: [&str; 8] = ["", "compactions", "rollouts", "model calls", "input", "cached", "output", "dollars"];

pub(super) fn text(cost: &Cost) -> String {
    let model = cost.model.as_deref().unwrap_or("the agent's own");
    let first = format!(
        "{}: {} from {}{}, {} per arm, horizon {}, model {}",
        printable(&cost.config),
        counted(cost.boundaries, "boundary", "boundaries"),
        counted(cost.recordings, "recording", "recordings"),
        if cost.left_out > 0 { format!(" ({} left out)", cost.left_out) } else { String::new() },
        counted(cost.samples as usize, "rollout", "rollouts"),
        cost.horizon,
        printable(model),
    );
    let mut lines = wrap(&first, COLUMNS);
    lines.extend(wrap(&price(cost.prices), COLUMNS));
    lines.push(String::new());
    lines.extend(table(cost));
    lines.push(String::new());
    for note in notes(cost) {
        let wrapped = wrap(&note, COLUMNS - 2).into_iter().enumerate();
        lines.extend(wrapped.map(|(n, line)| format!("{}{line}", if n == 0 { "* " } else { "  " })));
    }
    lines.join("\n")
}

fn table(cost: &Cost) -> Vec<String> {
    let shares = std::iter::once(("PRE", &cost.pre))
        .chain(cost.strategies.iter().map(|(name, share)| (&**name, share)))
        .chain([("in all", &cost.total)]);
    let rows = shares.map(|(name, share)| row(name, share));
    let mut rows: Vec<_> = std::iter::once(HEADER.map(str::to_owned)).chain(rows).collect();
    // Names give way to numbers.
    let columns = |column: usize| rows.iter().map(|row| width(&row[column])).max().unwrap_or_default();
    let of_numbers: usize = (1..HEADER.len()).map(|column| columns(column) + 2).sum();
    let of_names = COLUMNS.saturating_sub(of_numbers).max(NAME);
    rows.iter_mut().for_each(|row| row[0] = shortened(&row[0], of_names));
    let widths: Vec<_> =
        (0..HEADER.len()).map(|column| rows.iter().map(|row| width(&row[column])).max().unwrap_or_default()).collect();
    let line = |row: &[String; 8]| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(n, (cell, &columns))| if n == 0 { left(cell, columns) } else { right(cell, columns) });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// The tokens that come from a cache, at the end where fewer do and at the other.
fn cached(share: &Share) -> String {
    let [low, high] = [share.low, share.high].map(|spend| spend.cache_read_tokens.unwrap_or(0));
    between(short(low.min(high)), short(low.max(high)))
}

/// A text of at most so many columns.
fn shortened(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut short = String::new();
    for character in text.chars() {
        short.push(character);
        if width(&short) >= columns {
            short.pop();
            break;
        }
    }
    short + "…"
}

fn row(name: &str, share: &Share) -> [String; 8] {
    let name = printable(name).into_owned();
    let range = |of: fn(&retrace_events::Spend) -> u64| between(short(of(&share.low)), short(of(&share.high)));
    let dollars = |dollars: Option<Dollars>| dollars.map_or("?".to_owned(), |dollars| dollars.to_string());
    [
        name,
        if share.compactions == 0 { String::new() } else { share.compactions.to_string() },
        between(short(share.rollouts.low), short(share.rollouts.high)),
        range(|spend| spend.n_model_calls),
        range(|spend| spend.input_tokens),
        cached(share),
        range(|spend| spend.output_tokens),
        between(dollars(share.low.dollars), dollars(share.high.dollars)),
    ]
}

fn notes(cost: &Cost) -> Vec<String> {
    let recorded = &cost.recorded;
    let mut notes = vec![
        "Input, what of it is cached, and output are in tokens.".to_owned(),
        "Low: each rollout ends after one answer, and all that it reads comes from a cache.".to_owned(),
        format!(
            "High: each rollout has {}, each with one call, nothing comes from a cache, and the context grows by {:.0} \
             tokens with each: the mean of the recorded answers and results. A run whose results are longer takes more.",
            counted(cost.horizon, "answer", "answers"),
            recorded.growth_tokens
        ),
        format!(
            "An answer has {:.0} tokens, as recorded. Tokens are those that the recorded runs reported, else {}.",
            recorded.output_tokens, cost.token_counter
        ),
    ];
    if cost.total.compacting.n_model_calls > 0 {
        notes.push(format!(
            "The {} of compactions are counted with an answer of {} characters each; nothing runs where one fails.",
            counted(cost.total.compacting.n_model_calls as usize, "question", "questions"),
            ANSWER_CHARS
        ));
    }
    let named = |is: fn(&Share) -> bool| {
        let names = cost.strategies.iter().filter(|(_, share)| is(share));
        names.map(|(name, _)| format!("`{}`", printable(name))).collect::<Vec<_>>().join(", ")
    };
    if cost.total.is_program {
        let names = named(|share| share.is_program);
        notes.push(format!(
            "What {names} asks and keeps only a program knows, which was not started: it is not in dollars."
        ));
    }
    if cost.total.asks_more {
        let names = named(|share| share.asks_more);
        notes.push(format!("{names} may ask more than is counted: its further questions depend on the answers."));
    }
    if cost.chain {
        notes.push(
            "In a chain a strategy is given less than the raw history, which is what is counted here.".to_owned(),
        );
    }
    if cost.stop_early {
        notes.push("The run may stop early, and take less.".to_owned());
    }
    if cost.boundaries == 0 {
        notes.push(
            "No recording has a boundary: `min_prefix` may be too large, or the recordings too short.".to_owned(),
        );
    }
    notes
}

fn between(low: String, high: String) -> String {
    if low == high { low } else { format!("{low}–{high}") }
}

/// Three digits that say something: `9,999` as it is, then `12.3k`, `123k`, `1.23M`.
fn short(count: u64) -> String {
    let (value, unit) = match count {
        0..10_000 => return count.to_string(),
        10_000..999_500 => (count as f64 / 1e3, "k"),
        999_500..999_500_000 => (count as f64 / 1e6, "M"),
        _ => (count as f64 / 1e9, "G"),
    };
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_has_three_digits_that_say_something() {
        let texts = [0, 9_999, 12_345, 123_456, 999_499, 999_500, 1_234_567, 99_960_000, 2_500_000_000].map(short);
        assert_eq!(texts, ["0", "9999", "12.3k", "123k", "999k", "1.00M", "1.23M", "100M", "2.50G"]);
    }
}
