//! Reports as a reader sees them.

use indexmap::IndexMap;
use proptest::collection::vec;
use proptest::prelude::*;
use retrace_events::tokens::Tokens;
use retrace_events::{Action, Dollars, EndReason, Failure, History, Outcome, Prices, Rollout, Spend, Stage};
use retrace_report::{COLUMNS, Look, NoSuchHorizon, RowOutcome, Style, View, printable, text, write_report};
use retrace_score::{
    BoundaryOutcome, Compaction, EnvironmentKind, ExecutedCalls, Key, PValue, RecordingFacts, RecordingLength,
    ReplayDifference, ReplayFidelity, Report, Reporter, Scope, Size, StrategyOutcome, UnusableRecording, Verification,
};
use unicode_width::UnicodeWidthStr;

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
    let sent = Some(History::from(Vec::new()).sent_hash());
    let spend = Spend { n_model_calls: 3, input_tokens: 4_100, output_tokens: 120, dollars: None, ..Spend::default() };
    Rollout { actions, end, n_answers: 3, spend, sent }
}

fn compacted(tokens: u64, post: &[&str]) -> StrategyOutcome {
    let size = Some(Size { events: 4, tokens: Tokens(tokens) });
    outcome(Compaction::Compacted { size, cached: Some(Tokens(tokens / 3)) }, post)
}

fn unchanged(post: &[&str]) -> StrategyOutcome {
    outcome(Compaction::Unchanged, post)
}

fn failed(error: &str) -> StrategyOutcome {
    StrategyOutcome {
        spend: Spend { n_model_calls: 2, input_tokens: 3_000, dollars: None, ..Spend::default() },
        ..outcome(Compaction::Failed { error: error.to_owned() }, &[])
    }
}

fn outcome(compaction: Compaction, post: &[&str]) -> StrategyOutcome {
    StrategyOutcome {
        compaction,
        lost_task: false,
        spend: Spend::default(),
        post: post.iter().map(|line| rollout(line)).collect(),
    }
}

fn boundary<const N: usize>(
    recording: &str,
    cut: usize,
    pre: &[&str],
    strategies: [(&str, StrategyOutcome); N],
) -> BoundaryOutcome {
    let login = Action::new("login", "{}", Outcome::Ok, None);
    BoundaryOutcome {
        recording: recording.to_owned(),
        cut,
        executed: 1,
        executed_calls: Box::new([&login].into_iter().collect::<ExecutedCalls>()),
        pre_size: Some(Size { events: cut, tokens: Tokens(1_000) }),
        unusable: None,
        pre: pre.iter().map(|line| rollout(line)).collect(),
        strategies: strategies.map(|(name, outcome)| (name.to_owned(), outcome)).into(),
    }
}

fn recording(id: &str, environment: EnvironmentKind) -> RecordingFacts {
    let length = Some(RecordingLength { n_actions: 23, n_rounds: 17 });
    RecordingFacts { id: id.to_owned(), task: None, length, environment, replay: None, worlds_differ: None }
}

fn verification(strategies: &[&str], boundaries: Vec<BoundaryOutcome>) -> Verification {
    let mut recordings: IndexMap<String, RecordingFacts> = IndexMap::new();
    for boundary in &boundaries {
        let id = &boundary.recording;
        recordings.entry(id.clone()).or_insert_with(|| recording(id, EnvironmentKind::Rebuilt));
    }
    Verification {
        horizon: 5,
        samples: 2,
        seed: 0,
        token_counter: "characters / 4".to_owned(),
        prices: None,
        model: Some("sim:\u{1b}clerk".to_owned()),
        strategies: strategies.iter().map(|&name| name.to_owned()).collect(),
        control: strategies.contains(&"control").then(|| "control".to_owned()),
        recordings: recordings.into_values().collect(),
        unusable: Vec::new(),
        n_left_out: 0,
        chain: false,
        judging: retrace_score::Judging::default(),
        n_not_reached: 0,
        unfinished: None,
        boundaries,
    }
}

