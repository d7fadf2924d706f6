//! The notes under a table: what a reader must know to read its numbers, in plain sentences.

mod reference;
mod spend;
mod verdicts;

use retrace_score::{
    Aggregate, ArmReport, BoundaryFacts, EnvironmentKind, ErrorCount, Failed, Key, RecordingFacts, Report, Side,
    StrategyReport, Unfinished, Unscored,
};
use retrace_stats::Exact;

use crate::number::{counted, grouped, percent_of};
use crate::printable;
use crate::view::Style;

/// How many of a list are named before the rest is only counted.
const MOST_NAMED: usize = 5;

/// The longest recorded text that is quoted, in characters.
const LONGEST_QUOTE: usize = 60;

/// The notes on a report at one horizon, what went wrong first.
pub(crate) fn notes(report: &Report, horizon: usize, style: Style) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(report.unfinished.as_ref().map(unfinished));
    notes.extend(unusable(report));
    if report.boundaries.is_empty() {
        notes.push(no_boundary(report));
        return notes;
    }
    notes.extend(left_out(report));
    notes.extend(unusable_boundaries(report));
    notes.extend(chained(report));
    notes.extend(refetch_by(report));
    if style == Style::Verdict {
        notes.extend(verdicts::notes(report, horizon));
    }
    notes.extend(pre_failures(report, horizon));
    notes.extend(ceiling(report, horizon));
    notes.extend(report.strategies.iter().filter_map(|(name, strategy)| about(name, report, strategy, horizon)));
    if style == Style::Reference {
        notes.extend(reference::notes(report, horizon));
    }
    notes.push(match style {
        Style::Verdict => verdicts::noise(report, horizon),
        Style::Reference => noise(report),
    });
    notes.extend(recorded_environment(report, horizon));
    notes.extend(worlds_differ(report));
    notes.extend(replay(report));
    notes.extend(unseen(report));
    notes.extend(spend::spent(report));
    notes.extend(spend::saved(report));
    notes
}

/// What is missing of a run that is not finished.
fn unfinished(unfinished: &Unfinished) -> String {
    let Unfinished { n_recordings, n_boundaries, n_rollouts, ref reason } = *unfinished;
    let mut missing = Vec::new();
    if n_recordings > 0 {
        missing.push(counted(n_recordings, "whole recording", "whole recordings"));
    }
    if n_boundaries > 0 {
        let rollouts = counted(n_rollouts, "rollout", "rollouts");
        missing.push(format!("up to {rollouts} at {}", counted(n_boundaries, "boundary", "boundaries")));
    }
    let reason = reason.as_ref().map(|reason| format!("; it stopped since {}", printable(reason)));
    format!("This is a part of the run: {} are missing{}.", missing.join(" and "), reason.unwrap_or_default())
}

/// The boundaries at which something could run.
fn usable(report: &Report) -> impl Iterator<Item = &BoundaryFacts> {
    report.boundaries.iter().filter(|boundary| boundary.unusable.is_none())
}

/// Why a strategy has no delta anywhere, as the end of a sentence.
pub(crate) fn why_unscored(at: &Aggregate) -> String {
    if at.unscored.is_empty() {
        return "no boundary was tested".to_owned();
    }
    let reasons: Vec<_> = at.unscored.iter().map(|unscored| because(unscored.reason, unscored.count)).collect();
    reasons.join("; ")
}

fn because(reason: Unscored, count: usize) -> String {
    let at = format!("at {}", boundaries(count));
    match reason {
        Unscored::Unusable => format!("nothing could run {at}"),
        Unscored::CompactionFailed => format!("the compaction failed {at}"),
        Unscored::CompactionFlawed => format!("what is kept is flawed {at}"),
        Unscored::NotRun(side) => format!("no {side} rollout ran {at}"),
        Unscored::AllFailed(side) => format!("every {side} rollout failed {at}"),
        _ => format!("there is no delta {at}"),
    }
}

fn boundaries(count: usize) -> String {
    counted(count, "boundary", "boundaries")
}

fn unusable(report: &Report) -> Option<String> {
    let n = report.unusable.len();
    let named = report.unusable.iter().take(MOST_NAMED);
    let named: Vec<_> = named.map(|it| format!("{} ({})", quoted(&it.name), printable(it.reason.trim()))).collect();
    let more = more(n);
    (n > 0).then(|| format!("{} could not be used: {}{more}.", counted(n, "recording", "recordings"), named.join("; ")))
}

