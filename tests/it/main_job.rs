//! The main job on real runs of a real agent, from a transcript to a report.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{file, retrace_in, root};

const AIRLINE: &str = "samples/tau-bench/gpt-4o-airline-10-longest.json";

/// A folder with the recordings of the airline, as the example expects them.
fn imported() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let said = retrace_in(folder.path(), &["import", &file(AIRLINE), "-o", "recordings/"]).ok();
    assert_eq!(said, "10 recordings with 190 actions written to recordings/\n");
    fs::create_dir(folder.path().join("examples")).unwrap();
    fs::copy(root().join("examples/airline.toml"), folder.path().join("examples/airline.toml")).unwrap();
    folder
}

fn lengths(folder: &Path) -> Vec<(String, u64)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            (entry.as_ref().unwrap().file_name().into_string().unwrap(), entry.unwrap().metadata().unwrap().len())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn a_transcript_becomes_recordings_and_a_second_import_changes_nothing() {
    let folder = imported();
    let recordings = folder.path().join("recordings");
    let before = lengths(&recordings);
    assert_eq!(before.len(), 10);
    let said = retrace_in(folder.path(), &["import", &file(AIRLINE), "-o", "recordings/"]).ok();
    assert_eq!(said, "0 recordings with 0 actions written to recordings/; 10 recordings were there already\n");
    assert_eq!(lengths(&recordings), before);

    // A recording that was edited is not lost.
    let edited = recordings.join(&before[0].0);
    fs::write(&edited, "mine").unwrap();
    let error = retrace_in(folder.path(), &["import", &file(AIRLINE), "-o", "recordings/"]).failed();
    assert!(error.contains("is there already and holds something else"), "{error}");
    assert_eq!(fs::read_to_string(&edited).unwrap(), "mine");
    let retrace = |args: &[&str]| retrace_in(folder.path(), args);
    let said = retrace(&["import", &file(AIRLINE), "-o", "recordings/", "--force"]).ok();
    assert!(said.starts_with("1 recording with "), "{said}");
    assert_eq!(lengths(&recordings), before);
}

#[test]
fn an_import_that_cannot_write_all_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let recordings = folder.path().join("recordings");
    fs::create_dir(&recordings).unwrap();
    fs::write(recordings.join("gpt-4o-airline-10-longest-task9-trial2.jsonl"), "mine").unwrap();
    let error = retrace_in(folder.path(), &["import", &file(AIRLINE), "-o", "recordings"]).failed();
    assert!(error.contains("is there already"), "{error}");
    assert_eq!(lengths(&recordings).len(), 1);

    let again = file("samples/../samples/tau-bench/gpt-4o-airline-10-longest.json");
    let error = retrace_in(folder.path(), &["import", &file(AIRLINE), &again, "-o", "other"]).failed();
    assert!(error.contains("would both be written"), "{error}");
    assert!(!folder.path().join("other").exists());
}

#[test]
fn what_is_no_chat_transcript_is_told_from_one() {
    let folder = tempfile::tempdir().unwrap();
    let import = |path: &str| retrace_in(folder.path(), &["import", &file(path), "-o", "recordings"]).failed();
    let error = import("fixtures/recordings/tiny.jsonl");
    assert!(error.contains("is a recording already"), "{error}");
    let error = import("vectors/CHECKSUMS");
    assert!(error.contains("hint: a transcript is one JSON value"), "{error}");
}

#[test]
fn recordings_are_inspected_with_a_rule_for_what_failed() {
    let folder = imported();
    let inspect = |args: &[&str]| retrace_in(folder.path(), &[&["inspect", "recordings/"], args].concat());
    let facts = inspect(&["--json"]).json();
    assert_eq!(facts["recordings"].as_array().unwrap().len(), 10);
    let actions: u64 = facts["recordings"].as_array().unwrap().iter().map(|r| r["actions"].as_u64().unwrap()).sum();
    assert_eq!((actions, &facts["total"]["actions"]), (190, &Value::from(190)));
    assert_eq!((&facts["total"]["blocked"], &facts["total"]["repeats"]), (&Value::from(0), &Value::from(17)));
    assert_eq!(facts["total"]["undecided"], 190);

    let facts = inspect(&["--json", "--failed-if", "prefix:Error", "--cuts"]).json();
    assert_eq!((&facts["total"]["blocked"], &facts["total"]["undecided"]), (&Value::from(24), &Value::from(0)));
    let first = &facts["recordings"][0];
    assert_eq!(first["cuts"].as_array().unwrap().len() as u64, first["rounds"].as_u64().unwrap());
    let kept = facts["strategies"]["tail"]["kept"].as_f64().unwrap();
    assert!(0.0 < kept && kept < 1.0, "{kept}");
    let summary = |what: &str| facts["strategies"]["summary"][what].as_u64().unwrap();
    assert_eq!(Value::from(summary("asks_a_model") + summary("unchanged")), facts["total"]["boundaries"]);

    let text = inspect(&["--failed-if", "prefix:Error"]).ok();
    assert!(text.contains("10 recordings") && text.contains("190"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn three_strategies_are_verified_on_the_record_and_enough_rollouts_stay_on_it() {
    let folder = imported();
    let report = retrace_in(folder.path(), &["verify", "-c", "examples/airline.toml", "--json"]).json();
    assert_eq!(report["horizon"], 2);
    let names: Vec<_> = report["strategies"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["control", "tail", "summary"]);
    for arm in arms(&report) {
        let (scored, ran) = share_scored(&report, &arm);
        assert!(ran > 0 && scored * 10 >= ran * 4, "{arm:?}: {scored} of {ran} rollouts were scored");
    }
    let again = retrace_in(folder.path(), &["verify", "-c", "examples/airline.toml", "--json", "--concurrency", "1"]);
    assert_eq!(again.json(), report);

    let text = retrace_in(folder.path(), &["verify", "-c", "examples/airline.toml"]).ok();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(
        text.contains("answered from the recording itself"),
        "the report says what the recorded environment cannot do: {text}"
    );
}

/// PRE, and POST of every strategy.
fn arms(report: &Value) -> Vec<Option<String>> {
    let strategies = report["strategies"].as_object().unwrap().keys().cloned().map(Some);
    [None].into_iter().chain(strategies).collect()
}

/// How many rollouts of an arm finished as many actions as the horizon asks for, or ended their turn, and how many ran.
fn share_scored(report: &Value, arm: &Option<String>) -> (usize, usize) {
    let horizon = report["horizon"].as_u64().unwrap() as usize;
    let (mut scored, mut ran) = (0, 0);
    for boundary in report["boundaries"].as_array().unwrap() {
        let rollouts = match arm {
            None => &boundary["pre"],
            Some(strategy) => &boundary["strategies"][strategy]["post"],
        };
        for rollout in rollouts.as_array().unwrap() {
            ran += 1;
            let finished = rollout["actions"].as_array().unwrap().len() >= horizon;
            scored += usize::from(finished || matches!(rollout["end"].as_str(), Some("budget" | "answer")));
        }
    }
    (scored, ran)
}
