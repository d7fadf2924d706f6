//! What the loop itself costs for each model call, with a history of 1,000 events and with a short one: beside it the
//! same model, called without a loop.

use divan::{Bencher, counter::ItemsCount};
use retrace_agent::{Budget, Run, ToolLoop};
use retrace_env::{FnTool, NoArguments, Toolbox};
use retrace_events::{Event, History, PartBody, Response, ToolCall};
use retrace_model::{Answer, BoxFuture, Model, ModelError, Prompt};

const HISTORIES: [usize; 3] = [10, 1_000, 100_000];
const N_CALLS: usize = 50;

fn main() {
    divan::main();
}

/// Calls `work` whatever it is asked, without reading it.
struct Blind;

impl Model for Blind {
    fn name(&self) -> &str {
        "blind"
    }

    fn respond<'a>(&'a self, _: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let content = [PartBody::ToolCall(ToolCall::new("c1", "work", "{}")).into()].into();
        Box::pin(std::future::ready(Ok(Response { content, ..Response::default() }.into())))
    }
}

fn history(n_events: usize) -> History {
    History::from((0..n_events).map(|i| Event::request(format!("event {i}"))).collect::<Vec<_>>())
}

#[divan::bench(args = HISTORIES)]
fn model_calls_in_the_loop(bencher: Bencher, n_events: usize) {
    let toolbox = Toolbox::builder().tool(FnTool::new("work", "works", |_: NoArguments| "done")).build();
    let (history, toolbox) = (history(n_events), toolbox.expect("one tool"));
    bencher.counter(ItemsCount::new(N_CALLS)).bench(|| {
        let run = Run {
            history: history.clone(),
            instructions: None,
            model: &Blind,
            toolbox: &toolbox,
            budget: Budget::actions(N_CALLS),
            seed: 0,
            observer: None,
        };
        pollster::block_on(run.execute(&ToolLoop::default()))
    });
}

#[divan::bench(args = HISTORIES)]
fn model_calls_alone(bencher: Bencher, n_events: usize) {
    let history = history(n_events);
    bencher.counter(ItemsCount::new(N_CALLS)).bench(|| {
        for seed in 0..N_CALLS as u64 {
            let prompt = Prompt { instructions: None, history: &history, tools: &[], seed };
            divan::black_box(pollster::block_on(Blind.respond(&prompt))).expect("it always answers");
        }
    });
}
