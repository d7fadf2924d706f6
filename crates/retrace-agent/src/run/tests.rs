//! What ends a run, and what it leaves behind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_core::future::BoxFuture;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use retrace_env::{FnTool, NoArguments, ToolOutput};
use retrace_events::tokens::Tokens;
use retrace_events::{Dollars, Event, Outcome, Part, Response, ToolCall, ToolResult, Usage};
use retrace_model::{Answer, ModelError, Priced, Prices, Prompt, ScriptedModel, Step};
use retrace_strategies::{
    Compactor, FallbackCompaction, OnRequest, Strategy, Summarize, SummarizingCompaction, TailWindow,
};

use super::*;
use crate::context::yield_once;
use crate::{RunContext, ToolLoop};

fn call(name: &str) -> ToolCall {
    ToolCall::new("c", name, "{}")
}

fn calls(names: &[&str]) -> Step {
    names.iter().map(|name| call(name)).collect::<Vec<_>>().into()
}

/// `work` works, `fail` fails; both write down that they ran.
fn toolbox(ran: &Arc<Mutex<Vec<&'static str>>>) -> Toolbox {
    let (work, fail) = (Arc::clone(ran), Arc::clone(ran));
    Toolbox::builder()
        .tool(FnTool::new("work", "works", move |_: NoArguments| {
            work.lock().unwrap().push("work");
            "done"
        }))
        .tool(FnTool::new("fail", "fails", move |_: NoArguments| {
            fail.lock().unwrap().push("fail");
            Err::<String, _>("no")
        }))
        .build()
        .unwrap()
}

/// A run that starts from one request.
fn run<'a>(model: &'a dyn Model, toolbox: &'a Toolbox, budget: Budget) -> Run<'a> {
    let history = History::from(vec![Event::request("go")]);
    Run { history, instructions: None, model, toolbox, budget, seed: 0, observer: None }
}

fn execute(script: Vec<Step>, budget: Budget) -> (Rollout, Vec<&'static str>, usize) {
    let (model, ran) = (ScriptedModel::new(script), Arc::default());
    let (rollout, _) = pollster::block_on(run(&model, &toolbox(&ran), budget).execute(&ToolLoop::default()));
    let ran = ran.lock().unwrap().clone();
    (rollout, ran, model.asked().len())
}

#[test]
fn a_run_ends_when_its_actions_are_spent_without_asking_again() {
    let (rollout, ran, n_asked) = execute((0..9).map(|_| calls(&["work"])).collect(), Budget::actions(3));
    assert_eq!((rollout.end, ran.len(), n_asked, rollout.n_answers), (EndReason::Budget, 3, 3, 3));
}

#[test]
fn all_calls_of_one_response_run_in_order_even_beyond_the_budget() {
    let (rollout, ran, _) = execute(vec![calls(&["work", "fail", "work"])], Budget::actions(2));
    assert_eq!(rollout.end, EndReason::Budget);
    assert_eq!(ran, ["work", "fail", "work"]);
    let blocked: Vec<_> = rollout.actions.iter().map(|action| action.is_blocked()).collect();
    assert_eq!(blocked, [false, true, false]);
}

#[test]
fn an_answer_with_more_calls_than_anybody_runs_ends_the_run_before_the_first_of_them() {
    let many = |n| calls(&vec!["work"; n]);
    let (rollout, ran, _) = execute(vec![many(1000)], Budget::actions(2));
    assert_eq!((rollout.end, ran.len()), (EndReason::Budget, 1000));
    let (rollout, ran, _) = execute(vec![many(1001)], Budget::actions(2));
    let message = "unusable answer: 1001 calls in one answer, of which at most 1000 are run".to_owned();
    let failure = Failure { stage: Stage::Model, message };
    assert_eq!((rollout.end, ran.len(), rollout.n_answers), (EndReason::Failed(failure), 0, 0));
}

/// An agent that panics where it should return a future.
struct NoFuture;

impl Agent for NoFuture {
    fn resume<'a>(&'a self, _: History, _: &'a RunContext<'a>) -> BoxFuture<'a, Result<Turn, AgentError>> {
        panic!("no future")
    }
}

#[test]
fn an_agent_that_panics_before_it_acts_has_failed() {
    let (model, toolbox) = (ScriptedModel::new([calls(&["work"])]), toolbox(&Arc::default()));
    let (rollout, _) = pollster::block_on(run(&model, &toolbox, Budget::actions(2)).execute(&NoFuture));
    let failure = Failure { stage: Stage::Agent, message: "the agent panicked: no future".to_owned() };
    assert_eq!(rollout.end, EndReason::Failed(failure));
}

