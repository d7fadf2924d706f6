//! Two strategies over one history, and what each keeps.

#![expect(clippy::print_stdout, reason = "an example prints")]

use retrace_events::{Event, History, Outcome, Part, Request, ToolCall, ToolResult};
use retrace_model::{ScriptedModel, Step};
use retrace_strategies::{AskModel, CompactContext, CompactError, Compacted, Strategy, Summarize, TailWindow};

fn main() -> Result<(), CompactError> {
    let task = vec![Part::text("Keep every item in stock."), Part::text("Never order twice.").pinned()];
    let mut events = vec![Event::Request(Request { content: task.into(), ..Request::default() })];
    for (id, name, text) in [("c1", "login", "session s-4821"), ("c2", "list", "tea, rice"), ("c3", "check", "rice: 0")]
    {
        let call = ToolCall::new(id, name, "{}");
        events.push(Event::calls([call.clone()]));
        events.push(Event::results([ToolResult::text_result(&call, Outcome::Ok, text)]));
    }
    let history = History::from(events);

    let model = AskModel(ScriptedModel::new([Step::from("Logged in as s-4821; tea and rice are on the shelf.")]));
    for strategy in [&TailWindow::new(2) as &dyn Strategy, &Summarize::new(2)] {
        println!("{}:", strategy.kind());
        match pollster::block_on(strategy.compact(&history, &mut CompactContext::new(&model, 0)))? {
            Compacted::Unchanged => println!("  nothing to do"),
            Compacted::Changed(kept) => kept.events().for_each(|event| println!("  {}", event.kind())),
        }
    }
    Ok(())
}
