//! The programs of `examples/python/` and `examples/typescript/` over the real libraries, held against what the libraries
//! give when they are called directly, and against retrace's own. `cargo xtask adapters` installs them and runs this.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program speaks on its streams")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use futures_util::future::join_all;
use retrace_agent::{Budget, Run};
use retrace_command::{CommandAgent, CommandEnvironment, CommandStrategy, ProgramConfig};
use retrace_env::{Environment, check_rebuilds};
use retrace_events::{
    Boundary, EndReason, Event, Header, History, Outcome, Part, PartBody, Recording, Request, Response, ToolCall,
    ToolResult, Trajectory, canonical_arguments,
};
use retrace_model::{ScriptedModel, Step};
use retrace_strategies::{CompactContext, Compacted, Strategy, TailWindow};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

/// Where the programs are, and what runs them.
struct Examples {
    python: String,
    python_folder: PathBuf,
    typescript_folder: PathBuf,
}

fn main() -> ExitCode {
    let [python, python_folder, typescript_folder] =
        ["RETRACE_PYTHON", "RETRACE_PYTHON_EXAMPLES", "RETRACE_TYPESCRIPT_EXAMPLES"].map(std::env::var);
    let (Ok(python), Ok(python_folder), Ok(typescript_folder)) = (python, python_folder, typescript_folder) else {
        eprintln!("run `cargo xtask adapters`, which installs what this needs");
        return ExitCode::from(2);
    };
    let examples =
        Examples { python, python_folder: python_folder.into(), typescript_folder: typescript_folder.into() };
    match tokio::runtime::Runtime::new().map_err(Failure::from).and_then(|runtime| runtime.block_on(examples.run())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("FAILED: {failure}");
            ExitCode::FAILURE
        }
    }
}

impl Examples {
    async fn run(&self) -> Result<(), Failure> {
        self.windows_of_pydantic_ai_harness().await?;
        println!(
            "ok: SlidingWindowCompaction and ClearToolResults of pydantic-ai-harness keep what they keep without retrace"
        );
        let ag2 = |target| self.python("ag2_strategy.py", json!({"target": target}));
        check_window(ag2, &without_anchors()).await?;
        println!("ok: TailWindowCompact of ag2 keeps what the tail window of the house keeps");
        let langchain = |keep: usize| {
            let mut config = ProgramConfig::new(["node", "build/trim_strategy.js"]);
            config.folder = Some(self.typescript_folder.clone());
            config.config.insert("keep".to_owned(), keep.into());
            config
        };
        check_window(langchain, &single_calls()).await?;
        println!("ok: trimMessages of LangChain keeps what the tail window of the house keeps");

        let environment = self.python("factory_environment.py", json!({"factory": "shop:fresh_world"}));
        let environment = CommandEnvironment::start(&environment).await?;
        let boundary = boundary()?;
        let replay = environment.restore(&boundary).await?.replay;
        ensure(replay.n_calls == 5 && replay.n_same_text == 5, || format!("{replay:?}"))?;
        let difference = check_rebuilds(&environment, &boundary).await?;
        ensure(difference.is_none(), || format!("{difference:?}"))?;
        println!("ok: the environment made from functions replays its recording to the letter");

        for program in ["pydantic_agent.py", "ag2_agent.py"] {
            let agent = CommandAgent::start(&self.python(program, json!({}))).await?;
            let runs = (0..4).map(|_| check_agent(&agent, &environment, &boundary));
            join_all(runs).await.into_iter().collect::<Result<Vec<_>, _>>()?;
            println!("ok: the agent of {} goes on from a history and is accounted for", agent.name());
        }
        Ok(())
    }

    fn python(&self, program: &str, config: Value) -> ProgramConfig {
        let mut python = ProgramConfig::new([&*self.python, program]);
        python.folder = Some(self.python_folder.clone());
        python.config = config.as_object().cloned().unwrap_or_default();
        python
    }

