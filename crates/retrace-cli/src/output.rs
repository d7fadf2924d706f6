//! What goes to stdout and stderr.

use std::io::{BufWriter, Write, stderr, stdout};
use std::mem;
use std::path::Path;

use anyhow::Result;
use retrace_journal::{Run, Shard};
use retrace_report::{Look, NoSuchHorizon, Style, View, counted, printable, text, write_report};
use retrace_score::{
    BoundaryFacts, BoundaryReport, Key, Margins, Report, Reporter, Scope, StrategyReport, Verdict, Verification,
};

use crate::args::{JudgingArgs, OutputArgs, RefetchArg, ScopeArg, StyleArg};
use crate::config::MarginConfig;
use crate::exit::Exit;
use crate::failure::hinted;

/// Prints data. Unlike `println!` it does not panic when nobody reads on.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = stdout().lock();
    stdout.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        stdout.write_all(b"\n")?;
    }
    Ok(stdout.flush()?)
}

/// Tells something beside the data.
pub(crate) fn warn(text: &str) {
    tell(&format!("warning: {}", printable(text)));
}

/// Tells something that is as it should be.
pub(crate) fn note(text: &str) {
    tell(&printable(text));
}

/// Writes a line to stderr. Unlike `eprintln!` it does not panic when nobody reads on.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

/// Reads a run, and tells if its last line is not whole.
pub(crate) fn read_run(folder: &Path) -> Result<Run> {
    let run = Run::read(folder)?;
    if let Some(line) = run.torn_line() {
        warn(&format!("{}: line {line} of the journal was cut off, and is left out", folder.display()));
    }
    Ok(run)
}

/// Judges a verification as the command line says, where it says something.
pub(crate) fn judge(verification: &mut Verification, rules: &JudgingArgs, args: &OutputArgs) -> Result<()> {
    if let Some(horizon) = rules.horizon {
        if !(1..=verification.horizon).contains(&horizon) {
            return Err(NoSuchHorizon { horizon, full: verification.horizon }.into());
        }
        verification.horizon = horizon;
    }
    args.check(verification.horizon)?;
    let judging = &mut verification.judging;
    if !args.margin.is_empty() || rules.horizon.is_some() {
        let known = MarginConfig::from(judging.margins);
        judging.margins = known.or_given(&args.margin).margins(verification.horizon)?;
    }
    match rules.refetch_by {
        None => {}
        Some(RefetchArg::Call) => judging.refetch_by = Key::Call,
        Some(RefetchArg::Tool) => judging.refetch_by = Key::Tool,
    }
    Ok(())
}

/// Makes the report of what a run has finished, boundary by boundary, and prints it; says what [`report`] does.
pub(crate) fn report_run(run: &Run, rules: &JudgingArgs, args: &OutputArgs) -> Result<Exit> {
    if let Some(Shard { index, of }) = run.manifest().plan.shard {
        note(&format!("this is shard {index} of {of}, and its boundaries alone; `retrace merge` joins them"));
    }
    let mut verification = run.verification();
    judge(&mut verification, rules, args)?;
    let mut reporter = Reporter::new(verification)?;
    for boundary in run.boundaries() {
        reporter.add(boundary?)?;
    }
    let report = reporter.finish();
    // The JSON has every rollout: they are read once more, and not held.
    let scored = run.boundaries().map(|boundary| Ok(report.score(boundary?)));
    show(&report, scored, args)
}

/// Makes the report of a verification, prints it, and says whether anything was scored, at any horizon, by more than
/// what rollouts that broke had finished.
pub(crate) fn report(mut verification: Verification, args: &OutputArgs) -> Result<Exit> {
    let boundaries = mem::take(&mut verification.boundaries);
    let mut reporter = Reporter::new(verification)?;
    let mut scored = Vec::new();
    for boundary in boundaries {
        let boundary = reporter.add(boundary)?;
        // Only the JSON has rollouts.
        if args.json {
            scored.push(boundary);
        }
    }
    show(&reporter.finish(), scored.into_iter().map(Ok), args)
}

fn show(report: &Report, scored: impl Iterator<Item = Result<BoundaryReport>>, args: &OutputArgs) -> Result<Exit> {
    let view = View::of(report, args.look())?;
    if args.json {
        print_report(report, scored)?;
    } else {
        print(&text(&view))?;
    }
    let n: usize = report.boundaries.iter().flat_map(BoundaryFacts::arms).map(|arm| arm.n_rollouts).sum();
    let n_broke = report.broken.as_ref().map_or(0, |broken| broken.n);
    if let (true, Some(broken)) = (args.json, &report.broken) {
        // The text report says so in its notes.
        warn(&format!("{n_broke} of {} failed, the first: {}", counted(n, "rollout", "rollouts"), broken.first));
    }
    let mut horizons = report.strategies.values().flat_map(|strategy| &strategy.horizons);
    let is_scored = horizons.any(|at| at.n_scored > 0);
    Ok(if is_scored && (n == 0 || n_broke < n) { gate(report) } else { Exit::CouldNotRun })
}

/// Prints a report as JSON, with the rollouts of its boundaries.
fn print_report(report: &Report, boundaries: impl Iterator<Item = Result<BoundaryReport>>) -> Result<()> {
    let mut stdout = BufWriter::new(stdout().lock());
    write_report(&mut stdout, report, boundaries)?;
    stdout.write_all(b"\n")?;
    Ok(stdout.flush()?)
}

/// What the verdicts mean where a margin is given: the worst of them, of all strategies but the control.
fn gate(report: &Report) -> Exit {
    if report.judging.margins == Margins::default() {
        return Exit::Ok;
    }
    let invalid = |strategy: &StrategyReport| report.verdict(strategy) == Verdict::Invalid;
    if report.strategies.values().any(invalid) {
        return Exit::CouldNotRun;
    }
    let gated = report.strategies.iter().filter(|(name, _)| report.control.as_ref() != Some(name));
    let exit = |verdict| match verdict {
        Verdict::NotScored => Exit::CouldNotRun,
        Verdict::Worse | Verdict::WorseHere => Exit::Worse,
        Verdict::WithinMargin { .. } => Exit::Ok,
        _ => Exit::NotShown,
    };
    let worst = gated.map(|(_, strategy)| exit(report.verdict(strategy))).max().unwrap_or(Exit::Ok);
    // A part of a run passes no gate.
    if report.unfinished.is_some() { worst.max(Exit::NotShown) } else { worst }
}

impl OutputArgs {
    /// What of a report is shown.
    fn look(&self) -> Look {
        let scope = match self.scope {
            ScopeArg::New => Scope::New,
            ScopeArg::Here => Scope::Here,
        };
        let style = match self.style {
            StyleArg::Verdict => Style::Verdict,
            StyleArg::Reference => Style::Reference,
        };
        Look { horizon: self.at, scope, style }
    }

    /// The margins of the command line.
    pub(crate) fn margins(&self, horizon: usize) -> Result<Margins> {
        MarginConfig::default().or_given(&self.margin).margins(horizon)
    }

    /// Refuses a horizon that the report will not have, and looks that do not go together, before anything is run.
    pub(crate) fn check(&self, full: usize) -> Result<()> {
        if matches!((self.scope, self.style), (ScopeArg::Here, StyleArg::Reference)) {
            return Err(hinted(
                "`--scope here` has no effect on the table of the reference",
                "leave one of the two out",
            ));
        }
        match self.at {
            Some(horizon) if !(1..=full).contains(&horizon) => Err(NoSuchHorizon { horizon, full }.into()),
            _ => Ok(()),
        }
    }
}
