//! `retrace audit`: what the later calls of recordings needed, and strategies did not keep. It asks no model.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use indexmap::IndexMap;
use retrace_events::tokens::{TokenCounter, count_sent};
use retrace_events::{Boundary, Trajectory};
use retrace_report::layout::{elide, left, wrap};
use retrace_report::{COLUMNS, counted, json, printable};
use retrace_stats::{Exact, median, nearest_double};
use retrace_strategies::audit::{Audit, Audited, LostValue};
use retrace_strategies::{CompactContext, CompactError, Compacted, Strategy};
use retrace_verifier::Settings;
use serde::Serialize;

use super::inspect;
use crate::args::AuditArgs;
use crate::config::Config;
use crate::exit::Exit;
use crate::{failure, files, output, runtime};

/// What an audit is worth.
const HINT: &str = "A hint, not a verdict: an agent that misses a value may find it again or do without, and one that \
                    has it may still go wrong. `retrace verify` resumes the agent and measures.";
/// How many lost values of a strategy are listed as text.
const LISTED: usize = 6;
const NAME: usize = 30;

/// What came of an audit.
#[derive(Serialize)]
struct Report {
    hint: &'static str,
    token_counter: String,
    recordings: usize,
    boundaries: usize,
    /// The strategies that could be looked at everywhere, those that lose least first.
    ranking: Vec<String>,
    strategies: IndexMap<String, Findings>,
}

/// What is found of one strategy.
#[derive(Serialize)]
struct Findings {
    kind: &'static str,
    /// Boundaries at which it would ask a model, and so was not looked at.
    asks_a_model: usize,
    failed: usize,
    /// Values that later calls needed of the raw history, over the boundaries looked at.
    needed: usize,
    /// Those of them that it did not keep.
    lost: usize,
    /// The median share of the tokens that it keeps, at the boundaries looked at; an unchanged history counts as 1.
    kept: Option<f64>,
    /// The boundaries looked at.
    boundaries: Vec<AtBoundary>,
}

/// What is found at one boundary.
#[derive(Serialize)]
struct AtBoundary {
    recording: String,
    cut: usize,
    #[serde(flatten)]
    audited: Audited,
}

pub(crate) fn run(args: &AuditArgs) -> Result<Exit> {
    let config = args.config.as_deref().map(Config::read).transpose()?;
    let rule = args.outcome.failed_if.clone().or_else(|| config.as_ref().and_then(|config| config.outcome.clone()));
    let settings = config.as_ref().map_or_else(|| Ok(Settings::default()), Config::settings)?;
    let files = files::recordings_in(&args.recordings)?;
    let (n_files, mut files_by_id, mut audits) = (files.len(), HashMap::new(), Vec::new());
    for file in files {
        let recording = match files::read_another(&file, rule.as_ref(), &mut files_by_id) {
            Ok(recording) => recording,
            Err(error) if n_files > 1 => {
                failure::warn(&error);
                continue;
            }
            Err(error) => return Err(error),
        };
        let trajectory = Arc::new(Trajectory::new(recording));
        let cuts = trajectory.choose_cuts(&settings.spacing).cuts;
        let boundaries: Result<Vec<_>, _> = cuts.iter().map(|point| Boundary::new(&trajectory, point.cut)).collect();
        audits.push((Audit::new(&trajectory)?, boundaries?));
    }
    let strategies = runtime::run(async {
        let mut found = IndexMap::new();
        for (name, strategy) in inspect::strategies(config, args.config.as_deref(), settings.limits.strategy).await? {
            found.insert(name, Findings::new(&*strategy, &audits, &*settings.counter).await);
        }
        Ok(found)
    })?;
    let report = Report {
        hint: HINT,
        token_counter: settings.counter.name().to_owned(),
        recordings: audits.len(),
        boundaries: audits.iter().map(|(_, boundaries)| boundaries.len()).sum(),
        ranking: ranking(&strategies),
        strategies,
    };
    output::print(&if args.json { json(&report) } else { text(&report) })?;
    Ok(if report.recordings == 0 { Exit::CouldNotRun } else { Exit::Ok })
}

/// The names of the strategies that were looked at everywhere: by what they lose, then by what they keep.
fn ranking(strategies: &IndexMap<String, Findings>) -> Vec<String> {
    let is_whole =
        |findings: &Findings| findings.asks_a_model + findings.failed == 0 && !findings.boundaries.is_empty();
    let mut ranked: Vec<_> = strategies.iter().filter(|(_, findings)| is_whole(findings)).collect();
    let kept = |findings: &Findings| findings.kept.unwrap_or(1.0);
    ranked.sort_by(|(_, a), (_, b)| a.lost.cmp(&b.lost).then(kept(a).total_cmp(&kept(b))));
    ranked.into_iter().map(|(name, _)| name.clone()).collect()
}

