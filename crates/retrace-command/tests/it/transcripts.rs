//! The transcripts of `docs/protocol.md`: every line is a message, and each is played as it stands there.

use retrace_agent::{Budget, Run};
use retrace_command::protocol::{FromProgram, ToProgram};
use retrace_command::{CommandAgent, CommandEnvironment, CommandStrategy};
use retrace_env::{BoxFuture, CallError, Dispatch, Environment, ToolOutput, Toolbox};
use retrace_events::{EndReason, Event, Extra, History, Outcome, Part, Response, ToolSpec, Usage};
use retrace_model::{ScriptedModel, Step};
use retrace_strategies::{AskModel, CompactContext, Compacted, Strategy};
use serde_json::json;

use crate::{block_on, program};

const PAGE: &str = include_str!("../../../../docs/protocol.md");

/// The lines of the transcript with this title, each with who speaks: `>` retrace, `<` the program.
pub(crate) fn read(title: &str) -> Vec<(char, &'static str)> {
    let start = format!("```transcript {title}\n");
    let (_, rest) = PAGE.split_once(&*start).unwrap_or_else(|| panic!("there is no transcript `{title}`"));
    let (transcript, _) = rest.split_once("```").unwrap();
    transcript.lines().map(|line| (line.chars().next().unwrap(), &line[2..])).collect()
}

#[test]
fn every_line_of_a_transcript_is_a_message() {
    let mut is_inside = false;
    let mut n_lines = 0;
    for line in PAGE.lines() {
        match line.split_at_checked(2) {
            _ if line.starts_with("```") => is_inside = line.starts_with("```transcript"),
            Some(("> ", message)) if is_inside => assert!(ToProgram::parse(message).is_ok(), "{line}"),
            Some(("< ", message)) if is_inside => assert!(FromProgram::parse(message).is_ok(), "{line}"),
            _ => assert!(!is_inside, "{line}"),
        }
        n_lines += usize::from(is_inside);
    }
    assert!(n_lines > 20, "{n_lines}");
}

fn spent(text: &str, input_tokens: u64, output_tokens: u64) -> Step {
    let usage = Some(Usage { input_tokens, output_tokens, ..Usage::default() });
    Response { content: [Part::text(text)].into(), usage, ..Response::default() }.into()
}

#[test]
fn the_strategy() {
    block_on(async {
        let mut config = program("strategy", json!({"keep": 2}));
        config.answer_timeout = std::time::Duration::from_secs(20);
        let strategy = CommandStrategy::start(&config).await.unwrap();
        let call = retrace_events::ToolCall::new("c1", "check", "{\"item\": \"tea\"}");
        let result = retrace_events::ToolResult::text_result(&call, Outcome::Ok, "2 packs");
        let task = Event::request("Is there enough tea?");
        let history = History::from(vec![task.clone(), Event::calls([call]), Event::results([result])]);

        let model = AskModel(ScriptedModel::new([spent("The user asks for tea.", 20, 6)]));
        let mut cx = CompactContext::new(&model, 0);
        let Compacted::Changed(kept) = strategy.compact(&history, &mut cx).await.unwrap() else { panic!() };
        assert_eq!(kept.events().map(Event::kind).collect::<Vec<_>>(), ["summary", "response", "tool_results"]);
        let spend = cx.spend();
        assert_eq!((spend.n_model_calls, spend.input_tokens, spend.output_tokens), (2, 25, 6));

        let short = History::from(vec![task]);
        assert_eq!(strategy.compact(&short, &mut cx).await.unwrap(), Compacted::Unchanged);
    });
}

/// Answers every call alike.
struct TwoPacks;

impl Dispatch for TwoPacks {
    fn dispatch<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<ToolOutput, CallError>> {
        Box::pin(std::future::ready(Ok(ToolOutput::ok("2 packs"))))
    }
}

#[test]
fn the_agent() {
    block_on(async {
        let agent = CommandAgent::start(&program("agent", json!({}))).await.unwrap();
        let history = History::from(vec![Event::request("Is there enough tea?")]);
        let sent = history.sent_hash();
        let check = ToolSpec {
            name: "check".to_owned(),
            description: Some("Counts an item.".to_owned()),
            parameters: ToolSpec::any_arguments(),
            extra: Extra::default(),
        };
        let toolbox = Toolbox::over([check], TwoPacks);
        let model = ScriptedModel::new([spent("Two packs are left.", 50, 5)]);
        let run = Run {
            history,
            instructions: Some("Keep every item in stock."),
            model: &model,
            toolbox: &toolbox,
            budget: Budget::actions(5),
            seed: 7,
            observer: None,
        };
        let (rollout, history) = run.execute(&agent).await;
        assert_eq!(rollout.end, EndReason::Answer, "{rollout:?}");
        assert_eq!(rollout.actions.iter().map(|action| action.name()).collect::<Vec<_>>(), ["check", "chekc"]);
        assert_eq!((rollout.n_answers, rollout.spend.input_tokens, rollout.spend.output_tokens), (2, 80, 14));
        assert_eq!(rollout.sent, Some(sent));
        let kinds: Vec<_> = history.unwrap().events().map(Event::kind).collect();
        assert_eq!(kinds, ["request", "response", "tool_results", "request", "response"]);
    });
}

#[test]
fn the_environment() {
    block_on(async {
        let environment = CommandEnvironment::start(&program("environment", json!({}))).await.unwrap();
        let toolbox = environment.open().await.unwrap();
        assert_eq!(toolbox.specs().len(), 1);
        let output = toolbox.call("check", "{\"item\": \"tea\"}").await.unwrap();
        assert_eq!((output.outcome, output.text()), (Outcome::Ok, "2 packs".to_owned()));
        assert_eq!(toolbox.call("order", "{}").await.unwrap().outcome, Outcome::NotFound);
    });
}