/// A look at another horizon.
fn at(report: &Report, horizon: usize) -> Result<View, NoSuchHorizon> {
    View::of(report, Look { horizon: Some(horizon), ..Look::default() })
}

fn shown(verification: Verification) -> String {
    text(&View::new(&Report::new(verification).expect("its parts fit together")))
}

/// The table of verdicts, and that of the reference implementation.
fn in_both_styles(verification: Verification) -> [String; 2] {
    let report = Report::new(verification).expect("its parts fit together");
    let shown = |style| text(&View::of(&report, Look { style, ..Look::default() }).expect("the full horizon is there"));
    [shown(Style::Verdict), shown(Style::Reference)]
}

/// Twelve boundaries of three recordings: the tail loses the session, the summary does not.
fn shop() -> Verification {
    let boundaries = (0..12).map(|i| {
        let pre = ["a b c d e", "a b c d"];
        let tail = match i {
            0..=4 => ["a! a! login a b", "a! login a b c"],
            _ => ["a b c d e", "a b c d e"],
        };
        let summary = match i {
            3 => ["a b c d e", ", no answer in 30 s"],
            6 => ["a b login d e", "a b c d e"],
            _ => ["a b c d e", "a b c d"],
        };
        let summary = if i == 5 { failed("429 slow\ndown") } else { compacted(380 + 60 * i as u64, &summary) };
        let idle = if i < 8 { unchanged(&[]) } else { compacted(950, &["a b c d e", "a b c d"]) };
        boundary(
            &format!("shop-{}", i / 4 + 1),
            9 + 10 * (i % 4),
            &pre,
            [
                ("control", unchanged(&["a b c d", "a b c d e"])),
                ("tail", compacted(310, &tail)),
                ("summary", summary),
                ("clear old results", idle),
            ],
        )
    });
    let boundaries = boundaries.collect();
    Verification { n_left_out: 3, ..verification(&["control", "tail", "summary", "clear old results"], boundaries) }
}

#[test]
fn a_usual_report() {
    insta::assert_snapshot!(shown(shop()));
}

#[test]
fn a_report_in_the_reference_style() {
    let [_, text] = in_both_styles(shop());
    insta::assert_snapshot!(text);
}

#[test]
fn a_report_of_these_boundaries_alone() {
    let report = Report::new(shop()).unwrap();
    let look = Look { scope: Scope::Here, ..Look::default() };
    let text = text(&View::of(&report, look).unwrap());
    let here = report.strategies["tail"].inference.as_ref().unwrap().wasted.intervals.here.unwrap();
    assert!(text.contains(&format!("+1.458 [{:+.3},{:+.3}]", here.low, here.high)), "{text}");
    assert!(text.contains("would settle at"), "{text}");
}

#[test]
fn a_smaller_horizon() {
    let report = Report::new(shop()).unwrap();
    insta::assert_snapshot!(text(&at(&report, 2).unwrap()));
    let error = at(&report, 6).unwrap_err();
    assert_eq!(error.to_string(), "there is no horizon 6: the report has those from 1 to 5");
    assert!(error.hint().unwrap().contains("greater horizon"));
    assert_eq!(at(&report, 0).unwrap_err().hint(), Some("the smallest horizon is 1"));
}

