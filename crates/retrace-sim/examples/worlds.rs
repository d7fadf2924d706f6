//! Records one run in a shop, prints what was done and answered, and then what is done when the login is forgotten.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;

use retrace_events::{Boundary, History, Trajectory};
use retrace_model::{Model, Prompt};
use retrace_sim::{Shop, Shopkeeper, World, record};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shop = Shop::with_pages(7, 2, 3);
    let agent = Shopkeeper::new();
    let recording = pollster::block_on(record(&shop, "shop-1", &agent, 20, 0))?;
    let trajectory = Arc::new(Trajectory::new(recording));
    for recorded in trajectory.actions() {
        println!("{}", recorded.action.signature());
        println!("    {}", recorded.result().text());
    }

    let header = &trajectory.recording().header;
    let boundary = Boundary::new(&trajectory, trajectory.resumable_points()[4].cut)?;
    let history = boundary.history();
    let last_round = History::new(history.iter().skip(history.len() - 2).cloned().collect::<Vec<_>>());
    for (name, history) in [("whole context", history), ("last round only", last_round)] {
        let tools = &header.tools;
        let prompt = Prompt { instructions: Some(&shop.instructions()), history: &history, tools, seed: 0 };
        let response = pollster::block_on(agent.respond(&prompt))?.response;
        let next: Vec<_> = response.tool_calls().map(|call| format!("{}{}", call.name, call.arguments)).collect();
        println!("{name}: next {}", next.join(", "));
    }
    Ok(())
}
