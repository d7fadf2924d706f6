//! Every strategy over histories of growing length: the time must grow no faster than they do.

use divan::{Bencher, counter::ItemsCount};
use retrace_events::{Event, History, Outcome, ToolCall, ToolResult};
use retrace_model::{ScriptedModel, Step};
use retrace_strategies::{AskModel, CompactContext, Strategy, Summarize, TailWindow};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

fn main() {
    divan::main();
}

/// A request and then rounds of one call each.
fn history(n_events: usize) -> History {
    let rounds = (0..n_events / 2).flat_map(|i| {
        let call = ToolCall::new(format!("c{i}"), "read", format!("{{\"path\":\"src/{i}.rs\"}}"));
        let result = ToolResult::text_result(&call, Outcome::Ok, "a line of text\n".repeat(10));
        [Event::calls([call]), Event::results([result])]
    });
    History::from([Event::request("Mend the tests.")].into_iter().chain(rounds).collect::<Vec<_>>())
}

#[divan::bench(args = SIZES)]
fn tail_window_half_of_n_events(bencher: Bencher, n_events: usize) {
    let (history, strategy) = (history(n_events), TailWindow::new(n_events / 2));
    bencher.counter(ItemsCount::new(n_events)).bench(|| {
        pollster::block_on(strategy.compact(&history, &mut CompactContext::without_model())).expect("no model is asked")
    });
}

#[divan::bench(args = SIZES)]
fn summarize_half_of_n_events(bencher: Bencher, n_events: usize) {
    let (history, strategy) = (history(n_events), Summarize::new(n_events / 2));
    bencher
        .counter(ItemsCount::new(n_events))
        .with_inputs(|| AskModel(ScriptedModel::new([Step::from("a summary")])))
        .bench_refs(|ask| {
            pollster::block_on(strategy.compact(&history, &mut CompactContext::new(ask, 0))).expect("the model answers")
        });
}

/// A window that starts inside one round of n calls, answered one event each.
#[divan::bench(args = SIZES)]
fn tail_window_inside_a_round_of_n_calls(bencher: Bencher, n_calls: usize) {
    let calls: Vec<_> = (0..n_calls).map(|i| ToolCall::new(format!("c{i}"), "read", "{}")).collect();
    let results = calls.iter().map(|call| Event::results([ToolResult::text_result(call, Outcome::Ok, "text")]));
    let events = [Event::calls(calls.clone())].into_iter().chain(results).chain([Event::request("go on")]);
    let (history, strategy) = (History::from(events.collect::<Vec<_>>()), TailWindow::new(n_calls / 2));
    bencher.counter(ItemsCount::new(n_calls)).bench(|| {
        pollster::block_on(strategy.compact(&history, &mut CompactContext::without_model())).expect("no model is asked")
    });
}