#[test]
fn a_report_where_everything_goes_wrong() {
    let fails = |i: usize| match i {
        0 => failed("the last results are gone"),
        _ => failed("429"),
    };
    let boundaries = (0..3).map(|i| {
        let tail = if i == 0 { ["a b, off", "a b c d e"] } else { [", 503", "a, off"] };
        boundary(
            "run \u{1b}[31m1",
            9 + i,
            &["a b c, off", "a b c d e, 503"],
            [
                ("tail", compacted(if i == 1 { 1_200 } else { 4 }, &tail)),
                ("a name that is far too long for any table, and then some more of it, and more", fails(i)),
                ("\u{202e}文字\n文字文字文字文字文字", compacted(900, &[", context too long"; 2])),
            ],
        )
    });
    let names = [
        "tail",
        "a name that is far too long for any table, and then some more of it, and more",
        "\u{202e}文字\n文字文字文字文字文字",
    ];
    let mut verification = verification(&names, boundaries.collect());
    verification.recordings[0].environment = EnvironmentKind::Recorded;
    verification.recordings[0].replay = Some(ReplayFidelity {
        n_replayed: 1_240,
        n_different: 2,
        first_difference: Some(ReplayDifference {
            action: 4,
            call: "stock({})".to_owned(),
            recorded: "12 left".to_owned(),
            replayed: "11 left\u{7}, and a great deal of other text that nobody wants to read here".to_owned(),
        }),
    });
    verification
        .unusable
        .push(UnusableRecording { name: "run-9.jsonl".to_owned(), reason: "line 4: no JSON".to_owned() });
    insta::assert_snapshot!(shown(verification));
}

#[test]
fn no_boundary_anywhere() {
    let mut verification = verification(&["control", "tail"], Vec::new());
    verification.recordings = (0..7).map(|i| recording(&format!("r{i}"), EnvironmentKind::Rebuilt)).collect();
    verification.recordings[1].length = Some(RecordingLength { n_actions: 1, n_rounds: 1 });
    insta::assert_snapshot!(shown(verification));
}

#[test]
fn one_boundary_and_a_wide_horizon() {
    let post = compacted(10, &["a a a a a a a a a a"]);
    let one = boundary("r", 9, &["a b c d e f g h i j"], [("control", unchanged(&["a"])), ("t", post)]);
    insta::assert_snapshot!(shown(Verification {
        horizon: 10,
        samples: 1,
        ..verification(&["control", "t"], vec![one])
    }));
}

/// The notes at a horizon.
fn notes_at(report: &Report, horizon: usize) -> String {
    at(report, horizon).expect("the report has this horizon").notes.join("\n")
}

#[test]
fn what_left_the_record_behind_the_horizon_did_not_fail() {
    let pre = ["a b c d e, off", "a b, off", "a, 503"];
    let one = boundary("r", 9, &pre, [("tail", compacted(10, &["a b c d e, off"]))]);
    let report = Report::new(verification(&["tail"], vec![one])).unwrap();
    let expected = [
        (1, "", "PRE 0 of 3 (0%), `tail` 0 of 1 (0%)"),
        (2, "1 of 3 PRE rollouts failed. Most common error up to horizon 5: `model: 503`", "PRE 0 of 3 (0%)"),
        (
            4,
            "2 of 3 PRE rollouts failed, 1 of them off the record. Most common error up to horizon 5",
            "PRE 1 of 3 (33%)",
        ),
        (
            5,
            "2 of 3 PRE rollouts failed, 1 of them off the record. Most common error: `model: 503`, once",
            "PRE 1 of 3",
        ),
    ];
    for (horizon, failed, off) in expected {
        let notes = notes_at(&report, horizon);
        assert_eq!(notes.contains("PRE rollouts failed"), horizon > 1, "{notes}");
        assert!(notes.contains(failed), "{notes}");
        // Nobody says that the environment is the recorded one, so the note is there only where any left it.
        assert_eq!(notes.contains(&format!("before horizon {horizon}")), horizon > 2, "{notes}");
        assert!(horizon <= 2 || notes.contains(off), "{notes}");
    }
    assert!(notes_at(&report, 5).contains("in `r` after 9 events, sample 2, after 1 call."));
}

#[test]
fn a_control_that_lost_more_rollouts_shows_noise_and_hides_no_harm() {
    let lost = || [", 503", ", 503", "a b c d e"];
    let pre = ["a b c d e"; 3];
    let one = boundary("r", 9, &pre, [("control", unchanged(&lost())), ("tail", compacted(10, &lost()))]);
    let report = Report::new(verification(&["control", "tail"], vec![one])).unwrap();
    let view = View::new(&report);
    assert!(view.rows.iter().all(|row| row.marked));
    let note = |name: &str| {
        let of_failures = |note: &&String| note.starts_with(&format!("`{name}`: ")) && note.contains("failed");
        view.notes.iter().find(of_failures).unwrap()
    };
    assert!(note("control").contains("noise") && !note("control").contains("understated"), "{}", note("control"));
    assert!(note("tail").contains("harm may be understated"), "{}", note("tail"));
}

