//! What it takes to score rollouts, and to work out a whole report.

use std::collections::HashSet;

use divan::Bencher;
use divan::counter::ItemsCount;
use retrace_events::tokens::Tokens;
use retrace_events::{Action, EndReason, Outcome, Rollout, Signature, Spend};
use retrace_score::{
    BoundaryOutcome, Compaction, EnvironmentKind, RecordingFacts, Report, Reporter, Size, StrategyOutcome,
    Verification, score_boundary,
};

fn main() {
    divan::main();
}

/// Five actions that differ from rollout to rollout, some of them blocked.
fn rollout(number: usize) -> Rollout {
    let actions = (0..5).map(|i| {
        let arguments = format!(r#"{{"item": {}, "page": {i}}}"#, number * 7 % (i + 3));
        let outcome = if (number + i).is_multiple_of(4) { Outcome::Error } else { Outcome::Ok };
        Action::new("stock", arguments, outcome, None)
    });
    Rollout {
        actions: actions.collect(),
        end: EndReason::Budget,
        n_answers: 5,
        spend: Spend { n_model_calls: 5, input_tokens: 9_000, output_tokens: 300, ..Spend::default() },
        sent: None,
    }
}

fn arm(number: usize) -> Vec<Rollout> {
    (0..3).map(|sample| rollout(3 * number + sample)).collect()
}

fn executed(n_calls: usize) -> HashSet<Signature> {
    (0..n_calls).map(|i| Signature::of("stock", &format!(r#"{{"item": {i}, "page": 1}}"#))).collect()
}

/// Strategies, the first of which is the control if there are several, at boundaries spread over recordings.
fn verification(names: &[&str], n_boundaries: usize, n_recordings: usize) -> Verification {
    let boundaries = (0..n_boundaries).map(|number| BoundaryOutcome {
        recording: format!("r{}", number * n_recordings / n_boundaries),
        cut: number,
        executed: 20,
        executed_calls: Box::new(executed(20)),
        pre_size: Some(Size { events: 40, tokens: Tokens(4_000) }),
        unusable: None,
        pre: arm(number),
        strategies: names
            .iter()
            .enumerate()
            .map(|(i, name)| {
                let size = Some(Size { events: 9, tokens: Tokens(900 + number as u64) });
                let compaction = if i == 0 && names.len() > 1 {
                    Compaction::Unchanged
                } else {
                    Compaction::Compacted { size, cached: None }
                };
                (
                    (*name).to_owned(),
                    StrategyOutcome {
                        compaction,
                        lost_task: false,
                        spend: Spend::default(),
                        post: arm(number + 2 * (i + 1)),
                    },
                )
            })
            .collect(),
    });
    let recording = |number: usize| RecordingFacts::new(format!("r{number}"), EnvironmentKind::Rebuilt);
    Verification {
        horizon: 5,
        samples: 3,
        seed: 0,
        token_counter: "characters / 4".to_owned(),
        prices: None,
        model: None,
        boundaries: boundaries.collect(),
        recordings: (0..n_recordings).map(recording).collect(),
        control: (names.len() > 1).then(|| names[0].to_owned()),
        strategies: names.iter().map(|&name| name.to_owned()).collect(),
        unusable: Vec::new(),
        n_left_out: 0,
        chain: false,
        judging: retrace_score::Judging::default(),
        n_not_reached: 0,
        unfinished: None,
    }
}

#[divan::bench(args = [100, 1_000, 10_000])]
fn score_boundary_of_3_and_3_rollouts_behind_calls(bencher: Bencher, n_calls: usize) {
    let (pre, post, executed) = (arm(1), arm(2), executed(n_calls));
    bencher.bench(|| score_boundary(&pre, &post, &executed, &[1, 2, 3, 4, 5]));
}

const FOUR: [&str; 4] = ["control", "tail", "summary", "clear"];

/// Rollouts of five actions, so that all horizons beyond are alike.
#[divan::bench]
fn report_of_4_strategies_x_12_boundaries_to_horizon_1000(bencher: Bencher) {
    bencher.with_inputs(|| Verification { horizon: 1_000, ..verification(&FOUR, 12, 3) }).bench_values(Report::new);
}

#[divan::bench(args = [12, 100])]
fn report_of_4_strategies_x_3_samples_at_boundaries(bencher: Bencher, n_boundaries: usize) {
    bencher.with_inputs(|| verification(&FOUR, n_boundaries, n_boundaries / 4)).bench_values(Report::new);
}

/// Boundaries, and the recordings they come from.
const SIZES: [(usize, usize); 5] = [(12, 3), (12, 12), (400, 100), (1_000, 250), (1_000, 20)];

/// All that a report says of one strategy: the counts of five horizons, means, bootstraps, tests, intervals and the verdict.
#[divan::bench(args = SIZES)]
fn report_of_1_strategy_x_3_samples(bencher: Bencher, (n_boundaries, n_recordings): (usize, usize)) {
    bencher.with_inputs(|| verification(&["tail"], n_boundaries, n_recordings)).bench_values(Report::new);
}

/// Rollouts of both arms of a boundary checked, scored and counted, per second.
#[divan::bench(args = [3, 30, 300])]
fn rollouts_scored_of_each_arm(bencher: Bencher, samples: usize) {
    let setup = || {
        let mut verification = verification(&["tail"], 1, 1);
        let mut boundary = verification.boundaries.remove(0);
        boundary.pre = (0..samples).map(rollout).collect();
        boundary.strategies["tail"].post = (samples..2 * samples).map(rollout).collect();
        (Reporter::new(verification).expect("it is whole"), boundary)
    };
    let scored = |(mut reporter, boundary): (Reporter, BoundaryOutcome)| (reporter.add(boundary), reporter);
    bencher.counter(ItemsCount::new(2 * samples)).with_inputs(setup).bench_values(scored);
}
