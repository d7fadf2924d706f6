//! What providers answer.

use retrace_events::{PartBody, Usage};
use serde_json::{Value, json};

use super::*;

fn chat(message: Value, finish: &str) -> Value {
    json!({"id": "1", "object": "chat.completion", "created": 1, "model": "m-2026",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 64}}})
}

fn calls(answer: &Answer) -> Vec<ToolCall> {
    answer.response.tool_calls().cloned().collect()
}

#[tokio::test]
async fn calls_have_the_arguments_as_they_were_sent_and_an_old_field_beside_them_is_not_read() {
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "check", "arguments": arguments}});
    let server = Server::json(chat(
        json!({"role": "assistant", "content": null,
            "tool_calls": [call("c1", "{ \"item\" :\"nails\", \"n\": 1.50 }"), call("c2", "{\"item\": ")],
            "function_call": {"name": "check_old", "arguments": "{}"}}),
        "tool_calls",
    ));
    let answer = ask(&model("openai:m", &server), &go()).await.unwrap();
    let expected = [
        ToolCall::new("c1", "check", "{ \"item\" :\"nails\", \"n\": 1.50 }"),
        ToolCall::new("c2", "check", "{\"item\": "),
    ];
    assert_eq!(calls(&answer), expected);
    assert_eq!(answer.response.model.as_deref(), Some("m-2026"));
    let usage = Usage { input_tokens: 100, output_tokens: 20, cache_read_tokens: Some(64), ..Usage::default() };
    assert_eq!(answer.response.usage, Some(usage));
    assert_eq!(answer.response.provider_data, None, "it holds nothing that the provider wants back");
}

#[tokio::test]
async fn a_call_without_an_id_gets_one_that_no_call_before_it_has() {
    let call = json!({"id": "", "type": "function", "function": {"name": "check", "arguments": "{}"}});
    let server = Server::json(chat(json!({"role": "assistant", "tool_calls": [call, call]}), "tool_calls"));
    let before = history([
        Event::request("Go."),
        Event::calls([super::call("x", "{}")]),
        Event::results([result("x", Outcome::Ok, "1")]),
    ]);
    let answer = ask(&model("llamacpp:m", &server), &before).await.unwrap();
    let ids: Vec<_> = calls(&answer).into_iter().map(|call| call.id).collect();
    assert_eq!(ids, ["call_2", "call_3"]);
}

#[tokio::test]
async fn anthropic_gets_its_thinking_back() {
    let thinking = json!({"type": "thinking", "thinking": "Nails first.", "signature": "s1g=="});
    let redacted = json!({"type": "redacted_thinking", "data": "b64=="});
    let used = json!({"type": "tool_use", "id": "toolu_1", "name": "check", "input": {"item": "nails"}});
    let server = Server::json(json!({"id": "msg_1", "type": "message", "role": "assistant",
        "model": "claude-sonnet-4-5-20250929", "content": [thinking, redacted, used], "stop_reason": "tool_use",
        "stop_sequence": null, "usage": {"input_tokens": 10, "cache_read_input_tokens": 90,
            "cache_creation_input_tokens": 5, "output_tokens": 7}}));
    let sonnet = model("anthropic:claude-sonnet-4-5", &server);
    let answer = ask(&sonnet, &go()).await.unwrap();
    let PartBody::Thinking(thought) = &answer.response.content[0].body else { panic!("{answer:?}") };
    assert_eq!((&*thought.text, thought.signature.as_deref()), ("Nails first.", Some("s1g==")));
    let mut expected = ToolCall::new("toolu_1", "check", "{\"item\":\"nails\"}");
    expected.rebuilt = true;
    assert_eq!(calls(&answer), [expected]);
    let usage = Usage {
        input_tokens: 105,
        output_tokens: 7,
        cache_read_tokens: Some(90),
        cache_write_tokens: Some(5),
        ..Usage::default()
    };
    assert_eq!(answer.response.usage, Some(usage));

    let history = history([
        Event::request("Go."),
        Event::Response(answer.response),
        Event::results([result("toolu_1", Outcome::Ok, "7")]),
    ]);
    ask(&sonnet, &history).await.unwrap();
    assert_eq!(server.seen()[1].body["messages"][1]["content"], json!([thinking, redacted, used]));

    // Another model gets what was said and done.
    ask(&model("anthropic:claude-haiku-4-5", &server), &history).await.unwrap();
    assert_eq!(server.seen()[2].body["messages"][1]["content"], json!([used]));
}

#[tokio::test]
async fn an_agent_that_stops_without_a_word_has_stopped_and_an_answer_cut_before_a_word_is_none() {
    let silent = Server::json(chat(json!({"role": "assistant", "content": ""}), "stop"));
    let answer = ask(&model("openai:m", &silent), &go()).await.unwrap();
    assert_eq!((answer.response.text(), calls(&answer)), (String::new(), Vec::new()));

    for (finish, expected) in [("length", "raise `max_tokens`"), ("content_filter", "filtered")] {
        let server = Server::json(chat(json!({"role": "assistant", "content": ""}), finish));
        let error = ask(&model("openai:m", &server), &go()).await.unwrap_err();
        assert!(matches!(&error, ModelError::Unusable { message } if message.contains(expected)), "{error}");

        let server = Server::json(chat(json!({"role": "assistant", "content": "Half a w"}), finish));
        let answer = ask(&model("openai:m", &server), &go()).await.unwrap();
        let kept = answer.response.extra.get("finish_reason").unwrap().get();
        assert_eq!((answer.response.text(), kept), ("Half a w".to_owned(), &*format!("\"{finish}\"")));
    }
}

#[tokio::test]
async fn what_is_no_answer_is_said_to_be_none() {
    for body in ["<html>hello</html>", "{}", "{\"choices\": []}", "null", ""] {
        let server = Server::new([server::Reply::Status(200, "", body.to_owned())]);
        let error = ask(&model("openai:m", &server), &go()).await.unwrap_err();
        // What is JSON, or a start of it, is asked for again.
        let is_json = !body.starts_with('<');
        let expected = if is_json { "unavailable: the answer is incomplete" } else { "unusable answer: " };
        assert!(error.to_string().starts_with(expected), "{body}: {error}");
    }
}
