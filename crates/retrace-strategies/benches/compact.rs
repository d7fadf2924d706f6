//! Every strategy over histories of growing length and of the shapes that could make one slow: the time must grow no
//! faster than they do.

use std::sync::Arc;

use divan::{Bencher, counter::ItemsCount};
use retrace_events::{Event, History, Outcome, Part, Request, Response, ToolCall, ToolResult, Usage};
use retrace_model::{Prompt, ScriptedModel, Step};
use retrace_strategies::{
    Ask, AskModel, BoxFuture, ClampOversizedMessages, ClearToolResults, CompactContext, CompactError,
    DeduplicateFileReads, FileKey, Identity, LimitWarner, ReadTool, RelevanceCompaction, SlidingWindow, Strategy,
    Summarize, SummarizingCompaction, TailWindow, TieredCompaction,
};

fn main() {
    divan::main();
}

/// What a history is made of; its events, or its calls and results, have 400 characters each.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Rounds of one call each, with usage.
    Rounds,
    /// The same, all calls with one id.
    OneId,
    /// As many results as events, all in one event, of one response.
    OneRound,
    /// The same, each result an event, so that a tail starts inside.
    SpreadRound,
    /// Rounds with a pinned request each.
    Pins,
}

/// A history of this shape and so many events.
#[derive(Clone, Copy, Debug)]
struct Case(Shape, usize);

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {}k", self.0, self.1 / 1000)
    }
}

/// The usual shape at three sizes, and the others at two.
const CASES: [Case; 11] = [
    Case(Shape::Rounds, 1_000),
    Case(Shape::Rounds, 10_000),
    Case(Shape::Rounds, 100_000),
    Case(Shape::OneId, 10_000),
    Case(Shape::OneId, 100_000),
    Case(Shape::OneRound, 10_000),
    Case(Shape::OneRound, 100_000),
    Case(Shape::SpreadRound, 10_000),
    Case(Shape::SpreadRound, 100_000),
    Case(Shape::Pins, 10_000),
    Case(Shape::Pins, 100_000),
];

impl Case {
    fn history(self) -> History {
        let Self(shape, n) = self;
        let call = |i: usize| {
            let id = if matches!(shape, Shape::OneId) { "call".to_owned() } else { format!("call_{i}") };
            ToolCall::new(
                id,
                "read",
                format!("{{\"path\":\"src/{}.rs\",\"why\":\"{}\"}}", i % (n / 4), "x".repeat(360)),
            )
        };
        let result = |call: &ToolCall| ToolResult::text_result(call, Outcome::Ok, "a line of text.\n".repeat(25));
        let rounds = |per_round: usize| {
            (0..n / per_round).flat_map(move |i| {
                let call = call(i);
                let result = Event::results([result(&call)]);
                let usage = Usage { input_tokens: 100 + 200 * i as u64, output_tokens: 100, ..Usage::default() };
                let content = [retrace_events::PartBody::ToolCall(call).into()].into();
                let response = Event::Response(Response { content, usage: Some(usage), ..Response::default() });
                let pin = (per_round == 3).then(|| {
                    let part = Part::text(format!("{i} {}", "pin ".repeat(99))).pinned();
                    Event::Request(Request { content: [part].into(), ..Request::default() })
                });
                [response, result].into_iter().chain(pin)
            })
        };
        let calls = || (0..n).map(call).collect::<Vec<_>>();
        let events: Vec<Event> = match shape {
            Shape::Rounds | Shape::OneId => rounds(2).collect(),
            Shape::Pins => rounds(3).collect(),
            Shape::OneRound => vec![Event::calls(calls()), Event::results(calls().iter().map(result))],
            Shape::SpreadRound => {
                let results = calls().into_iter().map(|call| Event::results([result(&call)]));
                [Event::calls(calls())].into_iter().chain(results).collect()
            }
        };
        let ends = [Event::request("Mend the tests."), Event::request("Go on.")];
        let [task, newest] = ends;
        History::from([task].into_iter().chain(events).chain([newest]).collect::<Vec<_>>())
    }
}

/// The time of one compaction; what is asked is answered at once.
fn compact(bencher: Bencher<'_, '_>, case: Case, strategy: impl Strategy) {
    let history = case.history();
    bencher
        .counter(ItemsCount::new(case.1))
        .with_inputs(|| AskModel(ScriptedModel::new([Step::from("a summary")])))
        .bench_refs(|ask| {
            pollster::block_on(strategy.compact(&history, &mut CompactContext::new(ask, 0))).expect("the model answers")
        });
}