#[test]
fn failed_calls_and_unknown_tools_are_actions() {
    let (rollout, ..) = execute(vec![calls(&["fail"]), calls(&["nope"]), "enough".into()], Budget::actions(5));
    assert_eq!(rollout.end, EndReason::Answer);
    assert_eq!(rollout.actions.iter().filter(|action| action.is_blocked()).count(), 2);
}

#[test]
fn a_failed_model_call_keeps_the_actions_and_uses_no_answer() {
    let down = ModelError::Unavailable { message: "503".to_owned(), retry_after: None };
    let (rollout, ..) = execute(vec![calls(&["work"]), down.into()], Budget::actions(5));
    let failure = Failure { stage: Stage::Model, message: "unavailable: 503".to_owned() };
    assert_eq!((rollout.end, rollout.actions.len(), rollout.n_answers), (EndReason::Failed(failure), 1, 1));
}

#[test]
fn the_seed_of_each_model_call_is_its_own() {
    let model = ScriptedModel::new([calls(&["work"]), calls(&["work"]), "done".into()]);
    let ran = Arc::default();
    for seed in [1, 2] {
        let toolbox = toolbox(&ran);
        let run = Run { seed, ..run(&model, &toolbox, Budget::default()) };
        pollster::block_on(run.execute(&ToolLoop::default()));
    }
    let mut seeds: Vec<_> = model.asked().iter().map(|asked| asked.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 4);
}

/// An agent that ignores what its model says and calls a tool for ever.
struct Stubborn(AtomicUsize);

impl Agent for Stubborn {
    fn resume<'a>(&'a self, history: History, cx: &'a RunContext<'a>) -> BoxFuture<'a, Result<Turn, AgentError>> {
        Box::pin(async move {
            while cx.call(&call("work")).await.is_ok() {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Turn::Ended(history))
        })
    }
}

#[test]
fn the_budget_holds_whatever_the_agent_does() {
    let (model, ran) = (ScriptedModel::new(Vec::<Step>::new()), Arc::default());
    let agent = Stubborn(AtomicUsize::new(0));
    let (rollout, _) = pollster::block_on(run(&model, &toolbox(&ran), Budget::actions(4)).execute(&agent));
    assert_eq!((rollout.end, rollout.actions.len(), agent.0.into_inner()), (EndReason::Budget, 4, 4));
}

/// An agent that never takes no for an answer.
struct Deaf;

impl Agent for Deaf {
    fn resume<'a>(&'a self, history: History, cx: &'a RunContext<'a>) -> BoxFuture<'a, Result<Turn, AgentError>> {
        Box::pin(async move {
            loop {
                drop(cx.respond(&history).await);
                drop(cx.call(&call("work")).await);
            }
        })
    }
}

#[test]
fn an_agent_that_goes_on_without_a_budget_is_stopped_by_its_deadline() {
    let (model, ran) = (ScriptedModel::new(Vec::<Step>::new()), Arc::default());
    let deadline = async {
        for _ in 0..100 {
            yield_once().await;
        }
        "no end within its time".to_owned()
    };
    let (rollout, _) =
        pollster::block_on(run(&model, &toolbox(&ran), Budget::actions(2)).execute_until(&Deaf, deadline));
    let failure = Failure { stage: Stage::Agent, message: "no end within its time".to_owned() };
    assert_eq!((rollout.end, rollout.actions.len()), (EndReason::Failed(failure), 2));
}

/// A model that panics at its third call.
struct Panicking(AtomicUsize);

impl Model for Panicking {
    fn name(&self) -> &str {
        "panicking"
    }

    fn respond<'a>(&'a self, _: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        assert!(self.0.fetch_add(1, Ordering::Relaxed) < 2, "no idea");
        let content = [retrace_events::PartBody::ToolCall(call("work")).into()].into();
        Box::pin(std::future::ready(Ok(Response { content, ..Response::default() }.into())))
    }
}

#[test]
fn a_panic_keeps_what_was_finished_and_names_what_broke() {
    let (model, ran) = (Panicking(AtomicUsize::new(0)), Arc::default());
    let (rollout, _) =
        pollster::block_on(run(&model, &toolbox(&ran), Budget::actions(5)).execute(&ToolLoop::default()));
    let EndReason::Failed(failure) = rollout.end else { panic!("{:?}", rollout.end) };
    assert_eq!((failure.stage, rollout.actions.len()), (Stage::Model, 2));
    assert_eq!(failure.message, "unusable answer: the model panicked: no idea");
}

