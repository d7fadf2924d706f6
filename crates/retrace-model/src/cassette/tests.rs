//! What goes onto a cassette comes off it.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use futures_core::future::BoxFuture;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index as Any;
use retrace_events::{
    Event, Extra, History, Media, MediaKind, MediaSource, Outcome, Part, PartBody, Raw, Request, Response, Summary,
    Thinking, ToolCall, ToolResult, ToolSpec, Usage, UsageEvent,
};

use super::{Cassette, CassetteRecorder};
use crate::{Answer, Model, ModelError, Priced, Prices, Prompt, Rules, ScriptedModel, Step};

/// A sink to look into.
#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl File {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    fn cassette(&self) -> Cassette {
        Cassette::read(&*self.bytes(), "c.jsonl").unwrap()
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A model of any name and rules with one script for all its prompts.
struct Named(&'static str, Rules, ScriptedModel);

impl Model for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn rules(&self) -> Rules {
        self.1
    }

    fn respond<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.2.respond(prompt)
    }
}

fn named(name: &'static str, script: Vec<Step>) -> Arc<dyn Model> {
    Arc::new(Named(name, Rules::default(), ScriptedModel::new(script)))
}

fn call(arguments: &str) -> ToolCall {
    ToolCall::new("c1", "look", arguments)
}

/// Every kind of event, none of which is sent as another is.
fn pool() -> Vec<Arc<Event>> {
    let scoped = {
        let mut part = Part::text("wrap up");
        part.marks.set_scope("request");
        Event::Request(Request { content: vec![Part::text("a"), part].into(), ..Request::default() })
    };
    let media = Media {
        kind: MediaKind::Image,
        media_type: "image/png".to_owned(),
        source: MediaSource::Data("aGk=".to_owned()),
    };
    let usage = UsageEvent { kind: "chat".to_owned(), usage: Usage::default(), model: None, extra: Extra::default() };
    let events = [
        Event::request("go on"),
        scoped,
        Event::Request(Request {
            content: vec![Part::system("be brief"), PartBody::Media(media).into()].into(),
            ..Request::default()
        }),
        Event::answer("done"),
        Event::calls([call("{\"b\": 1, \"a\": 2}"), call("not json \u{1b}")]),
        Event::results([ToolResult::text_result(&call(""), Outcome::Ok, "é店\n")]),
        Event::results([ToolResult::text_result(&call(""), Outcome::Error, "é店\n")]),
        Event::Summary(Summary { content: [Part::text("so far")].into(), replaced: 3, extra: Extra::default() }),
        Event::Usage(usage),
    ];
    events.map(Arc::new).to_vec()
}

fn tools() -> [Vec<ToolSpec>; 2] {
    let look = ToolSpec {
        name: "look".to_owned(),
        description: Some("Looks.".to_owned()),
        parameters: ToolSpec::any_arguments(),
        extra: Extra::default(),
    };
    [Vec::new(), vec![look]]
}

/// One question: the model, the seed, the instructions, the tools, the events, how many of them are shared.
type Question = (bool, u64, Option<bool>, bool, Vec<Any>, Any);

fn question() -> impl Strategy<Value = Question> {
    (any::<bool>(), 0..2_u64, any::<Option<bool>>(), any::<bool>(), vec(any::<Any>(), 0..4), any::<Any>())
}

fn outcome() -> impl Strategy<Value = Result<Response, ModelError>> {
    let thinking = Thinking { text: "hm".to_owned(), signature: Some("s1g".to_owned()) };
    let full = Response {
        content: vec![PartBody::Thinking(thinking).into(), PartBody::ToolCall(call("{ \"b\" : 1.0 }")).into()].into(),
        model: Some("m-1".to_owned()),
        usage: Some(Usage { input_tokens: 7, cache_read_tokens: Some(3), ..Usage::default() }),
        provider_data: Some(Raw::of(&["opaque", "\u{2028}"]).unwrap()),
        extra: Extra::default(),
    };
    let message = || ".{0,9}".prop_map(String::from);
    let wait = || any::<Option<Duration>>();
    prop_oneof![
        4 => message().prop_map(|text| Ok(Response { content: [Part::text(text)].into(), ..Response::default() })),
        2 => Just(Ok(full)),
        1 => (message(), wait()).prop_map(|(message, retry_after)| Err(ModelError::RateLimited { message, retry_after })),
        1 => (message(), wait()).prop_map(|(message, retry_after)| Err(ModelError::Unavailable { message, retry_after })),
        1 => any::<Duration>().prop_map(|limit| Err(ModelError::TimedOut { limit })),
        1 => message().prop_map(|message| Err(ModelError::Refused { message })),
        1 => message().prop_map(|message| Err(ModelError::Unusable { message })),
    ]
}

