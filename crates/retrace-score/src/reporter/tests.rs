//! What is told of the boundaries of a verification together.

use indexmap::IndexMap;
use retrace_events::tokens::Tokens;
use retrace_events::{Action, EndReason, Failure, Outcome, Spend, Stage};
use retrace_stats::exact_rates_test;

use super::*;
use crate::delta::Side;
use crate::input::{EnvironmentKind, RecordingFacts};
use crate::report::{Failed, UnscoredCount};
use crate::{ExecutedCalls, PValue, Place};

/// A rollout from a line such as `a b! a, timeout`: calls, `!` for a blocked one, and after a comma what broke it;
/// `off` stands for a call off the record.
fn rollout(line: &str) -> Rollout {
    let (calls, error) = line.split_once(", ").map_or((line, None), |(calls, error)| (calls, Some(error)));
    let action = |call: &str| match call.strip_suffix('!') {
        Some(name) => Action::new(name, "{}", Outcome::Error, None),
        None => Action::new(call, "{}", Outcome::Ok, None),
    };
    let end = match error {
        None => EndReason::Answer,
        Some("off") => EndReason::OffTheRecord { call: "x({})".to_owned() },
        Some(error) => EndReason::Failed(Failure { stage: Stage::Model, message: error.to_owned() }),
    };
    let actions = calls.split_whitespace().map(action).collect();
    Rollout { actions, end, n_answers: 1, spend: spend(1, 100, 10), sent: None }
}

fn spend(n_model_calls: u64, input_tokens: u64, output_tokens: u64) -> Spend {
    Spend { n_model_calls, input_tokens, output_tokens, ..Spend::default() }
}

fn ran(compaction: Compaction, post: &[&str]) -> StrategyOutcome {
    let spend = spend(1, 50, 5);
    StrategyOutcome { compaction, lost_task: false, spend, post: post.iter().map(|line| rollout(line)).collect() }
}

fn to(tokens: u64) -> Compaction {
    Compaction::Compacted { size: Some(Size { events: 4, tokens: Tokens(tokens) }), cached: None }
}

fn failed() -> Compaction {
    Compaction::Failed { error: "429\nslow down".to_owned() }
}

/// A verification at horizon 2 of the strategy `s` beside the control `control`.
fn verification(boundaries: Vec<(&[&str], StrategyOutcome, StrategyOutcome)>) -> Verification {
    let boundaries = boundaries.into_iter().zip(1..).map(|((pre, control, s), number)| BoundaryOutcome {
        recording: "r".to_owned(),
        cut: 10 * number,
        executed: number,
        executed_calls: Box::new(ExecutedCalls::default()),
        unusable: None,
        pre_size: Some(Size { events: 10, tokens: Tokens(1000) }),
        pre: pre.iter().map(|line| rollout(line)).collect(),
        strategies: IndexMap::from([("control".to_owned(), control), ("s".to_owned(), s)]),
    });
    Verification {
        horizon: 2,
        samples: 1,
        seed: 0,
        token_counter: "characters / 4".to_owned(),
        prices: None,
        model: None,
        strategies: vec!["control".to_owned(), "s".to_owned()],
        control: Some("control".to_owned()),
        boundaries: boundaries.collect(),
        recordings: vec![RecordingFacts::new("r".to_owned(), EnvironmentKind::Recorded)],
        unusable: Vec::new(),
        n_left_out: 0,
        chain: false,
        judging: crate::Judging::default(),
        n_not_reached: 0,
        unfinished: None,
    }
}

fn exact(text: &str) -> Exact {
    text.parse().unwrap()
}

#[test]
fn only_the_control_is_not_zero_where_nothing_ran() {
    let unchanged = || ran(Compaction::Unchanged, &[]);
    let report = Report::new(verification(vec![(&["a b"], unchanged(), unchanged())])).unwrap();
    let [control, s] = ["control", "s"].map(|name| report.strategies[name].at(2).unwrap());
    assert_eq!((control.n_scored, s.n_scored), (0, 1));
    assert_eq!(control.unscored, [UnscoredCount { reason: Unscored::NotRun(Side::Post), count: 1 }]);
    assert_eq!(report.strategies["s"].n_noop, 1);
    assert_eq!(report.strategies["s"].kept, Some(exact("1")));
}