#[test]
fn what_was_done_behind_a_call_that_broke_is_not_scored() {
    let broken = FnTool::new_async("broken", "breaks late", |_: NoArguments| async {
        yield_once().await;
        std::panic::panic_any("the world is gone") as &str
    });
    let work = FnTool::new("work", "works", |_: NoArguments| "done");
    let toolbox = Toolbox::builder().tool(broken).tool(work).independent(true).build().unwrap();
    let model = ScriptedModel::new([calls(&["work", "broken", "work", "work"])]);
    let (rollout, _) = pollster::block_on(run(&model, &toolbox, Budget::actions(2)).execute(&ToolLoop::default()));
    assert_eq!(rollout.actions.len(), 1);
    assert!(!rollout.reaches(2));
}

/// An agent that asks for twenty answers at once.
struct Impatient;

impl Agent for Impatient {
    fn resume<'a>(&'a self, history: History, cx: &'a RunContext<'a>) -> BoxFuture<'a, Result<Turn, AgentError>> {
        Box::pin(async move {
            let asked = (0..20).map(|_| cx.respond(&history));
            let answers = futures_util::future::join_all(asked).await;
            for response in answers.into_iter().flatten() {
                for call in response.tool_calls() {
                    cx.call(call).await?;
                }
            }
            Ok(Turn::Ended(history))
        })
    }
}

/// A model that takes a while.
struct Slow(ScriptedModel);

impl Model for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            yield_once().await;
            self.0.respond(prompt).await
        })
    }
}

#[test]
fn answers_asked_for_side_by_side_are_within_the_budget_too() {
    let (model, ran) = (Slow(ScriptedModel::new((0..20).map(|_| calls(&["work", "work"])))), Arc::default());
    let (rollout, _) = pollster::block_on(run(&model, &toolbox(&ran), Budget::actions(3)).execute(&Impatient));
    assert_eq!((rollout.n_answers, model.0.asked().len(), rollout.actions.len()), (3, 3, 6));
}

#[test]
fn what_the_record_cannot_answer_ends_the_run_with_that_reason() {
    struct Closed;
    impl retrace_env::Dispatch for Closed {
        fn dispatch<'a>(&'a self, name: &'a str, _: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
            Box::pin(async move {
                match name {
                    "known" => Ok(ToolOutput::ok("as recorded")),
                    _ => Err(CallError::OffTheRecord { call: format!("{name}({{}})") }),
                }
            })
        }
    }
    let model = ScriptedModel::new([calls(&["known", "new", "known"])]);
    let (rollout, _) =
        pollster::block_on(run(&model, &Toolbox::over([], Closed), Budget::actions(9)).execute(&ToolLoop::default()));
    assert_eq!(rollout.end, EndReason::OffTheRecord { call: "new({})".to_owned() });
    assert_eq!(rollout.actions.len(), 1);
}

fn spending(names: &[&str], tokens: u64) -> Step {
    let content = names.iter().map(|name| retrace_events::PartBody::ToolCall(call(name)).into()).collect();
    let usage = Usage { input_tokens: tokens - 1, output_tokens: 1, ..Usage::default() };
    Response { content, usage: Some(usage), ..Response::default() }.into()
}

#[test]
fn a_live_run_ends_at_its_limits_and_says_which() {
    let script = || (0..9).map(|_| spending(&["work"], 100)).collect::<Vec<_>>();
    let (rollout, ..) = execute(script(), Budget { max_requests: Some(4), ..Budget::default() });
    assert_eq!((rollout.end, rollout.actions.len()), (EndReason::RequestLimit, 4));
    let (rollout, ..) = execute(script(), Budget { max_total_tokens: Some(250), ..Budget::default() });
    assert_eq!((rollout.end, rollout.actions.len()), (EndReason::TokenLimit, 3));
}

#[test]
fn summary_calls_count_toward_the_limits_of_a_live_run() {
    let summary = || Response { content: [Part::text("so far, so good")].into(), ..Response::default() };
    // The loop asks for an answer, then for a summary before each further answer; the last call is kept for an answer.
    let script = vec![calls(&["work"]), summary().into(), calls(&["work"]), calls(&["work"])];
    let (model, ran) = (ScriptedModel::new(script), Arc::default());
    let compactor = Compactor::new(Arc::new(Summarize::new(2))).max_events(2);
    let (rollout, _) = pollster::block_on(
        run(&model, &toolbox(&ran), Budget { max_requests: Some(4), ..Budget::default() })
            .execute(&ToolLoop::compacting(compactor)),
    );
    assert_eq!((rollout.end, rollout.n_answers, model.asked().len()), (EndReason::RequestLimit, 3, 4));
}