#[test]
fn the_least_p_is_that_of_the_deltas_that_are_not_zero() {
    let boundaries = (0..7).map(|i| {
        let tail = ["a b c d e"; 2].map(|same| if i < 2 { "a! b c d e" } else { same });
        let gone = if i < 6 { ", 503" } else { "a! b c d e" };
        let all = compacted(10, &["a! b c d e"]);
        let strategies = [("tail", compacted(10, &tail)), ("gone", compacted(10, &[gone])), ("all", all)];
        boundary("r", 9 + i, &["a b c d e"], strategies)
    });
    let report = Report::new(verification(&["tail", "gone", "all"], boundaries.collect())).unwrap();
    let look = Look { style: Style::Reference, ..Look::default() };
    let notes = View::of(&report, look).unwrap().notes.join("\n");
    let expected = "p cannot be small: at least 0.500 for `tail` (2 deltas), 1.000 for `gone` (1 delta).";
    assert!(notes.contains(expected) && notes.contains("Only 7 boundaries: "), "{notes}");
    for (name, least) in [("tail", "1/2"), ("gone", "1"), ("all", "1/64")] {
        assert_eq!(report.strategies[name].at(5).unwrap().permutation_p, PValue::Exact(least.parse().unwrap()));
    }
}

#[test]
fn a_share_keeps_its_decimals_at_the_widest_horizon() {
    let calls = ["a"; 1_000].join(" ");
    let pre = [&*calls; 5];
    let post = [&*calls, &*calls, &*calls, "a", "a"];
    let boundaries = (0..2).map(|i| boundary("r", 9 + i, &pre, [("tail", compacted(10, &post))]));
    let verification = verification(&["tail"], boundaries.collect());
    let verification = Verification { horizon: 1_000, samples: 5, ..verification };
    let [verdicts, text] = in_both_styles(verification);
    assert!(text.contains(" +0.400 [+0.400,+0.400] "), "{text}");
    assert!(
        text.contains("-399.60 [-399.60,-399.60]")
            && text.lines().chain(verdicts.lines()).all(|line| line.width() <= COLUMNS),
        "{text}"
    );
}

#[test]
fn a_count_keeps_two_decimals_at_every_horizon_while_there_is_room() {
    for horizon in [10, 100, 1_000] {
        let calls = (0..horizon).map(|i| format!("c{i}")).collect::<Vec<_>>().join(" ");
        let one_fails = calls.replacen("c0", "c0!", 1);
        let pre = [&*calls; 5];
        let post = [&*one_fails, &*one_fails, &*calls, &*calls, &*calls];
        let same = "c0 ".repeat(horizon);
        let boundaries = (0..2).map(|i| {
            let strategies = [("few", compacted(10, &post)), ("all", compacted(10, &[&*same; 5]))];
            boundary("r", 9 + i, &pre, strategies)
        });
        let verification = verification(&["few", "all"], boundaries.collect());
        let verification = Verification { horizon, samples: 5, ..verification };
        let [verdicts, text] = in_both_styles(verification);
        assert!(text.contains(" +0.40 [+0.40,+0.40] "), "{text}");
        assert!(text.contains(&format!("+{}.00 [+{0}.00,", horizon - 1)), "{text}");
        assert!(text.lines().chain(verdicts.lines()).all(|line| line.width() <= COLUMNS), "{text}");
    }
}

