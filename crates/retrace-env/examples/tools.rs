//! Tools made from closures: a call that works, one that is blocked, one that spells its arguments oddly, and a world
//! that is restored from a recording.
//!
//!     cargo run -p retrace-env --example tools

#![expect(clippy::print_stdout, reason = "it shows what comes back")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

use retrace_env::{Environment, FnTool, NoArguments, ReplayEnvironment, Toolbox, ToolboxBuilder, check_rebuilds};
use retrace_events::{Boundary, Event, Header, Recording, ToolCall, Trajectory};
use schemars::JsonSchema;
use serde::Deserialize;

/// A shop where only one who has logged in may order.
#[derive(Clone, Default)]
struct Shop {
    session: Option<String>,
    stock: BTreeMap<String, u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The id that `login` gave.
    session: String,
    item: String,
    amount: u32,
}

#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("invalid session")]
    Session,
    #[error("an order of nothing")]
    Nothing,
}

fn tools(shop: &Arc<Mutex<Shop>>) -> ToolboxBuilder {
    Toolbox::builder()
        .tool(FnTool::on(shop, "login", "Opens a session.", |shop: &mut Shop, _: NoArguments| {
            shop.session.insert("s-4821".to_owned()).clone()
        }))
        .tool(FnTool::on(shop, "order", "Orders an item.", |shop: &mut Shop, order: Order| {
            if shop.session.as_ref() != Some(&order.session) {
                return Err(Refused::Session);
            }
            if order.amount == 0 {
                return Err(Refused::Nothing);
            }
            let stock = shop.stock.entry(order.item).or_default();
            *stock += order.amount;
            Ok(format!("{stock} in stock"))
        }))
}

fn main() -> Result<(), Box<dyn Error>> {
    pollster::block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let toolbox = tools(&Arc::default()).build()?;
    let calls = [
        ("order", r#"{"session":"s-1","item":"tea","amount":2}"#),
        ("login", ""),
        ("order", r#"{"session":"s-4821","item":"tea","amount":"2"}"#),
        ("order", r#"{"session":"s-4821","amount":"two"}"#),
        ("pay", "{}"),
    ];
    let mut events = vec![Event::request("Keep tea in stock.")];
    for (number, (name, arguments)) in calls.into_iter().enumerate() {
        let output = toolbox.call(name, arguments).await?;
        println!("{name}({arguments})\n  {:?}: {}", output.outcome, output.text());
        let call = ToolCall::new(format!("c{number}"), name, arguments);
        events.extend([Event::calls([call.clone()]), Event::results([output.into_result(&call)])]);
    }

    let trajectory = Arc::new(Trajectory::new(Recording::new(Header::new("shop-1"), events)));
    let boundary = Boundary::new(&trajectory, 7)?;
    let environment = ReplayEnvironment::cloned(Shop::default(), tools);
    let restored = environment.restore(&boundary).await?;
    let replay = &restored.replay;
    println!("\n{} of {} replayed calls answered as recorded", replay.n_same_text, replay.n_calls);
    let output = restored.toolbox.call("order", r#"{"session":"s-4821","item":"tea","amount":1}"#).await?;
    println!("the agent goes on: {}", output.text());
    println!("state shared by rollouts: {:?}", check_rebuilds(&environment, &boundary).await?);
    Ok(())
}
