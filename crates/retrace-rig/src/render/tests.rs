//! Laws of every rendering, for every provider.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use retrace_events::{
    History, Media, MediaKind, MediaSource, Outcome, Raw, Request, Summary, Thinking, ToolResults, Usage, UsageEvent,
    canonical_arguments,
};
use rig_core::completion::{CompletionResponse, Usage as RigUsage, adapt};

use super::*;
use crate::decode::decode;
use crate::{RigConfig, RigModel, known_providers};

/// Anything that can stand in a recording.
fn any_events(with_media: bool) -> impl Strategy<Value = Vec<Event>> {
    let id = || select(vec!["c1", "c2", "", "call_1", "ü"]);
    let tool = || select(vec!["login", "check"]);
    let arguments =
        select(vec!["{}", "", "{\"room\": 7, \"a\": 1.50}", "{\"a\":1,\"a\":2}", "not json", "\"{}\"", "[1]"]);
    let call = (id(), tool(), arguments).prop_map(|(id, name, arguments)| ToolCall::new(id, name, arguments));
    let text = || select(vec!["hello", "", " \n", "Go on."]).prop_map(Part::text);
    let thinking = prop::option::of(Just("sig".to_owned()))
        .prop_map(|signature| PartBody::Thinking(Thinking { text: "hm".to_owned(), signature }).into());
    let scoped = text().prop_map(|mut part| {
        part.marks.set_scope("request");
        part
    });
    let media = {
        let of = |kind, media_type: &str| Media {
            kind,
            media_type: media_type.to_owned(),
            source: MediaSource::Data("iVBORw0KGgo=".to_owned()),
        };
        let image = of(MediaKind::Image, "image/png");
        let kinds = if with_media { vec![image, of(MediaKind::Document, "application/pdf")] } else { vec![image] };
        select(kinds).prop_map(|media| Part::from(PartBody::Media(media)))
    };
    let media = if with_media { media.boxed() } else { text().boxed() };
    let said = vec(
        prop_oneof![3 => text(), 1 => Just(Part::system("Be brief.")), 1 => scoped.clone(), 1 => media.clone()],
        0..3,
    );
    let response =
        vec(prop_oneof![6 => call.prop_map(|call| PartBody::ToolCall(call).into()), 2 => text(), 2 => thinking, 1 => scoped], 0..4)
            .prop_map(|content| {
                Event::Response(Response { content: content.into(), model: Some("any".to_owned()), ..Response::default() })
            });
    let result =
        (id(), tool(), select(vec![Outcome::Ok, Outcome::Error]), vec(prop_oneof![2 => text(), 1 => media], 0..3))
            .prop_map(|(id, name, outcome, content)| ToolResult {
                content: content.into(),
                ..ToolResult::text_result(&ToolCall::new(id, name, ""), outcome, "")
            });
    let results = vec(result, 0..4)
        .prop_map(|results| Event::ToolResults(ToolResults { results: results.into(), ..ToolResults::default() }));
    let usage = UsageEvent { kind: "x".to_owned(), usage: Usage::default(), model: None, extra: Default::default() };
    vec(
        prop_oneof![
            3 => response,
            3 => results,
            1 => said.clone().prop_map(|content| Event::Request(Request { content: content.into(), ..Request::default() })),
            1 => said.prop_map(|content| Event::Summary(Summary { content: content.into(), replaced: 2, ..Summary::default() })),
            1 => Just(Event::Usage(usage)),
        ],
        0..12,
    )
}