/// Asks these questions in this order; the answers by their number.
fn ask(models: &[Arc<dyn Model>; 2], questions: &[Question], order: &[usize]) -> HashMap<usize, Told> {
    let (pool, tools) = (pool(), tools());
    let answers = order.iter().map(|&number| {
        let (model, seed, instructions, has_tools, events, n_shared) = &questions[number];
        let events: Vec<_> = events.iter().map(|event| Arc::clone(&pool[event.index(pool.len())])).collect();
        let n_shared = n_shared.index(events.len() + 1);
        let mut history = History::new(events[..n_shared].to_vec());
        events[n_shared..].iter().for_each(|event| history.push(Arc::clone(event)));
        let instructions = instructions.map(|other| if other { "be kind" } else { "be \"quick\"" });
        let prompt = Prompt { instructions, history: &history, tools: &tools[usize::from(*has_tools)], seed: *seed };
        (number, pollster::block_on(models[usize::from(*model)].respond(&prompt)))
    });
    answers.collect()
}

type Told = Result<Answer, ModelError>;

/// What two questions share exactly if they are the same.
fn content(question: &Question) -> String {
    let (model, seed, instructions, tools, events, _) = question;
    let pool = pool();
    let history =
        History::new(events.iter().map(|event| Arc::clone(&pool[event.index(pool.len())])).collect::<Vec<_>>());
    let sent: Vec<_> = history
        .sent()
        .events()
        .map(|sent| {
            let results = if let Event::ToolResults(round) = sent.event { Some(round) } else { None };
            format!("{} {:?} {results:?}", sent.event.kind(), sent.parts().collect::<Vec<_>>())
        })
        .collect();
    format!("{model} {seed} {instructions:?} {tools} {sent:?}")
}

proptest! {
    #[test]
    fn what_was_recorded_is_answered_again_in_whatever_order_it_is_asked(
        asked in vec((question(), outcome(), any::<u32>()), 0..12),
    ) {
        let questions: Vec<_> = asked.iter().map(|(question, ..)| question.clone()).collect();
        let script = |model| {
            let its = asked.iter().filter(move |(question, ..)| question.0 == model);
            its.map(|(_, outcome, _)| match outcome.clone() {
                Ok(response) => Step::from(response),
                Err(error) => Step::from(error),
            }).collect()
        };
        let file = File::default();
        let recorder = CassetteRecorder::new(file.clone()).unwrap();
        let models = [recorder.around(named("a", script(false))), recorder.around(named("b", script(true)))];
        let in_order: Vec<_> = (0..asked.len()).collect();
        let told = ask(&models, &questions, &in_order);
        prop_assert_eq!(recorder.failure(), None);

        let mut order = in_order;
        // Any order, but of equal questions, which cannot be told apart, the one that was answered first.
        order.sort_by_key(|&number| asked[number].2);
        let mut first_of: HashMap<String, Vec<usize>> = HashMap::new();
        for &number in order.iter().rev() {
            first_of.entry(content(&questions[number])).or_default().push(number);
        }
        first_of.values_mut().for_each(|numbers| numbers.sort_unstable_by(|a, b| b.cmp(a)));
        let order: Vec<_> =
            order.iter().map(|&number| first_of.get_mut(&content(&questions[number])).unwrap().pop().unwrap()).collect();
        let cassette = file.cassette();
        prop_assert_eq!(ask(&["a", "b"].map(|name| cassette.model(name)), &questions, &order), told);
        prop_assert_eq!((cassette.n_missed(), cassette.n_unused(), cassette.torn_line()), (0, 0, None));

        // The same once more is more than was recorded.
        for answer in ask(&["a", "b"].map(|name| cassette.model(name)), &questions, &order).into_values() {
            prop_assert!(answer.unwrap_err().to_string().contains("have been given"));
        }
        prop_assert_eq!(cassette.n_missed(), questions.len());
    }

    #[test]
    fn a_cassette_that_was_cut_off_has_all_that_was_whole(cut: Any) {
        let file = File::default();
        let recorder = CassetteRecorder::new(file.clone()).unwrap();
        let model = recorder.around(named("a", vec!["one".into(), vec![call("{}")].into(), "three".into()]));
        let history = History::new(pool());
        for seed in 0..3 {
            pollster::block_on(model.respond(&prompt(&history, seed))).unwrap();
        }
        let bytes = file.bytes();
        let kept = &bytes[..cut.index(bytes.len() + 1)];
        let is_torn = !kept.ends_with(b"\n") && bytes[kept.len()..].first().is_some_and(|next| *next != b'\n');
        let n_whole = String::from_utf8_lossy(&bytes[..bytes.len().min(kept.len() + usize::from(!is_torn))])
            .split_inclusive('\n').filter(|line| line.ends_with('\n') && line.contains("{\"answer\"")).count();
        match Cassette::read(kept, "c.jsonl") {
            Ok(cassette) => {
                prop_assert_eq!(cassette.torn_line().is_some(), is_torn);
                prop_assert_eq!(cassette.n_unused(), n_whole);
            }
            Err(error) => prop_assert!(kept.len() < 30, "{error}"),
        }
    }

    #[test]
    fn whatever_a_file_holds_it_is_read_or_refused(text in ".{0,60}", at: Any) {
        let lines = ["{\"cassette\":{\"version\":1}}", "{\"piece\":{\"n\":0,\"is\":[]}}", &text];
        let lines: Vec<_> = (0..3).map(|line| lines[(line + at.index(3)) % 3]).collect();
        if let Err(error) = Cassette::read(lines.join("\n").as_bytes(), "c.jsonl") {
            prop_assert!(error.to_string().starts_with("c.jsonl:"), "{error}");
            prop_assert!(!error.to_string().contains(char::is_control), "{error}");
        }
    }
}

