//! What our statistics take for the cases on standard input, which `cargo xtask peers stats` gives to other programs, too;
//! a line of JSON for each on standard output.

use std::collections::HashSet;
use std::error::Error;
use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use retrace_events::{Action, EndReason, Outcome, Rollout, Signature, Spend};
use retrace_score::{
    BoundaryOutcome, Compaction, EnvironmentKind, Judging, RecordingFacts, Report, StrategyOutcome, Verification,
};
use retrace_stats::{
    Arms, Exact, Level, PValue, exact_bootstrap_mean, nearest_double, rollout_permutation_test, sign_flip_test,
};
use serde::{Deserialize, Serialize};

/// A case, by the work it is.
#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(flatten)]
    work: Work,
}

#[derive(Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
enum Work {
    SignFlip { differences: Vec<String> },
    Interval { differences: Vec<String> },
    Permutation { boundaries: Vec<Boundary> },
    Report { horizon: usize, boundaries: Vec<Boundary> },
}

/// The wasted actions of each rollout at a boundary.
#[derive(Deserialize)]
struct Boundary {
    recording: usize,
    pre: Vec<u32>,
    post: Vec<u32>,
}

#[derive(Serialize)]
struct Told<'a> {
    name: &'a str,
    program: &'a str,
    seconds: f64,
    answer: f64,
    method: &'a str,
}

fn main() -> Result<(), Box<dyn Error>> {
    for Case { name, work } in serde_json::from_reader::<_, Vec<Case>>(io::stdin().lock())? {
        let (seconds, p) = match work {
            Work::SignFlip { differences } => {
                let differences = exact(&differences)?;
                timed(|| (), |()| sign_flip_test(&differences).p)
            }
            Work::Interval { differences } => {
                let differences = exact(&differences)?;
                timed(
                    || (),
                    |()| {
                        let interval =
                            exact_bootstrap_mean(&differences, Level::PERCENT_95).map(|found| found.interval.low);
                        PValue::Exact(interval.unwrap_or_default())
                    },
                )
            }
            Work::Permutation { boundaries } => {
                let arms: Vec<_> =
                    boundaries.iter().map(|at| Arms::Rollouts { pre: &at.pre, post: &at.post }).collect();
                timed(|| (), |()| rollout_permutation_test(&arms).map_or(PValue::Below(1.0), |test| test.p))
            }
            Work::Report { horizon, boundaries } => {
                let make = || verification(horizon, &boundaries);
                timed(make, |verification| {
                    let report = Report::new(verification).expect("its parts fit together");
                    report.strategies["tail"].horizons[horizon - 1].permutation_p.clone()
                })
            }
        };
        let (program, answer) = ("retrace", nearest_double(&p.upper()));
        let told = Told { name: &name, program, seconds: seconds.as_secs_f64(), answer, method: p.method() };
        writeln(&serde_json::to_string(&told)?);
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example shows what it found")]
fn writeln(line: &str) {
    println!("{line}");
}

fn exact(differences: &[String]) -> Result<Vec<Exact>, Box<dyn Error>> {
    Ok(differences.iter().map(|text| text.parse()).collect::<Result<_, _>>()?)
}

/// The median time of some runs, and the last answer; what a run is given is not timed.
fn timed<I>(make: impl Fn() -> I, work: impl Fn(I) -> PValue) -> (Duration, PValue) {
    let mut times = Vec::new();
    loop {
        let input = make();
        let start = Instant::now();
        let answer = black_box(work(black_box(input)));
        times.push(start.elapsed());
        if times.len() >= 101 || times.iter().sum::<Duration>() > Duration::from_secs(1) {
            times.sort();
            return (times[times.len() / 2], answer);
        }
    }
}

/// Rollouts whose first actions are blocked, as many as were wasted.
fn verification(horizon: usize, boundaries: &[Boundary]) -> Verification {
    let rollout = |wasted: u32| {
        let actions = (0..horizon).map(|number| {
            let outcome = if number < wasted as usize { Outcome::Error } else { Outcome::Ok };
            Action::new("stock", format!(r#"{{"item":{number}}}"#), outcome, None)
        });
        let actions = actions.collect();
        Rollout { actions, end: EndReason::Budget, n_answers: 5, spend: Spend::default(), sent: None }
    };
    let arm = |counts: &[u32]| counts.iter().map(|&count| rollout(count)).collect::<Vec<_>>();
    let outcome = |(cut, at): (usize, &Boundary)| {
        let compaction = Compaction::Compacted { size: None, cached: None };
        let tail = StrategyOutcome { compaction, lost_task: false, spend: Spend::default(), post: arm(&at.post) };
        BoundaryOutcome {
            recording: format!("r{}", at.recording),
            cut,
            executed: 0,
            executed_calls: Box::new(HashSet::<Signature>::new()),
            pre_size: None,
            unusable: None,
            pre: arm(&at.pre),
            strategies: [("tail".to_owned(), tail)].into_iter().collect(),
        }
    };
    let n_recordings = boundaries.iter().map(|at| at.recording + 1).max().unwrap_or_default();
    let recording = |number| RecordingFacts::new(format!("r{number}"), EnvironmentKind::Rebuilt);
    Verification {
        horizon,
        samples: 3,
        seed: 0,
        model: None,
        token_counter: "none".to_owned(),
        prices: None,
        strategies: vec!["tail".to_owned()],
        control: None,
        recordings: (0..n_recordings).map(recording).collect(),
        unusable: Vec::new(),
        n_left_out: 0,
        chain: false,
        judging: Judging::default(),
        n_not_reached: 0,
        unfinished: None,
        boundaries: boundaries.iter().enumerate().map(outcome).collect(),
    }
}