/// A target of every provider, and of models that are told apart.
fn targets() -> Vec<(String, RigModel)> {
    let other = ["openai:gpt-4.1", "openai-responses:gpt-5", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash"];
    let names = known_providers().into_iter().map(|provider| format!("{provider}:some-model"));
    let model = |name: String| {
        let mut config = RigConfig { max_tokens: Some(100), ..RigConfig::new(&*name) };
        config.base_url = name.starts_with("azure").then(|| "http://localhost".to_owned());
        let model = RigModel::new(config, &|name| Some("key".to_owned()).filter(|_| name.ends_with("KEY"))).unwrap();
        (name, model)
    };
    // Those that take no tools are refused them.
    names.chain(other.map(str::to_owned)).map(model).filter(|(_, model)| model.target().takes_tools()).collect()
}

thread_local! {
    static TARGETS: Vec<(String, RigModel)> = targets();
}

/// What is said in messages: texts of the user and of the model, calls, and results.
fn said(messages: &[Message]) -> Vec<String> {
    let mut said = Vec::new();
    for message in messages {
        match message {
            Message::System { .. } => {}
            Message::User { content } => said.extend(content.iter().map(|part| match part {
                UserContent::Text(text) => format!("user {}", text.text),
                UserContent::ToolResult(result) => format!("result {}", text_of(result)),
                other => format!("{other:?}"),
            })),
            Message::Assistant(turn) => said.extend(turn.content.iter().filter_map(|block| match block {
                AssistantContent::Text(text) => Some(format!("model {}", text.text)),
                AssistantContent::ToolCall(call) => {
                    Some(format!("call {} {}", call.function.name, call.function.arguments_value()))
                }
                _ => None,
            })),
        }
    }
    said.retain(|text| !["user", "model"].contains(&text.trim()));
    said
}

fn text_of(result: &RigResult) -> String {
    let text: String = result.content.iter().filter_map(ToolResultContent::as_text).collect();
    // What rig and the rendering add.
    let text = text.strip_prefix(FAILED.trim()).unwrap_or(&text);
    text.replace("(see attached image)", "").replace("(no tool output)", "").trim().to_owned()
}

/// Each call with its id and the text that answers it, as a provider reads the messages.
fn answered(messages: &[Message]) -> Vec<(String, String)> {
    let mut answered = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let Message::Assistant(turn) = message else { continue };
        let next = match messages.get(at + 1) {
            Some(Message::User { content }) => &content[..],
            _ => &[],
        };
        let results: Vec<_> = next
            .iter()
            .filter_map(|part| if let UserContent::ToolResult(result) = part { Some(result) } else { None })
            .collect();
        let calls: Vec<_> = turn.tool_calls().collect();
        assert_eq!(calls.len(), results.len(), "every call of a turn is answered in the next message");
        for call in calls {
            let answers: Vec<_> = results.iter().filter(|result| result.call == call.id).collect();
            assert_eq!(answers.len(), 1);
            answered.push((call.id.to_string(), text_of(answers[0])));
        }
    }
    answered
}

fn check(name: &str, model: &RigModel, history: &History) -> Result<(), TestCaseError> {
    let prompt = Prompt { instructions: Some("Act."), history, tools: &[], seed: 0 };
    let target = model.target();
    let rendered = match render(&prompt, target) {
        Ok(rendered) => rendered,
        Err(error) => {
            let has_media = format!("{:?}", history).contains("Media(");
            prop_assert!(has_media, "{name}: {error}");
            return Ok(());
        }
    };
    prop_assert_eq!(rendered.sent_hash(), history.sent_hash(), "{}", name);

    // rig's own repairs lose nothing of it.
    let adapted = adapt(&rendered.messages, target.wire());
    let mut left = said(&adapted);
    for text in said(&rendered.messages) {
        let text = text.trim_end().to_owned();
        let found = left.iter().position(|left| left.trim_end() == text);
        prop_assert!(found.is_some(), "{name}: {text:?} is lost in {adapted:?}");
        left.remove(found.unwrap_or(0));
    }
    let systems = |messages: &[Message]| format!("{messages:?}").matches("Be brief.").count();
    prop_assert_eq!(systems(&adapted), systems(&rendered.messages));

    // The calls and their answers are those of the history.
    let events: Vec<_> = history.sent().events().map(|sent| sent.event).collect();
    let expected: Vec<_> = pair(events.iter().copied())
        .calls
        .iter()
        .map(|call| call.answer.map(|answer| answer.result.text().trim().to_owned()))
        .collect();
    let answered = answered(&adapted);
    prop_assert_eq!(answered.len(), expected.len());
    for ((_, text), expected) in answered.iter().zip(expected) {
        let expected = expected.unwrap_or_else(|| "No result provided".to_owned());
        prop_assert_eq!(text, &expected);
    }
    let ids: HashSet<_> = answered.iter().map(|(id, _)| id).collect();
    prop_assert_eq!(ids.len(), answered.len(), "ids are there once");

    // The user speaks first and last.
    let spoken: Vec<_> = adapted.iter().filter(|message| !matches!(message, Message::System { .. })).collect();
    let is_user = |message: &&Message| matches!(message, Message::User { .. });
    let user_opens_and_closes = is_user(&spoken[0]) && is_user(&spoken[spoken.len() - 1]);
    prop_assert!(user_opens_and_closes, "{:?}", adapted);

    // Each response comes back with its texts and calls.
    let mut turns = rendered.messages.iter().filter_map(|message| match message {
        Message::Assistant(turn) => Some(turn.clone()),
        _ => None,
    });
    for sent in history.sent().events().filter(|sent| matches!(sent.event, Event::Response(_))) {
        let what = |parts: &[&Part]| -> Vec<String> {
            let one = |part: &Part| match &part.body {
                PartBody::Text(text) if !text.is_empty() => Some(text.to_string()),
                PartBody::ToolCall(call) => {
                    // Of a text that is a text of an object, rig knows only the object.
                    let arguments = call.arguments.replace("\"{}\"", "{}");
                    Some(format!("{} {}", call.name, canonical_arguments(&arguments)))
                }
                _ => None,
            };
            parts.iter().copied().filter_map(one).collect()
        };
        let expected = what(&sent.parts().collect::<Vec<_>>());
        if expected.is_empty() {
            continue;
        }
        let turn = turns.next().unwrap_or_default();
        let answer =
            CompletionResponse::new(turn.content, RigUsage::new(), target.origin().unwrap(), serde_json::Value::Null);
        let decoded = decode(answer, 0).unwrap();
        prop_assert_eq!(what(&decoded.content.iter().collect::<Vec<_>>()), expected);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(64, 1_000)))]

    #[test]
    fn every_provider_is_sent_the_whole_history(events in any_events(false)) {
        let history = History::from(events);
        TARGETS.with(|targets| targets.iter().try_for_each(|(name, model)| check(name, model, &history)))?;
    }

    #[test]
    fn media_are_sent_or_refused(events in any_events(true)) {
        let history = History::from(events);
        TARGETS.with(|targets| targets.iter().try_for_each(|(name, model)| check(name, model, &history)))?;
    }

    #[test]
    fn a_piece_that_is_not_sent_is_seen(events in any_events(false), which: prop::sample::Index) {
        let history = History::from(events);
        let prompt = Prompt { instructions: None, history: &history, tools: &[], seed: 0 };
        TARGETS.with(|targets| {
            let mut rendered = render(&prompt, targets[0].1.target()).unwrap();
            if !rendered.pieces.is_empty() {
                let at = rendered.pieces[which.index(rendered.pieces.len())].message;
                rendered.messages[at] = Message::system("something else");
                prop_assert_ne!(rendered.sent_hash(), history.sent_hash());
            }
            Ok(())
        })?;
    }
}

