//! Recorded text never reaches the terminal raw.

use std::fs;

use crate::program::retrace_in;

/// Clears the screen, sets the window's title, and turns the direction of writing.
const HOSTILE: &str = "\\u001b[2J\\u001b]0;mine\\u0007\\u202e";

#[test]
fn what_a_user_types_comes_back_without_effect() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["\u{1b}[31mno\u{202e}"][..],
        &["demo", "--seed", "\u{1b}[31m"],
        &["inspect", "x", "--failed-if", "regex:\u{1b}[31m("],
        &["inspect", "\u{1b}[31mx"],
        &["verify", "-c", "\u{1b}[31mx"],
    ] {
        let error = retrace_in(folder.path(), args).failed();
        let raw = error.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(raw, None, "{args:?} prints a control character: {error:?}");
    }
}

#[test]
fn what_a_recording_says_cannot_act_on_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let round = |i: usize| {
        format!(
            "{{\"type\":\"response\",\"content\":[{{\"type\":\"tool_call\",\"id\":\"c{i}\",\"name\":\"read{HOSTILE}\",\"arguments\":\"{{\\\"n\\\":{i}}}\"}}]}}\n\
             {{\"type\":\"tool_results\",\"results\":[{{\"call_id\":\"c{i}\",\"name\":\"read{HOSTILE}\",\"content\":\"{HOSTILE}\",\"outcome\":\"ok\"}}]}}\n"
        )
    };
    let rounds: String = (0..8).map(round).collect();
    let recording = format!(
        "{{\"type\":\"recording\",\"version\":1,\"id\":\"run{HOSTILE}\"}}\n{{\"type\":\"request\",\"content\":\"{HOSTILE}\"}}\n{rounds}"
    );
    fs::write(folder.path().join("run.jsonl"), &recording).unwrap();
    fs::write(folder.path().join("broken.jsonl"), recording.replace("\"ok\"", &format!("\"{HOSTILE}\""))).unwrap();
    let config = format!(
        "every = 1\n[agent]\nmodel = \"sim:wander\"\n[[recordings]]\nfiles = [\"run.jsonl\"]\nenvironment = \"recorded\"\n\
         [strategies.\"tail{HOSTILE}\"]\nkind = \"tail_window\"\ntarget = 2\n"
    );
    fs::write(folder.path().join("retrace.toml"), config).unwrap();
    for args in [
        &["inspect", "run.jsonl", "--cuts"][..],
        &["inspect", "run.jsonl", "--strategies", "--chain"],
        &["audit", "run.jsonl", "-c", "retrace.toml"],
        &["audit", "run.jsonl", "--json"],
        &["inspect", "run.jsonl", "--json"],
        &["inspect", "broken.jsonl"],
        &["verify"],
        &["verify", "--json"],
    ] {
        let ended = retrace_in(folder.path(), args);
        let said = ended.stdout + &ended.stderr;
        assert!(!said.is_empty());
        let raw = said.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(raw, None, "{args:?} prints a control character: {said:?}");
    }
}
