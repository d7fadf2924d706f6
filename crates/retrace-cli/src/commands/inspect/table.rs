//! The facts of recordings as text, at most 100 columns wide.

use retrace_report::layout::{elide, left, right, wrap};
use retrace_report::{COLUMNS, counted, printable};

use super::chain::{Link, Pass, SUMMARY_CHARS};
use super::{Counts, Facts, Fate, Inspection, Kept};

const NUMBERS: [&str; 6] = ["events", "rounds", "actions", "blocked", "repeats", "boundaries"];
const WIDTHS: [usize; 6] = [8, 8, 9, 9, 9, 12];
const NAME: usize = 45;

pub(super) fn text(inspection: &Inspection, lists_boundaries: bool) -> String {
    let mut lines = vec![line("recording", NUMBERS.map(str::to_owned))];
    lines.push("─".repeat(lines[0].chars().count()));
    for facts in &inspection.recordings {
        lines.push(line(&facts.id, numbers(&facts.counts, facts.boundaries.len())));
    }
    let total = &inspection.total;
    if total.recordings > 1 {
        let name = counted(total.recordings, "recording", "recordings");
        lines.push(line(&name, numbers(&total.counts, total.boundaries)));
    }
    lines.extend(cuts(&inspection.recordings));
    lines.extend(kept(inspection));
    if lists_boundaries {
        lines.extend(inspection.strategies.iter().flat_map(|(name, kept)| boundaries(name, kept)));
    }
    for (name, kept) in &inspection.strategies {
        lines.extend(kept.chain.iter().flat_map(|links| chain(name, links)));
    }
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

fn numbers(counts: &Counts, n_boundaries: usize) -> [String; 6] {
    [counts.events, counts.rounds, counts.actions, counts.blocked, counts.repeats, n_boundaries].map(|n| n.to_string())
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
    lines.extend(wrap(
        "cache kept: the median share of what is kept that still starts as the raw history does, which providers bill at a \
         fraction",
        COLUMNS,
    ));
    lines
}

/// What is left pass after pass.
fn chain(name: &str, links: &[Link]) -> Vec<String> {
    let row = |name: &str, cut: &str, numbers: [String; 3], word: &str| {
        let numbers: String = numbers.iter().map(|number| right(number, 10)).collect();
        format!("{}{}{numbers}  {word}", cell(name, NAME), right(cut, 8)).trim_end().to_owned()
    };
    let heads = ["raw", "before", "after"].map(str::to_owned);
    let mut lines = vec![String::new(), row(&format!("{name}, chained, in tokens"), "cut", heads, "")];
    for Link { recording, cut, raw, before, summarizes_summary, pass, .. } in links {
        let (after, word) = match pass {
            Pass::After(after) if after > before => (after.0.to_string(), "grew"),
            Pass::After(after) => {
                (after.0.to_string(), if *summarizes_summary { "summarized its summary" } else { "" })
            }
            Pass::Failed(_) => (String::new(), "not known"),
        };
        lines.push(row(recording, &cut.to_string(), [raw.0.to_string(), before.0.to_string(), after], word));
    }
    if links.iter().any(|link| link.questions > 0) {
        let assumed = format!("no model was asked: each answer is taken to have {SUMMARY_CHARS} characters");
        lines.extend(wrap(&assumed, COLUMNS));
    }
    let why = links.iter().find_map(|link| if let Pass::Failed(why) = &link.pass { Some(why) } else { None });
    lines.extend(why.iter().flat_map(|why| wrap(&format!("not known, at first because {}", printable(why)), COLUMNS)));
    lines
}

/// What becomes of the history at each boundary.
fn boundaries(name: &str, kept: &Kept) -> Vec<String> {
    let row = |name: &str, cut: &str, numbers: [String; 4]| {
        let numbers: String = numbers.iter().map(|number| right(number, 10)).collect();
        format!("{}{}{numbers}", cell(name, NAME), right(cut, 8))
    };
    let heads = ["kept", "dropped", "blanked", "made"].map(str::to_owned);
    let mut lines = vec![String::new(), row(&format!("{name}, in tokens"), "cut", heads)];
    for at in &kept.at {
        let numbers = match &at.fate {
            Fate::Changes { kept, dropped, blanked, made, .. } => {
                [kept, dropped, blanked, made].map(|tokens| tokens.0.to_string())
            }
            Fate::Asks { .. } => ["asks", "a model", "", ""].map(str::to_owned),
            Fate::Failed { .. } => ["fails", "", "", ""].map(str::to_owned),
        };
        lines.push(row(&at.recording, &at.cut.to_string(), numbers).trim_end().to_owned());
    }
    lines
}

fn words(kept: &Kept) -> String {
    let of = format!("of {}", counted(kept.boundaries, "boundary", "boundaries"));
    let question = kept.question_tokens.map_or_else(String::new, |n| format!(", about {n:.0} tokens a question"));
    let share = kept.kept.map(|share| format!("{:.0}%", share * 100.0));
    let cached = kept.cache_kept.map(|share| format!("cache kept {:.0}%", share * 100.0));
    let at = |n: usize, words: String| (n > 0).then_some(words);
    let words = [
        share,
        cached,
        at(kept.asks_a_model, format!("asks a model at {} {of}{question}", kept.asks_a_model)),
        at(kept.unchanged, format!("leaves {} {of} unchanged", kept.unchanged)),
        at(kept.failed, format!("fails at {} {of}", kept.failed)),
        at(kept.flawed, format!("any model would refuse what it keeps at {} {of}", kept.flawed)),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn notes(inspection: &Inspection) -> Vec<String> {
    let total = &inspection.total;
    let mut notes = Vec::new();
    if total.counts.undecided > 0 {
        notes.push(format!(
            "The source does not say of {} whether they are failures, so they count as successes. Say which are with a \
             rule, such as --failed-if prefix:Error.",
            counted(total.counts.undecided, "result", "results")
        ));
    }
    if total.counts.left_out > 0 {
        notes.push(format!(
            "{} left out by max_boundaries_per_recording; \"all\" lifts that limit.",
            counted(total.counts.left_out, "more boundary is", "more boundaries are")
        ));
    }
    let (unanswered, orphans) = (total.counts.unanswered_calls, total.counts.orphan_results);
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
