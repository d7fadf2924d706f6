//! One strategy applied to a recording, and what became of each event.

use std::fs;

use crate::program::{file, retrace_in};

const TAIL: &str = r#"{"kind": "tail_window", "target": 3}"#;

const CONFIG: &str = r#"
[agent]
model = "sim:shopkeeper"

[strategies.short]
kind = "tail_window"
target = 3

[strategies.summary]
kind = "summarize"
target = 3
"#;

/// A folder with `tiny.jsonl` and a configuration.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(file("fixtures/recordings/tiny.jsonl"), folder.path().join("tiny.jsonl")).unwrap();
    fs::write(folder.path().join("retrace.toml"), CONFIG).unwrap();
    folder
}

#[test]
fn what_a_strategy_keeps_is_a_recording_however_the_strategy_is_named() {
    let folder = folder();
    let compact = |strategy: &str| {
        retrace_in(folder.path(), &["compact", "tiny.jsonl", "-c", "retrace.toml", "--strategy", strategy]).ok()
    };
    let kept = compact("short");
    assert_eq!(kept, compact(TAIL));
    assert_eq!(kept, compact(r#"{ kind = "tail_window", target = 3 }"#));
    assert_eq!(kept, compact("kind = 'tail_window'\ntarget = 3"));
    // The header, the pinned task, and three events.
    assert_eq!(kept.lines().count(), 5);
    assert!(kept.contains(r#""id":"tiny-1-compacted""#) && kept.contains(r#""x_ticket":7"#), "{kept}");

    let written = retrace_in(folder.path(), &["compact", "tiny.jsonl", "-s", TAIL, "--output", "kept.jsonl"]).ok();
    assert!(written.contains("8 events, 4 now") && written.contains("written to kept.jsonl"), "{written}");
    assert_eq!(fs::read_to_string(folder.path().join("kept.jsonl")).unwrap(), kept);
    // It is a recording like any other, and is never overwritten.
    retrace_in(folder.path(), &["inspect", "kept.jsonl"]).ok();
    let error = retrace_in(folder.path(), &["compact", "tiny.jsonl", "-s", "identity", "-o", "kept.jsonl"]).failed();
    assert!(error.contains("`kept.jsonl` is there already"), "{error}");
    assert_eq!(fs::read_to_string(folder.path().join("kept.jsonl")).unwrap(), kept);
}

#[test]
fn a_diff_says_what_became_of_each_event() {
    let folder = folder();
    let diff = |strategy: &str| {
        let said = retrace_in(folder.path(), &["compact", "tiny.jsonl", "--diff", "-s", strategy]).ok();
        let fates = said.lines().skip(1).map(|line| line.split_whitespace().next().unwrap_or("").to_owned());
        (fates.collect::<Vec<_>>(), said)
    };
    let (fates, said) = diff(TAIL);
    let wanted = ["made", "dropped", "dropped", "dropped", "dropped", "dropped", "kept", "kept", "kept", "8"];
    assert_eq!(sorted(&fates), sorted(&wanted), "{said}");
    assert!(said.contains("8 events, 4 now"), "{said}");
    let (fates, said) = diff(r#"{"kind": "clear_tool_results", "max_messages": 1, "keep_pairs": 1}"#);
    assert_eq!(fates, ["kept", "kept", "blanked", "kept", "blanked", "kept", "kept", "kept", "8"], "{said}");
    let (fates, said) = diff("identity");
    assert!(fates[..8].iter().all(|fate| fate == "kept"), "{said}");
}

fn sorted<T: AsRef<str>>(fates: &[T]) -> Vec<&str> {
    let mut fates: Vec<_> = fates.iter().map(AsRef::as_ref).collect();
    fates.sort_unstable();
    fates
}

#[test]
fn a_summary_wants_a_model_and_gets_the_one_that_is_configured() {
    let folder = folder();
    let summarize = r#"{"kind": "summarize", "target": 3}"#;
    let error = retrace_in(folder.path(), &["compact", "tiny.jsonl", "-s", summarize]).failed();
    assert!(error.contains("no model is asked here") && error.contains("`--model`"), "{error}");
    for args in [&["-s", "summary", "-c", "retrace.toml"][..], &["-s", summarize, "--model", "sim:shopkeeper"]] {
        let kept = retrace_in(folder.path(), &[&["compact", "tiny.jsonl", "--focus", "the tea"], args].concat()).ok();
        assert!(kept.contains(r#""type":"summary""#) && kept.contains(r#""kind":"compaction""#), "{kept}");
    }
}

#[test]
fn a_strategy_that_is_none_is_refused_with_what_there_is() {
    let folder = folder();
    let refused = |strategy: &str| {
        retrace_in(folder.path(), &["compact", "tiny.jsonl", "-c", "retrace.toml", "-s", strategy]).failed()
    };
    let error = refused("shrot");
    assert!(error.contains("there is no strategy `shrot`") && error.contains("`short`"), "{error}");
    let error = refused(r#"{"kind": "tail_window", "target": "x"}"#);
    assert!(error.contains("target"), "{error}");
    let error = refused(r#"{"kind": "tail_window", "tagret": 3}"#);
    assert!(error.contains("tagret"), "{error}");
    let error = refused("{");
    assert!(error.contains("the strategy cannot be read"), "{error}");
}