impl Findings {
    /// Applies a strategy at every boundary, with no model to ask.
    async fn new(strategy: &dyn Strategy, audits: &[(Audit, Vec<Boundary>)], counter: &dyn TokenCounter) -> Self {
        let (mut asks_a_model, mut failed) = (0, 0);
        let (mut boundaries, mut shares) = (Vec::new(), Vec::new());
        for (audit, boundary) in audits.iter().flat_map(|(audit, at)| at.iter().map(move |boundary| (audit, boundary)))
        {
            let before = boundary.history();
            let mut cx = CompactContext::without_model();
            cx.counter = counter;
            let after = match strategy.compact(&before, &mut cx).await {
                Ok(Compacted::Unchanged) => before.clone(),
                Ok(Compacted::Changed(after)) => after,
                Err(CompactError::NotAsked { .. }) => {
                    asks_a_model += 1;
                    continue;
                }
                Err(_) => {
                    failed += 1;
                    continue;
                }
            };
            let size = count_sent(counter, &before).0;
            if size > 0 {
                shares.push(Exact::new(count_sent(counter, &after).0.into(), size.into()));
            }
            boundaries.push(AtBoundary {
                recording: boundary.trajectory().id().to_owned(),
                cut: boundary.cut(),
                audited: audit.at(boundary.cut(), &after),
            });
        }
        Self {
            kind: strategy.kind(),
            asks_a_model,
            failed,
            needed: boundaries.iter().map(|at| at.audited.needed).sum(),
            lost: boundaries.iter().map(|at| at.audited.lost.len()).sum(),
            kept: median(&shares).map(|median| nearest_double(&median)),
            boundaries,
        }
    }
}

fn text(report: &Report) -> String {
    let mut lines = Vec::new();
    if report.boundaries == 0 {
        lines.extend(wrap(
            "There is no boundary to look at: a recording is cut between rounds, after its first min_prefix actions, \
             and not after its last round.",
            COLUMNS,
        ));
    } else {
        let at = counted(report.boundaries, "boundary", "boundaries");
        let of = counted(report.recordings, "recording", "recordings");
        lines.extend(wrap(&format!("what later calls needed and is no longer found, at {at} of {of}:"), COLUMNS));
        let others = report.strategies.keys().filter(|name| !report.ranking.contains(name));
        for (place, name) in report.ranking.iter().map(Some).enumerate().map(|(i, name)| (i + 1, name)) {
            let Some((name, findings)) = name.and_then(|name| report.strategies.get_key_value(name)) else { continue };
            lines.extend(row(&format!("{place}."), name, &words(findings)));
        }
        for name in others {
            lines.extend(row("–", name, &not_ranked(&report.strategies[name], report.boundaries)));
        }
        for (name, findings) in report.strategies.iter().filter(|(_, findings)| findings.lost > 0) {
            lines.push(String::new());
            lines.extend(wrap(&format!("{} loses:", printable(name)), COLUMNS));
            lines.extend(losses(findings));
        }
    }
    lines.push(String::new());
    lines.extend(wrap(report.hint, COLUMNS));
    lines.join("\n")
}

fn row(place: &str, name: &str, words: &str) -> Vec<String> {
    let name = elide(wrap(&printable(name), NAME - 1), 1, NAME - 1).concat();
    let rows = wrap(words, COLUMNS - NAME - 5);
    let label = |number| if number == 0 { [place, &*name] } else { ["", ""] };
    let lines = rows.iter().enumerate().map(|(number, words)| {
        let [place, name] = label(number);
        format!("  {}{}{words}", left(place, 3), left(name, NAME))
    });
    lines.collect()
}

fn words(findings: &Findings) -> String {
    let kept = findings.kept.map_or_else(String::new, |kept| format!(", keeps {:.0}% of the tokens", kept * 100.0));
    format!("{} of {} lost{kept}", findings.lost, counted(findings.needed, "value", "values"))
}

/// Why a strategy has no place in the ranking, and what could be said of it nevertheless.
fn not_ranked(findings: &Findings, boundaries: usize) -> String {
    let of = format!("of {}", counted(boundaries, "boundary", "boundaries"));
    let at = |n: usize, what: &str| (n > 0).then(|| format!("{what} at {n} {of}"));
    let skipped = [at(findings.asks_a_model, "skipped: asks a model"), at(findings.failed, "fails")];
    let seen = (!findings.boundaries.is_empty()).then(|| format!("elsewhere {}", words(findings)));
    skipped.into_iter().flatten().chain(seen).collect::<Vec<_>>().join("; ")
}

fn losses(findings: &Findings) -> Vec<String> {
    let lost = findings.boundaries.iter().flat_map(|at| at.audited.lost.iter().map(move |lost| (at, lost)));
    let mut lines = Vec::new();
    for (at, lost) in lost.take(LISTED) {
        let wrapped = wrap(&loss(at, lost), COLUMNS - 4);
        lines.extend(
            wrapped.iter().enumerate().map(|(i, line)| format!("{}{line}", if i == 0 { "  " } else { "    " })),
        );
    }
    if findings.lost > LISTED {
        lines.push(format!("  … and {} more; --json lists them all", findings.lost - LISTED));
    }
    lines
}

fn loss(at: &AtBoundary, lost: &LostValue) -> String {
    let LostValue { value, stood_in, needed_by } = lost;
    let place = match &stood_in.tool {
        Some(tool) => format!("a result of {}", printable(tool)),
        None => format!("a {}", stood_in.kind.replace('_', " ")),
    };
    let argument = if needed_by.argument.is_empty() { "its arguments" } else { &needed_by.argument };
    format!(
        "{} after {} events: `{}` stood in event {} ({place}), needed by {} in event {} ({})",
        printable(&at.recording),
        at.cut,
        printable(&short(value)),
        stood_in.event,
        printable(&needed_by.tool),
        needed_by.event,
        printable(&short(argument)),
    )
}

/// A recorded text, cut short.
fn short(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(60).collect();
    if chars.next().is_some() { format!("{start}…") } else { start }
}
