//! From rollouts to verdicts.

use indexmap::IndexMap;
use retrace_events::{Action, EndReason, Outcome, Rollout};
use serde_json::Value;

use super::{Margins, verdict_words};
use crate::{
    BoundaryOutcome, Compaction, EnvironmentKind, ExecutedCalls, RecordingFacts, Report, Spend, StrategyOutcome,
    Verification,
};

const HORIZON: usize = 5;

/// A rollout that wasted so many actions. One that stopped made no others.
fn rollout(wasted: u64, stopped: bool) -> Rollout {
    let blocked = (0..wasted).map(|n| Action::new(format!("blocked{n}"), "{}", Outcome::Error, None));
    let rest = if stopped { 0 } else { HORIZON as u64 - wasted };
    let worked = (0..rest).map(|n| Action::new(format!("worked{n}"), "{}", Outcome::Ok, None));
    let end = if stopped { EndReason::Answer } else { EndReason::Budget };
    Rollout {
        actions: blocked.chain(worked).collect(),
        end,
        n_answers: 1,
        input_tokens: 0,
        output_tokens: 0,
        sent: None,
    }
}

fn rollouts(value: &Value) -> Vec<Rollout> {
    let rollouts = value.as_array().unwrap().iter();
    rollouts.map(|counts| rollout(counts[0].as_u64().unwrap(), counts[1] == 1)).collect()
}

fn outcome(post: Vec<Rollout>) -> StrategyOutcome {
    let compaction = Compaction::Compacted { size: None, cached: None };
    StrategyOutcome { compaction, lost_task: false, spend: Spend::default(), post }
}

/// PRE at a boundary, and POST of each strategy.
type Boundary = (Vec<Rollout>, IndexMap<String, StrategyOutcome>);

/// A verification of these boundaries, recording by recording.
fn verification(recordings: Vec<Vec<Boundary>>) -> Verification {
    let mut strategies: Vec<String> = Vec::new();
    let mut boundaries = Vec::new();
    let mut facts = Vec::new();
    for (number, of_recording) in recordings.into_iter().enumerate() {
        let recording = number.to_string();
        for (cut, (pre, tested)) in of_recording.into_iter().enumerate() {
            strategies.extend(tested.keys().filter(|name| !strategies.contains(name)).cloned().collect::<Vec<_>>());
            boundaries.push(BoundaryOutcome {
                recording: recording.clone(),
                cut,
                executed: cut,
                executed_calls: Box::new(ExecutedCalls::default()),
                pre_size: None,
                unusable: None,
                pre,
                strategies: tested,
            });
        }
        facts.push(RecordingFacts {
            id: recording,
            length: None,
            environment: EnvironmentKind::Rebuilt,
            replay: None,
            worlds_differ: None,
        });
    }
    Verification {
        horizon: HORIZON,
        samples: 2,
        seed: 0,
        model: None,
        token_counter: "characters / 4".to_owned(),
        control: strategies.iter().find(|name| *name == "control").cloned(),
        strategies,
        recordings: facts,
        unusable: Vec::new(),
        n_left_out: 0,
        chain: false,
        margins: Margins::default(),
        boundaries,
    }
}

fn exact(number: &Value) -> String {
    number.as_str().unwrap().to_owned()
}

