//! What later calls needed and a strategy did not keep, as the program tells it.

use std::fs;

use serde_json::{Value, json};

use crate::program::{file, retrace_in};

/// A run whose first result has the session that its last calls need.
fn shop() -> String {
    let mut lines = vec![
        json!({"type": "recording", "version": 1, "id": "shop-1"}),
        json!({"type": "request", "content": "Keep the shop in stock."}),
    ];
    let mut round = |id: usize, tool: &str, arguments: Value, result: &str| {
        let id = format!("c{id}");
        let call = json!({"type": "tool_call", "id": id, "name": tool, "arguments": arguments.to_string()});
        lines.push(json!({"type": "response", "content": [call]}));
        let result = json!({"call_id": id, "name": tool, "content": result, "outcome": "ok"});
        lines.push(json!({"type": "tool_results", "results": [result]}));
    };
    round(0, "login", json!({}), r#"{"session": "sess_42"}"#);
    (1..6).for_each(|id| round(id, "list", json!({"page": id}), "apples, pears"));
    (6..8).for_each(|id| round(id, "stock", json!({"session": "sess_42", "item": "apples"}), "3"));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

const STRATEGIES: &str = r#"
min_prefix = 4
[agent]
model = "sim:wander"
[strategies.tail]
kind = "tail_window"
target = 4
[strategies.all]
kind = "identity"
[strategies.summary]
kind = "summarize"
target = 2
"#;

#[test]
fn a_session_that_a_window_drops_is_named_with_where_it_stood_and_what_needed_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run.jsonl"), shop()).unwrap();
    fs::write(folder.path().join("retrace.toml"), STRATEGIES).unwrap();
    let audit =
        |args: &[&str]| retrace_in(folder.path(), &[&["audit", "run.jsonl", "-c", "retrace.toml"], args].concat());

    let report = audit(&["--json"]).json();
    assert_eq!((&report["boundaries"], &report["ranking"]), (&json!(1), &json!(["all", "tail"])));
    let [tail, all, summary] = ["tail", "all", "summary"].map(|name| &report["strategies"][name]);
    assert_eq!((&all["lost"], &all["kept"], &all["needed"]), (&json!(0), &json!(1.0), &tail["needed"]));
    assert_eq!((&summary["asks_a_model"], &summary["boundaries"]), (&json!(1), &json!([])));
    let session = json!({
        "value": "sess_42",
        "stood_in": {"event": 2, "kind": "tool_results", "tool": "login"},
        "needed_by": {"event": 13, "tool": "stock", "argument": "/session"},
    });
    assert_eq!((&tail["lost"], &tail["boundaries"][0]["lost"]), (&json!(1), &json!([session])));

    let text = audit(&[]).ok();
    assert!(text.contains("1. all") && text.contains("2. tail"), "{text}");
    assert!(text.contains("skipped: asks a model at 1 of 1 boundary"), "{text}");
    assert!(text.contains("`sess_42` stood in event 2 (a result of login), needed by stock"), "{text}");
    assert!(text.contains("A hint, not a verdict"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn inspect_tells_how_much_of_a_prompt_cache_survives() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run.jsonl"), shop()).unwrap();
    fs::write(folder.path().join("retrace.toml"), STRATEGIES).unwrap();
    let inspect =
        |args: &[&str]| retrace_in(folder.path(), &[&["inspect", "run.jsonl", "-c", "retrace.toml"], args].concat());
    let report = inspect(&["--json"]).json();
    let cache = |name: &str| report["strategies"][name]["cache_kept"].clone();
    assert_eq!([cache("all"), cache("tail"), cache("summary")], [json!(1.0), json!(0.0), Value::Null]);
    let at = |name: &str| report["strategies"][name]["at"][0].clone();
    let sum = |at: &Value| ["kept", "dropped", "blanked"].map(|key| at[key].as_u64().unwrap()).iter().sum::<u64>();
    let (all, tail) = (at("all"), at("tail"));
    assert_eq!((&tail["cut"], &tail["first_changed"], &all["first_changed"]), (&json!(9), &json!(0), &Value::Null));
    assert!(tail["dropped"].as_u64() > Some(0) && sum(&tail).abs_diff(sum(&all)) <= 1, "{tail} {all}");
    assert!(at("summary")["question_tokens"].as_u64() > Some(0), "{report}");
    assert!(report["strategies"]["tail"].get("chain").is_none(), "{report}");
    let chained = inspect(&["--chain", "--json"]).json();
    let link = &chained["strategies"]["tail"]["chain"][0];
    assert!(link["after"].as_u64() > Some(0) && link["after"].as_u64() < link["raw"].as_u64(), "{chained}");
    let said = inspect(&["--chain"]).ok();
    assert!(
        said.contains("tail, chained, in tokens")
            && said.contains("no model was asked: each answer is taken to have 2000 characters"),
        "{said}"
    );
    let listed = inspect(&["--strategies"]).ok();
    assert!(listed.contains("tail, in tokens") && listed.contains("asks   a model"), "{listed}");
    assert!(listed.lines().all(|line| line.chars().count() <= 100), "{listed}");
    let text = inspect(&[]).ok();
    assert!(
        !text.contains("in tokens") && text.contains("cache kept 0%") && text.contains("cache kept 100%"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn real_runs_are_audited_without_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let runs = file("samples/tau-bench/gpt-4o-airline-10-longest.json");
    retrace_in(folder.path(), &["import", &runs, "-o", "recordings/"]).ok();
    let report = retrace_in(folder.path(), &["audit", "recordings", "--json"]).json();
    let text = retrace_in(folder.path(), &["audit", "recordings"]).ok();
    let lost = |name: &str| report["strategies"][name]["lost"].as_u64().unwrap();
    assert!(lost("tail") > 0 && lost("clear") > 0, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}
