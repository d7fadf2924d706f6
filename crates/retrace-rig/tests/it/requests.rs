//! What providers are sent.

use retrace_events::{Media, MediaKind, MediaSource, Part, PartBody, Request, Response, Summary, Thinking};
use serde_json::{Value, json};

use super::*;

fn chat_answer() -> Value {
    json!({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Done."}}]})
}

fn messages_answer() -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 1, "output_tokens": 1}})
}

/// A history that a naive rendering would get refused: it starts with the model, ids are there twice, empty and odd,
/// results stand late and in another order, one answers nothing, one call has no result, and the user speaks twice.
fn tricky() -> History {
    let mut image = Request { content: [Part::text("Look at this.")].into(), ..Request::default() };
    let png = Media {
        kind: MediaKind::Image,
        media_type: "image/png".to_owned(),
        source: MediaSource::Data("iVBORw0KGgo=".to_owned()),
    };
    image.content.push(PartBody::Media(png).into());
    let thinking = Thinking { text: "Both at once.".to_owned(), signature: Some("s1g".to_owned()) };
    let both = Response {
        content: vec![
            PartBody::Thinking(thinking).into(),
            Part::text("I check both."),
            PartBody::ToolCall(call("c1", "{\"item\": \"nails\"}")).into(),
            PartBody::ToolCall(call("", "{\"item\": \"bolts\"}")).into(),
        ]
        .into(),
        model: Some("claude-sonnet-4-5".to_owned()),
        ..Response::default()
    };
    let summary = Summary { content: [Part::text("So far: two checks.")].into(), replaced: 4, ..Summary::default() };
    history([
        Event::Response(both),
        Event::request("Meanwhile."),
        Event::results([result("", Outcome::Error, "no bolts"), result("c1", Outcome::Ok, "7")]),
        Event::Summary(summary),
        Event::Request(image),
        Event::calls([call("c1", "not json")]),
        Event::results([result("c1", Outcome::Ok, ""), result("c9", Outcome::Ok, "old news")]),
        Event::calls([call("c2", "{}")]),
        Event::Request(Request {
            content: vec![Part::system("Be brief."), Part::text("And?")].into(),
            ..Request::default()
        }),
    ])
}

#[tokio::test]
async fn a_tricky_history_fits_chat_completions() {
    let server = Server::json(chat_answer());
    ask(&model("openai:gpt-4.1", &server), &tricky()).await.unwrap();
    let seen = &server.seen()[0];
    assert_eq!(seen.line, "POST /v1/chat/completions HTTP/1.1");
    assert!(seen.headers.contains(&format!("authorization: Bearer {KEY}")), "{}", seen.headers);
    let called = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "check", "arguments": arguments}});
    let told = |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    let system = |text: &str| json!({"role": "system", "content": text});
    let expected = json!([
        system("Keep the shop."),
        {"role": "user", "content": "(The conversation up to this point is left out.)"},
        {"role": "assistant", "content": "I check both.",
            "tool_calls": [called("c1", "{\"item\":\"nails\"}"), called("call_1", "{\"item\":\"bolts\"}")]},
        told("call_1", "[tool error] no bolts"),
        told("c1", "7"),
        {"role": "user", "content": [
            {"type": "text", "text": "Meanwhile."},
            {"type": "text", "text": "So far: two checks."},
            {"type": "text", "text": "Look at this."},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}}]},
        {"role": "assistant", "content": "", "tool_calls": [called("call_2", "{}")]},
        told("call_2", "(no tool output)"),
        {"role": "user", "content": "[tool check result] old news"},
        {"role": "assistant", "content": "", "tool_calls": [called("c2", "{}")]},
        told("c2", "No result provided"),
        system("Be brief."),
        {"role": "user", "content": "And?"},
    ]);
    assert_eq!(seen.body["messages"], expected);
    assert_eq!(seen.body["tools"][0]["function"]["name"], "check");
    for unset in ["temperature", "max_tokens", "max_completion_tokens", "seed", "stream"] {
        assert_eq!(seen.body.get(unset), None, "{unset}");
    }
}

#[tokio::test]
async fn a_tricky_history_fits_anthropic() {
    let server = Server::json(messages_answer());
    let uncached = model_with("anthropic:claude-sonnet-4-5", &server, |config| config.prompt_cache = false);
    ask(&uncached, &tricky()).await.unwrap();
    let seen = &server.seen()[0];
    assert_eq!(seen.line, "POST /v1/messages HTTP/1.1");
    assert!(seen.headers.contains(&format!("x-api-key: {KEY}")), "{}", seen.headers);
    let used = |id: &str, input: Value| json!({"type": "tool_use", "id": id, "name": "check", "input": input});
    let text = |text: &str| json!({"type": "text", "text": text});
    let told = |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]});
    let failed = |id: &str, text: &str| {
        let mut told = told(id, text);
        told["is_error"] = json!(true);
        told
    };
    let expected = json!([
        {"role": "user", "content": [text("(The conversation up to this point is left out.)")]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Both at once.", "signature": "s1g"},
            text("I check both."),
            used("c1", json!({"item": "nails"})),
            used("call_1", json!({"item": "bolts"}))]},
        {"role": "user", "content": [
            failed("call_1", "no bolts"),
            told("c1", "7"),
            text("Meanwhile."),
            text("So far: two checks."),
            text("Look at this."),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]},
        {"role": "assistant", "content": [used("call_2", json!({}))]},
        {"role": "user", "content": [
            told("call_2", "(no tool output)"),
            text("[tool check result] old news")]},
        {"role": "assistant", "content": [used("c2", json!({}))]},
        {"role": "user", "content": [failed("c2", "No result provided"), text("And?")]},
    ]);
    assert_eq!(seen.body["messages"], expected);
    assert_eq!(seen.body["system"], json!([text("Keep the shop.\n\nBe brief.")]));
    assert!(seen.body["max_tokens"].as_u64().unwrap() > 1000, "Anthropic wants a limit, so the model's own is sent");
}

