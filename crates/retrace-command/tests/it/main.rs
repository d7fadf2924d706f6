//! Programs as retrace meets them: real processes, whose other end is played by this very test binary or by a line of
//! shell.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "tests may")]

mod agents;
mod environments;
mod faults;
mod messages;
mod program;
mod strategies;
mod transcripts;

use std::sync::Arc;

use retrace_command::ProgramConfig;
use retrace_events::{Event, History, Outcome, ToolCall, ToolResult};
use serde_json::Value;

/// Runs a test in a runtime with I/O and time.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// The program of this name in `program.rs`, with a configuration.
fn program(name: &str, config: Value) -> ProgramConfig {
    // What the test harness prints goes to standard error, what the program says to descriptor 3.
    let shell = r#"exec "$0" --exact program::program --nocapture 3>&1 1>&2"#;
    let this = std::env::current_exe().unwrap();
    let mut program = ProgramConfig::new(["sh", "-c", shell, this.to_str().unwrap()]);
    program.env.insert(program::VARIABLE.to_owned(), name.to_owned());
    program.config = serde_json::from_value(config).unwrap();
    program
}

/// A request and rounds of one call each.
fn history(n_rounds: usize) -> History {
    let round = |n: usize| {
        let call = ToolCall::new("c1", "check", format!("{{\"item\": {n}}}"));
        let result = ToolResult::text_result(&call, Outcome::Ok, "2 packs");
        [Event::calls([call]), Event::results([result])]
    };
    let events = [Event::request("go")].into_iter().chain((0..n_rounds).flat_map(round));
    History::from(events.collect::<Vec<_>>())
}

/// Whether two histories hold the very same events.
fn is_same(a: &Arc<Event>, b: &Arc<Event>) -> bool {
    Arc::ptr_eq(a, b)
}
