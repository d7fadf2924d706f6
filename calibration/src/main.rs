//! Runs all studies and prints their tables; `cargo xtask calibrate` is how it is called.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program speaks on its streams")]

use std::process::ExitCode;
use std::str::FromStr;
use std::thread;

use anyhow::{Context, Result, bail};
use retrace_calibration::promises::broken;
use retrace_calibration::run::{Plan, run};
use retrace_calibration::study::{Grid, Study, studies};
use retrace_calibration::table::Table;

const BROKEN: u8 = 1;
const NO_ANSWER: u8 = 2;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match plan(&args).map(calibrate) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(BROKEN),
        Err(error) => {
            eprintln!("calibrate: {error:#}");
            ExitCode::from(NO_ANSWER)
        }
    }
}

/// How much is run: 2,000 runs of each cell, seed 1, and as many threads as there are processors, unless told otherwise.
fn plan(args: &[String]) -> Result<Plan> {
    let mut plan = Plan { runs: 2_000, seed: 1, threads: thread::available_parallelism().map_or(1, usize::from) };
    for option in args.chunks(2) {
        match option {
            [name, value] if name == "--runs" => plan.runs = number(name, value)?,
            [name, value] if name == "--seed" => plan.seed = number(name, value)?,
            [name, value] if name == "--threads" => plan.threads = number(name, value)?,
            _ => bail!("`{}` is no option: there are `--runs N`, `--seed N` and `--threads N`", option.join(" ")),
        }
    }
    if plan.runs == 0 {
        bail!("`--runs 0` counts nothing");
    }
    Ok(plan)
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T> {
    value.parse().ok().with_context(|| format!("`{name} {value}` is no number"))
}

/// Prints the tables, and whether every promise was kept.
fn calibrate(plan: Plan) -> bool {
    let (mut cells, mut studies_of) = (Vec::new(), Vec::new());
    for Study { title, text, cells: of_study } in studies(Grid::Full) {
        studies_of.push((title, text, cells.len()..cells.len() + of_study.len()));
        cells.extend(of_study);
    }
    let tallies = run(&cells, plan, &|done, of| {
        if done % 100 == 0 || done == of {
            eprintln!("{done} of {of}");
        }
    });
    let runs: u64 = cells.iter().map(|cell| u64::from(cell.runs(plan.runs))).sum();
    println!(
        "`cargo xtask calibrate --runs {} --seed {}`: {} kinds of run, {runs} runs in all. Shares are in percent.\n",
        plan.runs,
        plan.seed,
        cells.len()
    );
    for (title, text, range) in studies_of {
        println!("### {title}\n\n{text}\n\n{}", Table::new(&cells[range.clone()], &tallies[range]));
    }
    let broken = broken(&cells, &tallies);
    for broken in &broken {
        eprintln!("broken: {broken}");
    }
    broken.is_empty()
}