#[test]
fn an_unchanged_boundary_with_rollouts_is_scored_from_them() {
    let again = || ran(Compaction::Unchanged, &["a!"]);
    let report = Report::new(verification(vec![(&["a b"], again(), again())])).unwrap();
    for strategy in report.strategies.values() {
        assert_eq!((strategy.n_unchanged, strategy.n_noop), (1, 0));
        assert_eq!(strategy.at(2).unwrap().deltas.as_ref().unwrap().blocked.mean, exact("1"));
    }
}

#[test]
fn a_rollout_that_broke_is_scored_as_far_as_it_came() {
    let post = ran(to(400), &["a!, timeout"]);
    let report = Report::new(verification(vec![(&["a b"], ran(Compaction::Unchanged, &["a b"]), post)])).unwrap();
    let s = &report.strategies["s"];
    assert_eq!(s.at(1).unwrap().deltas.as_ref().unwrap().blocked.mean, exact("1"));
    assert_eq!(s.at(1).unwrap().failures.post, Failed { failed: 0, n_rollouts: 1 });
    assert_eq!(s.at(2).unwrap().unscored, [UnscoredCount { reason: Unscored::AllFailed(Side::Post), count: 1 }]);
    assert_eq!(s.at(2).unwrap().failures.post, Failed { failed: 1, n_rollouts: 1 });
    assert_eq!(s.at(2).unwrap().failures.more, Some(Side::Post));
    assert_eq!((&*s.post.errors[0].text, s.post.errors[0].first.after_actions), ("timeout", Some(1)));
    assert!(s.at(0).is_none() && s.at(3).is_none());
}

#[test]
fn one_failure_alone_is_no_higher_rate() {
    let with = |arm: &'static [&'static str]| {
        let control = || ran(Compaction::Unchanged, &["a b"]);
        let report = Report::new(verification(vec![(&["a b", "a b"], control(), ran(to(400), arm))])).unwrap();
        let failures = report.strategies["s"].at(2).unwrap().failures.clone();
        (failures.more, failures.paired_more)
    };
    assert_eq!(with(&["a b", "a b"]), (None, None));
    assert_eq!(with(&["a b", ", timeout"]), (Some(Side::Post), None));
    assert_eq!(with(&[", timeout", ", timeout"]), (Some(Side::Post), Some(Side::Post)));
}

#[test]
fn pre_failures_where_a_strategy_has_no_post_are_told_apart() {
    let control = || ran(Compaction::Unchanged, &["a b"]);
    let report = Report::new(verification(vec![
        (&["a b"], control(), ran(to(400), &["a b"])),
        (&[", timeout"], control(), ran(failed(), &[])),
    ]))
    .unwrap();
    let failures = &report.strategies["s"].at(2).unwrap().failures;
    assert_eq!((failures.pre.failed, failures.more), (1, Some(Side::Pre)));
    assert_eq!((failures.paired_pre.failed, failures.paired_more), (0, None));
    let [error] = &report.strategies["s"].compaction_errors[..] else { panic!("one error") };
    assert_eq!((&*error.text, error.count), ("429 slow down", 1));
    assert_eq!(error.first, Place::boundary("r", 20));
}

#[test]
fn flawed_compactions_are_told_from_failed_ones() {
    let control = || ran(Compaction::Unchanged, &["a b"]);
    let flawed = || ran(Compaction::Flawed { flaw: "no\ncall".to_owned() }, &[]);
    let report = Report::new(verification(vec![
        (&["a b"], control(), ran(failed(), &[])),
        (&["a b"], control(), flawed()),
        (&["a b"], control(), flawed()),
    ]))
    .unwrap();
    let s = &report.strategies["s"];
    assert_eq!((s.n_tested, s.n_failed_compactions, s.n_flawed_compactions, s.kept.clone()), (3, 1, 2, None));
    let [flaw] = &s.flaws[..] else { panic!("one flaw") };
    assert_eq!((&*flaw.text, flaw.count, &flaw.first), ("no call", 2, &Place::boundary("r", 20)));
    let unscored = |reason, count| UnscoredCount { reason, count };
    let expected = [unscored(Unscored::CompactionFlawed, 2), unscored(Unscored::CompactionFailed, 1)];
    assert_eq!(s.at(1).unwrap().unscored, expected);
}