#[test]
fn a_run_goes_on_where_a_compaction_fails_and_what_it_cost_is_an_event_of_the_run() {
    let spent = |text: &str, input_tokens| Response {
        content: [Part::text(text)].into(),
        usage: Some(Usage { input_tokens, ..Usage::default() }),
        ..Response::default()
    };
    let script = [calls(&["work"]), spent("", 7).into(), calls(&["work"]), spent("so far", 9).into(), "done".into()];
    let (model, ran, shown) = (ScriptedModel::new(script), Arc::default(), Mutex::<Vec<Event>>::default());
    let compactor = Compactor::new(Arc::new(Summarize::new(2))).max_events(2);
    let observer = |event: &Event| shown.lock().unwrap().push(event.clone());
    let toolbox = toolbox(&ran);
    let run = Run { observer: Some(&observer), ..run(&model, &toolbox, Budget::default()) };
    let (rollout, history) = pollster::block_on(run.execute(&ToolLoop::compacting(compactor)));
    assert_eq!((rollout.end, rollout.actions.len(), rollout.spend.input_tokens), (EndReason::Answer, 2, 16));
    let lengths: Vec<_> = model.asked().iter().map(|asked| asked.events.len()).collect();
    // The failed summary leaves three events to answer, the other one its summary, two events and what it cost.
    assert_eq!(lengths, [1, 1, 3, 1, 4]);
    let kinds: Vec<_> = shown.lock().unwrap().iter().map(Event::kind).collect();
    assert_eq!(kinds, ["response", "tool_results", "usage", "response", "tool_results", "usage", "response"]);
    assert_eq!(history.unwrap().n_counting(), 4);
}

fn one_price(input: f64, output: f64) -> Prices {
    Prices { input, output, cache_read: None, cache_write: None }
}

#[test]
fn each_call_costs_what_the_model_costs_that_was_asked() {
    let spent = |content: Vec<Part>, input_tokens| {
        let usage =
            Usage { input_tokens, output_tokens: 1, cache_read_tokens: Some(input_tokens / 2), ..Usage::default() };
        Step::from(Response { content: content.into(), usage: Some(usage), ..Response::default() })
    };
    let work = || vec![Part::from(retrace_events::PartBody::ToolCall(call("work")))];
    let run_with = |own: Option<Prices>, other: Option<Prices>| {
        let script = ScriptedModel::new([spent(work(), 100), spent(work(), 200), spent(vec![Part::text("done")], 300)]);
        let (notes, ran) = (ScriptedModel::new([spent(vec![Part::text("so far")], 1000)]), Arc::default());
        let model: Box<dyn Model> = match own {
            Some(prices) => Box::new(Priced::new(script, prices)),
            None => Box::new(script),
        };
        let notes: Arc<dyn Model> = match other {
            Some(prices) => Arc::new(Priced::new(notes, prices)),
            None => Arc::new(notes),
        };
        let strategy = Summarize { model: Some("notes".to_owned()), ..Summarize::new(2) };
        let tool_loop = ToolLoop::compacting(Compactor::new(Arc::new(strategy)).max_events(4)).model("notes", notes);
        let toolbox = toolbox(&ran);
        let (rollout, _) = pollster::block_on(run(&*model, &toolbox, Budget::default()).execute(&tool_loop));
        assert_eq!((rollout.end, rollout.n_answers), (EndReason::Answer, 3));
        rollout.spend
    };
    let spend = run_with(Some(one_price(2.0, 10.0)), Some(one_price(1.0, 5.0)));
    assert_eq!((spend.n_model_calls, spend.input_tokens, spend.output_tokens), (4, 1600, 4));
    assert_eq!((spend.cache_read_tokens, spend.cache_write_tokens), (Some(800), None));
    // 600 · 2 + 3 · 10 of the agent's own model, and 1000 · 1 + 1 · 5 of the other, in millionths of a dollar.
    assert_eq!(spend.dollars, Some(Dollars::from_nanos(2_235_000)));
    assert_eq!(run_with(Some(one_price(2.0, 10.0)), None).dollars, None, "what one of them costs is not known");
    assert_eq!(run_with(None, Some(one_price(1.0, 5.0))).dollars, None);
}