/// Where the marks of a request are, as JSON pointers.
fn marks(value: &Value, at: &str) -> Vec<String> {
    let inside = |(key, value): (String, &Value)| marks(value, &format!("{at}/{key}"));
    match value {
        Value::Object(fields) if fields.get("cache_control") == Some(&json!({"type": "ephemeral"})) => {
            vec![at.to_owned()]
        }
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).flat_map(inside).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(n, value)| (n.to_string(), value)).flat_map(inside).collect()
        }
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn rollouts_of_one_history_share_a_cache_that_moves_on_with_each_round() {
    let server = Server::json(messages_answer());
    let model = model("anthropic:claude-sonnet-4-5", &server);
    let round = |id: &str| [Event::calls([call(id, "{}")]), Event::results([result(id, Outcome::Ok, "7")])];
    let resumed = || [Event::request("Go.")].into_iter().chain(round("c1")).chain(round("c2"));
    // That the history is what was sent is compared there, too.
    ask(&model, &history(resumed())).await.unwrap();
    ask(&model, &history(resumed().chain(round("c3")))).await.unwrap();
    let off = model_with("anthropic:claude-sonnet-4-5", &server, |config| config.prompt_cache = false);
    ask(&off, &history(resumed())).await.unwrap();
    ask(&model_with("minimax-anthropic:m", &server, |config| config.max_tokens = Some(9)), &go()).await.unwrap();
    let seen = server.seen();
    let mut found = [0, 1, 2, 3].map(|n| marks(&seen[n].body, ""));
    found.iter_mut().for_each(|marks| marks.sort());
    let fixed = |before: usize, newest: usize| {
        let ends = [before, newest].map(|n| format!("/messages/{n}/content/0"));
        ends.into_iter().chain(["/system/0".to_owned(), "/tools/0".to_owned()]).collect::<Vec<_>>()
    };
    // The second request goes on from where the first one ended, and marks it again.
    assert_eq!(found, [fixed(2, 4), fixed(4, 6), vec![], vec![]]);
}

#[tokio::test]
async fn a_tricky_history_fits_responses_and_gemini() {
    let server = Server::json(json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed",
        "model": "gpt-5", "output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Done.", "annotations": []}]}]}));
    ask(&model("openai-responses:gpt-5", &server), &tricky()).await.unwrap();
    let seen = &server.seen()[0];
    assert_eq!(seen.line, "POST /v1/responses HTTP/1.1");
    let items = seen.body["input"].as_array().unwrap();
    let outputs: Vec<_> = items.iter().filter(|item| item["type"] == "function_call_output").collect();
    let calls: Vec<_> = items.iter().filter(|item| item["type"] == "function_call").collect();
    assert_eq!((calls.len(), outputs.len()), (4, 4));
    assert_eq!(outputs[0]["output"], "[tool error] no bolts");

    let server = Server::json(json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Done."}]},
        "finishReason": "STOP"}], "modelVersion": "gemini-2.5-flash", "responseId": "1"}));
    ask(&model("gemini:gemini-2.5-flash", &server), &tricky()).await.unwrap();
    let seen = &server.seen()[0];
    assert!(seen.line.contains("gemini-2.5-flash:generateContent") && !seen.line.contains("key="), "{}", seen.line);
    assert!(seen.headers.contains(&format!("x-goog-api-key: {KEY}")), "{}", seen.headers);
    let contents = seen.body["contents"].as_array().unwrap();
    assert_eq!(contents[2]["parts"][0]["functionResponse"]["response"], json!({"error": "no bolts"}));
    assert_eq!(contents[2]["parts"][1]["functionResponse"]["response"], json!({"result": "7"}));
}

#[tokio::test]
async fn settings_are_sent_as_the_provider_spells_them() {
    let server = Server::json(chat_answer());
    let model = model_with("openai:gpt-5-mini", &server, |config| {
        config.max_tokens = Some(99);
        config.extra.insert("reasoning_effort".to_owned(), json!("low"));
    });
    ask(&model, &go()).await.unwrap();
    let warm = model_with("llamacpp:any", &server, |config| config.temperature = Some(0.5));
    ask(&warm, &go()).await.unwrap();
    let seen = server.seen();
    assert_eq!(
        (&seen[0].body["max_completion_tokens"], &seen[0].body["reasoning_effort"]),
        (&json!(99), &json!("low"))
    );
    assert_eq!((&seen[1].body["temperature"], seen[1].body.get("max_tokens")), (&json!(0.5), None));
}

#[tokio::test]
async fn a_medium_that_the_model_does_not_take_is_refused_before_it_is_sent() {
    let server = Server::json(chat_answer());
    let sound = Media {
        kind: MediaKind::Audio,
        media_type: "audio/midi".to_owned(),
        source: MediaSource::Url("http://x".to_owned()),
    };
    let history =
        history([Event::Request(Request { content: [PartBody::Media(sound).into()].into(), ..Request::default() })]);
    let error = ask(&model("openai:gpt-4.1", &server), &history).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "refused: the model takes no audio of type `audio/midi` by its address, and the history holds one: choose a \
         model that does"
    );
    assert!(server.seen().is_empty());
}