#[test]
fn post_failures_where_pre_never_ran_are_told_apart() {
    let control = || ran(Compaction::Unchanged, &[]);
    let report = Report::new(verification(vec![
        (&["a b", "a b"], control(), ran(to(400), &["a b", "a b"])),
        (&[], control(), ran(to(400), &[", 503", ", 503"])),
    ]))
    .unwrap();
    let failures = &report.strategies["s"].at(2).unwrap().failures;
    let of = |failed, n_rollouts| Failed { failed, n_rollouts };
    assert_eq!((failures.pre, failures.post, failures.more), (of(0, 2), of(2, 4), Some(Side::Post)));
    assert_eq!((failures.paired_pre, failures.paired_post), (of(0, 2), of(0, 2)));
    assert_eq!((&failures.paired_p, failures.paired_more), (&exact("1"), None));
}

#[test]
fn a_higher_rate_is_one_that_noise_does_not_make() {
    let arm = |failed: usize, of: usize| -> Vec<&str> {
        (0..of).map(|sample| if sample < failed { ", 503" } else { "a b" }).collect()
    };
    let check = |(pre, m), (post, n), expected| {
        let (pre, post) = (arm(pre, m), arm(post, n));
        let report =
            Report::new(verification(vec![(&pre, ran(Compaction::Unchanged, &[]), ran(to(400), &post))])).unwrap();
        let failures = &report.strategies["s"].at(2).unwrap().failures;
        assert_eq!(failures.paired_more, expected, "{failures:?}");
        let p = exact_rates_test(failures.paired_pre.counts(), failures.paired_post.counts());
        assert_eq!(failures.paired_p, p);
    };
    check((138, 350), (114, 350), None);
    check((141, 350), (114, 350), Some(Side::Pre));
    check((0, 3_000), (4, 3_000), None);
    check((0, 3_000), (6, 3_000), Some(Side::Post));
    // Few rollouts never make a small p, and a great difference of theirs is still one.
    check((0, 4), (2, 4), Some(Side::Post));
    check((1, 12), (4, 12), Some(Side::Post));
    check((1, 12), (3, 12), None);
    check((0, 2), (1, 2), None);
}

#[test]
fn rollouts_off_the_record_fail_without_an_error() {
    let post = ran(to(400), &["a, off", "a b"]);
    let report = Report::new(verification(vec![(&["a b"], ran(Compaction::Unchanged, &[", off"]), post)])).unwrap();
    let s = &report.strategies["s"];
    assert_eq!((s.post.n_rollouts, &s.post.n_failed[..], &s.post.n_off_the_record[..]), (2, &[0, 1][..], &[0, 1][..]));
    assert_eq!(report.strategies["control"].post.n_off_the_record, [1, 1]);
    assert_eq!(s.post.errors, []);
    assert!(report.has_recorded_environment());
}

#[test]
fn a_rollout_that_left_the_record_behind_the_horizon_did_not_fail() {
    let post = ran(to(400), &["a b, off", "a b c, off"]);
    let report = Report::new(verification(vec![(&["a b, off"], ran(Compaction::Unchanged, &["a b"]), post)])).unwrap();
    for arm in [&report.pre, &report.strategies["s"].post] {
        assert_eq!((&arm.n_failed[..], &arm.n_off_the_record[..]), (&[0, 0][..], &[0, 0][..]));
    }
}