#[test]
fn a_loop_compacts_when_its_history_has_grown_and_not_before() {
    let script = (0..6).map(|_| calls(&["work"])).chain(["done".into()]);
    let (model, ran) = (ScriptedModel::new(script), Arc::default());
    let compactor = Compactor::new(Arc::new(TailWindow::new(2))).max_events(6);
    pollster::block_on(run(&model, &toolbox(&ran), Budget::default()).execute(&ToolLoop::compacting(compactor)));
    let lengths: Vec<_> = model.asked().iter().map(|asked| asked.events.len()).collect();
    assert_eq!(lengths, [1, 3, 5, 2, 4, 6, 2]);
}

#[test]
fn independent_calls_keep_their_order_whichever_finishes_first() {
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = |name: &'static str, waits: usize| {
        let order = Arc::clone(&order);
        FnTool::new_async(name, "waits its turn", move |_: NoArguments| {
            let order = Arc::clone(&order);
            async move {
                for _ in 0..waits {
                    yield_once().await;
                }
                order.lock().unwrap().push(name.to_owned());
                name
            }
        })
    };
    let toolbox = Toolbox::builder().tool(note("slow", 3)).tool(note("fast", 0)).independent(true).build().unwrap();
    let model = ScriptedModel::new([calls(&["slow", "fast"]), "done".into()]);
    let (rollout, history) = pollster::block_on(run(&model, &toolbox, Budget::default()).execute(&ToolLoop::default()));
    assert_eq!(*order.lock().unwrap(), ["fast", "slow"]);
    let names: Vec<_> = rollout.actions.iter().map(|action| action.name()).collect();
    assert_eq!(names, ["slow", "fast"]);
    assert_eq!(history.unwrap().len(), 4);
}

/// A model that calls `work` between 0 and 3 times an answer, as its seed says, and never ends its turn but by 0.
struct Eager;

impl Model for Eager {
    fn name(&self) -> &str {
        "eager"
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let n = prompt.seed % 4;
        let content = (0..n).map(|_| retrace_events::PartBody::ToolCall(call("work")).into()).collect();
        Box::pin(std::future::ready(Ok(Response { content, ..Response::default() }.into())))
    }
}

proptest! {
    #[test]
    fn every_run_ends_within_its_budget(horizon in 1_usize..8, seed: u64) {
        let ran = Arc::default();
        let toolbox = toolbox(&ran);
        let run = Run { seed, ..run(&Eager, &toolbox, Budget::actions(horizon)) };
        let (rollout, _) = pollster::block_on(run.execute(&ToolLoop::default()));
        prop_assert!(rollout.n_answers as usize <= horizon);
        prop_assert!(rollout.actions.len() < horizon + 3);
        prop_assert_eq!(rollout.end == EndReason::Budget, rollout.actions.len() >= horizon);
    }
}

proptest! {
    #[test]
    fn what_is_shown_of_a_run_is_what_its_history_gained(seed: u64, horizon in 1..6_usize, independent: bool) {
        let toolbox = Toolbox::builder().tool(FnTool::new("work", "works", |_: NoArguments| "done"));
        let toolbox = toolbox.independent(independent).build().unwrap();
        let shown = Mutex::new(Vec::new());
        let observer = |event: &Event| shown.lock().unwrap().push(event.clone());
        let run = Run { seed, observer: Some(&observer), ..run(&Eager, &toolbox, Budget::actions(horizon)) };
        let (_, history) = pollster::block_on(run.execute(&ToolLoop::default()));
        prop_assert!(history.unwrap().events().skip(1).eq(&*shown.lock().unwrap()));
    }
}

#[test]
fn what_a_round_had_is_shown_when_it_breaks_off() {
    let toolbox = Toolbox::builder()
        .tool(FnTool::new("work", "works", |_: NoArguments| "done"))
        .tool(FnTool::new("burn", "burns", |_: NoArguments| -> String { panic!("fire") }))
        .build()
        .unwrap();
    let model = ScriptedModel::new([calls(&["work", "burn"])]);
    let shown = Mutex::new(Vec::new());
    let observer = |event: &Event| shown.lock().unwrap().push(event.clone());
    let run = Run { observer: Some(&observer), ..run(&model, &toolbox, Budget::default()) };
    let (rollout, _) = pollster::block_on(run.execute(&ToolLoop::default()));
    assert!(rollout.end.is_failure());
    let [Event::Response(_), Event::ToolResults(round)] = &shown.lock().unwrap()[..] else { panic!("{shown:?}") };
    assert_eq!(round.results.iter().map(|result| &*result.name).collect::<Vec<_>>(), ["work"]);
}

