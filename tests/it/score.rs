//! Rollouts that were collected elsewhere.

use std::fs;

use crate::program::retrace_in;

#[test]
fn rollouts_from_elsewhere_are_scored() {
    let folder = tempfile::tempdir().unwrap();
    let input = r#"{"horizon": 1, "boundaries": [{
        "recording": "mine", "cut": 3,
        "history": [{"name": "read", "arguments": "{\"n\": 1}"}],
        "pre": [{"actions": [{"name": "read", "arguments": "{\"n\": 2}", "blocked": false}]}],
        "strategies": {"tail": {"post": [{"actions": [{"name": "read", "arguments": "{\"n\":1}", "blocked": false}]}]}}
    }]}"#;
    fs::write(folder.path().join("rollouts.json"), input).unwrap();
    let report = retrace_in(folder.path(), &["score", "rollouts.json", "--json"]).json();
    let deltas = &report["strategies"]["tail"]["horizons"][0]["deltas"];
    assert_eq!(deltas["refetch"]["mean"]["exact"], "1");
    assert_eq!(deltas["blocked"]["mean"]["exact"], "0");

    fs::write(folder.path().join("rollouts.json"), input.replace("\"pre\"", "\"prae\"")).unwrap();
    let error = retrace_in(folder.path(), &["score", "rollouts.json"]).failed();
    assert!(error.contains("boundaries[0]") && error.contains("prae") && error.contains("hint: "), "{error}");
}