fn chained(report: &Report) -> Option<String> {
    let chained = "Chained: at each boundary a strategy had run at every earlier one of the recording, each time on what it \
                   had left and what the run added since. kept is of the raw history, cache of what it was given.";
    report.chain.then(|| chained.to_owned())
}

/// What counts as a refetch, where it is not the usual rule.
fn refetch_by(report: &Report) -> Option<String> {
    match report.judging.refetch_by {
        Key::Call => None,
        Key::Tool => {
            Some("refetch counts each call of a tool that was called before, whatever its arguments.".to_owned())
        }
    }
}

fn no_boundary(report: &Report) -> String {
    let n = report.recordings.len();
    if n == 0 {
        return "There is no recording, so nothing could be tested.".to_owned();
    }
    let length = |recording: &RecordingFacts| match recording.length {
        Some(length) => format!(
            "{} has {} in {}",
            quoted(&recording.id),
            counted(length.n_actions, "action", "actions"),
            counted(length.n_rounds, "round", "rounds"),
        ),
        None => format!("{} is of unknown length", quoted(&recording.id)),
    };
    let named: Vec<_> = report.recordings.iter().take(MOST_NAMED).map(length).collect();
    format!(
        "There is no boundary in {}, so nothing could be tested: {}{}. A boundary lies between two rounds, with enough \
         actions before it and at least one after it.",
        counted(n, "recording", "recordings"),
        named.join(", "),
        more(n),
    )
}

fn more(n: usize) -> String {
    let more = n.saturating_sub(MOST_NAMED);
    if more > 0 { format!(", and {more} more") } else { String::new() }
}

fn left_out(report: &Report) -> Option<String> {
    let n = report.n_left_out;
    let more = counted(n, "more boundary was", "more boundaries were");
    (n > 0).then(|| format!("{more} left out by the limit per recording."))
}

fn unusable_boundaries(report: &Report) -> Option<String> {
    let (first, reason) = report.unusable_boundaries().next()?;
    Some(format!(
        "Nothing could run at {} of {}, which are scored for no strategy. The first is in {} after {}: {}.",
        report.unusable_boundaries().count(),
        boundaries(report.boundaries.len()),
        quoted(&first.recording),
        counted(first.cut, "event", "events"),
        printable(reason.trim_end_matches('.')),
    ))
}

fn pre_failures(report: &Report, horizon: usize) -> Option<String> {
    let failed = report.pre.failed_at(horizon).expect("the report has this horizon");
    (failed.failed > 0).then(|| {
        let broken = broken(Side::Pre, failed, &report.pre, report, horizon);
        let few_left = few_left(Side::Pre, horizon, "every delta", |horizon| report.pre.failed_at(horizon));
        [Some(broken), few_left].into_iter().flatten().collect::<Vec<_>>().join(" ")
    })
}

/// A baseline that cannot get worse, so that no harm could show.
fn ceiling(report: &Report, horizon: usize) -> Option<String> {
    let pre = report.pre.means.get(horizon - 1)?.as_ref()?;
    (pre.actions > Exact::from_integer(0.into()) && pre.wasted == pre.actions).then(|| {
        "PRE wastes every action: no strategy can be seen to make it worse, whatever its delta says.".to_owned()
    })
}

/// What a reader must know of one strategy.
fn about(name: &str, report: &Report, strategy: &StrategyReport, horizon: usize) -> Option<String> {
    let at = strategy.at(horizon).expect("the report has this horizon");
    let mut sentences = Vec::new();
    let n = strategy.n_failed_compactions;
    if n > 0 {
        sentences.push(format!("The compaction failed at {n} of {}.", boundaries(strategy.n_tested)));
        sentences.extend(most_common(&strategy.compaction_errors, ""));
    }
    if let Some(flaw) = strategy.flaws.first() {
        sentences.push(format!(
            "What is kept is flawed at {} of {}, so nothing could be resumed from it. In {} after {}: {}.",
            strategy.n_flawed_compactions,
            boundaries(strategy.n_tested),
            quoted(&flaw.first.recording),
            counted(flaw.first.cut, "event", "events"),
            printable(flaw.text.trim_end_matches('.')),
        ));
    }
    if at.failures.post.failed > 0 {
        sentences.push(broken(Side::Post, at.failures.post, &strategy.post, report, horizon));
    }
    // The same boundaries as those of the mark: where PRE never ran, nothing is scored.
    if at.pre.is_some() {
        let failed = |horizon| strategy.at(horizon).map(|at| at.failures.paired_post);
        sentences.extend(few_left(Side::Post, horizon, "the delta", failed));
    }
    sentences.extend(bias(at, report.control.as_deref() == Some(name)));
    sentences.extend(partly_unscored(at));
    let of = boundaries(strategy.n_tested - strategy.n_failed_compactions - strategy.n_flawed_compactions);
    if strategy.n_grown > 0 {
        sentences.push(format!("The context grew at {} of {of}.", strategy.n_grown));
    }
    if strategy.n_lost_task > 0 {
        sentences.push(format!(
            "The task, what the user asked for first, is gone at {} of {of}: pin it if the agent is to go on with one.",
            strategy.n_lost_task
        ));
    }
    if strategy.n_emptied > 0 {
        sentences.push(format!("Less than 1% of the tokens is left at {} of {of}.", strategy.n_emptied));
    }
    (!sentences.is_empty()).then(|| format!("{}: {}", quoted(name), sentences.join(" ")))
}