/// Says that it was sent nothing.
struct Cut;

impl Model for Cut {
    fn name(&self) -> &str {
        "cut"
    }

    fn respond<'a>(&'a self, _: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let sent = Some(History::from(Vec::new()).sent_hash());
        let usage = Some(Usage { input_tokens: 7, ..Usage::default() });
        Box::pin(std::future::ready(Ok(Answer { sent, response: Response { usage, ..Response::default() } })))
    }
}

#[test]
fn a_model_that_was_sent_something_else_is_no_answer() {
    let toolbox = Toolbox::builder().build().unwrap();
    let (rollout, _) = pollster::block_on(run(&Cut, &toolbox, Budget::default()).execute(&ToolLoop::default()));
    let message = "unusable answer: the model was not sent the history that it was to answer";
    assert!(matches!(&rollout.end, EndReason::Failed(failure) if failure.message.ends_with(message)), "{rollout:?}");
    assert_eq!((rollout.n_answers, rollout.spend.input_tokens), (0, 7), "it cost what it cost");

    let model = ScriptedModel::new(["done"]);
    let (rollout, _) = pollster::block_on(run(&model, &toolbox, Budget::default()).execute(&ToolLoop::default()));
    assert_eq!(rollout.sent, Some(History::from(vec![Event::request("go")]).sent_hash()));
}

/// An agent with a model of its own, which calls `work`, a tool of the agent's own, and one that it does not know in
/// each response.
struct Reporting {
    n_responses: usize,
}

impl Agent for Reporting {
    fn resume<'a>(&'a self, mut history: History, cx: &'a RunContext<'a>) -> BoxFuture<'a, Result<Turn, AgentError>> {
        Box::pin(async move {
            for _ in 0..self.n_responses {
                let content =
                    ["plan", "work", "wrok"].map(|name| retrace_events::PartBody::ToolCall(call(name)).into());
                let usage = Some(Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() });
                let response = Response { content: Vec::from(content).into(), usage, ..Response::default() };
                let sent = Some(history.sent_hash());
                cx.report(&response, sent).await?;
                history.push(Event::Response(response));
                let own = ToolResult { own: true, ..ToolResult::text_result(&call("plan"), Outcome::Ok, "noted") };
                cx.own_result(&own);
                let worked = cx.call(&call("work")).await?;
                let unknown = retrace_env::ToolOutput::not_found("wrok").into_result(&call("wrok"));
                cx.refuse(&call("wrok"), &unknown).await?;
                history.push(Event::results([own, worked, unknown]));
            }
            let nudge = Event::request("go on");
            cx.note(&nudge);
            history.push(nudge);
            Ok(Turn::Ended(history))
        })
    }
}

#[test]
fn responses_of_the_agents_own_model_are_booked_within_the_budget() {
    let toolbox = Toolbox::builder().tool(FnTool::new("work", "works", |_: NoArguments| "done")).build().unwrap();
    let shown = Mutex::new(Vec::new());
    let observer = |event: &Event| shown.lock().unwrap().push(event.clone());
    let model = ScriptedModel::new(Vec::<Step>::new());
    let live = Run { observer: Some(&observer), ..run(&model, &toolbox, Budget::default()) };
    let (rollout, history) = pollster::block_on(live.execute(&Reporting { n_responses: 2 }));
    assert_eq!((rollout.actions.len(), rollout.n_answers, &rollout.end), (4, 2, &EndReason::Answer));
    assert_eq!(rollout.spend.dollars, None, "nobody knows what the agent's own model costs");
    let blocked: Vec<_> = rollout.actions.iter().map(|action| action.is_blocked()).collect();
    assert_eq!(blocked, [false, true, false, true]);
    assert_eq!((rollout.spend.input_tokens, rollout.spend.output_tokens), (20, 2));
    assert_eq!(rollout.sent, Some(History::from(vec![Event::request("go")]).sent_hash()));
    assert!(history.unwrap().events().skip(1).eq(&*shown.lock().unwrap()), "{shown:?}");

    let short = run(&model, &toolbox, Budget::actions(1));
    let (rollout, _) = pollster::block_on(short.execute(&Reporting { n_responses: 2 }));
    assert_eq!((rollout.actions.len(), rollout.n_answers, rollout.end), (2, 1, EndReason::Budget));
    assert_eq!(rollout.spend.input_tokens, 20, "what was spent is told, whether or not it was allowed");
}

/// An agent that answers one of two calls of each response, and then says something.
struct Careless;

