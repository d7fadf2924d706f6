//! The code base: what is lost with the task and with the text of files.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use retrace_env::{Environment, Toolbox};
use retrace_events::{Boundary, History, Outcome, Recording, Rollout, Trajectory};
use retrace_sim::{CodeBase, Coder, World, record};
use retrace_strategies::{Summarize, TailWindow};

use crate::arms::{all_boundaries, compact, names, refetches, rollout};

fn recording(code: &CodeBase, agent: &Coder, seed: u64) -> Recording {
    pollster::block_on(record(code, "code", agent, 500, seed)).unwrap()
}

fn shared(code: CodeBase) -> (Arc<Mutex<CodeBase>>, Toolbox) {
    let code = Arc::new(Mutex::new(code));
    let toolbox = CodeBase::tools(&code).build().unwrap();
    (code, toolbox)
}

fn call(toolbox: &Toolbox, name: &str, arguments: &serde_json::Value) -> (Outcome, String) {
    let output = pollster::block_on(toolbox.call(name, &arguments.to_string())).unwrap();
    (output.outcome, output.text())
}

#[test]
fn an_edit_needs_the_version_that_only_a_read_shows() {
    let (code, toolbox) = shared(CodeBase::new(1));
    let path = code.lock().unwrap().to_change()[0].to_owned();
    let read = || call(&toolbox, "read_file", &serde_json::json!({"path": path})).1;
    let version = |text: &str| text.split(['\n', ' ']).nth(4).unwrap().to_owned();
    let edit = |version: &str, line: u64, text: &str| {
        let arguments = serde_json::json!({"path": path, "version": version, "line": line, "text": text});
        call(&toolbox, "edit_file", &arguments)
    };
    let first = version(&read());
    let stale = format!("version `v-0` of {path} is not the current one, read it again");
    assert_eq!(edit("v-0", 1, "x"), (Outcome::Error, stale));
    assert_eq!(edit(&first, 0, "x").0, Outcome::Error);
    assert_eq!(edit(&first, 99, "x").0, Outcome::Error);
    assert_eq!(edit(&first, 1, "x\ny"), (Outcome::Error, "one line is needed, not several".to_owned()));
    let before = read();
    let (outcome, text) = edit(&first, 1, "x");
    let second = version(&read());
    assert_eq!((outcome, text), (Outcome::Ok, format!("edited {path} line 1, now at version {second}")));
    assert_eq!(edit(&first, 1, "y").0, Outcome::Error);
    // The version is that of the text: with the old text comes the old version.
    let line = before.lines().nth(1).unwrap().strip_prefix("1: ").unwrap();
    assert_eq!(edit(&second, 1, line).0, Outcome::Ok);
    assert_eq!(read(), before);
}

proptest! {
    // Few, since each of them runs agents.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn with_the_whole_context_the_right_files_change_and_nothing_is_wasted(seed: u64, n_files in 1_usize..40) {
        let code = CodeBase::with_files(seed, n_files);
        let to_change: Vec<_> = code.to_change().into_iter().map(str::to_owned).collect();
        prop_assert!(!to_change.is_empty());
        let trajectory = Trajectory::new(recording(&code, &Coder::new(), seed));
        let before = code.clone();
        let (code, toolbox) = shared(code);
        let failing = call(&toolbox, "run_tests", &serde_json::json!({})).1;
        prop_assert!(failing.starts_with("tests failed"));
        let mut signatures = std::collections::HashSet::new();
        for recorded in trajectory.actions() {
            let action = &recorded.action;
            prop_assert!(!action.is_blocked());
            prop_assert!(signatures.insert(action.signature().clone()));
            pollster::block_on(toolbox.call(action.name(), action.arguments())).unwrap();
        }
        let last = trajectory.actions().last().unwrap();
        prop_assert_eq!(last.action.name(), "run_tests");
        prop_assert_eq!(last.result().text(), "tests passed");
        let code = code.lock().unwrap();
        prop_assert!(code.to_change().is_empty());
        let reads = trajectory.actions().iter().filter(|recorded| recorded.action.name() == "read_file").count();
        prop_assert_eq!(reads, n_files);
        let reading_rounds = trajectory.n_rounds() < trajectory.actions().len();
        prop_assert_eq!(reading_rounds, n_files > 1);
        for recorded in trajectory.actions() {
            let arguments: serde_json::Value = serde_json::from_str(recorded.action.arguments()).unwrap();
            if recorded.action.name() == "edit_file" {
                prop_assert!(to_change.iter().any(|path| arguments["path"] == **path));
            } else if let Some(path) = arguments["path"].as_str() {
                prop_assert_eq!(before.lines(path) == code.lines(path), !to_change.iter().any(|changed| changed == path));
            }
        }
    }

    #[test]
    fn a_replay_restores_every_boundary_word_for_word(seed: u64) {
        let code = CodeBase::new(seed);
        let environment = code.environment();
        for boundary in all_boundaries(recording(&code, &Coder::new().temperature(0.4), seed)) {
            let restored = pollster::block_on(environment.restore(&boundary)).unwrap();
            prop_assert_eq!(restored.replay.n_same_text, boundary.executed());
        }
    }

    #[test]
    fn a_summary_without_loss_costs_nothing(seed: u64, target in 1_usize..9) {
        let (code, agent) = (CodeBase::new(seed), Coder::new());
        let environment = code.environment();
        for boundary in all_boundaries(recording(&code, &agent, seed)) {
            let kept = compact(&Summarize::new(target), &boundary.history(), &agent, seed);
            let pre = rollout(&environment, &boundary, &boundary.history(), &agent, 5, seed);
            let post = rollout(&environment, &boundary, &kept, &agent, 5, seed);
            prop_assert_eq!(pre.actions, post.actions);
            prop_assert_eq!(pre.end, post.end);
        }
    }

    #[test]
    fn a_tail_without_the_task_stops_and_one_with_it_reads_again(seed: u64) {
        let (code, agent) = (CodeBase::new(seed), Coder::new());
        let environment = code.environment();
        let run = |boundary: &Boundary, history: &History| rollout(&environment, boundary, history, &agent, 5, seed);
        let tail = TailWindow::new(2);
        let raw = recording(&code, &agent, seed);
        for boundary in all_boundaries(raw.clone()).into_iter().skip(1) {
            let post = run(&boundary, &compact(&tail, &boundary.history(), &agent, seed));
            prop_assert_eq!(post.actions.len(), 0);
        }
        for boundary in all_boundaries(with_pinned_task(&raw)).into_iter().skip(1) {
            let post: Rollout = run(&boundary, &compact(&tail, &boundary.history(), &agent, seed));
            // The list of files is lost, so the files are listed and read again.
            prop_assert_eq!(names(&post)[0], "list_files");
            prop_assert!(refetches(&boundary, &post) > 0);
        }
    }
}

fn with_pinned_task(recording: &Recording) -> Recording {
    let events = recording.events.iter().map(|event| {
        let mut event = retrace_events::Event::clone(event);
        if let retrace_events::Event::Request(request) = &mut event {
            request.content.iter_mut().for_each(|part| part.marks.pinned = true);
        }
        event
    });
    Recording::new(recording.header.clone(), events)
}