/// How many rollouts of an arm broke off, and on what.
fn broken(side: Side, failed: Failed, arm: &ArmReport, report: &Report, horizon: usize) -> String {
    let n = grouped(failed.failed as u64);
    let of = counted(failed.n_rollouts, &format!("{side} rollout"), &format!("{side} rollouts"));
    let off = match off_the_record(arm, horizon).failed {
        0 => String::new(),
        off => format!(", {} of them off the record", grouped(off as u64)),
    };
    let up_to = if horizon < report.horizon { format!(" up to horizon {}", report.horizon) } else { String::new() };
    let error = most_common(&arm.errors, &up_to).map(|error| format!(" {error}")).unwrap_or_default();
    format!("{n} of {of} failed{off}.{error}")
}

/// Which rollouts a delta speaks for, where fewer than half of the rollouts of an arm are left.
fn few_left(side: Side, horizon: usize, delta: &str, failed_at: impl Fn(usize) -> Option<Failed>) -> Option<String> {
    let few = |horizon| failed_at(horizon).filter(|failed| failed.leaves_few());
    let Failed { failed, n_rollouts } = few(horizon).filter(|few| few.failed < few.n_rollouts)?;
    let left = Failed { failed: n_rollouts - failed, n_rollouts };
    let smaller = match (1..horizon).rev().find(|&smaller| few(smaller).is_none()) {
        Some(smaller) => format!("A smaller horizon keeps more, `--at {smaller}` at least half"),
        None => "No smaller horizon keeps half of them".to_owned(),
    };
    Some(format!(
        "Only {} of the {side} rollouts are scored at horizon {horizon}, those that ended their turn early or came that \
         far: {delta} speaks for them alone. {smaller}.",
        out_of(left),
    ))
}

fn off_the_record(arm: &ArmReport, horizon: usize) -> Failed {
    arm.off_the_record_at(horizon).expect("the report has this horizon")
}

/// What failed rollouts do to the deltas, if the arms failed at different rates where both ran.
fn bias(at: &Aggregate, is_control: bool) -> Option<String> {
    let failures = &at.failures;
    let more = failures.paired_more?;
    let so = match more {
        // Compaction has no part in it.
        _ if is_control => "Both resume from the raw history, so this difference is noise".to_owned(),
        Side::Post => format!("Failed rollouts are not scored, and {more} lost more of them: harm may be understated"),
        Side::Pre => format!(
            "Failed rollouts are not scored, and {more} lost more of them: what compaction saves may be understated"
        ),
    };
    Some(format!(
        "Where both arms ran, {} of PRE and {} of POST failed. {so}.",
        out_of(failures.paired_pre),
        out_of(failures.paired_post),
    ))
}

fn out_of(failed: Failed) -> String {
    let share = percent_of(failed.failed, failed.n_rollouts);
    format!("{} of {} ({share})", grouped(failed.failed as u64), grouped(failed.n_rollouts as u64))
}

fn most_common(errors: &[ErrorCount], up_to: &str) -> Option<String> {
    let error = errors.first()?;
    let times = match error.count {
        1 => "once, in".to_owned(),
        n => format!("{} times, first in", grouped(n as u64)),
    };
    let first = &error.first;
    let sample = first.sample.map(|sample| format!(", sample {sample}")).unwrap_or_default();
    let calls = first.after_actions.map(|n| format!(", after {}", counted(n, "call", "calls"))).unwrap_or_default();
    Some(format!(
        "Most common error{up_to}: {}, {times} {} after {}{sample}{calls}.",
        quoted(&error.to_string()),
        quoted(&first.recording),
        counted(first.cut, "event", "events"),
    ))
}

