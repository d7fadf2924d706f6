//! An agent whose history is compacted as it grows: in the loop of the house, and in a loop of one's own.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;

use retrace_agent::{Budget, Run, ToolLoop};
use retrace_env::{FnTool, NoArguments, Toolbox};
use retrace_events::{Event, History, ToolCall};
use retrace_model::{Model, Prompt, ScriptedModel, Step};
use retrace_strategies::{CompactContext, Compactor, Outcome, Sizes, SlidingWindow};

fn main() -> Result<(), Box<dyn Error>> {
    let toolbox = Toolbox::builder().tool(FnTool::new("page", "Turns the page.", |_: NoArguments| "words ".repeat(40)));
    let toolbox = toolbox.build()?;
    let window = SlidingWindow { max_tokens: Some(200), keep_messages: 4, ..SlidingWindow::default() };
    let compactor = Compactor::new(Arc::new(window));

    let model = reader();
    let run = Run {
        history: History::from(vec![Event::request("Read the book.")]),
        instructions: None,
        model: &model,
        toolbox: &toolbox,
        budget: Budget::default(),
        seed: 0,
        observer: None,
    };
    let (rollout, _) = pollster::block_on(run.execute(&ToolLoop::compacting(compactor.clone())));
    let lengths: Vec<_> = model.asked().iter().map(|asked| asked.events.len()).collect();
    println!("ended: {}; events of each request: {lengths:?}", rollout.end);

    pollster::block_on(own_loop(compactor, &toolbox))
}

/// The same in a loop of one's own: one call before each request. Without a model to ask here, a strategy that wants one
/// would fail, and the loop go on with its history as it is.
async fn own_loop(mut compactor: Compactor, toolbox: &Toolbox) -> Result<(), Box<dyn Error>> {
    let model = reader();
    let mut history = History::from(vec![Event::request("Read the book.")]);
    loop {
        let mut cx = CompactContext::without_model();
        match compactor.before_request(&mut history, &mut cx).await.outcome {
            Outcome::Compacted { before } => println!("{:?}", Sizes::of(&before, &history, cx.counter)),
            Outcome::Failed(error) => println!("not compacted: {error}"),
            _ => {}
        }
        let prompt = Prompt { instructions: None, history: &history, tools: toolbox.specs(), seed: 0 };
        let response = model.respond(&prompt).await?.response;
        let calls: Vec<_> = response.tool_calls().cloned().collect();
        history.push(Event::Response(response));
        if calls.is_empty() {
            return Ok(());
        }
        let mut results = Vec::new();
        for call in &calls {
            results.push(toolbox.call(&call.name, &call.arguments).await?.into_result(call));
        }
        history.push(Event::results(results));
    }
}

/// A model that turns six pages.
fn reader() -> ScriptedModel {
    let pages = (1..=6).map(|n| Step::from(vec![ToolCall::new(format!("c{n}"), "page", "{}")]));
    ScriptedModel::new(pages.chain([Step::from("It was a long book.")]))
}