impl Agent for Careless {
    fn resume<'a>(&'a self, mut history: History, cx: &'a RunContext<'a>) -> BoxFuture<'a, Result<Turn, AgentError>> {
        Box::pin(async move {
            for number in 0..2 {
                let response = cx.respond(&history).await?;
                history.push(Event::Response(response));
                history.push(Event::results([cx.call(&call("work")).await?]));
                if number == 1 {
                    cx.note(&Event::request("go on"));
                    history.push(Event::request("go on"));
                }
            }
            let response = cx.respond(&history).await?;
            history.push(Event::Response(response));
            Ok(Turn::Ended(history))
        })
    }
}

#[test]
fn a_round_that_is_left_open_is_shown_before_what_follows() {
    let toolbox = Toolbox::builder().tool(FnTool::new("work", "works", |_: NoArguments| "done")).build().unwrap();
    let model = ScriptedModel::new([calls(&["work", "plan"]), calls(&["work", "plan"]), "done".into()]);
    let shown = Mutex::new(Vec::new());
    let observer = |event: &Event| shown.lock().unwrap().push(event.clone());
    let run = Run { observer: Some(&observer), ..run(&model, &toolbox, Budget::default()) };
    let (_, history) = pollster::block_on(run.execute(&Careless));
    assert!(history.unwrap().events().skip(1).eq(&*shown.lock().unwrap()), "{shown:?}");
}

/// A call by which a model wishes for a compaction.
fn wish() -> ToolCall {
    ToolCall::new("c", "compact_context", r#"{"focus": "the tea"}"#)
}

#[test]
fn a_model_wishes_for_a_compaction_and_has_it_before_its_next_answer() {
    let script = [
        calls(&["work"]),
        calls(&["work"]),
        vec![call("work"), wish()].into(),
        "so far".into(),
        vec![wish()].into(),
        "done".into(),
    ];
    let (model, ran, shown) = (ScriptedModel::new(script), Arc::default(), Mutex::<Vec<Event>>::default());
    let limits = OnRequest { min_tokens: Tokens(1), max_per_run: 1 };
    let compactor =
        Compactor::new(Arc::new(SummarizingCompaction { keep_messages: 2, ..SummarizingCompaction::default() }));
    let observer = |event: &Event| shown.lock().unwrap().push(event.clone());
    let toolbox = toolbox(&ran);
    let run = Run { observer: Some(&observer), ..run(&model, &toolbox, Budget::default()) };
    let (rollout, history) = pollster::block_on(run.execute(&ToolLoop::compacting(compactor.on_request(limits))));
    assert_eq!((rollout.end, rollout.actions.len()), (EndReason::Answer, 3), "a wish is no action");
    let asked = model.asked();
    assert_eq!(asked.iter().map(|asked| asked.events.len()).collect::<Vec<_>>(), [1, 3, 5, 1, 5, 7]);
    assert_eq!(asked[0].tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["work", "fail", "compact_context"]);
    assert!(format!("{:?}", asked[3].events).contains("the tea"));
    // Calls and results of the wish are there to be read, and marked in what is recorded.
    let rounds: Vec<_> = shown
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            Event::ToolResults(round) => Some(round.results.iter().map(|r| (r.own, r.outcome)).collect::<Vec<_>>()),
            _ => None,
        })
        .collect();
    let (work, granted, refused) = ((false, Outcome::Ok), (true, Outcome::Ok), (true, Outcome::Error));
    assert_eq!(rounds, [vec![work], vec![work], vec![work, granted], vec![refused]]);
    let Some(Event::ToolResults(refused)) = history.as_ref().unwrap().events().rev().nth(1) else {
        panic!("{history:?}")
    };
    assert!(refused.results[0].text().contains("1 times"), "{refused:?}");
}

#[test]
fn an_environment_that_has_the_tool_of_the_loop_is_an_error_before_anything_is_asked() {
    let toolbox = Toolbox::builder().tool(FnTool::new("compact_context", "packs", |_: NoArguments| "packed"));
    let (toolbox, model) = (toolbox.build().unwrap(), ScriptedModel::new(["done"]));
    let limits = OnRequest { min_tokens: Tokens(1), max_per_run: 1 };
    let compactor = Compactor::new(Arc::new(TailWindow::new(2))).on_request(limits);
    let (rollout, _) =
        pollster::block_on(run(&model, &toolbox, Budget::default()).execute(&ToolLoop::compacting(compactor)));
    assert!(matches!(&rollout.end, EndReason::Failed(failure) if failure.message.contains("`compact_context`")));
    assert_eq!(model.asked().len(), 0);
}

