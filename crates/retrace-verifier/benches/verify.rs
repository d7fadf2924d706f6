//! What a verification costs beside its floor: the same model, called as often without a verifier.
//!
//! Both make `N_CALLS` model calls at one boundary of a recording of the length that the name gives; the difference,
//! divided by that number, is what the verifier and the loop cost for each.

use std::sync::Arc;

use divan::{Bencher, counter::ItemsCount};
use retrace_env::{FnTool, NoArguments, ReplayEnvironment, Toolbox};
use retrace_events::{Event, Header, History, Outcome, PartBody, Recording, Response, ToolCall, ToolResult};
use retrace_model::{BoxFuture, Model, ModelError, Prompt};
use retrace_strategies::TailWindow;
use retrace_verifier::{Group, Settings, Verifier};

const LENGTHS: [usize; 3] = [100, 1_000, 10_000];
const HORIZON: usize = 10;
const SAMPLES: u32 = 20;
/// PRE, the control, and the tail.
const N_CALLS: usize = HORIZON * SAMPLES as usize * 3;

fn main() {
    divan::main();
}

/// Calls `work` whatever it is asked, without reading it.
struct Blind;

impl Model for Blind {
    fn name(&self) -> &str {
        "blind"
    }

    fn respond<'a>(&'a self, _: &'a Prompt<'a>) -> BoxFuture<'a, Result<Response, ModelError>> {
        let content = vec![PartBody::ToolCall(ToolCall::new("c1", "work", "{}")).into()];
        Box::pin(std::future::ready(Ok(Response { content, ..Response::default() })))
    }
}

fn recording(n_events: usize) -> Recording {
    let rounds = (0..n_events / 2).flat_map(|_| {
        let call = ToolCall::new("c1", "work", "{}");
        let result = ToolResult::text_result(&call, Outcome::Ok, "done");
        [Event::calls([call]), Event::results([result])]
    });
    Recording::new(Header::new("bench"), [Event::request("go")].into_iter().chain(rounds))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

#[divan::bench(args = LENGTHS)]
fn model_calls_in_a_verification_at_event(bencher: Bencher, n_events: usize) {
    let recording = recording(n_events + 4);
    let tools =
        |_: &Arc<std::sync::Mutex<()>>| Toolbox::builder().tool(FnTool::new("work", "works", |_: NoArguments| "done"));
    let environment = Arc::new(ReplayEnvironment::cloned((), tools));
    bencher.counter(ItemsCount::new(N_CALLS)).bench(|| {
        let settings = Settings { horizon: HORIZON, samples: SAMPLES, ..Settings::default() };
        let group = Group::new([recording.clone()], Arc::<ReplayEnvironment>::clone(&environment)).cuts([n_events + 1]);
        let verifier = Verifier::new(Arc::new(Blind), settings).strategy("tail", Arc::new(TailWindow::new(4)));
        runtime().block_on(verifier.group(group).run(&|_| {})).expect("it runs")
    });
}

#[divan::bench(args = LENGTHS)]
fn model_calls_alone_at_event(bencher: Bencher, n_events: usize) {
    let history = History::prefix(&recording(n_events).events, n_events);
    bencher.counter(ItemsCount::new(N_CALLS)).bench(|| {
        runtime().block_on(async {
            for seed in 0..N_CALLS as u64 {
                let prompt = Prompt { instructions: None, history: &history, tools: &[], seed };
                divan::black_box(Blind.respond(&prompt).await).expect("it always answers");
            }
        });
    });
}