#[test]
fn verdicts_agree_with_the_vectors() {
    let (mut n_checked, mut verdicts) = (0, Vec::new());
    for case in retrace_testing::vectors::rows("stats/verdict.jsonl") {
        let name = &case["name"];
        // A rollout of nothing but waste that stopped would have no action left to make.
        if case["recordings"].to_string().contains("[5,1]") {
            continue;
        }
        let recordings = case["recordings"].as_array().unwrap().iter().map(|recording| {
            let boundaries = recording.as_array().unwrap().iter().map(|boundary| {
                let tested = boundary["post"].as_object().unwrap().iter();
                let tested = tested.map(|(name, post)| (name.clone(), outcome(rollouts(post))));
                (rollouts(&boundary["pre"]), tested.collect())
            });
            boundaries.collect()
        });
        let margin = |channel: &str| case["margin"][channel].as_f64();
        let margins = Margins { wasted: margin("wasted"), stopped: margin("stopped") };
        let report = Report::new(Verification { margins, ..verification(recordings.collect()) }).unwrap();
        for (strategy, expected) in case["expect"].as_object().unwrap() {
            let inference = report.strategies[strategy].inference.as_ref().unwrap();
            if inference.deterministic {
                continue;
            }
            for (channel, found) in [("wasted", &inference.wasted), ("stopped", &inference.stopped)] {
                let (expected, place) = (&expected[channel], format!("{name} {strategy} {channel}"));
                assert_eq!(found.mean.to_string(), exact(&expected["delta"]), "{place}");
                let here = found.p_here.as_ref().unwrap();
                assert_eq!(here.exact.as_ref().unwrap().to_string(), exact(&expected["p_here"]), "{place}");
                assert_eq!(found.p_new.exact.as_ref().unwrap().to_string(), exact(&expected["p_new"]), "{place}");
                assert!((found.high - expected["high"].as_f64().unwrap()).abs() < 1e-8, "{place}");
                assert_eq!(found.high, found.high_completed, "no rollout failed: {place}");
                if let Some(adjusted) = expected["p_here_adj"].as_f64() {
                    assert!((here.adjusted - adjusted).abs() < 1e-10, "{place}");
                    let adjusted: retrace_stats::Exact = exact(&expected["p_new_adj"]).parse().unwrap();
                    assert_eq!(found.p_new.adjusted, retrace_stats::nearest_double(&adjusted), "{place}");
                }
                n_checked += 1;
            }
            if let Some(verdict) = expected["verdict"].as_str() {
                assert_eq!(verdict_words(&inference.verdict), verdict, "{name} {strategy}");
                verdicts.push(verdict.to_owned());
            }
        }
    }
    assert!(n_checked > 20 || verdicts.is_empty(), "{n_checked}");
}

#[test]
fn a_deterministic_agent_has_one_sample_and_says_so() {
    let boundaries = |n_samples: usize| {
        let boundary = || {
            let post = outcome(vec![rollout(3, false); n_samples]);
            (vec![rollout(0, false); n_samples], IndexMap::from([("s".to_owned(), post)]))
        };
        (0..6).map(|_| vec![boundary()]).collect()
    };
    let inference = |n_samples| {
        let mut report = Report::new(verification(boundaries(n_samples))).unwrap();
        report.strategies.swap_remove("s").unwrap().inference.unwrap()
    };
    let (once, copied) = (inference(1), inference(10));
    assert_eq!((once.deterministic, copied.deterministic), (false, true));
    let p = |inference: &super::Inference| inference.wasted.p_here.as_ref().unwrap().exact.clone().unwrap();
    assert_eq!((p(&copied).to_string(), p(&copied)), ("1/32".to_owned(), p(&once)), "ten copies are no ten samples");
}

#[test]
fn failed_rollouts_widen_what_safety_rests_on_and_nothing_else() {
    let boundaries = |failed: bool| {
        let boundary = || {
            let mut post = vec![rollout(0, false), rollout(1, false)];
            if failed {
                let broken = EndReason::Failed(retrace_events::Failure {
                    stage: retrace_events::Stage::Model,
                    message: "503".to_owned(),
                });
                post.push(Rollout { end: broken, actions: Vec::new(), ..rollout(0, false) });
            }
            let pre = vec![rollout(0, false), rollout(0, true)];
            (pre, IndexMap::from([("s".to_owned(), outcome(post))]))
        };
        (0..8).map(|_| vec![boundary()]).collect()
    };
    let inference = |failed| {
        let mut report = Report::new(verification(boundaries(failed))).unwrap();
        report.strategies.swap_remove("s").unwrap().inference.unwrap()
    };
    let (whole, failed) = (inference(false), inference(true));
    assert_eq!((&whole.wasted.mean, whole.wasted.high), (&failed.wasted.mean, failed.wasted.high));
    assert_eq!(whole.wasted.high, whole.wasted.high_completed);
    assert!(failed.wasted.high_completed > failed.wasted.high + 0.5, "{failed:?}");
}
