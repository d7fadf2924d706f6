//! What is shown of each strategy, and what keeps a reader from reading too much into it.

use std::collections::HashMap;

use num_traits::Signed;
use retrace_score::{ChannelInference, EarlyStop, Inference, Report, Test, Unit, Verdict, verdict_words};
use retrace_stats::Exact;

use super::quoted;
use crate::number::{counted, p_value, signed};
use crate::text::unit_words;

/// Fewer recordings than these can show no harm on others, however great it is.
const FEWEST_UNITS: usize = 6;

/// The decimals of an end in a sentence.
const DECIMALS: usize = 2;

/// A sentence for each strategy, and what holds for all.
pub(super) fn notes(report: &Report, horizon: usize) -> Vec<String> {
    if horizon < report.horizon {
        let full = report.horizon;
        return vec![format!(
            "Verdicts and p belong to horizon {full}. What stands here describes, and is adjusted for nothing."
        )];
    }
    let inferred = report.strategies.iter().filter_map(|(name, strategy)| Some((name, strategy.inference.as_ref()?)));
    if inferred.clone().any(|(_, inference)| inference.verdict == Verdict::Invalid) {
        let invalid = "INVALID: the control, which keeps the raw history, differs from it by more than chance. Rollouts affect each \
                       other, or the model drifts, and no number here can be relied on.";
        return vec![invalid.to_owned()];
    }
    let judged: Vec<_> = inferred.filter(|(name, _)| report.control.as_ref() != Some(name)).collect();
    let notes = judged.iter().map(|(name, inference)| verdict(name, inference, report));
    let least = judged.iter().map(|(_, inference)| *inference).min_by_key(|inference| inference.n_units);
    let reach = least.map(|least| reach(least, judged.len(), report));
    notes.chain(reach).chain(rules(report).filter(|_| least.is_some())).collect()
}

fn verdict(name: &str, inference: &Inference, report: &Report) -> String {
    let (_, many) = unit_words(report.judging.unit);
    let together = if report.judging.familywise { "of all strategies together" } else { "each" };
    let limits = || {
        let [wasted, stopped] = [&inference.wasted, &inference.stopped].map(|channel| at_most(channel.high_completed));
        format!("on {many} like these at most {wasted} wasted and {stopped} stopped, with 97.5% confidence {together}")
    };
    let says = match inference.verdict {
        Verdict::WithinMargin { cost_is_shown } => {
            let cost = if cost_is_shown { "; a cost inside the margin is shown" } else { "" };
            format!("its cost is below the margins: {}{cost}", limits())
        }
        Verdict::Worse => {
            let is_strict = |channel: &ChannelInference| channel.intervals.bounded.low.is_some_and(|low| low > 0.0);
            let counts: &dyn Fn(&ChannelInference) -> bool = if report.judging.strict { &is_strict } else { &|_| true };
            format!(
                "it does harm on {many} like these ({})",
                least(inference, |it| Some(&it.p_new).filter(|_| counts(it)))
            )
        }
        Verdict::WorseHere => {
            let p = least(inference, |channel| channel.p_here.as_ref());
            let new = [&inference.wasted, &inference.stopped].into_iter().filter(|channel| channel.mean.is_positive());
            let new = new.map(|channel| &channel.p_new.adjusted).min().map_or("-".to_owned(), p_value);
            let beyond = format!("of other {many} that is not shown (p new {new})");
            format!("it does harm at these boundaries ({p}); {beyond}")
        }
        _ => format!("neither harm nor safety is shown: {}", limits()),
    };
    let mut sentences = vec![format!("{}: {}, {says}.", quoted(name), verdict_words(&inference.verdict))];
    if inference.wasted.high_completed < 0.0 && report.n_not_reached == 0 {
        sentences.push(format!("It wastes less than the raw history on {many} like these."));
    }
    if inference.verdict == Verdict::NotShown {
        sentences.extend(inference.wasted.detectable.map(|effect| {
            format!(
                "This run finds a true effect of {} wasted four times in five, and smaller ones less often.",
                number(effect)
            )
        }));
    }
    if inference.harm_despite_failures == Some(false) {
        sentences.push("So much is not shown any more if failed rollouts are taken to speak against it.".to_owned());
    }
    sentences.extend(each_once(name, inference, report));
    sentences.join(" ")
}

/// The channel with the smallest p of those that got worse.
fn least<'a>(inference: &'a Inference, p: impl Fn(&'a ChannelInference) -> Option<&'a Test>) -> String {
    let channels = [("wasted", &inference.wasted), ("stopped", &inference.stopped)];
    let worse = channels.into_iter().filter(|(_, channel)| channel.mean.is_positive());
    let found = worse.filter_map(|(word, channel)| Some((word, &p(channel)?.adjusted)));
    found.min_by_key(|(_, p)| *p).map_or(String::new(), |(word, p)| format!("{word}, p {}", p_value(p)))
}

