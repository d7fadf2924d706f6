//! One answer of a model with a history of a thousand events.

use std::sync::{Arc, Mutex};

use divan::{Bencher, black_box};
use retrace_events::{History, ToolSpec};
use retrace_model::{Model, Prompt};
use retrace_sim::{CodeBase, Coder, Shop, Shopkeeper, Wander, World, record};

fn main() {
    divan::main();
}

/// The tools of a world, and a thousand events of a run in it.
fn run<W: World>(world: &W, model: &dyn Model) -> (Arc<[ToolSpec]>, History) {
    let recording = pollster::block_on(record(world, "bench", model, 1500, 1)).expect("the agents always answer");
    assert!(recording.events.len() >= 1000, "{}", recording.events.len());
    let toolbox = W::tools(&Arc::new(Mutex::new(world.clone()))).build().expect("the tools have different names");
    (Arc::clone(toolbox.specs()), History::prefix(&recording.events, 1000))
}

fn ask(bencher: Bencher<'_, '_>, model: &dyn Model, (tools, history): &(Arc<[ToolSpec]>, History)) {
    let mut seed = 0;
    bencher.bench_local(|| {
        seed += 1;
        let prompt = Prompt { instructions: Some("The stock round."), history, tools, seed };
        pollster::block_on(model.respond(black_box(&prompt))).expect("it always answers")
    });
}

fn shop() -> (Arc<[ToolSpec]>, History) {
    run(&Shop::with_pages(1, 150, 3), &Shopkeeper::new())
}

#[divan::bench]
fn shopkeeper_1k_events(bencher: Bencher<'_, '_>) {
    ask(bencher, &Shopkeeper::new().temperature(0.1), &shop());
}

#[divan::bench]
fn coder_1k_events(bencher: Bencher<'_, '_>) {
    let run = run(&CodeBase::with_files(1, 700), &Coder::new());
    ask(bencher, &Coder::new().temperature(0.1), &run);
}

#[divan::bench]
fn wander_1k_events(bencher: Bencher<'_, '_>) {
    ask(bencher, &Wander, &shop());
}