#[divan::bench(args = CASES)]
fn identity(bencher: Bencher<'_, '_>, case: Case) {
    compact(bencher, case, Identity {});
}

#[divan::bench(args = CASES)]
fn tail_window(bencher: Bencher<'_, '_>, case: Case) {
    compact(bencher, case, TailWindow::new(case.1 / 2));
}

#[divan::bench(args = CASES)]
fn sliding_window(bencher: Bencher<'_, '_>, case: Case) {
    compact(bencher, case, SlidingWindow { keep_messages: case.1 / 2, receipts: true, ..SlidingWindow::default() });
}

#[divan::bench(args = CASES)]
fn sliding_window_of_tokens(bencher: Bencher<'_, '_>, case: Case) {
    let keep_tokens = Some(50 * case.1 as u64);
    compact(bencher, case, SlidingWindow { keep_tokens, ..SlidingWindow::default() });
}

#[divan::bench(args = CASES)]
fn clear_tool_results(bencher: Bencher<'_, '_>, case: Case) {
    compact(bencher, case, clear());
}

#[divan::bench(args = CASES)]
fn clear_tool_results_and_inputs(bencher: Bencher<'_, '_>, case: Case) {
    compact(bencher, case, ClearToolResults { clear_tool_inputs: true, min_clear_tokens: Some(0), ..clear() });
}

#[divan::bench(args = CASES)]
fn deduplicate_file_reads(bencher: Bencher<'_, '_>, case: Case) {
    let read = ReadTool { tool: "read".to_owned(), args: vec!["path".to_owned()] };
    compact(bencher, case, DeduplicateFileReads::new(FileKey::Tools(vec![read])));
}

#[divan::bench(args = CASES)]
fn clamp_oversized(bencher: Bencher<'_, '_>, case: Case) {
    compact(bencher, case, clamp());
}

#[divan::bench(args = CASES)]
fn limit_warner(bencher: Bencher<'_, '_>, case: Case) {
    compact(bencher, case, LimitWarner { max_context_tokens: Some(1_000), ..LimitWarner::default() });
}

#[divan::bench(args = CASES)]
fn tiered_of_three(bencher: Bencher<'_, '_>, case: Case) {
    let window = SlidingWindow { keep_messages: case.1 / 2, ..SlidingWindow::default() };
    let tiers: [Arc<dyn Strategy>; 3] = [Arc::new(clamp()), Arc::new(clear()), Arc::new(window)];
    compact(bencher, case, TieredCompaction::new(tiers, 1));
}

#[divan::bench(args = CASES)]
fn summarize(bencher: Bencher<'_, '_>, case: Case) {
    compact(bencher, case, Summarize::new(case.1 / 2));
}

#[divan::bench(args = CASES)]
fn summarizing(bencher: Bencher<'_, '_>, case: Case) {
    compact(bencher, case, SummarizingCompaction { keep_messages: case.1 / 2, ..SummarizingCompaction::default() });
}

/// Every step is new to it.
#[divan::bench(args = CASES)]
fn relevance(bencher: Bencher<'_, '_>, case: Case) {
    let history = case.history();
    let target_tokens = Some(50 * case.1 as u64);
    bencher
        .counter(ItemsCount::new(case.1))
        .with_inputs(|| RelevanceCompaction { target_tokens, ..RelevanceCompaction::default() })
        .bench_refs(|strategy| {
            pollster::block_on(strategy.compact(&history, &mut CompactContext::new(&Judge, 0)))
                .expect("it rates all steps")
        });
}

/// Rates all steps of a question alike.
struct Judge;

impl Ask for Judge {
    fn ask<'a>(&'a self, prompt: &'a Prompt<'a>, _: Option<&'a str>) -> BoxFuture<'a, Result<Response, CompactError>> {
        let texts = prompt.history.events().flat_map(Event::content).filter_map(Part::as_text);
        let n_steps: usize = texts.map(|text| text.matches("<agent_step number=").count()).sum();
        let ratings: Vec<_> = (1..=n_steps).map(|number| format!("\"{number}\": [50, 50]")).collect();
        let content = [Part::text(format!("{{{}}}", ratings.join(", ")))].into();
        Box::pin(std::future::ready(Ok(Response { content, ..Response::default() })))
    }
}

fn clear() -> ClearToolResults {
    ClearToolResults { keep_pairs: 3, ..ClearToolResults::default() }
}

/// Clamps every call.
fn clamp() -> ClampOversizedMessages {
    ClampOversizedMessages {
        max_part_chars: Some(300),
        keep_head_chars: 100,
        keep_tail_chars: 100,
        ..ClampOversizedMessages::default()
    }
}
