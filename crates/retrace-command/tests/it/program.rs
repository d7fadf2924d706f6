//! The programs' side.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, Lines, StdinLock, Write, stdin};

use retrace_command::protocol::{
    Answer, Ask, Call, CallResult, Compact, Compacted, Ended, Failed, FromProgram, Greeting, Hello, NoAnswer, Opened,
    Over, Respond, Role, Serves, ToProgram, Unchanged,
};
use retrace_events::{Event, Outcome, Raw};
use serde_json::{Value, json};

/// The environment variable that makes this test a program.
pub(crate) const VARIABLE: &str = "RETRACE_TEST_PROGRAM";

#[test]
fn program() {
    let Ok(name) = std::env::var(VARIABLE) else { return };
    let mut talk = Talk { input: stdin().lock().lines(), output: File::create("/dev/fd/3").unwrap() };
    match &*name {
        "window" => window(&mut talk),
        "shop" => shop(&mut talk),
        "pairs" => pairs(&mut talk),
        "loop" => tool_loop(&mut talk),
        "tireless" => tireless(&mut talk),
        transcript => play(&mut talk, transcript),
    }
    std::process::exit(0);
}

struct Talk {
    input: Lines<StdinLock<'static>>,
    output: File,
}

impl Talk {
    fn hear(&mut self) -> Option<ToProgram> {
        let line = self.input.next()?.unwrap();
        Some(ToProgram::parse(&line).unwrap())
    }

    fn tell(&mut self, message: impl Into<FromProgram>) {
        let line = serde_json::to_string(&message.into()).unwrap();
        writeln!(self.output, "{line}").unwrap();
    }

    /// Reads the hello, greets, and gives the configuration.
    fn greet(&mut self, role: Role, tools: &[&str]) -> Value {
        let Some(ToProgram::Hello(Hello { config, .. })) = self.hear() else { panic!("no hello") };
        let config: Value = config.read().unwrap();
        let serves =
            config.get("serves").map_or(Serves::Many, |serves| serde_json::from_value(serves.clone()).unwrap());
        let asks = config["asks"] == true;
        let tools = tools.iter().map(|&tool| tool.to_owned()).collect();
        self.tell(Greeting { retrace: 1, role, name: "of-the-tests".to_owned(), serves, asks, tools });
        config
    }
}

fn raw(value: &Value) -> Raw {
    Raw::of(value).unwrap()
}