/// A turn as its provider stores it, and its event.
fn stored(model: &RigModel) -> (AssistantMessage, Event) {
    let block = AssistantContent::Reasoning(rig_core::completion::message::Reasoning::new("Look first."))
        .with_native(serde_json::json!({"type": "thinking", "thinking": "Look first.", "signature": "s1g"}));
    let turn =
        AssistantMessage::new(vec![block, AssistantContent::text("I look.")]).with_origin(model.target().origin());
    let answer = CompletionResponse::new(
        turn.content.clone(),
        RigUsage::new(),
        model.target().origin().unwrap(),
        serde_json::Value::Null,
    );
    (turn, Event::Response(decode(answer, 0).unwrap()))
}

#[test]
fn reasoning_goes_back_to_the_model_that_made_it_and_to_no_other() {
    let model = |name: &str| {
        RigModel::new(RigConfig { max_tokens: Some(100), ..RigConfig::new(name) }, &|name| {
            Some("key".to_owned()).filter(|_| name.ends_with("KEY"))
        })
        .unwrap()
    };
    let (sonnet, haiku) = (model("anthropic:claude-sonnet-4-5"), model("anthropic:claude-haiku-4-5"));
    let (turn, event) = stored(&sonnet);
    let render = |model: &RigModel, event: &Event| {
        let history = History::from(vec![Event::request("Go."), event.clone(), Event::request("And?")]);
        let prompt = Prompt { instructions: None, history: &history, tools: &[], seed: 0 };
        let rendered = render(&prompt, model.target()).unwrap();
        assert_eq!(rendered.sent_hash(), history.sent_hash());
        rendered.messages[1].clone()
    };
    assert_eq!(render(&sonnet, &event), Message::Assistant(turn));
    assert_eq!(render(&haiku, &event), Message::assistant("I look."));

    // A strategy changed what was said, and not the reasoning.
    let Event::Response(mut changed) = event.clone() else { unreachable!() };
    changed.content[1] = Part::text("I look again.");
    let Message::Assistant(turn) = render(&sonnet, &Event::Response(changed.clone())) else { unreachable!() };
    assert_eq!(turn.content[1], AssistantContent::text("I look again."));
    assert!(matches!(turn.content[0], AssistantContent::Reasoning(_)));
    changed.content.remove(0);
    assert_eq!(render(&sonnet, &Event::Response(changed)), Message::assistant("I look again."));

    // Another program's recording of the same model holds all that is wanted back, of another model it does not.
    let Event::Response(mut foreign) = event else { unreachable!() };
    foreign.provider_data = Some(Raw::of(&serde_json::json!({"id": "msg_1"})).unwrap());
    for (made_by, expected) in [("claude-sonnet-4-5-20250929", 2), ("claude-haiku-4-5", 1), ("claude-sonnet-4", 1)] {
        foreign.model = Some(made_by.to_owned());
        let Message::Assistant(turn) = render(&sonnet, &Event::Response(foreign.clone())) else { unreachable!() };
        assert_eq!(turn.content.len(), expected, "{made_by}");
    }
}