#[test]
fn a_strategy_may_ask_another_model_by_name_and_it_counts() {
    let script = [calls(&["work"]), calls(&["work"]), "done".into()];
    let (model, ran) = (ScriptedModel::new(script), Arc::default());
    let (toolbox, scribe) = (toolbox(&ran), Arc::new(ScriptedModel::new(["so far", "so good"])));
    let strategy = Summarize { model: Some("scribe".to_owned()), ..Summarize::new(2) };
    let compacting = ToolLoop::compacting(Compactor::new(Arc::new(strategy)).max_events(2));
    let budget = Budget { max_requests: Some(5), ..Budget::default() };
    let (rollout, _) =
        pollster::block_on(run(&model, &toolbox, budget).execute(&compacting.model("scribe", scribe.clone())));
    assert_eq!((rollout.end, scribe.asked().len(), model.asked().len()), (EndReason::Answer, 2, 3));
}

#[test]
fn a_compaction_that_is_started_early_goes_on_beside_the_run_and_stands_in_when_it_is_due() {
    let script = (0..10).map(|_| calls(&["work"])).chain(["done".into()]);
    let (model, ran) = (ScriptedModel::new(script), Arc::default());
    let (toolbox, scribe) = (toolbox(&ran), Arc::new(ScriptedModel::new(["so far"])));
    let first: [Arc<dyn Strategy>; 1] = [Arc::new(Summarize { model: Some("scribe".to_owned()), ..Summarize::new(2) })];
    let fallback =
        FallbackCompaction { max_tokens: Some(20), background_start: Some(0.75), ..FallbackCompaction::new(first) };
    let compacting = ToolLoop::compacting(Compactor::new(Arc::new(fallback))).model("scribe", scribe.clone());
    let shown = Mutex::new(Vec::new());
    let observer = |event: &Event| shown.lock().unwrap().push(event.kind());
    let run = Run { observer: Some(&observer), ..run(&model, &toolbox, Budget::default()) };
    let (rollout, history) = pollster::block_on(run.execute(&compacting));
    assert_eq!((rollout.end, scribe.asked().len()), (EndReason::Answer, 1));
    assert_eq!(shown.lock().unwrap().iter().filter(|kind| **kind == "usage").count(), 1);
    // It was asked of seven rounds, and was used after nine, with the two since.
    let question = format!("{:?}", scribe.asked()[0].events);
    assert_eq!(question.matches("ok: done").count(), 6, "the newest round is kept: {question}");
    let lengths: Vec<_> = model.asked().iter().map(|asked| asked.events.len()).collect();
    assert_eq!(lengths, [1, 3, 5, 7, 9, 11, 13, 15, 17, 7, 9]);
    assert_eq!(history.unwrap().events().filter(|event| matches!(event, Event::Summary(_))).count(), 1);
}

#[test]
fn what_was_started_early_and_not_used_is_accounted_and_takes_no_seed_of_the_run() {
    let seeds = |background_start: Option<f64>| {
        let script = (0..8).map(|_| calls(&["work"])).chain(["done".into()]);
        let (model, ran) = (ScriptedModel::new(script), Arc::default());
        let (toolbox, scribe) = (toolbox(&ran), Arc::new(ScriptedModel::new(["", "so far"])));
        let strategy = SummarizingCompaction { model: Some("scribe".to_owned()), ..SummarizingCompaction::default() };
        let first: [Arc<dyn Strategy>; 1] = [Arc::new(SummarizingCompaction { keep_messages: 2, ..strategy })];
        let fallback = FallbackCompaction { max_tokens: Some(30), background_start, ..FallbackCompaction::new(first) };
        let compacting = ToolLoop::compacting(Compactor::new(Arc::new(fallback))).model("scribe", scribe.clone());
        let shown = Mutex::new(Vec::new());
        let observer = |event: &Event| shown.lock().unwrap().push(event.kind());
        let run = Run { observer: Some(&observer), ..run(&model, &toolbox, Budget::default()) };
        let (rollout, _) = pollster::block_on(run.execute(&compacting));
        assert_eq!(rollout.end, EndReason::Answer);
        let n_usage = shown.lock().unwrap().iter().filter(|kind| **kind == "usage").count();
        assert_eq!((scribe.asked().len(), n_usage), if background_start.is_some() { (2, 1) } else { (0, 0) });
        model.asked().iter().map(|asked| asked.seed).collect::<Vec<_>>()
    };
    assert_eq!(seeds(Some(0.5)), seeds(None));
}
