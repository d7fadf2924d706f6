//! What a verification costs beside its floor: the same model, called as often without a verifier.
//!
//! Both make as many model calls at one boundary of a recording of so many events, with so many samples. Reading and
//! replaying the recording is done once, so what a call costs is the difference between many samples and few, divided
//! by the calls between them; it must not grow with the recording.

use std::sync::Arc;

use divan::{Bencher, counter::ItemsCount};
use retrace_env::{FnTool, NoArguments, ReplayEnvironment, Toolbox};
use retrace_events::{Event, Header, History, Outcome, PartBody, Recording, Response, ToolCall, ToolResult};
use retrace_model::{Answer, BoxFuture, Model, ModelError, Prompt};
use retrace_strategies::TailWindow;
use retrace_verifier::{Group, RunFolder, Settings, Verifier};

const EVENTS_AND_SAMPLES: [(usize, u32); 6] =
    [(100, 20), (100, 200), (1_000, 20), (1_000, 200), (10_000, 20), (10_000, 200)];
const HORIZON: usize = 10;

/// The model calls of PRE, the control and the tail.
fn n_calls(samples: u32) -> usize {
    HORIZON * samples as usize * 3
}

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

#[divan::bench(args = EVENTS_AND_SAMPLES)]
fn model_calls_in_a_verification(bencher: Bencher, (n_events, samples): (usize, u32)) {
    let recording = recording(n_events + 4);
    let tools =
        |_: &Arc<std::sync::Mutex<()>>| Toolbox::builder().tool(FnTool::new("work", "works", |_: NoArguments| "done"));
    let environment = Arc::new(ReplayEnvironment::cloned((), tools));
    bencher.counter(ItemsCount::new(n_calls(samples))).bench(|| {
        let settings = Settings { horizon: HORIZON, samples, ..Settings::default() };
        let group = Group::new([recording.clone()], Arc::<ReplayEnvironment>::clone(&environment)).cuts([n_events + 1]);
        let verifier = Verifier::new(Arc::new(Blind), settings).strategy("tail", Arc::new(TailWindow::new(4)));
        runtime().block_on(verifier.group(group).run(&|_| {})).expect("it runs")
    });
}

/// Rollouts that are kept in a folder, each synced before its result is used, eight at once on two threads.
#[divan::bench(args = [20, 200])]
fn rollouts_kept_in_a_folder(bencher: Bencher, samples: u32) {
    let recording = recording(104);
    let tools =
        |_: &Arc<std::sync::Mutex<()>>| Toolbox::builder().tool(FnTool::new("work", "works", |_: NoArguments| "done"));
    let environment = Arc::new(ReplayEnvironment::cloned((), tools));
    bencher.counter(ItemsCount::new(3 * samples as usize)).bench(|| {
        let settings = Settings { samples, concurrency: 8, ..Settings::default() };
        let group = Group::new([recording.clone()], Arc::<ReplayEnvironment>::clone(&environment)).cuts([101]);
        let verifier = Verifier::new(Arc::new(Blind), settings).strategy("tail", Arc::new(TailWindow::new(4)));
        let place = tempfile::tempdir().expect("a folder");
        let folder = RunFolder { path: place.path().to_owned(), ..RunFolder::default() };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
        let run = verifier.group(group).run_in(&folder, &|_| {});
        runtime.expect("a runtime").block_on(run).expect("it runs")
    });
}

#[divan::bench(args = EVENTS_AND_SAMPLES)]
fn model_calls_alone(bencher: Bencher, (n_events, samples): (usize, u32)) {
    let history = History::prefix(&recording(n_events).events, n_events);
    bencher.counter(ItemsCount::new(n_calls(samples))).bench(|| {
        runtime().block_on(async {
            for seed in 0..n_calls(samples) as u64 {
                let prompt = Prompt { instructions: None, history: &history, tools: &[], seed };
                divan::black_box(Blind.respond(&prompt).await).expect("it always answers");
            }
        });
    });
}
