//! An agent that compacts its own history while it is recorded.

use std::fs;

use serde_json::Value;

use crate::program::{Ended, retrace_in};

const WANDER: &str = r#"
samples = 1
seed = 9
horizon = 3
[agent]
model = "sim:wander"
[record]
max_actions = 40
[[tasks]]
id = "round"
request = "Do the stock round."
environment = "sim:shop"
[[recordings]]
files = ["recordings"]
environment = "sim:shop"
[strategies.summary]
kind = "summarize"
target = 4
"#;

fn record(compaction: &str) -> (tempfile::TempDir, Ended) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("retrace.toml"), format!("{WANDER}\n[agent.compaction]\n{compaction}\n")).unwrap();
    let ended = retrace_in(folder.path(), &["record"]);
    (folder, ended)
}

#[test]
fn a_recording_is_raw_and_what_the_agent_did_to_its_context_is_no_action_of_it() {
    let (folder, ended) =
        record("strategy = \"summary\"\nmax_events = 12\non_request = { min_tokens = 1, max_per_run = 2 }");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let recording = fs::read_to_string(folder.path().join("recordings/round-1.jsonl")).unwrap();
    let lines: Vec<Value> = recording.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_compaction = |line: &&Value| line["type"] == "usage" && line["kind"] == "compaction";
    assert!(lines.iter().filter(is_compaction).count() > 3, "{recording}");
    let results: Vec<_> = lines.iter().filter_map(|line| line["results"].as_array()).flatten().collect();
    let (own, others): (Vec<_>, Vec<_>) = results.into_iter().partition(|result| result["own"] == true);
    assert_eq!(others.len(), 40);
    assert!(others.iter().all(|result| result["name"] != "compact_context"));
    let granted: Vec<_> = own.iter().map(|result| &result["outcome"]).filter(|outcome| *outcome == "ok").collect();
    assert!((1..=2).contains(&granted.len()) && own.len() > granted.len(), "{own:?}");

    // Nothing of it is executed again.
    let verified = retrace_in(folder.path(), &["verify"]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
    assert!(verified.stderr.contains("calls replayed with the same outcome"), "{}", verified.stderr);
    assert!(verified.stderr.contains("`[agent.compaction]` is for `retrace record`"), "{}", verified.stderr);
    assert!(
        verified.stderr.contains("round-1: calls of `compact_context`, tools of the recorded agent's own"),
        "{}",
        verified.stderr
    );
}

#[test]
fn what_cannot_compact_the_agents_history_is_said_before_anything_runs() {
    for (compaction, wanted) in [
        ("strategy = \"sumary\"", "names a strategy `sumary`"),
        ("strategy = { kind = \"sliding_window\" }", "`compaction`: `strategy`: `max_messages` is missing"),
        ("strategy = 3", "expected the name of a strategy"),
        ("strategy = \"summary\"\non_request = { min_tokens = 1 }", "`on_request`: missing field `max_per_run`"),
        ("strategy = { kind = \"summarize\", target = 2, model = \"nobody\" }", "there is no model `nobody`"),
    ] {
        let (folder, ended) = record(compaction);
        assert!(ended.code == 2 && ended.stderr.contains(wanted), "{}", ended.stderr);
        assert!(!folder.path().join("recordings").exists());
    }
}

#[test]
fn a_trigger_that_nothing_can_get_below_is_said_before_anything_runs() {
    let (_folder, ended) = record("strategy = { kind = \"sliding_window\", max_tokens = 50, keep_tokens = 60 }");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let alone = "the instructions, the tools and the request of `round-1` alone are above the trigger";
    let kept = "the strategy `agent.compaction`: `max_tokens` is 50, and at least 60 tokens stay";
    assert!(ended.stderr.contains(alone) && ended.stderr.contains(kept), "{}", ended.stderr);
    let (_folder, ended) = record("strategy = { kind = \"sliding_window\", max_tokens = 5000 }");
    assert!(!ended.stderr.contains("above the trigger"), "{}", ended.stderr);
}
