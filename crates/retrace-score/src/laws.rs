//! Laws that hold for any rollouts, checked against a second, plainer computation.

use std::collections::HashSet;

use num_traits::{Signed, Zero};
use proptest::collection::vec;
use proptest::prelude::*;
use retrace_events::tokens::Tokens;
use retrace_events::{Action, EndReason, Failure, Outcome, Rollout, Signature, Spend, Stage};
use retrace_stats::{Exact, Level};

use crate::facts::Sums;
use crate::*;

const HORIZON: usize = 5;

fn action() -> impl Strategy<Value = Action> {
    let outcome = prop_oneof![3 => Just(Outcome::Ok), 1 => Just(Outcome::Error), 1 => Just(Outcome::NotFound)];
    (0..3u8, 0..3u8, outcome).prop_map(|(tool, page, outcome)| {
        Action::new(format!("tool_{tool}"), format!(r#"{{"page": {page}}}"#), outcome, None)
    })
}

fn end() -> impl Strategy<Value = EndReason> {
    prop_oneof![
        3 => Just(EndReason::Answer),
        3 => Just(EndReason::Budget),
        1 => Just(EndReason::OffTheRecord { call: "tool_9({})".to_owned() }),
        1 => Just(EndReason::Failed(Failure { stage: Stage::Model, message: "no answer".to_owned() })),
    ]
}

fn rollout() -> impl Strategy<Value = Rollout> {
    let counts = (0..9u32, 0..99u64, 0..99u64);
    (vec(action(), 0..8), end(), counts).prop_map(|(actions, end, (n_answers, input_tokens, output_tokens))| Rollout {
        actions,
        end,
        n_answers,
        spend: Spend { n_model_calls: n_answers.into(), input_tokens, output_tokens, ..Spend::default() },
        sent: None,
    })
}

fn arm() -> impl Strategy<Value = Vec<Rollout>> {
    vec(rollout(), 1..5)
}

fn executed() -> impl Strategy<Value = HashSet<Signature>> {
    vec(action(), 0..4).prop_map(|actions| actions.iter().map(|action| action.signature().clone()).collect())
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![Just(Key::Call), Just(Key::Tool)]
}

/// Blocked, refetch, wasted, stopped of a rollout, by looking at every pair of actions.
fn plain_burden(rollout: &Rollout, executed: &HashSet<Signature>, key: Key, horizon: usize) -> [i64; 4] {
    let same = |a: &Signature, b: &Signature| match key {
        Key::Call => a == b,
        Key::Tool => a.name() == b.name(),
    };
    let first: Vec<_> = rollout.actions.iter().take(horizon).collect();
    let repeats = |i: usize| {
        let this = first[i].signature();
        first[..i].iter().any(|earlier| same(earlier.signature(), this)) || executed.iter().any(|past| same(past, this))
    };
    let count = |is: &dyn Fn(usize) -> bool| (0..first.len()).filter(|&i| is(i)).count() as i64;
    [
        count(&|i| first[i].is_blocked()),
        count(&repeats),
        count(&|i| first[i].is_blocked() || repeats(i)),
        i64::from(rollout.actions.len() < horizon),
    ]
}

/// The four deltas over a common denominator, if both arms have a rollout that reaches the horizon.
fn plain_deltas(
    [pre, post]: [&[Rollout]; 2],
    executed: &HashSet<Signature>,
    key: Key,
    horizon: usize,
) -> Option<[Exact; 4]> {
    let sums = |arm: &[Rollout]| {
        let scored: Vec<_> = arm
            .iter()
            .filter(|rollout| rollout.actions.len() >= horizon || !rollout.end.is_failure())
            .map(|rollout| plain_burden(rollout, executed, key, horizon))
            .collect();
        let sums = [0, 1, 2, 3].map(|channel| scored.iter().map(|burden| burden[channel]).sum::<i64>());
        (sums, scored.len() as i64)
    };
    let ((pre, n_pre), (post, n_post)) = (sums(pre), sums(post));
    (n_pre > 0 && n_post > 0)
        .then(|| [0, 1, 2, 3].map(|c| Exact::new((post[c] * n_pre - pre[c] * n_post).into(), (n_pre * n_post).into())))
}

fn four(delta: Channels<Exact>) -> [Exact; 4] {
    [delta.blocked, delta.refetch, delta.wasted, delta.stopped]
}

/// Boundaries of two recordings with three strategies: the control, one that changes things, and one that does not.
fn verification() -> impl Strategy<Value = Verification> {
    let compacted = prop_oneof![
        1 => Just(Compaction::Failed { error: "no summary".to_owned() }),
        1 => Just(Compaction::Flawed { flaw: "a result without its call".to_owned() }),
        3 => (0..150u64).prop_map(|tokens| Compaction::Compacted { size: Some(Size { events: 3, tokens: Tokens(tokens) }), cached: None }),
    ];
    let strategy = (compacted, vec(rollout(), 0..4)).prop_map(|(compaction, post)| {
        let post = if compaction.leaves_nothing() { Vec::new() } else { post };
        StrategyOutcome {
            compaction,
            lost_task: false,
            spend: Spend { n_model_calls: 1, input_tokens: 10, output_tokens: 2, ..Spend::default() },
            post,
        }
    });
    let boundary = (executed(), vec(rollout(), 0..4), vec(rollout(), 0..4), strategy);
    let unchanged =
        |post| StrategyOutcome { compaction: Compaction::Unchanged, lost_task: false, spend: Spend::default(), post };
    vec(boundary, 0..6).prop_map(move |boundaries| {
        let boundaries =
            boundaries.into_iter().enumerate().map(|(index, (executed, pre, again, tail))| BoundaryOutcome {
                recording: format!("r{}", index % 2),
                cut: 10 * index,
                executed: executed.len(),
                executed_calls: Box::new(executed),
                pre_size: Some(Size { events: 9, tokens: Tokens(100) }),
                unusable: None,
                pre,
                strategies: [("control", unchanged(again)), ("tail", tail), ("idle", unchanged(Vec::new()))]
                    .map(|(name, outcome)| (name.to_owned(), outcome))
                    .into(),
            });
        let boundaries = boundaries.collect();
        let recordings = ["r0", "r1"].map(|id| RecordingFacts::new(id.to_owned(), EnvironmentKind::Rebuilt));
        Verification {
            horizon: HORIZON,
            samples: 3,
            seed: 7,
            token_counter: "characters / 4".to_owned(),
            prices: None,
            model: None,
            strategies: ["control", "tail", "idle"].map(str::to_owned).into(),
            control: Some("control".to_owned()),
            recordings: recordings.into(),
            unusable: Vec::new(),
            n_left_out: 0,
            chain: false,
            judging: crate::Judging::default(),
            n_not_reached: 0,
            unfinished: None,
            boundaries,
        }
    })
}

/// The boundary that `docs/methods.md` walks through.
#[test]
fn the_walk_from_rollout_to_delta_is_as_the_documentation_says() {
    let action = |text: &str| match text.strip_suffix('!') {
        Some(tool) => Action::new(tool, "{}", Outcome::Error, None),
        None => Action::new(text, "{}", Outcome::Ok, None),
    };
    let rollout = |text: &str| Rollout {
        actions: text.split(' ').map(action).collect(),
        end: EndReason::Answer,
        n_answers: 3,
        spend: Spend::default(),
        sent: None,
    };
    let executed: ExecutedCalls = [action("login"), action("list")].iter().collect();
    let check = |text: &str, expected: (u64, u64, u64, bool)| {
        let burden = Burdens::of(&rollout(text), &executed, Key::Call).at(3).unwrap();
        assert_eq!((burden.blocked, burden.refetch, burden.wasted, burden.stopped), expected, "{text}");
    };
    check("stock reorder stock", (0, 1, 1, false));
    check("stock reorder", (0, 0, 0, true));
    check("stock! login stock", (1, 2, 3, false));
    check("stock! stock! login", (2, 2, 3, false));
    let pre = ["stock reorder stock", "stock reorder"].map(rollout);
    let post = ["stock! login stock", "stock! stock! login"].map(rollout);
    let scores = score_boundary(&pre, &post, &executed, &[3]).unwrap();
    assert_eq!(scores[0].score.delta().unwrap().wasted, "5/2".parse().unwrap());
}

proptest! {
    #[test]
    fn wasted_lies_between_the_greater_count_and_the_sum(rollout in rollout(), executed in executed(), key in key()) {
        let burdens = Burdens::of(&rollout, &executed, key);
        for burden in (0..9).filter_map(|horizon| burdens.at(horizon)) {
            prop_assert!(burden.wasted >= burden.blocked.max(burden.refetch));
            prop_assert!(burden.wasted <= burden.blocked + burden.refetch);
            prop_assert!(burden.wasted <= burden.n_actions);
        }
    }

    #[test]
    fn what_is_kept_of_an_arm_counts_as_its_rollouts_do(
        arm in vec(rollout(), 0..5), executed in executed(), key in key(), full in 1..9usize,
    ) {
        let burdens: Vec<_> = arm.iter().map(|rollout| Burdens::of(rollout, &executed, key)).collect();
        let reports = arm.iter().zip(&burdens);
        let reports: Vec<_> =
            reports.map(|(rollout, burdens)| RolloutReport { rollout: rollout.clone(), burdens: burdens.clone() }).collect();
        let kept = ArmCounts::of(&reports, full);
        for horizon in 1..=full {
            prop_assert_eq!(kept.at(horizon), Sums::of(&burdens, horizon));
            let n_failed = arm.iter().filter(|rollout| !rollout.reaches(horizon)).count();
            prop_assert_eq!((kept.n_rollouts, kept.n_failed(horizon)), (arm.len(), n_failed));
            let reaching: Vec<_> = kept.reaching(horizon).map(|it| (u64::from(it.wasted), it.stopped)).collect();
            let plain = burdens.iter().filter_map(|burdens| burdens.at(horizon)).map(|it| (it.wasted, it.stopped));
            prop_assert_eq!(reaching, plain.collect::<Vec<_>>());
        }
        let answered = arm.iter().filter(|rollout| rollout.n_answers > 0).count();
        prop_assert_eq!((kept.n_answered, kept.n_unseen), (answered, answered));
    }

    #[test]
    fn counts_grow_by_at_most_one_with_the_horizon(rollout in rollout(), executed in executed(), key in key()) {
        let burdens = Burdens::of(&rollout, &executed, key);
        let known: Vec<_> = (0..9).map_while(|horizon| burdens.at(horizon)).collect();
        prop_assert_eq!(known.len() - 1, if rollout.end.is_failure() { rollout.actions.len() } else { 8 });
        for pair in known.windows(2) {
            let counts = |burden: &Burden| [burden.n_actions, burden.blocked, burden.refetch, burden.wasted];
            for (less, more) in counts(&pair[0]).into_iter().zip(counts(&pair[1])) {
                prop_assert!(less <= more && more <= less + 1);
            }
            prop_assert!(!pair[0].stopped || pair[1].stopped);
        }
    }

    #[test]
    fn deltas_are_those_of_the_plain_computation(pre in arm(), post in arm(), executed in executed(), key in key()) {
        let horizons: Vec<usize> = (0..9).collect();
        for at in score_boundary_by(key, &pre, &post, &executed, &horizons).unwrap() {
            let plain = plain_deltas([&pre, &post], &executed, key, at.horizon);
            prop_assert_eq!(at.score.delta().map(four), plain);
        }
    }

    #[test]
    fn an_arm_against_itself_has_no_delta(arm in arm(), executed in executed()) {
        for at in score_boundary(&arm, &arm, &executed, &[1, 3, 5]).unwrap() {
            let zero = Channels::default().map(|(): ()| Exact::zero());
            prop_assert!(at.score.delta().is_none_or(|delta| delta == zero));
        }
    }

    #[test]
    fn swapped_arms_turn_the_sign_and_harm_is_never_below_zero(pre in arm(), post in arm(), executed in executed()) {
        let horizons = [0, 1, 2, 5, 8];
        let there = score_boundary(&pre, &post, &executed, &horizons).unwrap();
        let back = score_boundary(&post, &pre, &executed, &horizons).unwrap();
        for (there, back) in there.iter().zip(back) {
            let (there, back) = (there.score.delta(), back.score.delta());
            prop_assert_eq!(there.is_some(), back.is_some());
            if let (Some(there), Some(back)) = (there, back) {
                prop_assert!(!there.harm.is_negative());
                prop_assert_eq!(&there.harm - &back.harm, &there.blocked + &there.refetch);
                prop_assert_eq!(four(there), four(back).map(|delta| -delta));
            }
        }
    }

    #[test]
    fn every_way_to_keep_what_was_executed_answers_alike(past in vec(action(), 0..6), call in action()) {
        let set: HashSet<Signature> = past.iter().map(|action| action.signature().clone()).collect();
        let calls: ExecutedCalls = past.iter().collect();
        prop_assert_eq!(set.has_executed(call.signature()), calls.has_executed(call.signature()));
        prop_assert_eq!(set.has_used(call.name()), calls.has_used(call.name()));
    }
}

proptest! {
    // Each case is a whole verification.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_report_is_the_mean_of_its_boundaries(verification in verification()) {
        let report = Report::new(verification).unwrap();
        for (name, strategy) in &report.strategies {
            prop_assert_eq!(strategy.n_tested, report.boundaries.len());
            for horizon in 1..=HORIZON {
                let at = strategy.at(horizon).unwrap();
                let deltas: Vec<_> = report.boundaries.iter()
                    .filter_map(|boundary| boundary.strategies[name].scores[horizon - 1].score.delta())
                    .collect();
                let n_unscored: usize = at.unscored.iter().map(|unscored| unscored.count).sum();
                prop_assert_eq!(at.n_scored, deltas.len());
                prop_assert_eq!(at.n_scored + n_unscored, strategy.n_tested);
                prop_assert_eq!(at.deltas.is_some(), !deltas.is_empty());
                if let Some(estimates) = &at.deltas {
                    let sum = deltas.iter().fold(Exact::zero(), |sum, delta| sum + &delta.wasted);
                    prop_assert_eq!(&estimates.wasted.mean * Exact::from_integer(deltas.len().into()), sum);
                    prop_assert_eq!(estimates.wasted.interval.is_some(), deltas.len() > 1);
                    for (estimate, column) in [
                        (&estimates.wasted, deltas.iter().map(|delta| delta.wasted.clone()).collect::<Vec<_>>()),
                        (&estimates.stopped, deltas.iter().map(|delta| delta.stopped.clone()).collect()),
                    ] {
                        let Some(interval) = &estimate.interval else { continue };
                        let alone = retrace_stats::exact_bootstrap_mean(&column, Level::PERCENT_95).unwrap();
                        prop_assert_eq!(interval, &alone.interval);
                    }
                }
            }
        }
    }

    #[test]
    fn a_strategy_that_changes_nothing_and_runs_nothing_is_all_zero(verification in verification()) {
        let report = Report::new(verification).unwrap();
        let idle = &report.strategies["idle"];
        prop_assert_eq!(idle.n_noop, report.boundaries.len());
        prop_assert_eq!(idle.n_unchanged, report.boundaries.len());
        for at in &idle.horizons {
            prop_assert_eq!(at.n_scored, idle.n_noop);
            prop_assert!(at.deltas.as_ref().is_none_or(|deltas| deltas.wasted.mean.is_zero() && deltas.harm.mean.is_zero()));
            prop_assert_eq!(&at.pre, &None);
        }
        prop_assert_eq!(report.strategies["control"].n_noop, 0);
    }
}
