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

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Tags {
    tags: Vec<String>,
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

/// The boundary after so many calls of a hundred items, and before one more.
fn boundary(n_calls: usize) -> Boundary {
    let events = (0..=n_calls).flat_map(|n| {
        let call = ToolCall::new(format!("c{n}"), "order", format!(r#"{{"item":{},"amount":1}}"#, n % 100));
        let result = ToolResult::text_result(&call, Outcome::Ok, (n / 100 + 1).to_string());
        [Event::calls([call]), Event::results([result])]
    });
    let trajectory = Arc::new(Trajectory::new(Recording::new(Header::new("shop"), events)));
    Boundary::new(&trajectory, 2 * n_calls).expect("a round ends there")
}

fn bench_restore(bencher: Bencher, n_calls: usize, environment: &dyn Environment) {
    let boundary = boundary(n_calls);
    pollster::block_on(environment.restore(&boundary)).expect("the recording was made in the same world");
    bencher.bench_local(|| pollster::block_on(environment.restore(black_box(&boundary))).is_ok());
}

#[divan::bench]
fn restore_1k_actions_by_replay(bencher: Bencher) {
    bench_restore(bencher, 1_000, &ReplayEnvironment::new(|| tools(&Arc::default())));
}

#[divan::bench]
fn restore_1k_actions_by_clone(bencher: Bencher) {
    bench_restore(bencher, 1_000, &ReplayEnvironment::cloned(Shop::default(), tools));
}

#[divan::bench]
fn restore_10k_actions_by_clone(bencher: Bencher) {
    bench_restore(bencher, 10_000, &ReplayEnvironment::cloned(Shop::default(), tools));
}

/// What a factory of many tools costs, beside a replay of almost nothing.
#[divan::bench]
fn restore_1_action_with_20_tools(bencher: Bencher) {
    let factory = || {
        let more = (2..20)
            .map(|n| FnTool::new(format!("tool_{n}"), "Orders elsewhere.", |order: Order| order.item.to_string()));
        tools(&Arc::default()).tools(more)
    };
    bench_restore(bencher, 1, &ReplayEnvironment::new(factory));
}

#[divan::bench]
fn restore_1k_actions_recorded(bencher: Bencher) {
    bench_restore(bencher, 1_000, &RecordedEnvironment::new());
}

#[divan::bench(args = [r#"{"item":7,"amount":1}"#, r#"{"item":"7","amount":"1"}"#, r#"{"item":"x"}"#])]
fn call(bencher: Bencher, arguments: &str) {
    let toolbox = tools(&Arc::default()).build().expect("the tools are sound");
    bencher.bench_local(|| pollster::block_on(toolbox.call("look", black_box(arguments))).is_ok());
}

/// Every number is spelled out as it was written, since the schema wants strings.
#[divan::bench]
fn call_with_1k_numbers_for_strings(bencher: Bencher) {
    let tool = FnTool::new("tag", "Tags.", |tags: Tags| tags.tags.len().to_string());
    let toolbox = Toolbox::builder().tool(tool).build().expect("the tools are sound");
    let arguments = format!(r#"{{"tags":[{}]}}"#, vec!["1.50"; 1_000].join(","));
    bencher.bench_local(|| pollster::block_on(toolbox.call("tag", black_box(&arguments))).is_ok());
}