fn prompt(history: &History, seed: u64) -> Prompt<'_> {
    Prompt { instructions: Some("be kind"), history, tools: &[], seed }
}

/// A cassette with one answer, to the seed 7, and what it says to other prompts.
fn miss(change: impl for<'a> FnOnce(&mut Prompt<'a>, &'a [History], &'a [ToolSpec]) -> &'static str) -> String {
    let file = File::default();
    let recorder = CassetteRecorder::new(file.clone()).unwrap();
    let events = |text: &str| {
        let result = ToolResult::text_result(&call("{}"), Outcome::Ok, format!("{} {text}", "é".repeat(300)));
        vec![Event::request("go on"), Event::calls([call("{}")]), Event::results([result])]
    };
    let longer = events("10 left").into_iter().chain([Event::request("and now?")]).collect();
    let histories = [events("10 left"), events("9 left"), longer, vec![Event::request("go on")]].map(History::from);
    let tools = tools()[1].clone();
    let mut prompt = prompt(&histories[0], 7);
    pollster::block_on(recorder.around(named("a", vec!["one".into()])).respond(&prompt)).unwrap();
    let cassette = file.cassette();
    let model = cassette.model(change(&mut prompt, &histories, &tools));
    let error = pollster::block_on(model.respond(&prompt)).unwrap_err().to_string();
    assert_eq!((cassette.n_missed(), cassette.first_miss().as_ref()), (1, Some(&error)));
    assert!(error.chars().count() < 500, "{error}");
    let start = "the cassette c.jsonl has no answer of `a` to this: ";
    error.strip_prefix(start).unwrap_or(&error).to_owned()
}

#[test]
fn a_request_that_was_not_recorded_is_told_from_the_nearest() {
    let changed = |prompt: &mut Prompt<'_>| prompt.seed = 8;
    assert_eq!(
        miss(|prompt, _, _| {
            changed(prompt);
            "a"
        }),
        "the nearest request, in line 9, has the seed 7, and this one 8"
    );
    let told = miss(|prompt, histories, _| {
        prompt.history = &histories[1];
        "a"
    });
    let start = "the nearest request, in line 9, has the same seed, but its history differs in event 3: `…";
    assert!(told.starts_with(start) && told.contains("é 10 left") && told.contains("é 9 left"), "{told}");
    let told = miss(|prompt, histories, _| {
        (prompt.history, prompt.seed) = (&histories[1], 8);
        "a"
    });
    assert!(told.contains("has the seed 7, and this one 8; its history differs in event 3"), "{told}");
    let told = miss(|prompt, histories, _| {
        prompt.history = &histories[2];
        "a"
    });
    assert!(told.ends_with("its history ends before event 4 of this one, a `request`"), "{told}");
    let told = miss(|prompt, histories, _| {
        prompt.history = &histories[3];
        "a"
    });
    assert!(told.ends_with("its history goes on after the 1 events of this one"), "{told}");
    let told = miss(|prompt, _, _| {
        prompt.instructions = Some("be quick");
        "a"
    });
    assert!(told.ends_with("its instructions differ: `\"be kind\"` was recorded, `\"be quick\"` is asked"), "{told}");
    let told = miss(|prompt, _, tools| {
        prompt.tools = tools;
        "a"
    });
    assert!(told.contains("its tools differ: `[]` was recorded, `[{\"description\":\"Looks.\""), "{told}");
    assert_eq!(miss(|_, _, _| "b"), "the cassette c.jsonl has no answers of `b`, but those of `a`");
}