/// The mean with each unit counted once, where some have more than twice the boundaries of others.
fn each_once(name: &str, inference: &Inference, report: &Report) -> Option<String> {
    let tasks = report.recordings.iter().filter(|_| report.judging.unit == Unit::Task);
    let tasks: HashMap<&str, &str> = tasks.filter_map(|it| Some((&*it.id, it.task.as_deref()?))).collect();
    let mut sizes: HashMap<(bool, &str), usize> = HashMap::new();
    for boundary in report.boundaries.iter().filter(|boundary| boundary.strategies.contains_key(name)) {
        let task = tasks.get(&*boundary.recording).copied();
        *sizes.entry((task.is_some(), task.unwrap_or(&boundary.recording))).or_default() += 1;
    }
    let (least, most) = (sizes.values().min()?, sizes.values().max()?);
    (*most > 2 * least).then(|| {
        let (_, many) = unit_words(report.judging.unit);
        let once = signed(&inference.wasted.each_once, DECIMALS);
        format!("The {many} have {least} to {most} boundaries; with each counted once its wasted is {}.", once.trim())
    })
}

/// How far what is said reaches.
fn reach(inference: &Inference, n_strategies: usize, report: &Report) -> String {
    let (one, many) = unit_words(report.judging.unit);
    let n = inference.n_units;
    let mut sentences = Vec::new();
    if report.n_not_reached > 0 {
        sentences.push(format!(
            "Stopped early, with {} not run: harm of every strategy is shown, and no margin is judged.",
            counted(report.n_not_reached, "recording", "recordings")
        ));
    }
    let fewest = EarlyStop::fewest_recordings(n_strategies);
    if report.judging.stop_early && n < fewest {
        sentences.push(format!(
            "{}: where a run may stop early, {fewest} are the least that can show harm on others.",
            counted(n, one, many)
        ));
    } else if n < FEWEST_UNITS {
        let floor = Exact::new(2.into(), (1_u64 << n).into());
        sentences.push(format!(
            "{}: p new cannot fall below {}, and {FEWEST_UNITS} are the least that can show harm on others.",
            counted(n, one, many),
            p_value(&floor),
        ));
    }
    sentences.push(format!(
        "A harm confined to fewer than {:.0}% of {many} may not have occurred here.",
        inference.blind * 100.0
    ));
    if report.judging.margins.wasted.is_none() || report.judging.margins.stopped.is_none() {
        sentences.push("No margin was given for both wasted and stopped, so nothing is called safe.".to_owned());
    }
    if inference.deterministic {
        sentences.push(
            "The agent is deterministic: all rollouts of each arm are one sample, and count as one in p here."
                .to_owned(),
        );
    }
    sentences.join(" ")
}

/// What the control says of the noise, and whether it is no more than that.
pub(super) fn noise(report: &Report, horizon: usize) -> String {
    let inference = report.control.as_ref().and_then(|control| report.strategies.get(control)?.inference.as_ref());
    let Some(inference) = inference.filter(|_| horizon == report.horizon) else { return super::noise(report) };
    let p = [&inference.wasted, &inference.stopped];
    let p = p.map(|it| it.p_here.as_ref().map_or("-".to_owned(), |p| p_value(&p.adjusted)));
    let [wasted, stopped] = p;
    format!(
        "{} At these boundaries it has p {wasted} for wasted and {stopped} for stopped; at 0.005 or less in either a run is INVALID.",
        super::noise(report)
    )
}

/// By which rules other than the usual ones strategies are judged.
fn rules(report: &Report) -> impl Iterator<Item = String> {
    let judging = &report.judging;
    let mut tasks: Vec<_> = report.recordings.iter().filter_map(|recording| recording.task.as_ref()).collect();
    let n_recordings = tasks.len();
    tasks.sort();
    tasks.dedup();
    let alike = judging.unit == Unit::Recording && tasks.len() < n_recordings;
    let rules = [
        (
            alike,
            "Several recordings are of one task. What is said of new recordings is said of more runs of these tasks; \
                 `unit = \"task\"` in `[verdict]` speaks of other tasks.",
        ),
        (
            judging.pooled_baseline && report.control.is_some(),
            "The baseline is PRE and the rollouts of the control together.",
        ),
        (
            judging.stop_early,
            "The run might stop after every recording: p new is made of evidence that may be looked at at any time, \
                 and nothing is tested at these boundaries. Intervals are those of a run of this length.",
        ),
        (judging.strict, "Strict: WORSE takes a limit above zero that holds for every distribution, too."),
        (judging.familywise, "Familywise: WITHIN MARGIN of all strategies holds together with 97.5% confidence."),
    ];
    rules.into_iter().filter(|(applies, _)| *applies).map(|(_, rule)| rule.to_owned())
}

/// An upper end, never rounded to less than it is.
fn at_most(value: f64) -> String {
    let scale = Exact::from_integer(10_u64.pow(DECIMALS as u32).into());
    let value = Exact::from_float(value).unwrap_or_default();
    signed(&((value * &scale).ceil() / scale), DECIMALS).trim().to_owned()
}

fn number(value: f64) -> String {
    signed(&Exact::from_float(value).unwrap_or_default(), DECIMALS).trim().to_owned()
}