#[test]
fn a_count_loses_decimals_before_the_table_grows_too_wide() {
    let blocked = "a! ".repeat(1_000);
    let mut posts = vec![", 503"; 50];
    posts.push(&blocked);
    let pre = (0..1_000).map(|i| format!("c{i}")).collect::<Vec<_>>().join(" ");
    let boundaries = (0..2).map(|i| boundary("r", 9 + i, &[&pre], [("tail", compacted(10, &posts))]));
    let verification = verification(&["tail"], boundaries.collect());
    let verification = Verification { horizon: 1_000, samples: 51, ..verification };
    let [verdicts, text] = in_both_styles(verification);
    assert!(text.contains("+1000.0 [+1000.0,+1000.0]") && text.contains(" 100/102!"), "{text}");
    assert!(text.lines().chain(verdicts.lines()).all(|line| line.width() <= COLUMNS), "{text}");
}

#[test]
fn a_delta_of_few_survivors_says_for_whom_it_speaks() {
    let arm = |of: &'static str| [of, of, of, "a b c d e"];
    let ended = ["a", "a b c d e", "a b c d e", "a b c d e"];
    let boundaries = (0..2).map(|i| {
        let pre = if i == 0 { &ended } else { &["a b c d e"; 4] };
        boundary("r", 9 + i, pre, [("tail", compacted(10, &arm("a b c, off")))])
    });
    let report = Report::new(verification(&["tail"], boundaries.collect())).unwrap();
    let note = "Only 2 of 8 (25%) of the POST rollouts are scored at horizon 5, those that ended their turn early or came \
                that far: the delta speaks for them alone. A smaller horizon keeps more, `--at 3` at least half.";
    let (full, at_3) = (View::new(&report), at(&report, 3).unwrap());
    assert!(full.notes.iter().any(|said| said.starts_with("`tail`: ") && said.contains(note)), "{:?}", full.notes);
    assert!(full.rows[0].marked && !at_3.rows[0].marked);
    assert!(!at_3.notes.join("\n").contains("speaks for"), "{:?}", at_3.notes);

    // Of PRE it is said once for all strategies, and each of their rows is marked.
    let lost = || compacted(10, &["a b c d e"; 4]);
    let one = boundary("r", 9, &arm(", off"), [("tail", lost()), ("summary", lost())]);
    let view = View::new(&Report::new(verification(&["tail", "summary"], vec![one])).unwrap());
    let said: Vec<_> = view.notes.iter().filter(|note| note.contains("every delta speaks for them alone")).collect();
    assert!(said.len() == 1 && said[0].contains("1 of 4 (25%) of the PRE rollouts"), "{:?}", view.notes);
    assert!(said[0].ends_with("No smaller horizon keeps half of them."), "{said:?}");
    assert!(view.rows.iter().all(|row| row.marked));
}

#[test]
fn failures_where_only_one_arm_ran_are_not_compared() {
    let boundaries = vec![
        boundary("r", 9, &["a b c d e"; 3], [("tail", compacted(10, &[", 503", ", 503", "a b c d e"]))]),
        boundary("r", 10, &[], [("tail", compacted(10, &[", 503"; 5]))]),
    ];
    let notes = notes_at(&Report::new(verification(&["tail"], boundaries)).unwrap(), 5);
    assert!(notes.contains("7 of 8 POST rollouts failed."), "{notes}");
    assert!(notes.contains("Where both arms ran, 0 of 3 (0%) of PRE and 2 of 3 (67%) of POST failed."), "{notes}");
}

#[test]
fn the_heading_counts_what_was_read_and_says_when_arms_are_uneven() {
    let one = |post: &[&str]| boundary("r", 9, &["a", "a"], [("tail", compacted(10, post)), ("idle", unchanged(&[]))]);
    let heading = |post: &[&str]| {
        let mut verification = verification(&["tail", "idle"], vec![one(post)]);
        verification.recordings.push(recording("too short", EnvironmentKind::Rebuilt));
        shown(verification).lines().next().unwrap().to_owned()
    };
    assert_eq!(
        heading(&["a", "a"]),
        "1 boundary from 2 recordings, 2 rollouts per arm, horizon 5, model sim:\\u{1b}clerk"
    );
    assert_eq!(
        heading(&["a"]),
        "1 boundary from 2 recordings, up to 2 rollouts per arm, horizon 5, model sim:\\u{1b}clerk"
    );
}

