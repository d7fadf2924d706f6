//! From rollouts to verdicts.

use indexmap::IndexMap;
use retrace_events::{Action, EndReason, Outcome, Rollout, Spend};
use retrace_stats::{Arms, Exact, rollout_permutation_test};
use serde_json::Value;

use super::{ChannelInference, verdict_words};
use crate::{
    BoundaryOutcome, Compaction, EarlyStop, EnvironmentKind, ExecutedCalls, Judging, Margins, RecordingFacts, Report,
    Scope, StrategyOutcome, Unit, Verdict, Verification,
};

const HORIZON: usize = 5;

/// A rollout that wasted so many actions. One that stopped made no others.
fn rollout(wasted: u64, stopped: bool) -> Rollout {
    let blocked = (0..wasted).map(|n| Action::new(format!("blocked{n}"), "{}", Outcome::Error, None));
    let rest = if stopped { 0 } else { HORIZON as u64 - wasted };
    let worked = (0..rest).map(|n| Action::new(format!("worked{n}"), "{}", Outcome::Ok, None));
    let end = if stopped { EndReason::Answer } else { EndReason::Budget };
    Rollout { actions: blocked.chain(worked).collect(), end, n_answers: 1, spend: Spend::default(), sent: None }
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
        facts.push(RecordingFacts::new(recording, EnvironmentKind::Rebuilt));
    }
    Verification {
        horizon: HORIZON,
        samples: 2,
        seed: 0,
        model: None,
        token_counter: "characters / 4".to_owned(),
        prices: None,
        control: strategies.iter().find(|name| *name == "control").cloned(),
        strategies,
        recordings: facts,
        unusable: Vec::new(),
        n_left_out: 0,
        chain: false,
        judging: Judging::default(),
        n_not_reached: 0,
        unfinished: None,
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
        let report = Report::new(Verification {
            judging: Judging { margins, ..Judging::default() },
            ..verification(recordings.collect())
        })
        .unwrap();
        for (strategy, expected) in case["expect"].as_object().unwrap() {
            let inference = report.strategies[strategy].inference.as_ref().unwrap();
            if inference.deterministic {
                continue;
            }
            for (channel, found) in [("wasted", &inference.wasted), ("stopped", &inference.stopped)] {
                let (expected, place) = (&expected[channel], format!("{name} {strategy} {channel}"));
                assert_eq!(found.mean.to_string(), exact(&expected["delta"]), "{place}");
                let here = found.p_here.as_ref().unwrap();
                assert_eq!(here.p.exact().unwrap().to_string(), exact(&expected["p_here"]), "{place}");
                assert_eq!(found.p_new.p.exact().unwrap().to_string(), exact(&expected["p_new"]), "{place}");
                assert!((found.ends.high.unwrap() - expected["high"].as_f64().unwrap()).abs() < 1e-8, "{place}");
                assert_eq!(found.ends.high.unwrap(), found.high_completed, "no rollout failed: {place}");
                if let Some(adjusted) = expected["p_here_adj"].as_f64() {
                    assert!((retrace_stats::nearest_double(&here.adjusted) - adjusted).abs() < 1e-10, "{place}");
                    let adjusted: retrace_stats::Exact = exact(&expected["p_new_adj"]).parse().unwrap();
                    assert_eq!(found.p_new.adjusted, adjusted, "{place}");
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
    let p = |inference: &super::Inference| inference.wasted.p_here.as_ref().unwrap().p.exact().cloned().unwrap();
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
    assert_eq!(
        (&whole.wasted.mean, whole.wasted.ends.high.unwrap()),
        (&failed.wasted.mean, failed.wasted.ends.high.unwrap())
    );
    assert_eq!(whole.wasted.ends.high.unwrap(), whole.wasted.high_completed);
    assert!(failed.wasted.high_completed > failed.wasted.ends.high.unwrap() + 0.5, "{failed:?}");
}

/// The wasted actions of PRE at a boundary, and of each strategy there.
type Counts<'a> = (&'a [u64], &'a [(&'a str, &'a [u64])]);

/// Recordings of one boundary each.
fn of_counts(recordings: &[Counts<'_>]) -> Verification {
    let arm = |counts: &[u64]| counts.iter().map(|&wasted| rollout(wasted, false)).collect::<Vec<_>>();
    let boundary = |(pre, strategies): &Counts<'_>| {
        let tested = strategies.iter().map(|(name, post)| {
            let post = arm(post);
            let compaction = if post.is_empty() || *name == "control" {
                Compaction::Unchanged
            } else {
                outcome(Vec::new()).compaction
            };
            ((*name).to_owned(), StrategyOutcome { compaction, ..outcome(post) })
        });
        vec![(arm(pre), tested.collect())]
    };
    verification(recordings.iter().map(boundary).collect())
}

fn judged(verification: Verification, judging: Judging) -> Report {
    Report::new(Verification { judging, ..verification }).unwrap()
}

fn wasted<'a>(report: &'a Report, name: &str) -> &'a ChannelInference {
    &report.strategies[name].inference.as_ref().unwrap().wasted
}

fn p_of(boundaries: &[Arms<'_>]) -> Option<Exact> {
    rollout_permutation_test(boundaries).unwrap().p.exact().cloned()
}

/// Ends of rollouts that vary, so that the agent is not taken for deterministic.
const HARMED: &[Counts<'static>] = &[
    (&[0, 1], &[("control", &[1, 0]), ("tail", &[3, 4]), ("kept", &[])]),
    (&[0, 0], &[("control", &[0, 0]), ("tail", &[2, 2]), ("kept", &[1, 2])]),
    (&[1, 0], &[("control", &[0, 1]), ("tail", &[3, 3]), ("kept", &[])]),
    (&[0, 0], &[("control", &[1, 0]), ("tail", &[4, 2]), ("kept", &[0, 1])]),
    (&[0, 2], &[("control", &[0, 0]), ("tail", &[2, 4]), ("kept", &[])]),
    (&[0, 0], &[("control", &[0, 0]), ("tail", &[3, 3]), ("kept", &[0, 0])]),
];

#[test]
fn strategies_are_held_against_the_control_and_against_each_other() {
    let report = judged(of_counts(HARMED), Judging::default());
    let pairs: Vec<_> = report.contrasts.iter().map(|it| (&*it.strategy, &*it.against)).collect();
    assert_eq!(pairs, [("tail", "control"), ("kept", "control"), ("kept", "tail")]);
    let arms = |of: fn(&Counts<'static>) -> [&'static [u64]; 2]| {
        let counts =
            HARMED.iter().map(of).map(|arms| arms.map(|arm| arm.iter().map(|&n| n as u32).collect::<Vec<_>>()));
        counts.collect::<Vec<_>>()
    };
    let p =
        |arms: &[[Vec<u32>; 2]]| p_of(&arms.iter().map(|[pre, post]| Arms::Rollouts { pre, post }).collect::<Vec<_>>());
    let found = |index: usize| report.contrasts[index].wasted.p_here.as_ref().unwrap().p.exact().cloned();
    assert_eq!(found(0), p(&arms(|(_, strategies)| [strategies[0].1, strategies[1].1])));
    // What left the history unchanged differs from the control by nothing, and has the rollouts of the raw history.
    let boundaries = arms(|(_, strategies)| [strategies[0].1, strategies[2].1]);
    let rolled: Vec<_> = boundaries.into_iter().filter(|[_, kept]| !kept.is_empty()).collect();
    assert_eq!((found(1), report.contrasts[1].n_scored), (p(&rolled), 6));
    let to_tail =
        arms(|(pre, strategies)| [strategies[1].1, if strategies[2].1.is_empty() { pre } else { strategies[2].1 }]);
    assert_eq!(found(2), p(&to_tail));
}

#[test]
fn a_pooled_baseline_has_the_rollouts_of_the_control() {
    let pooled = judged(of_counts(HARMED), Judging { pooled_baseline: true, ..Judging::default() });
    let counts = |all: &[u64]| all.iter().map(|&n| n as u32).collect::<Vec<_>>();
    let arms: Vec<_> = HARMED
        .iter()
        .map(|(pre, strategies)| (counts(&[pre, strategies[0].1].concat()), counts(strategies[1].1)))
        .collect();
    let arms: Vec<_> = arms.iter().map(|(pre, post)| Arms::Rollouts { pre, post }).collect();
    assert_eq!(wasted(&pooled, "tail").p_here.as_ref().unwrap().p.exact().cloned(), p_of(&arms));
    let alone = judged(of_counts(HARMED), Judging::default());
    assert_eq!(
        wasted(&pooled, "control").mean,
        wasted(&alone, "control").mean,
        "the control is not held against itself"
    );
    assert_ne!(wasted(&pooled, "tail").mean, wasted(&alone, "tail").mean);
}

#[test]
fn recordings_of_one_task_are_one_unit_if_the_user_says_so() {
    let mut verification = of_counts(HARMED);
    for (number, recording) in verification.recordings.iter_mut().enumerate() {
        recording.task = (number > 0).then(|| format!("task {}", number.div_ceil(2)));
    }
    let report = judged(verification, Judging { unit: Unit::Task, ..Judging::default() });
    let inference = report.strategies["tail"].inference.as_ref().unwrap();
    // One without a task, two of two and one of one.
    assert_eq!(inference.n_units, 4);
    assert_eq!(inference.wasted.p_new.p.exact().unwrap().to_string(), "1/8");
    assert_eq!(judged(of_counts(HARMED), Judging::default()).strategies["tail"].inference.as_ref().unwrap().n_units, 6);
}

#[test]
fn a_strict_or_familywise_rule_claims_less() {
    let verdict = |judging| judged(of_counts(HARMED), judging).strategies["tail"].inference.as_ref().unwrap().verdict;
    assert_eq!(verdict(Judging::default()), Verdict::Worse);
    let bounded = wasted(&judged(of_counts(HARMED), Judging::default()), "tail").intervals.bounded.low.unwrap();
    let strict = verdict(Judging { strict: true, ..Judging::default() });
    assert_eq!(strict, if bounded > 0.0 { Verdict::Worse } else { Verdict::WorseHere });
    let high = |familywise| {
        wasted(&judged(of_counts(HARMED), Judging { familywise, ..Judging::default() }), "kept").high_completed
    };
    assert!(high(true) > high(false));
}

#[test]
fn harm_that_rests_on_failed_rollouts_is_told_of() {
    let failed = || Rollout {
        end: EndReason::Failed(retrace_events::Failure {
            stage: retrace_events::Stage::Model,
            message: "503".to_owned(),
        }),
        actions: Vec::new(),
        ..rollout(0, false)
    };
    let despite = |n_failed: usize| {
        let mut verification = of_counts(HARMED);
        for boundary in &mut verification.boundaries {
            boundary.strategies["tail"].post.extend((0..n_failed).map(|_| failed()));
        }
        let report = judged(verification, Judging::default());
        report.strategies["tail"].inference.as_ref().unwrap().harm_despite_failures
    };
    assert_eq!((despite(0), despite(1), despite(30)), (None, Some(true), Some(false)));
}

#[test]
fn what_describes_a_horizon_is_at_the_full_one_what_is_shown() {
    for pooled_baseline in [false, true] {
        let report = judged(of_counts(HARMED), Judging { pooled_baseline, ..Judging::default() });
        for name in ["control", "tail", "kept"] {
            let inference = report.strategies[name].inference.as_ref().unwrap();
            let described = report.described_at(name, HORIZON, Scope::New).unwrap();
            for (described, shown) in described.iter().zip([&inference.wasted, &inference.stopped]) {
                assert_eq!((&described.mean, described.ends), (&shown.mean, shown.ends));
            }
            let here = report.described_at(name, HORIZON, Scope::Here).unwrap()[0].ends;
            assert_eq!(here.low, inference.wasted.intervals.here.map(|here| here.low));
            assert!(report.described_at(name, 1, Scope::New).is_some());
        }
        assert!(report.described_at("tail", HORIZON + 1, Scope::New).is_none());
        assert!(report.described_at("other", HORIZON, Scope::New).is_none());
    }
}

/// One that broke before its first action.
fn broken() -> Rollout {
    let failure = retrace_events::Failure { stage: retrace_events::Stage::Model, message: "503".to_owned() };
    Rollout { end: EndReason::Failed(failure), actions: Vec::new(), ..rollout(0, false) }
}

#[test]
fn a_rollout_that_broke_makes_no_agent_a_chancy_one() {
    let strategies = [("s", &[1, 1, 1][..])];
    let whole = [(&[0, 0, 0][..], &strategies[..]); 3];
    let inference = |verification| {
        let mut report = judged(verification, Judging::default());
        report.strategies.swap_remove("s").unwrap().inference.unwrap()
    };
    let p = |inference: &super::Inference| inference.wasted.p_here.as_ref().unwrap().p.to_f64();
    let mut verification = of_counts(&whole);
    let mut cut_short = rollout(0, false);
    cut_short.actions.truncate(2);
    verification.boundaries[0].pre[0] = Rollout { end: broken().end, ..cut_short };
    let (whole, with_broken) = (inference(of_counts(&whole)), inference(verification));
    assert!(whole.deterministic && with_broken.deterministic);
    assert_eq!((p(&whole), p(&with_broken)), (0.25, 0.25));
}

#[test]
fn an_agent_whose_control_varies_is_not_deterministic_anywhere() {
    let strategies = [("control", &[0, 1, 0][..]), ("s", &[3, 3, 3][..])];
    let report = judged(of_counts(&[(&[0, 0, 0][..], &strategies[..]); 3]), Judging::default());
    let inference = report.strategies["s"].inference.as_ref().unwrap();
    assert!(!inference.deterministic);
    assert!(inference.wasted.p_here.as_ref().unwrap().p.to_f64() < 0.001);
}

#[test]
fn where_a_run_may_stop_early_nothing_is_tested_at_its_boundaries() {
    let report = judged(of_counts(HARMED), Judging { stop_early: true, ..Judging::default() });
    let inference = report.strategies["tail"].inference.as_ref().unwrap();
    for channel in [&inference.wasted, &inference.stopped] {
        assert!(channel.p_here.is_none() && channel.detectable.is_none());
    }
    for contrast in &report.contrasts {
        assert!(contrast.wasted.p_here.is_none() && contrast.wasted.evidence.is_some());
    }
    // Six recordings are one too few, whatever they show.
    assert_eq!((inference.verdict, EarlyStop::fewest_recordings(1)), (Verdict::NotShown, 7));
    assert!(inference.wasted.p_new.adjusted > inference.wasted.p_new_floor);
}

#[test]
fn a_run_does_not_stop_for_a_harm_that_has_turned_into_a_gain() {
    let run = |post: &[u64]| {
        let counts: Vec<_> = post.iter().map(|&post| [2, post]).collect();
        let recordings: Vec<_> = counts
            .iter()
            .map(|[pre, post]| {
                vec![(vec![rollout(*pre, false)], [("s".to_owned(), outcome(vec![rollout(*post, false)]))].into())]
            })
            .collect();
        let mut early = EarlyStop::new(["s".to_owned()], HORIZON, crate::Key::Call);
        let mut over = Vec::new();
        for boundary in verification(recordings).boundaries {
            early.add(&[boundary]);
            over.push(early.is_over());
        }
        over
    };
    let worse = run(&[5; 12]);
    let first = worse.iter().position(|over| *over).unwrap();
    assert!(worse[first..].iter().all(|over| *over));
    let turned = run(&[vec![5; first + 1], vec![0; 2 * first + 2]].concat());
    assert!(turned[first] && !turned.last().unwrap(), "{turned:?}");
}

#[test]
fn a_run_stops_early_by_the_rule_of_refetch_that_is_chosen() {
    let calls = |name: fn(usize) -> String| Rollout {
        actions: (0..HORIZON).map(|n| Action::new(name(n), format!(r#"{{"n":{n}}}"#), Outcome::Ok, None)).collect(),
        ..rollout(0, false)
    };
    let is_over = |refetch_by| {
        let boundary = || {
            let post = outcome(vec![calls(|_| "look".to_owned())]);
            vec![(vec![calls(|n| format!("look{n}"))], [("s".to_owned(), post)].into())]
        };
        let mut early = EarlyStop::new(["s".to_owned()], HORIZON, refetch_by);
        for boundary in verification((0..20).map(|_| boundary()).collect()).boundaries {
            early.add(&[boundary]);
        }
        early.is_over()
    };
    assert_eq!((is_over(crate::Key::Call), is_over(crate::Key::Tool)), (false, true));
}

#[test]
fn a_pooled_baseline_scores_nothing_where_no_rollout_of_pre_is_scored() {
    let mut verification = of_counts(HARMED);
    verification.boundaries[0].pre = vec![broken(), broken()];
    let report = judged(verification, Judging { pooled_baseline: true, ..Judging::default() });
    assert_eq!(report.strategies["tail"].at(HORIZON).unwrap().n_scored, 5);
    assert_eq!(report.strategies["tail"].inference.as_ref().unwrap().n_units, 5);
}

#[test]
fn pairs_of_strategies_are_adjusted_for_how_many_there_are() {
    let counts: [(&str, &[u64]); 4] =
        [("a", &[0, 1, 0, 0]), ("b", &[3, 4, 5, 3]), ("c", &[1, 0, 1, 1]), ("d", &[0, 0, 1, 1])];
    let contrasts = |strategies: &[(&str, &[u64])]| {
        judged(of_counts(&[(&[0, 1, 0, 0][..], strategies); 2]), Judging::default()).contrasts
    };
    let (all, alone) = (contrasts(&counts), contrasts(&counts[..2]));
    assert_eq!((all.len(), alone.len()), (6, 1));
    let adjusted = |contrast: &crate::Contrast| contrast.wasted.p_here.clone().unwrap().adjusted;
    assert_eq!((&*all[0].strategy, &*all[0].against), ("b", "a"));
    assert_eq!(adjusted(&all[0]), adjusted(&alone[0]) * Exact::from_integer(6.into()));
    assert!(adjusted(&all[0]) < Exact::from_integer(1.into()), "the limit of 1 says nothing");
}