#[test]
fn p_is_bounded_by_the_deltas_that_are_not_zero() {
    let tested = |post| -> (&[&str], _, _) { (&["a b"], ran(Compaction::Unchanged, &["a b"]), ran(to(400), post)) };
    let boundaries = vec![tested(&["a! b"]), tested(&["a b"]), tested(&["a! b!"]), tested(&[", timeout"])];
    let report = Report::new(verification(boundaries)).unwrap();
    let [control, s] = ["control", "s"].map(|name| report.strategies[name].at(2).unwrap());
    assert_eq!((s.n_scored, s.n_nonzero, s.permutation_p.clone()), (3, 2, PValue::Exact(exact("1/2"))));
    assert_eq!((control.n_scored, control.n_nonzero, control.permutation_p.clone()), (4, 0, PValue::Exact(exact("1"))));
}

#[test]
fn sizes_are_told_apart_by_what_is_left() {
    let sizes = [9, 10, 1000, 1001];
    let boundaries = sizes
        .map(|tokens| -> (&[&str], _, _) { (&["a"], ran(Compaction::Unchanged, &["a"]), ran(to(tokens), &["a"])) });
    let report = Report::new(verification(boundaries.into())).unwrap();
    let s = &report.strategies["s"];
    assert_eq!((s.n_emptied, s.n_grown, s.n_unchanged), (1, 1, 0));
    assert_eq!(s.kept, Some(exact("101/200")));
    assert_eq!(s.spend, spend(4, 200, 20));
    assert_eq!(s.post.spend, spend(4, 400, 40));
}

#[test]
fn the_json_has_every_horizon_and_every_action() {
    let post = ran(to(400), &["a! a"]);
    let mut verification = verification(vec![(&["a b"], ran(Compaction::Unchanged, &["a b"]), post)]);
    let boundary = verification.boundaries.remove(0);
    let mut reporter = Reporter::new(verification).unwrap();
    let here = serde_json::to_value(reporter.add(boundary).unwrap()).unwrap();
    let json = serde_json::to_value(reporter.finish()).unwrap();
    let at_2 = &json["strategies"]["s"]["horizons"][1];
    assert_eq!(at_2["deltas"]["wasted"]["mean"], serde_json::json!({"exact": "2", "value": 2.0}));
    assert_eq!(at_2["deltas"]["wasted"]["interval"], serde_json::Value::Null);
    assert_eq!(json["strategies"]["s"]["kept"], serde_json::json!({"exact": "2/5", "value": 0.4}));
    let here = &here["strategies"]["s"];
    assert_eq!(here["scores"][1]["horizon"], 2);
    assert_eq!(here["scores"][1]["scored"]["delta"]["harm"]["exact"], "2");
    let again = serde_json::json!({"name": "a", "arguments": "{}", "outcome": "ok", "refetch": true});
    assert_eq!(here["post"][0]["actions"][1], again);
    assert_eq!(here["post"][0]["end"], "answer");
}

#[test]
fn parts_that_contradict_each_other_are_refused() {
    let good = || {
        let outcome = || ran(Compaction::Unchanged, &["a"]);
        verification(vec![(&["a"], outcome(), outcome()), (&["a"], outcome(), outcome())])
    };
    let check = |break_it: fn(&mut Verification), expected: &str| {
        let mut verification = good();
        break_it(&mut verification);
        let error = Report::new(verification).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.hint().is_none(), matches!(error, ReportError::BadHorizon { .. }));
    };
    Report::new(good()).unwrap();
    check(|v| v.horizon = 0, "`horizon` is 0, and must be from 1 to 1000");
    check(|v| v.recordings.push(v.recordings[0].clone()), "two recordings have the id `r`");
    check(|v| v.strategies.push("s".to_owned()), "two strategies have the name `s`");
    check(|v| v.control = Some("x".to_owned()), "the control `x` is not among the strategies");
    check(
        |v| v.boundaries[1].recording = "q".to_owned(),
        "the boundary at 20 is in `q`, which is not among the recordings",
    );
    check(|v| v.boundaries[1].cut = 10, "the boundary at 10 of `r` is there twice");
    check(|v| drop(v.strategies.pop()), "the boundary at 10 of `r` has `s`, which is not among the strategies");
    check(
        |v| v.boundaries[0].strategies["s"].compaction = failed(),
        "the boundary at 10 of `r` has rollouts of `s`, whose compaction failed or is flawed there",
    );
}