    /// The adapter against `compacted_directly.py`, which calls the library with no adapter in between.
    async fn windows_of_pydantic_ai_harness(&self) -> Result<(), Failure> {
        let script = self.python_folder.join("compacted_directly.py");
        let directly = std::process::Command::new(&self.python).arg(&script).output()?;
        ensure(directly.status.success(), || String::from_utf8_lossy(&directly.stderr).into_owned())?;
        let directly = String::from_utf8(directly.stdout)?;
        // As STRATEGIES there.
        let strategies = [
            json!({"strategy": "SlidingWindowCompaction", "max_messages": 1, "keep_messages": 3}),
            json!({"strategy": "SlidingWindowCompaction", "max_messages": 1, "keep_messages": 6}),
            json!({"strategy": "SlidingWindowCompaction", "max_messages": 1, "keep_messages": 6,
                   "preserve_first_user_message": false}),
            json!({"strategy": "ClearToolResults", "max_messages": 1, "keep_pairs": 2}),
            json!({"strategy": "ClearToolResults", "max_messages": 1, "keep_pairs": 2, "clear_tool_inputs": true}),
        ];
        ensure(directly.lines().count() == strategies.len(), || format!("{} is out of step", script.display()))?;
        for (config, directly) in strategies.into_iter().zip(directly.lines()) {
            let strategy = CommandStrategy::start(&self.python("pydantic_strategy.py", config.clone())).await?;
            let kept = compact(&strategy, &history()).await?;
            let kept = json!(kept.events().map(shown).collect::<Vec<_>>());
            let directly: Value = serde_json::from_str(directly)?;
            ensure(kept == directly, || format!("{config} keeps\n{kept} and without retrace\n{directly}"))?;
        }
        Ok(())
    }
}

/// A program that keeps the last events against [`TailWindow`], for every width.
async fn check_window(program: impl Fn(usize) -> ProgramConfig, history: &History) -> Result<(), Failure> {
    for width in 2..=history.len() + 1 {
        let kept = compact(&CommandStrategy::start(&program(width)).await?, history).await?;
        let expected = compact(&TailWindow::new(width), history).await?;
        ensure(kept == expected, || format!("a width of {width} keeps\n{kept:#?}\nand not\n{expected:#?}"))?;
    }
    Ok(())
}

async fn check_agent(
    agent: &CommandAgent,
    environment: &CommandEnvironment,
    boundary: &Boundary,
) -> Result<(), Failure> {
    for (horizon, n_actions, n_answers, end) in
        [(20, 6, 5, EndReason::Answer), (6, 6, 4, EndReason::Budget), (3, 3, 2, EndReason::Budget)]
    {
        let restored = environment.restore(boundary).await?;
        agent.check_tools(restored.toolbox.specs().iter().map(|tool| &*tool.name))?;
        let run = Run {
            history: boundary.history(),
            instructions: Some("Keep every item in stock."),
            model: &ScriptedModel::new(Vec::<Step>::new()),
            toolbox: &restored.toolbox,
            budget: Budget::actions(horizon),
            seed: 1,
            observer: None,
        };
        let (rollout, history) = run.execute(agent).await;
        ensure(rollout.end == end, || format!("{rollout:?}"))?;
        let blocked: Vec<_> = rollout.actions.iter().map(|action| (action.name(), action.is_blocked())).collect();
        let expected = [
            ("check", false),
            ("check", false),
            ("order", true),
            ("restock", true),
            ("order", false),
            ("check", false),
        ];
        ensure(blocked == expected[..n_actions], || format!("{blocked:?}"))?;
        ensure(rollout.n_answers == n_answers && rollout.spend.input_tokens > 0, || format!("{rollout:?}"))?;
        let sent = boundary.history().sent_hash();
        ensure(rollout.sent == Some(sent), || format!("sent {:?}, and not {sent}", rollout.sent))?;
        let history = history.ok_or("the run has no history")?;
        if horizon == 6 {
            let last = history.last().map(|event| shown(event));
            ensure(last == Some(vec!["result: 45 packs, ok".into(), "result: 45 packs, ok".into()]), || {
                format!("{last:?}")
            })?;
        }
    }
    Ok(())
}

