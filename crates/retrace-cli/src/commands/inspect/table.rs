//! The facts of recordings as text, at most 100 columns wide.

use std::fmt::Write;

use retrace_report::layout::{elide, left, right, wrap};
use retrace_report::{COLUMNS, counted, printable};

use super::{Facts, Inspection, Kept, Total};

const NUMBERS: [&str; 6] = ["events", "rounds", "actions", "blocked", "repeats", "boundaries"];
const WIDTHS: [usize; 6] = [8, 8, 9, 9, 9, 12];
const NAME: usize = 45;

pub(super) fn text(inspection: &Inspection) -> String {
    let mut lines = vec![line("recording", NUMBERS.map(str::to_owned))];
    lines.push("─".repeat(lines[0].chars().count()));
    for facts in &inspection.recordings {
        lines.push(line(&facts.id, numbers(facts).map(|number| number.to_string())));
    }
    let total = &inspection.total;
    if total.recordings > 1 {
        lines.push(line(
            &counted(total.recordings, "recording", "recordings"),
            sums(total).map(|number| number.to_string()),
        ));
    }
    lines.extend(cuts(&inspection.recordings));
    lines.extend(kept(inspection));
    for note in notes(inspection) {
        lines.push(String::new());
        lines.extend(wrap(&note, COLUMNS));
    }
    lines.join("\n")
}

fn line(name: &str, numbers: [String; 6]) -> String {
    let numbers = numbers.iter().zip(WIDTHS).map(|(number, width)| right(number, width));
    cell(name, NAME) + &numbers.collect::<String>()
}

/// One line of a name, padded.
fn cell(name: &str, columns: usize) -> String {
    left(&elide(wrap(&printable(name), columns - 1), 1, columns - 1).concat(), columns)
}

fn numbers(facts: &Facts) -> [usize; 6] {
    [facts.events, facts.rounds, facts.actions, facts.blocked, facts.repeats, facts.boundaries.len()]
}

fn sums(total: &Total) -> [usize; 6] {
    [total.events, total.rounds, total.actions, total.blocked, total.repeats, total.boundaries]
}

/// Every point at which each recording can be resumed, where they were asked for.
fn cuts(recordings: &[Facts]) -> Vec<String> {
    let mut lines = Vec::new();
    for facts in recordings {
        let Some(cuts) = &facts.cuts else { continue };
        let points = cuts.iter().map(|cut| format!("{} ({})", cut.cut, cut.executed));
        let points = points.collect::<Vec<_>>().join(", ");
        let points = if points.is_empty() { "nowhere".to_owned() } else { points };
        lines.push(String::new());
        lines
            .extend(wrap(&format!("{} can be cut after (actions before it): {points}", printable(&facts.id)), COLUMNS));
    }
    lines
}

/// What each strategy keeps.
fn kept(inspection: &Inspection) -> Vec<String> {
    if inspection.total.boundaries == 0 || inspection.strategies.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), "kept, median share of the tokens at the boundaries:".to_owned()];
    for (name, kept) in &inspection.strategies {
        let words = wrap(&words(kept), COLUMNS - 34);
        for (number, words) in words.iter().enumerate() {
            let name = cell(if number == 0 { name } else { "" }, 32);
            lines.push(format!("  {name}{words}"));
        }
    }
    lines
}

fn words(kept: &Kept) -> String {
    let mut words = String::new();
    if let Some(share) = kept.kept {
        write!(words, "{:.0} %", share * 100.0).expect("a string takes all that is written");
    }
    let mut also = |n: usize, what: String| {
        if n > 0 {
            let before = if words.is_empty() { "" } else { ", " };
            write!(words, "{before}{what}").expect("a string takes all that is written");
        }
    };
    also(kept.asks_a_model, {
        let question = kept.question_tokens.map_or_else(String::new, |n| format!(", about {n:.0} tokens a question"));
        format!("asks a model at {} of {} boundaries{question}", kept.asks_a_model, kept.boundaries)
    });
    also(kept.unchanged, format!("leaves {} of {} boundaries unchanged", kept.unchanged, kept.boundaries));
    also(kept.failed, format!("fails at {} of {} boundaries", kept.failed, kept.boundaries));
    words
}

fn notes(inspection: &Inspection) -> Vec<String> {
    let total = &inspection.total;
    let mut notes = Vec::new();
    if total.undecided > 0 {
        notes.push(format!(
            "The source does not say of {} whether they are failures, so they count as successes. Say which are with a \
             rule, such as --failed-if prefix:Error.",
            counted(total.undecided, "result", "results")
        ));
    }
    if total.left_out > 0 {
        notes.push(format!(
            "{} left out by max_boundaries_per_recording; \"all\" lifts that limit.",
            counted(total.left_out, "more boundary is", "more boundaries are")
        ));
    }
    let unanswered: usize = inspection.recordings.iter().map(|facts| facts.unanswered_calls).sum();
    let orphans: usize = inspection.recordings.iter().map(|facts| facts.orphan_results).sum();
    if unanswered > 0 {
        let unanswered = counted(
            unanswered,
            "call was never answered and is no action",
            "calls were never answered and are no actions",
        );
        notes.push(format!("{unanswered}."));
    }
    if orphans > 0 {
        let skipped = counted(orphans, "result answers no call and is", "results answer no call and are");
        notes.push(format!("{skipped} skipped."));
    }
    if total.boundaries == 0 {
        notes.push(
            "There is no boundary: a recording is cut between rounds, after its first min_prefix actions, and not after \
             its last round. --cuts lists every point at which it can be resumed."
                .to_owned(),
        );
    }
    notes
}
