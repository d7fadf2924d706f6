//! Agents.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use retrace_agent::{Budget, Run, ToolLoop};
use retrace_command::{CommandAgent, CommandError};
use retrace_env::{FnTool, NoArguments, Toolbox};
use retrace_events::{EndReason, Event, History, Rollout, ToolCall};
use retrace_model::{ScriptedModel, Step};
use serde_json::json;

use crate::{block_on, program};

/// Tools that end the test if two of them run at once though they may not.
fn toolbox(independent: bool) -> Toolbox {
    let n_running = Arc::new(AtomicUsize::new(0));
    let tools = ["add", "check"].map(|name| {
        let n_running = Arc::clone(&n_running);
        FnTool::new_async(name, "", move |_: NoArguments| {
            let n_running = Arc::clone(&n_running);
            async move {
                let is_alone = n_running.fetch_add(1, Ordering::SeqCst) == 0;
                tokio::task::yield_now().await;
                n_running.fetch_sub(1, Ordering::SeqCst);
                assert!(independent || is_alone, "two calls at once");
                "done"
            }
        })
    });
    Toolbox::builder().tools(tools).independent(independent).build().unwrap()
}

fn script() -> ScriptedModel {
    let calls = |names: &[&str]| -> Step {
        let calls = names.iter().enumerate().map(|(n, name)| ToolCall::new(format!("c{n}"), *name, "{}"));
        calls.collect::<Vec<_>>().into()
    };
    ScriptedModel::new([calls(&["add"]), calls(&["check", "nope", "add"]), calls(&["check"]), "done".into()])
}

async fn run(agent: &dyn retrace_agent::Agent, model: &ScriptedModel, budget: Budget) -> (Rollout, Option<History>) {
    let is_even = budget.max_actions.is_some_and(|limit| limit % 2 == 0);
    let (history, toolbox) = (History::from(vec![Event::request("go")]), toolbox(is_even));
    Run { history, instructions: None, model, toolbox: &toolbox, budget, seed: 3, observer: None }.execute(agent).await
}

#[test]
fn a_tool_loop_that_is_a_program_does_what_that_of_the_house_does() {
    block_on(async {
        let agent = CommandAgent::start(&program("loop", json!({}))).await.unwrap();
        for horizon in 1..=6 {
            let (model, ours) = (script(), script());
            let (rollout, history) = run(&agent, &model, Budget::actions(horizon)).await;
            let (expected, expected_history) = run(&ToolLoop::default(), &ours, Budget::actions(horizon)).await;
            assert_eq!(rollout, expected, "{horizon}");
            assert_eq!(history, expected_history, "{horizon}");
            assert_eq!(model.asked(), ours.asked(), "{horizon}");
        }
    });
}

#[test]
fn a_spent_budget_ends_the_run_and_not_the_program() {
    block_on(async {
        let agent = CommandAgent::start(&program("tireless", json!({}))).await.unwrap();
        let model = ScriptedModel::new(Vec::<Step>::new());
        for _ in 0..2 {
            let runs = (1..=4).map(|horizon| run(&agent, &model, Budget::actions(horizon)));
            for (horizon, (rollout, _)) in (1..).zip(join_all(runs).await) {
                assert_eq!((rollout.actions.len(), &rollout.end), (horizon, &EndReason::Budget));
                assert_eq!((rollout.n_answers as usize, rollout.spend.input_tokens), (horizon, 7 * horizon as u64));
            }
        }
    });
}

#[test]
fn a_tool_that_both_bring_is_an_error_before_anything_runs() {
    block_on(async {
        let agent = CommandAgent::start(&program("tireless", json!({"stops": true}))).await.unwrap();
        assert_eq!(agent.own_tools(), ["plan"]);
        assert!(agent.check_tools(["add", "check"]).is_ok());
        let error = agent.check_tools(["add", "plan"]).unwrap_err();
        assert!(matches!(&error, CommandError::TwoTools { tool, .. } if tool == "plan"), "{error}");
    });
}