/// A report as JSON with its boundaries.
fn whole_json(mut verification: Verification) -> String {
    let boundaries = std::mem::take(&mut verification.boundaries);
    let mut reporter = Reporter::new(verification).expect("it is whole");
    let scored: Vec<_> = boundaries.into_iter().map(|boundary| reporter.add(boundary)).collect();
    let mut written = Vec::new();
    let scored = scored.into_iter().map(|boundary| boundary.map_err(std::io::Error::other));
    write_report(&mut written, &reporter.finish(), scored).expect("these are its boundaries");
    String::from_utf8(written).expect("JSON is UTF-8")
}

#[test]
fn the_json_can_be_looked_at_and_reads_back_as_it_was() {
    let name = "\u{1b}[31mred\u{202e}\u{9b}\u{e0041}";
    let one = boundary("r", 9, &["a"], [(name, compacted(10, &["a"]))]);
    let written = whole_json(verification(&[name], vec![one]));
    assert!(written.lines().all(|line| printable(line) == line));
    let read: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(read["strategies"][name]["n_tested"], 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_line_is_too_wide_whatever_recorded_text_holds(
        names in prop::collection::hash_set(any::<String>(), 1..4),
        error in any::<String>(),
        recording in any::<String>(),
        posts in vec(prop_oneof![Just("a b c d e"), Just("a! a!"), Just("a, off")], 0..3),
        horizon in prop_oneof![Just(5), Just(10), Just(100), Just(1_000)],
    ) {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let outcomes = names.iter().enumerate().map(|(i, name)| {
            let outcome = if i == 1 { failed(&error) } else { compacted(5_000_000, &posts) };
            ((*name).to_owned(), outcome)
        });
        let broken = format!(", {error}");
        let mut one = boundary(&recording, 1_000_000, &["a", &broken], []);
        one.strategies = outcomes.collect();
        let mut two = boundary(&recording, 1_000_001, &["a b c d e"], []);
        two.strategies = one.strategies.clone();
        let mut verification = Verification { horizon, ..verification(&names, vec![one, two]) };
        verification.unusable.push(UnusableRecording { name: error.clone(), reason: error });
        let [verdicts, reference] = in_both_styles(verification);
        for line in verdicts.lines().chain(reference.lines()) {
            prop_assert!(line.width() <= COLUMNS, "{} columns: {line:?}", line.width());
            prop_assert_eq!(printable(line), line);
        }
    }
}

#[test]
fn a_rule_of_refetch_that_is_not_the_usual_one_is_told() {
    let told = |refetch_by| {
        let one = boundary("r", 9, &["a b"], [("tail", compacted(10, &["a a"]))]);
        let mut verification = verification(&["tail"], vec![one]);
        verification.judging.refetch_by = refetch_by;
        in_both_styles(verification).map(|shown| shown.contains("refetch counts each call of a tool"))
    };
    assert_eq!((told(Key::Call), told(Key::Tool)), ([false; 2], [true; 2]));
}

#[test]
fn a_flaw_is_told_apart_from_failures_and_marks_the_row() {
    let flawed = |flaw: &str| outcome(Compaction::Flawed { flaw: flaw.to_owned() }, &[]);
    let boundaries = vec![
        boundary("r", 9, &["a"], [("tail", compacted(10, &["a"]))]),
        boundary("r", 19, &["a"], [("tail", flawed("the result of `a\u{1b}` in event 1 answers no call"))]),
        boundary("r", 29, &["a"], [("tail", failed("429"))]),
    ];
    let report = Report::new(verification(&["tail"], boundaries)).unwrap();
    let notes = notes_at(&report, 5);
    let told = "The compaction failed at 1 of 3 boundaries. Most common error: `429`, once, in `r` after 29 events. What is \
                kept is flawed at 1 of 3 boundaries, so nothing could be resumed from it. In `r` after 19 events: the result \
                of `a\\u{1b}` in event 1 answers no call.";
    assert!(notes.contains(told), "{notes}");
    assert!(View::new(&report).rows[0].marked);
    let only = || vec![boundary("r", 9, &["a"], [("tail", flawed("it ends with a response"))])];
    let report = Report::new(verification(&["tail"], only())).unwrap();
    let view = View::new(&report);
    let RowOutcome::Unscored(why) = &view.rows[0].outcome else { panic!("nothing is scored") };
    assert_eq!((&**why, view.rows[0].marked), ("what is kept is flawed at 1 boundary", true));
    assert!(whole_json(verification(&["tail"], only())).contains("\"flaw\": \"it ends with a response\""));
}

#[test]
fn a_boundary_at_which_nothing_could_run_is_told_with_its_reason() {
    let broken =
        || BoundaryOutcome { unusable: Some("replay\u{1b} diverged".to_owned()), ..boundary("r", 19, &[], []) };
    let fine = boundary("r", 9, &["a"], [("tail", compacted(10, &["a"]))]);
    let report = Report::new(verification(&["tail"], vec![fine, broken()])).unwrap();
    let told = "Nothing could run at 1 of 2 boundaries, which are scored for no strategy. The first is in `r` after 19 events: \
                replay\\u{1b} diverged.";
    let notes = notes_at(&report, 5);
    assert!(notes.contains(told), "{notes}");
    let [_, reference] = in_both_styles(verification(
        &["tail"],
        vec![boundary("r", 9, &["a"], [("tail", compacted(10, &["a"]))]), broken()],
    ));
    assert!(reference.contains("Only 1 boundary:") && !reference.contains("2 boundaries come from"), "{reference}");
    assert_eq!(report.strategies["tail"].at(1).unwrap().n_scored, 1);
    assert!(shown(verification(&["tail"], vec![broken()])).contains("nothing could run at 1 boundary"));

    let ran = BoundaryOutcome { pre: vec![rollout("a")], ..broken() };
    let error = Report::new(verification(&["tail"], vec![ran])).unwrap_err();
    assert_eq!(error.to_string(), "the boundary at 19 of `r` is unusable, and has rollouts or strategies");
}

#[test]
fn a_model_that_does_not_say_what_it_was_sent_is_told_of() {
    let unseen = |unseen: usize| {
        let mut pre = vec![rollout("a"), rollout("a")];
        pre[..unseen].iter_mut().for_each(|rollout| rollout.sent = None);
        let boundary = BoundaryOutcome { pre, ..boundary("r", 9, &[], [("tail", compacted(10, &["a"]))]) };
        notes_at(&Report::new(verification(&["tail"], vec![boundary])).unwrap(), 5)
    };
    assert!(!unseen(0).contains("does not say"));
    assert!(unseen(1).contains("The model of 1 of 3 rollouts does not say what it was sent"), "{}", unseen(1));
}

#[test]
fn a_baseline_that_cannot_get_worse_is_told_of() {
    let notes = |pre: &[&str]| {
        let one = boundary("r", 9, pre, [("tail", compacted(10, &["a! b!"]))]);
        notes_at(&Report::new(verification(&["tail"], vec![one])).unwrap(), 2)
    };
    assert!(notes(&["a! b!", "b! a!"]).contains("PRE wastes every action"));
    assert!(!notes(&["a! b!", "b a!"]).contains("PRE wastes every action"));
}

#[test]
fn the_verdict_of_each_strategy_stands_in_the_notes_with_what_it_rests_on() {
    let harmed = ["a! b! c! d e"; 3];
    let pre = ["a b c d e", "a b c d f", "a b c d g"];
    let report = |n_recordings: usize, margins: retrace_score::Margins| {
        let recordings: Vec<_> = (0..n_recordings).map(|n| format!("r{n}")).collect();
        let boundaries = recordings.iter().map(|recording| {
            boundary(
                recording,
                9,
                &pre,
                [("control", unchanged(&pre)), ("tail", compacted(10, &harmed)), ("all", compacted(10, &pre))],
            )
        });
        let mut verification = verification(&["control", "tail", "all"], boundaries.collect());
        verification.recordings = recordings
            .iter()
            .map(|id| RecordingFacts { id: id.clone(), ..verification.recordings[0].clone() })
            .collect();
        let report = Report::new(Verification {
            judging: retrace_score::Judging { margins, ..retrace_score::Judging::default() },
            ..verification
        })
        .unwrap();
        View::new(&report).notes.join("\n")
    };
    let few = report(4, retrace_score::Margins::default());
    assert!(few.contains("`tail`: WORSE HERE, it does harm at these boundaries (wasted, p <0.001"), "{few}");
    assert!(few.contains("`all`: NOT SHOWN") && few.contains("4 recordings: p new cannot fall below 0.125"), "{few}");
    assert!(!few.contains("`control`: NOT SHOWN") && few.contains("nothing is called safe"), "{few}");
    let many = report(40, retrace_score::Margins { wasted: Some(1.0), stopped: Some(0.2) });
    assert!(many.contains("`tail`: WORSE, it does harm on recordings like these (wasted, p <0.001"), "{many}");
    assert!(many.contains("`all`: WITHIN MARGIN, its cost is below the margins"), "{many}");
    assert!(!many.contains("cannot fall below") && !many.contains("nothing is called safe"), "{many}");
}

/// The words of one note, or none.
fn note(verification: Verification, start: &str) -> Option<String> {
    View::new(&Report::new(verification).expect("its parts fit together"))
        .notes
        .into_iter()
        .find(|note| note.starts_with(start))
}

#[test]
fn what_was_spent_and_saved_is_told_in_dollars_where_prices_are_known() {
    let spend = |n_model_calls, input_tokens, cache_read_tokens, output_tokens, micros: u64| Spend {
        n_model_calls,
        input_tokens,
        output_tokens,
        cache_read_tokens,
        cache_write_tokens: None,
        dollars: Some(Dollars::from_nanos(1000 * micros)),
    };
    let priced = || {
        let tail = compacted(300, &["a b c d e", "a b c d e"]);
        let mut outcome =
            boundary("shop-1", 9, &["a b c d e", "a b c d e"], [("control", unchanged(&[])), ("tail", tail)]);
        // At $2, $0.50 and $10: 200 · 2 + 800 · 0.5 + 100 · 10, 300 · 2 + 100 · 0.5 + 50 · 10, 500 · 2 + 20 · 10.
        outcome.pre.iter_mut().for_each(|rollout| rollout.spend = spend(2, 1000, Some(800), 100, 1800));
        let tail = outcome.strategies.get_mut("tail").unwrap();
        tail.post.iter_mut().for_each(|rollout| rollout.spend = spend(2, 400, Some(100), 50, 1150));
        tail.spend = spend(1, 500, None, 20, 1200);
        let prices = Some(Prices { input: 2.0, output: 10.0, cache_read: Some(0.5), cache_write: None });
        Verification { prices, ..verification(&["control", "tail"], vec![outcome]) }
    };
    assert_eq!(
        note(priced(), "Tokens").unwrap(),
        "Tokens of the rollouts, as the model reported them: PRE 2,200 ($0.0036), `control` 0, `tail` 900 ($0.0023). \
         Tokens of the compactions: `tail` 520 in 1 model call ($0.0012). Read from a cache: 55% of all input tokens \
         (PRE 80%, `tail` 25%). In all $0.0071."
    );
    // 1,000 tokens were there and 300 are left: 700 · 2 and 700 · 0.5 millionths of a dollar.
    assert_eq!(
        note(priced(), "Saved").unwrap(),
        "Saved with each model call after a compaction, by the input tokens that are no longer sent: `tail` $0.0014 \
         ($0.00035 if cached)."
    );

    let mut unknown = priced();
    unknown.boundaries[0].pre[1].spend.dollars = None;
    let told = note(unknown, "Tokens").unwrap();
    assert!(told.contains("PRE 2,200, ") && told.ends_with("What all of it cost is not known."), "{told}");
    let mut unpriced = priced();
    unpriced.prices = None;
    assert_eq!(note(unpriced, "Saved"), None);
}