fn partly_unscored(at: &Aggregate) -> Option<String> {
    let told = [Unscored::CompactionFailed, Unscored::CompactionFlawed, Unscored::Unusable];
    let reasons = at.unscored.iter().filter(|unscored| !told.contains(&unscored.reason));
    let reasons: Vec<_> = reasons.map(|unscored| because(unscored.reason, unscored.count)).collect();
    (at.n_scored > 0 && !reasons.is_empty()).then(|| format!("Not scored everywhere: {}.", reasons.join("; ")))
}

fn noise(report: &Report) -> String {
    match &report.control {
        Some(control) => {
            format!("{} keeps the raw history: its deltas are noise, and show how much there is.", quoted(control))
        }
        None => "No control was run, so how much of a delta is noise is not known.".to_owned(),
    }
}

fn recorded_environment(report: &Report, horizon: usize) -> Option<String> {
    let pre = ("PRE".to_owned(), off_the_record(&report.pre, horizon));
    let post = report.strategies.iter().map(|(name, at)| (quoted(name), off_the_record(&at.post, horizon)));
    let arms: Vec<_> = std::iter::once(pre).chain(post).collect();
    let off = arms.iter().any(|(_, off)| off.failed > 0);
    let arms: Vec<_> = arms.into_iter().map(|(arm, off)| format!("{arm} {}", out_of(off))).collect();
    let left = format!(
        "Off the record before horizon {horizon}, with a call that was never made in the recording, and so failed: {}.",
        arms.join(", ")
    );
    match (report.has_recorded_environment(), off) {
        (true, _) => Some(format!(
            "Calls were answered from the recording itself: no state is rebuilt and later results are lent, so a read \
             after a write may get an old answer. {left}"
        )),
        (false, true) => Some(left),
        (false, false) => None,
    }
}

/// Rollouts of which nobody can say that the model was sent what the arm keeps.
fn unseen(report: &Report) -> Option<String> {
    let ran_here = |id: &str| {
        report.recordings.iter().any(|facts| facts.id == id && facts.environment != EnvironmentKind::Unknown)
    };
    let boundaries = report.boundaries.iter().filter(|boundary| ran_here(&boundary.recording));
    let (mut n, mut n_unseen) = (0, 0);
    for arm in boundaries.flat_map(BoundaryFacts::arms) {
        n += arm.n_answered;
        n_unseen += arm.n_unseen;
    }
    (n_unseen > 0).then(|| {
        format!(
            "The model of {} of {} does not say what it was sent, so it is not known whether what a strategy kept reached \
             it.",
            grouped(n_unseen as u64),
            counted(n, "rollout", "rollouts"),
        )
    })
}

fn worlds_differ(report: &Report) -> Option<String> {
    let differ =
        || report.recordings.iter().filter_map(|recording| Some((recording, recording.worlds_differ.as_ref()?)));
    let (first, how) = differ().next()?;
    Some(format!(
        "The environment of {} does not answer the same way in each world: an answer holds what changes by itself, such as a \
         time, or rollouts see what others did, and then no delta can be trusted. {}: {}.",
        counted(differ().count(), "recording", "recordings"),
        quoted(&first.id),
        printable(how.trim_end_matches('.'))
    ))
}

fn replay(report: &Report) -> Option<String> {
    let replays = || report.recordings.iter().filter_map(|recording| Some((recording, recording.replay.as_ref()?)));
    let n_replayed: u64 = replays().map(|(_, replay)| replay.n_replayed).sum();
    let n_different: u64 = replays().map(|(_, replay)| replay.n_different).sum();
    let first = replays().find_map(|(recording, replay)| Some((recording, replay.first_difference.as_ref()?)));
    let first = first.map(|(recording, first)| {
        format!(
            " The first is action {} of {}, {}: recorded {}, replayed {}.",
            first.action,
            quoted(&recording.id),
            quoted(&first.call),
            excerpt(&first.recorded),
            excerpt(&first.replayed)
        )
    });
    (n_different > 0).then(|| {
        format!(
            "{} of {} replayed calls answered with other text than was recorded, so the context and the world may \
             disagree.{}",
            grouped(n_different),
            grouped(n_replayed),
            first.unwrap_or_default()
        )
    })
}

fn quoted(text: &str) -> String {
    format!("`{}`", printable(text))
}

/// The beginning of a recorded text.
fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(LONGEST_QUOTE).collect();
    let ellipsis = if short.len() < text.len() { "…" } else { "" };
    quoted(&format!("{short}{ellipsis}"))
}