async fn compact(strategy: &dyn Strategy, history: &History) -> Result<History, Failure> {
    match strategy.compact(history, &mut CompactContext::without_model()).await? {
        Compacted::Unchanged => Ok(history.clone()),
        Compacted::Changed(kept) => Ok(kept),
    }
}

/// An event as `compacted_directly.py` shows a message.
fn shown(event: &Event) -> Vec<String> {
    if let Event::ToolResults(round) = event {
        let outcome = |result: &ToolResult| if result.outcome.is_blocked() { "error" } else { "ok" };
        return round.results.iter().map(|result| format!("result: {}, {}", result.text(), outcome(result))).collect();
    }
    let part = |part: &Part| match &part.body {
        PartBody::System(text) => format!("system: {text}"),
        PartBody::Text(text) if matches!(event, Event::Response(_)) => format!("text: {text}"),
        PartBody::Text(text) => format!("user: {text}"),
        PartBody::ToolCall(call) => format!("call: {}", canonical_arguments(&call.arguments)),
        other => format!("{other:?}"),
    };
    event.content().iter().map(part).collect()
}

/// As `history` of `compacted_directly.py`.
fn history() -> History {
    let request = |content| Event::Request(Request { content, ..Request::default() });
    let mut events = vec![
        request(vec![Part::system("be brief"), Part::text("Keep every item in stock.")].into()),
        request(vec![Part::text("never order salt").pinned()].into()),
    ];
    for n in 0..6 {
        let calls: Vec<_> = (0..1 + n % 2)
            .map(|call| ToolCall::new(format!("r{n}c{call}"), "check", format!("{{\"item\": \"item {n}\"}}")))
            .collect();
        let outcome = if n == 2 { Outcome::Error } else { Outcome::Ok };
        let result = |call: &ToolCall| ToolResult::text_result(call, outcome, format!("{n} packs"));
        let results: Vec<_> = calls.iter().map(result).collect();
        let text = Part::text(format!("round {n}"));
        let content = [text].into_iter().chain(calls.into_iter().map(|call| PartBody::ToolCall(call).into())).collect();
        events.extend([Event::Response(Response { content, ..Response::default() }), Event::results(results)]);
    }
    History::from(events)
}

/// The same history without what ag2 has no word for: system prompts in a history, and pins.
fn without_anchors() -> History {
    let task = Arc::new(Event::request("Keep every item in stock."));
    History::new([task].into_iter().chain(history().iter().skip(2).cloned()).collect::<Vec<_>>())
}

/// A history in which an event is a message.
fn single_calls() -> History {
    History::from(rounds(&[("check", "{}", Outcome::Ok, "2 packs"); 6]))
}

/// A run in the world of `shop.py`.
fn boundary() -> Result<Boundary, Failure> {
    let events = rounds(&[
        ("check", r#"{"item": "tea"}"#, Outcome::Ok, "2 packs"),
        ("order", r#"{"item": "tea", "amount": "3"}"#, Outcome::Ok, "5 packs"),
        ("order", r#"{"item": "tea", "amount": 0}"#, Outcome::Error, "an order needs an amount"),
        ("count", r"{}", Outcome::NotFound, "there is no tool `count`"),
        ("check", r#"{"item": "salt"}"#, Outcome::Ok, "9 packs"),
    ]);
    let cut = events.len();
    let trajectory = Arc::new(Trajectory::new(Recording::new(Header::new("shop-1"), events)));
    Ok(Boundary::new(&trajectory, cut)?)
}

fn rounds(calls: &[(&str, &str, Outcome, &str)]) -> Vec<Event> {
    let round = |(n, (name, arguments, outcome, text)): (usize, &(&str, &str, Outcome, &str))| {
        let call = ToolCall::new(format!("c{n}"), *name, *arguments);
        let result = ToolResult::text_result(&call, *outcome, *text);
        [Event::calls([call]), Event::results([result])]
    };
    [Event::request("Keep every item in stock.")].into_iter().chain(calls.iter().enumerate().flat_map(round)).collect()
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(why().into()) }
}
