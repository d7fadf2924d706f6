//! `init`, and what a user does next.

use std::fs;

use crate::program::{file, retrace_in};

#[test]
fn a_new_user_gets_from_nothing_to_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let retrace = |args: &[&str]| retrace_in(folder.path(), args);
    let error = retrace(&["verify"]).failed();
    assert!(error.contains("there is no configuration `retrace.toml`") && error.contains("retrace init"), "{error}");

    retrace(&["init"]).ok();
    let error = retrace(&["verify"]).failed();
    assert!(error.contains("recordings"), "{error}");

    retrace(&["import", &file("fixtures/openai_chat/list.json"), "-o", "recordings"]).ok();
    // Two rounds are too short for the defaults, and the report says so.
    let ended = retrace(&["verify"]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stdout.contains("actions"), "{}", ended.stdout);

    // What the user has written is not lost.
    fs::write(folder.path().join("retrace.toml"), "mine").unwrap();
    retrace(&["init"]).failed();
    assert_eq!(fs::read_to_string(folder.path().join("retrace.toml")).unwrap(), "mine");
}

#[test]
fn the_menu_lists_every_strategy_with_its_settings() {
    let said = retrace_in(std::env::temp_dir().as_path(), &["strategies"]).ok();
    for words in [
        "tail_window\n  does      keeps the last N events",
        "keep_pairs = 3",
        "known from pydantic-ai-harness",
        "tiers, target_tokens",
    ] {
        assert!(said.contains(words), "{words} is not in: {said}");
    }
    assert!(said.lines().all(|line| line.chars().count() <= 100));
    let json = retrace_in(std::env::temp_dir().as_path(), &["strategies", "--json"]).json();
    assert_eq!(json.as_array().unwrap().len(), 12);
}
