//! Exit codes where a margin is given, and the looks at a report.

use std::fs;

use crate::program::{retrace, retrace_in};

/// Rollouts at one boundary of so many recordings, each with `post` wasted actions of five after, and none before.
fn rollouts(n_recordings: usize, post: &[usize]) -> String {
    let rollout = |number: usize, wasted: usize| {
        let actions = (0..5).map(|i| {
            let blocked = i < wasted;
            format!(r#"{{"name": "f", "arguments": {{"n": {i}, "of": {number}}}, "blocked": {blocked}}}"#)
        });
        format!(r#"{{"actions": [{}]}}"#, actions.collect::<Vec<_>>().join(","))
    };
    let arm = |counts: &[usize]| {
        let rollouts = counts.iter().enumerate().map(|(number, &wasted)| rollout(number, wasted));
        rollouts.collect::<Vec<_>>().join(",")
    };
    let boundary = |recording: usize| {
        let (pre, post) = (arm(&vec![0; post.len()]), arm(post));
        format!(
            r#"{{"recording": "r{recording}", "cut": 3, "history": [], "pre": [{pre}],
                "strategies": {{"control": {{"unchanged": true, "post": [{pre}]}}, "tail": {{"post": [{post}]}}}}}}"#
        )
    };
    let boundaries: Vec<_> = (0..n_recordings).map(boundary).collect();
    format!(r#"{{"horizon": 5, "boundaries": [{}]}}"#, boundaries.join(","))
}

#[test]
fn a_margin_makes_the_exit_code_a_gate() {
    let folder = tempfile::tempdir().unwrap();
    let code = |n_recordings: usize, post: &[usize], margin: &[&str]| {
        fs::write(folder.path().join("rollouts.json"), rollouts(n_recordings, post)).unwrap();
        retrace_in(folder.path(), &[&["score", "rollouts.json"], margin].concat()).code
    };
    let margin = ["--margin", "wasted=1,stopped=0.5"];
    assert_eq!(code(8, &[3, 2, 3], &[]), 0, "without a margin verdicts are not judged");
    assert_eq!(code(8, &[3, 2, 3], &margin), 1, "WORSE");
    assert_eq!(code(3, &[3, 2, 3], &margin), 1, "WORSE HERE");
    assert_eq!(code(3, &[0, 0, 0], &margin), 3, "NOT SHOWN");
    assert_eq!(code(30, &[0, 0, 0], &margin), 0, "WITHIN MARGIN");
    assert_eq!(code(30, &[0, 0, 0], &["--margin", "wasted=1"]), 3, "one channel without a margin claims nothing");
    assert_eq!(code(30, &[], &margin), 2, "NOT SCORED");
    assert_eq!(code(3, &[0, 0, 0], &["--margin", "wasted=5"]), 2, "a margin that nothing can exceed");
    assert_eq!(code(3, &[0, 0, 0], &["--margin", "harm=1"]), 2, "no such channel");
}

#[test]
fn a_control_that_differs_from_itself_fails_every_gate_and_is_told_of_once() {
    let folder = tempfile::tempdir().unwrap();
    // The control wastes what the other would.
    let input = rollouts(8, &[3, 2, 3]).replace("\"tail\"", "\"other\"").replace("\"control\"", "\"tail\"");
    let input = input
        .replace("\"other\": {", "\"control\": {\"unchanged\": true, ")
        .replace("\"tail\": {\"unchanged\": true, ", "\"tail\": {");
    fs::write(folder.path().join("rollouts.json"), input).unwrap();
    let ended = retrace_in(folder.path(), &["score", "rollouts.json", "--margin", "wasted=1,stopped=0.5"]);
    assert_eq!(
        (ended.code, ended.stdout.matches("no number here can be relied on").count()),
        (2, 1),
        "{}",
        ended.stdout
    );
    let ended = retrace_in(folder.path(), &["score", "rollouts.json"]);
    assert_eq!(ended.code, 0, "without a margin verdicts are not judged");
}

#[test]
fn rules_that_do_not_go_together_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (rules, said) in [
        ("stop_early = true\nunit = \"task\"", "the unit is the task"),
        ("stop_early = true\npooled_baseline = true", "the baseline is pooled"),
        ("unit = \"run\"", "unknown variant `run`, expected `recording` or `task`"),
        ("star = true", "unknown field `star`"),
    ] {
        let config = format!("[verdict]\n{rules}\n[agent]\nmodel = \"sim:wander\"\n");
        fs::write(folder.path().join("retrace.toml"), config).unwrap();
        let error = retrace_in(folder.path(), &["verify"]).failed();
        assert!(error.contains(said) && error.contains("hint: "), "{error}");
    }
}

#[test]
fn a_report_is_looked_at_in_other_ways() {
    let [verdicts, here, reference] =
        [&["demo"][..], &["demo", "--scope", "here"], &["demo", "--style", "reference"]].map(|args| retrace(args).ok());
    assert!(verdicts.contains("WORSE HERE") && verdicts.contains("The same against `control`"), "{verdicts}");
    assert!(here.contains("WORSE HERE") && here.contains("would settle at"), "{here}");
    assert!(reference.contains("bootstrap intervals") && !reference.contains("WORSE"), "{reference}");
    assert!(reference.contains("]*"), "a star: {reference}");
    let both = retrace(&["demo", "--style", "reference", "--scope", "here"]).failed();
    assert!(both.contains("has no effect"), "{both}");
    assert!(retrace(&["demo", "--style", "bayes"]).failed().contains("possible values: verdict, reference"));
}
