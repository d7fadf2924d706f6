//! A scripted model in the tool loop: it logs in, tries a wrong session, and answers.

#![expect(clippy::print_stdout, reason = "an example prints")]

use retrace_agent::{Budget, Run, ToolLoop};
use retrace_env::{FnTool, NoArguments, Toolbox, ToolboxError};
use retrace_events::{Event, History, ToolCall};
use retrace_model::{ScriptedModel, Step};

fn main() -> Result<(), ToolboxError> {
    let toolbox = Toolbox::builder()
        .tool(FnTool::new("login", "Opens a session.", |_: NoArguments| "session s-4821"))
        .tool(FnTool::new("stock", "Counts the stock.", |_: NoArguments| Err::<String, _>("no such session")))
        .build()?;
    let model = ScriptedModel::new([
        Step::from(vec![ToolCall::new("c1", "login", "{}"), ToolCall::new("c2", "stock", "{}")]),
        Step::from("I could not count the stock."),
    ]);
    let run = Run {
        history: History::from(vec![Event::request("How much rice is left?")]),
        instructions: Some("You run a shop."),
        model: &model,
        toolbox: &toolbox,
        budget: Budget::actions(5),
        seed: 0,
        observer: None,
    };
    let (rollout, _) = pollster::block_on(run.execute(&ToolLoop::default()));
    for action in &rollout.actions {
        println!("{} {:?}", action.signature(), action.outcome());
    }
    println!("ended: {}", rollout.end);
    Ok(())
}