#[test]
fn what_no_provider_is_sent_makes_no_other_request() {
    let history = |marks: bool| {
        let mut part = Part::text("go on");
        part.marks.kept = marks;
        let mut call = call(if marks { "{ \"a\" : 1 , \"b\" : 2 }" } else { "{\"b\":2,\"a\":1}" });
        call.rebuilt = marks;
        let response = Response {
            content: [PartBody::ToolCall(call).into()].into(),
            usage: marks.then(Usage::default),
            model: marks.then(|| "m-1".to_owned()),
            ..Response::default()
        };
        let request = Request { content: [part].into(), ..Request::default() };
        History::from(vec![Event::Request(request), Event::Response(response)])
    };
    let tool =
        |parameters: &str| ToolSpec { parameters: serde_json::from_str(parameters).unwrap(), ..tools()[1][0].clone() };
    let file = File::default();
    let recorder = CassetteRecorder::new(file.clone()).unwrap();
    let (recorded, asked) = (history(true), history(false));
    let (tools, same_tools) = ([tool(r#"{"type":"object","a":1}"#)], [tool(r#"{"a":1,"type":"object"}"#)]);
    let prompt = Prompt { instructions: None, history: &recorded, tools: &tools, seed: 1 };
    let answer = pollster::block_on(recorder.around(named("a", vec!["one".into()])).respond(&prompt));
    let prompt = Prompt { history: &asked, tools: &same_tools, ..prompt };
    assert_eq!(pollster::block_on(file.cassette().model("a").respond(&prompt)), answer);
}

#[test]
fn a_history_is_written_once_however_many_requests_have_it() {
    let long = Event::request("x".repeat(1_000));
    let events: Arc<[Arc<Event>]> = (0..100)
        .map(|n| Arc::new(Event::request(format!("{n} {}", "x".repeat(1_000)))))
        .chain([Arc::new(long)])
        .collect();
    let file = File::default();
    let recorder = CassetteRecorder::new(file.clone()).unwrap();
    let model = recorder.around(named("a", (0..200).map(|_| "one".into()).collect()));
    for rollout in 0..100 {
        let n_kept = if rollout % 2 == 0 { 101 } else { 60 };
        let mut history = History::prefix(&events, n_kept);
        for step in 0..2 {
            pollster::block_on(model.respond(&prompt(&history, rollout * 2 + step))).unwrap();
            history.push(Event::answer(format!("{rollout}")));
        }
    }
    let (n_bytes, n_of_history) = (file.bytes().len(), 101 * 1_010);
    assert!((n_of_history..n_of_history + 200 * 400).contains(&n_bytes), "{n_bytes}");
    assert_eq!(file.cassette().n_unused(), 200);
}

/// Takes so many bytes and no more.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("no space left"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_cannot_be_kept_is_an_error_and_nothing_more_is_asked() {
    assert!(CassetteRecorder::new(Full(5)).is_err());
    let recorder = CassetteRecorder::new(Full(700)).unwrap();
    let scripted = Arc::new(ScriptedModel::new(vec!["one"; 9]));
    let model = recorder.around(Arc::<ScriptedModel>::clone(&scripted));
    let history = History::from(vec![Event::request("go on")]);
    let told: Vec<_> = (0..9).map(|seed| pollster::block_on(model.respond(&prompt(&history, seed)))).collect();
    let n_ok = told.iter().take_while(|answer| answer.is_ok()).count();
    let error = "failed to write the cassette, so no model is asked any more: no space left";
    assert!(told[n_ok..].iter().all(|answer| *answer == Err(ModelError::Cassette { message: error.to_owned() })));
    assert!(n_ok > 0 && n_ok < 8 && scripted.asked().len() == n_ok + 1, "{n_ok}");
    assert_eq!(recorder.failure().as_deref(), Some(error));
}

#[test]
fn an_answer_that_nobody_waited_for_is_kept_as_that() {
    struct Silent;
    impl Model for Silent {
        fn name(&self) -> &str {
            "silent"
        }

        fn respond<'a>(&'a self, _: &'a Prompt<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
            Box::pin(std::future::pending())
        }
    }
    let file = File::default();
    let model = CassetteRecorder::new(file.clone()).unwrap().around(Arc::new(Silent));
    let history = History::from(vec![Event::request("go on")]);
    let prompt = prompt(&history, 1);
    let mut answer = model.respond(&prompt);
    assert!(answer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(answer);
    let error = pollster::block_on(file.cassette().model("silent").respond(&prompt)).unwrap_err();
    assert_eq!(error.to_string(), "when this was recorded, nobody waited for the answer");
    assert!(!error.is_transient());
}

#[test]
fn a_model_comes_back_with_its_name_rules_and_prices() {
    let file = File::default();
    let recorder = CassetteRecorder::new(file.clone()).unwrap();
    let strict = Arc::new(Named("strict", Rules::strict(), ScriptedModel::default()));
    assert_eq!(recorder.around(strict).rules(), Rules::strict());
    recorder.around(named("a", Vec::new()));
    recorder.around(named("a", Vec::new()));
    let prices = Prices { input: 0.1, output: 0.7, cache_read: Some(0.01), cache_write: None };
    let priced: Arc<dyn Model> = Arc::new(Priced::new(named("priced", Vec::new()), prices));
    assert_eq!(recorder.around(priced).prices(), Some(prices));
    let cassette = file.cassette();
    assert_eq!((cassette.model("strict").name(), cassette.model("strict").rules()), ("strict", Rules::strict()));
    assert_eq!((cassette.model("a").rules(), cassette.model("a").prices()), (Rules::default(), None));
    assert_eq!(cassette.model("priced").prices(), Some(prices));
    assert_eq!(file.text().lines().count(), 4);
}

#[test]
fn a_flaw_is_named_with_its_line() {
    let error = |lines: &[&str]| Cassette::read(lines.join("\n").as_bytes(), "c.jsonl").unwrap_err().to_string();
    let (first, model) = ("{\"cassette\":{\"version\":1}}", "{\"model\":{\"name\":\"a\",\"rules\":{}}}");
    let (piece, history) =
        ("{\"piece\":{\"n\":0,\"is\":[]}}", "{\"history\":{\"first\":1,\"after\":0,\"events\":[0]}}");
    let answer = |model: &str, tools: u32, history: u32| {
        let outcome = "{\"timed_out\":{\"limit\":{\"secs\":1,\"nanos\":0}}}";
        format!(
            "{{\"answer\":{{\"model\":\"{model}\",\"seed\":1,\"tools\":{tools},\"history\":{history},\"outcome\":{outcome}}}}}"
        )
    };
    assert_eq!(error(&[]), "c.jsonl:1: no cassette: the first line does not start one");
    assert_eq!(error(&[model]), "c.jsonl:1: no cassette: the first line does not start one");
    assert_eq!(
        error(&["{\"cassette\":{\"version\":2}}"]),
        "c.jsonl:1: a cassette of version 2, and this is a reader of version 1"
    );
    assert_eq!(
        error(&[first, "", piece, piece]),
        "c.jsonl:4: number 0, where 1 is next: a line is missing or there twice"
    );
    assert_eq!(error(&[first, piece, &piece.replace(":0", ":1")]), "c.jsonl:3: the piece 0 again");
    assert_eq!(error(&[first, piece, history, &history.replace(":1", ":2")]), "c.jsonl:4: the history 1 again");
    assert_eq!(error(&[first, history]), "c.jsonl:2: no line before has the piece 0");
    assert_eq!(error(&[first, piece, &answer("a", 0, 0)]), "c.jsonl:3: no line before has the model `a`");
    assert_eq!(error(&[first, model, &answer("a", 0, 0)]), "c.jsonl:3: no line before has the piece 0");
    assert_eq!(error(&[first, model, piece, &answer("a", 0, 5)]), "c.jsonl:4: no line before has the history 5");
    let other = error(&[first, &"{\"noise\":1}\n".repeat(2)]);
    assert!(other.starts_with("c.jsonl:2: `unknown variant `noise`, expected one of `cassette`"), "{other}");
    let request = answer("a", 0, 0).replace("\"timed_out\"", "\"answered\"").replace("\"limit\"", "\"response\"");
    assert!(error(&[first, model, piece, &request, piece]).starts_with("c.jsonl:4: "));
    assert!(Cassette::read([first, model, piece, history, &answer("a", 0, 1)].join("\n").as_bytes(), "c").is_ok());
}
