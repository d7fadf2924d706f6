//! How much memory it takes to report a verification that is too large to be held.
//!
//! The allocator counts what all threads hold, so that this is the one test of its binary.

use std::io;

use peak_alloc::PeakAlloc;
use retrace_events::tokens::Tokens;
use retrace_events::{Action, EndReason, Outcome, Rollout, Spend};
use retrace_report::{View, text, write_report};
use retrace_score::{
    BoundaryOutcome, Compaction, EnvironmentKind, ExecutedCalls, Judging, RecordingFacts, Reporter, Size,
    StrategyOutcome, Verification,
};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// What keeps the raw history, and two that do not.
const STRATEGIES: [&str; 3] = ["control", "tail", "summary"];

/// The arm of the raw history and those of the strategies.
const N_ARMS: usize = 1 + STRATEGIES.len();

const N_PER_RECORDING: usize = 4;

const HORIZON: usize = 5;

/// Counts of a rollout: wasted and stopped at each horizon.
const N_VALUES: usize = 2 * HORIZON;

/// The most that a report may hold of each further count; while it is worked out it may be twice that.
const BYTES_PER_VALUE: usize = 2;

/// More than a rollout takes while it is scored and written.
const BYTES_PER_ROLLOUT: usize = 10_000;

const MIB: usize = 1 << 20;

/// A rollout of five actions whose texts are long; some failed, some repeated, some ended early.
fn rollout(seed: usize) -> Rollout {
    let n_actions = if seed.is_multiple_of(11) { 3 } else { HORIZON };
    let action = |i: usize| {
        let arguments = format!(r#"{{"item": {}, "note": "{}"}}"#, seed * 7 % (i + 4), "tea ".repeat(50));
        let outcome = if (seed / 3 + i).is_multiple_of(4) { Outcome::Error } else { Outcome::Ok };
        Action::new("stock", arguments, outcome, None)
    };
    let end = if seed.is_multiple_of(97) {
        EndReason::OffTheRecord { call: "look({})".to_owned() }
    } else {
        EndReason::Answer
    };
    let actions = (0..n_actions).map(action).collect();
    Rollout {
        actions,
        end,
        n_answers: 5,
        spend: Spend { n_model_calls: 5, input_tokens: 9_000, output_tokens: 300, ..Spend::default() },
        sent: None,
    }
}

fn boundary(number: usize, samples: usize) -> BoundaryOutcome {
    let arm = |arm: usize| (0..samples).map(|sample| rollout((number * N_ARMS + arm) * samples + sample)).collect();
    let outcome = |(index, name): (usize, &&str)| {
        let size = Some(Size { events: 9, tokens: Tokens(900) });
        let compaction =
            if index == 0 { Compaction::Unchanged } else { Compaction::Compacted { size, cached: Some(Tokens(90)) } };
        let post = arm(index + 1);
        ((*name).to_owned(), StrategyOutcome { compaction, lost_task: false, spend: Spend::default(), post })
    };
    BoundaryOutcome {
        recording: format!("r{}", number / N_PER_RECORDING),
        cut: number,
        executed: 20,
        executed_calls: Box::new(ExecutedCalls::default()),
        pre_size: Some(Size { events: 40, tokens: Tokens(4_000) }),
        unusable: None,
        pre: arm(0),
        strategies: STRATEGIES.iter().enumerate().map(outcome).collect(),
    }
}

/// What was held in bytes, of a report of so many boundaries and rollouts of each arm.
struct Held {
    /// By the report.
    report: usize,
    /// At most, while it was worked out, shown and written.
    most: usize,
}

fn held(n_boundaries: usize, samples: usize) -> Held {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let recording = |number: usize| RecordingFacts::new(format!("r{number}"), EnvironmentKind::Rebuilt);
    let verification = Verification {
        horizon: HORIZON,
        samples,
        seed: 0,
        token_counter: "characters/4".to_owned(),
        model: None,
        strategies: STRATEGIES.map(str::to_owned).into(),
        control: Some("control".to_owned()),
        recordings: (0..n_boundaries.div_ceil(N_PER_RECORDING)).map(recording).collect(),
        unusable: Vec::new(),
        n_left_out: 0,
        chain: false,
        judging: Judging::default(),
        n_not_reached: 0,
        unfinished: None,
        prices: None,
        boundaries: Vec::new(),
    };
    let mut reporter = Reporter::new(verification).expect("it is whole");
    (0..n_boundaries).for_each(|number| drop(reporter.add(boundary(number, samples)).expect("it is new")));
    let report = reporter.finish();
    let held = ALLOCATOR.current_usage() - before;
    assert_eq!(report.pre.n_rollouts, n_boundaries * samples);
    assert!(text(&View::new(&report)).contains("tail"));
    let boundaries = (0..n_boundaries).map(|number| Ok::<_, io::Error>(report.score(boundary(number, samples))));
    write_report(io::sink(), &report, boundaries).expect("these are its boundaries");
    Held { report: held, most: ALLOCATOR.peak_usage() - before }
}

#[test]
fn what_is_held_is_a_few_bytes_for_each_rollout() {
    let is_large = retrace_testing::cases(0, 1) == 1;
    let (n_boundaries, samples) = if is_large { (1_000, 25) } else { (20, 2) };
    let [few, many] = [samples, 10 * samples].map(|samples| held(n_boundaries, samples));
    let n_more = 9 * n_boundaries * N_ARMS * samples;
    let more = many.report - few.report;
    assert!(more < n_more * N_VALUES * BYTES_PER_VALUE, "{more} bytes more for {n_more} rollouts more");
    assert!(few.most < 200 * MIB, "{} bytes", few.most);
    // The tests take what they take for few rollouts too; of one boundary all rollouts are held, with their texts.
    let most = 4 * MIB + few.most + n_more * N_VALUES * 2 * BYTES_PER_VALUE + 10 * samples * N_ARMS * BYTES_PER_ROLLOUT;
    assert!(many.most < most, "{} bytes, after {} with {n_more} rollouts fewer", many.most, few.most);
}
