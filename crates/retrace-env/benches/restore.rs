//! What a restore costs with a replay and with a clone, and what a checked call costs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use divan::{Bencher, black_box};
use retrace_env::{Environment, FnTool, RecordedEnvironment, ReplayEnvironment, Toolbox, ToolboxBuilder};
use retrace_events::{Boundary, Event, Header, Outcome, Recording, ToolCall, ToolResult, Trajectory};

fn main() {
    divan::main();
}

#[derive(Clone, Default)]
struct Shop {
    stock: BTreeMap<u32, u32>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    item: u32,
    amount: Option<u32>,
}

fn tools(shop: &Arc<Mutex<Shop>>) -> ToolboxBuilder {
    let order = |shop: &mut Shop, order: Order| {
        let stock = shop.stock.entry(order.item).or_default();
        *stock += order.amount.unwrap_or(1);
        stock.to_string()
    };
    let look = |shop: &mut Shop, order: Order| shop.stock.get(&order.item).copied().unwrap_or(0).to_string();
    Toolbox::builder().tool(FnTool::on(shop, "order", "Orders.", order)).tool(FnTool::on(shop, "look", "Looks.", look))
}

/// The boundary before the last of 1,001 calls of a hundred items.
fn boundary() -> Boundary {
    let events = (0..1_001).flat_map(|n| {
        let call = ToolCall::new(format!("c{n}"), "order", format!(r#"{{"item":{},"amount":1}}"#, n % 100));
        let result = ToolResult::text_result(&call, Outcome::Ok, (n / 100 + 1).to_string());
        [Event::calls([call]), Event::results([result])]
    });
    let trajectory = Arc::new(Trajectory::new(Recording::new(Header::new("shop"), events)));
    Boundary::new(&trajectory, 2_000).expect("a round ends there")
}

fn bench_restore(bencher: Bencher, environment: &dyn Environment) {
    let boundary = boundary();
    pollster::block_on(environment.restore(&boundary)).expect("the recording was made in the same world");
    bencher.bench_local(|| pollster::block_on(environment.restore(black_box(&boundary))).is_ok());
}

#[divan::bench]
fn restore_1k_actions_by_replay(bencher: Bencher) {
    bench_restore(bencher, &ReplayEnvironment::new(|| tools(&Arc::default())));
}

#[divan::bench]
fn restore_1k_actions_by_clone(bencher: Bencher) {
    bench_restore(bencher, &ReplayEnvironment::cloned(Shop::default(), tools));
}

#[divan::bench]
fn restore_1k_actions_recorded(bencher: Bencher) {
    bench_restore(bencher, &RecordedEnvironment::new());
}

#[divan::bench(args = [r#"{"item":7,"amount":1}"#, r#"{"item":"7","amount":"1"}"#, r#"{"item":"x"}"#])]
fn call(bencher: Bencher, arguments: &str) {
    let toolbox = tools(&Arc::default()).build().expect("the tools are sound");
    bencher.bench_local(|| pollster::block_on(toolbox.call("look", black_box(arguments))).is_ok());
}