/// Keeps the last `keep` events behind one that has the process id, and what retrace's model answered if it is asked.
fn window(talk: &mut Talk) {
    let config = talk.greet(Role::Strategy, &[]);
    let mut waiting = HashMap::new();
    while let Some(message) = talk.hear() {
        let (number, n_events, said) = match message {
            ToProgram::Compact(Compact { r#use, events, .. }) if config["asks"] == true => {
                assert!(config["serves"] != "one_by_one" || waiting.is_empty(), "the uses of one overlap");
                waiting.insert(r#use, events.len());
                let (instructions, question) = ("Summarize.".to_owned(), format!("{} events", events.len()));
                talk.tell(Ask { r#use, id: 9, instructions, question, model: None });
                continue;
            }
            ToProgram::Compact(Compact { r#use, events, .. }) => (r#use, events.len(), String::new()),
            ToProgram::Answer(Answer { r#use, id: 9, response }) => {
                let response: Value = response.read().unwrap();
                (r#use, waiting.remove(&r#use).unwrap(), response["content"].as_str().unwrap().to_owned())
            }
            ToProgram::NoAnswer(NoAnswer { r#use, message, .. }) => {
                waiting.remove(&r#use);
                talk.tell(Failed { r#use, message });
                continue;
            }
            ToProgram::Over(Over { r#use, .. }) => {
                waiting.remove(&r#use);
                continue;
            }
            other => panic!("{other:?}"),
        };
        let keep = config["keep"].as_u64().unwrap() as usize;
        if n_events <= keep {
            talk.tell(Unchanged { r#use: number });
            continue;
        }
        let made = json!({"type": "request", "content": format!("{}{said}", std::process::id())});
        let kept = (n_events - keep..n_events).map(Value::from);
        let events = [made].into_iter().chain(kept).map(|event| raw(&event)).collect();
        talk.tell(Compacted { r#use: number, events });
    }
}

/// Worlds in each of which a number grows.
fn shop(talk: &mut Talk) {
    talk.greet(Role::Environment, &[]);
    let mut worlds: HashMap<u64, u64> = HashMap::new();
    while let Some(message) = talk.hear() {
        match message {
            ToProgram::Open(open) => {
                worlds.insert(open.r#use, 0);
                let tools = ["add", "pid"].map(|name| raw(&json!({"name": name})));
                talk.tell(Opened { r#use: open.r#use, tools: tools.into(), independent: false });
            }
            ToProgram::Call(Call { r#use, id, name, arguments }) => {
                let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
                let world = worlds.get_mut(&r#use).unwrap();
                let (outcome, text) = match (&*name, arguments["amount"].as_u64()) {
                    ("add", Some(amount)) => {
                        *world += amount;
                        (Outcome::Ok, world.to_string())
                    }
                    ("add", None) => (Outcome::Error, "no amount".to_owned()),
                    ("pid", _) => (Outcome::Ok, std::process::id().to_string()),
                    _ => (Outcome::NotFound, format!("no {name}")),
                };
                let error = outcome.is_blocked().then(|| "Refused".to_owned());
                talk.tell(CallResult { r#use, id, content: raw(&text.into()), outcome, error });
            }
            ToProgram::Over(Over { r#use, .. }) => assert!(worlds.remove(&r#use).is_some()),
            other => panic!("{other:?}"),
        }
    }
}

/// A world that answers calls two by two, the second first, each with its arguments.
fn pairs(talk: &mut Talk) {
    talk.greet(Role::Environment, &[]);
    let mut first: Option<Call> = None;
    while let Some(message) = talk.hear() {
        match message {
            ToProgram::Open(open) => {
                let tools = vec![raw(&json!({"name": "echo"}))];
                talk.tell(Opened { r#use: open.r#use, tools, independent: true });
            }
            ToProgram::Call(second) => match first.take() {
                None => first = Some(second),
                Some(first) => {
                    for call in [second, first] {
                        let content = raw(&call.arguments.into());
                        let (outcome, error) = (Outcome::Ok, None);
                        talk.tell(CallResult { r#use: call.r#use, id: call.id, content, outcome, error });
                    }
                }
            },
            ToProgram::Over(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// The tool loop of the house, over retrace's model.
fn tool_loop(talk: &mut Talk) {
    talk.greet(Role::Agent, &[]);
    let mut waiting = 0;
    while let Some(message) = talk.hear() {
        match message {
            ToProgram::Resume(resume) => talk.tell(Respond { r#use: resume.r#use, id: 0, events: None }),
            ToProgram::Answer(answer) => {
                let response: Value = answer.response.read().unwrap();
                let parts = response["content"].as_array().cloned().unwrap_or_default();
                let calls: Vec<_> = parts.iter().filter(|part| part["type"] == "tool_call").collect();
                waiting = calls.len();
                if waiting == 0 {
                    talk.tell(Ended { r#use: answer.r#use });
                }
                for (id, call) in (1..).zip(calls) {
                    let text = |key: &str| call[key].as_str().unwrap().to_owned();
                    let (call_id, name, arguments) = (text("id"), text("name"), text("arguments"));
                    let call =
                        retrace_command::protocol::AgentCall { r#use: answer.r#use, id, call_id, name, arguments };
                    talk.tell(call);
                }
            }
            ToProgram::Result(result) => {
                waiting -= 1;
                if waiting == 0 {
                    talk.tell(Respond { r#use: result.r#use, id: 0, events: None });
                }
            }
            ToProgram::Over(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Calls `add` for ever, with a model of its own, and does not look at its budget.
fn tireless(talk: &mut Talk) {
    let config = talk.greet(Role::Agent, &["plan"]);
    let worked = |talk: &mut Talk, r#use: u64| {
        let call = json!({"type": "tool_call", "id": "c", "name": "add", "arguments": "{\"amount\":1}"});
        let usage = json!({"input_tokens": 7, "output_tokens": 2});
        let response = raw(&json!({"type": "response", "content": [call], "usage": usage}));
        talk.tell(retrace_command::protocol::Report { r#use, response, sent: None });
        let (call_id, name, arguments) = ("c".to_owned(), "add".to_owned(), "{\"amount\":1}".to_owned());
        talk.tell(retrace_command::protocol::AgentCall { r#use, id: 1, call_id, name, arguments });
    };
    while let Some(message) = talk.hear() {
        match message {
            ToProgram::Resume(resume) if config["stops"] == true => talk.tell(Ended { r#use: resume.r#use }),
            ToProgram::Resume(resume) => worked(talk, resume.r#use),
            ToProgram::Result(result) => worked(talk, result.r#use),
            // Too late to matter, but still said.
            ToProgram::Over(over) => worked(talk, over.r#use),
            other => panic!("{other:?}"),
        }
    }
}

/// Plays its part of a transcript in `docs/protocol.md`, and holds what it hears against the transcript.
fn play(talk: &mut Talk, transcript: &str) {
    let lines = crate::transcripts::read(transcript);
    for (speaker, line) in lines {
        if speaker == '<' {
            writeln!(talk.output, "{line}").unwrap();
            continue;
        }
        let heard: Value = serde_json::from_str(&talk.input.next().unwrap().unwrap()).unwrap();
        let written: Value = serde_json::from_str(line).unwrap();
        assert_eq!(heard, written, "heard {heard}");
    }
    assert!(talk.input.next().is_none(), "there is more to hear");
}

/// What an event says, as a test wants to look at it.
pub(crate) fn text_of(event: &Event) -> String {
    event.content().iter().filter_map(|part| part.as_text()).collect()
}
