//! What providers refuse, and what goes wrong on the way.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use super::server::Reply;
use super::*;

fn says(status: u16, headers: &'static str, message: &str) -> Server {
    Server::new([Reply::Status(status, headers, json!({"error": {"message": message}}).to_string())])
}

async fn error(model: &RigModel) -> ModelError {
    ask(model, &go()).await.unwrap_err()
}

#[tokio::test]
async fn a_status_decides_whether_asking_again_may_help() {
    let limited = error(&model("openai:m", &says(429, "retry-after: 7\r\n", "slow down"))).await;
    let message = "429 Too Many Requests: slow down".to_owned();
    assert_eq!(limited, ModelError::RateLimited { message, retry_after: Some(Duration::from_secs(7)) });
    let soon = error(&model("openai:m", &says(429, "retry-after-ms: 250\r\nretry-after: 1\r\n", "x"))).await;
    assert_eq!(soon.retry_after(), Some(Duration::from_millis(250)));

    let overloaded = error(&model("anthropic:claude-sonnet-4-5", &says(529, "retry-after: 2\r\n", "overloaded"))).await;
    assert!(matches!(overloaded, ModelError::Unavailable { .. }), "{overloaded:?}");
    assert_eq!(overloaded.retry_after(), Some(Duration::from_secs(2)));
    for status in [408, 500, 502, 503, 504] {
        let error = error(&model("openai:m", &says(status, "", "later"))).await;
        assert!(error.is_transient(), "{status}: {error:?}");
    }
    for (status, advice) in [
        (400, "later"),
        (401, "the key in `TEST_KEY` is not accepted"),
        (403, "the key in `TEST_KEY` is not accepted"),
        (404, "(`m`)"),
        (413, "later"),
        (422, "later"),
        (307, "redirect"),
    ] {
        let error = error(&model("openai:m", &says(status, "location: http://127.0.0.1:1/\r\n", "later"))).await;
        assert!(matches!(&error, ModelError::Refused { message } if message.contains(advice)), "{status}: {error:?}");
    }
}

#[tokio::test]
async fn a_refused_setting_is_named() {
    let body = json!({"error": {"message": "Unsupported value", "param": "temperature", "code": "unsupported_value"}});
    let server = Server::new([Reply::Status(400, "", body.to_string())]);
    let warm = model_with("openai:m", &server, |config| config.temperature = Some(0.2));
    let text = error(&warm).await.to_string();
    let expected = "refused: 400 Bad Request: Unsupported value; if the model refuses `temperature`, leave it out of its \
                    configuration";
    assert_eq!(text, expected);
    let text = error(&model("openai:m", &server)).await.to_string();
    assert_eq!(text, "refused: 400 Bad Request: Unsupported value");
}

/// A provider that shows all it was sent in what it says: the key is in a header, with Gemini in the address.
#[tokio::test]
async fn no_text_holds_the_key() {
    let names =
        ["openai:m", "openai-responses:m", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash", "ollama:m"];
    for name in names {
        for status in [200, 400, 401, 403, 404, 429, 500] {
            let server = Server::new([Reply::Echo(status)]);
            let model = model(name, &server);
            let mut shown = format!("{model:?} {:?}", error(&model).await);
            if let Err(error) = model.preflight().await {
                shown += &format!("{error:?} {error}");
            }
            let seen = server.seen();
            assert!(seen.iter().all(|seen| seen.headers.contains(KEY)), "{name} sends its key: {seen:?}");
            assert!(!shown.contains(&KEY[KEY.len() - 8..]) && !shown.contains(&KEY[..8]), "{name} {status}: {shown}");
        }
    }
    let said = format!("You sent {KEY}.");
    for (content, finish_reason) in [(&*said, "stop"), ("Yes.", KEY)] {
        let echo = json!({"choices": [{"index": 0, "finish_reason": finish_reason,
            "message": {"role": "assistant", "content": content}}]});
        let error = error(&model("openai:m", &Server::json(echo))).await;
        assert_eq!(error.to_string(), "unusable answer: the answer holds the key that was sent");
    }
}

#[tokio::test]
async fn what_a_provider_says_is_cut_short_and_obeyed_by_no_terminal() {
    let hostile = format!("\u{1b}[2J\u{202e}{}", "x".repeat(100_000));
    let text = error(&model("openai:m", &says(400, "", &hostile))).await.to_string();
    assert!(text.starts_with("refused: 400 Bad Request: \\u{1b}[2J\\u{202e}xxx") && text.len() < 400, "{text}");
}

#[tokio::test]
async fn a_server_that_hangs_or_breaks_off_is_no_answer() {
    let server = Server::new([Reply::Hang]);
    let impatient = model_with("openai:m", &server, |config| config.timeout_seconds = 1);
    assert_eq!(error(&impatient).await, ModelError::TimedOut { limit: Duration::from_secs(1) });
    let broken = error(&model("openai:m", &Server::new([Reply::BreakOff]))).await;
    assert!(matches!(broken, ModelError::Unavailable { .. }), "{broken:?}");
}

/// An answer with one call, as three providers have it.
fn one_call(name: &str, tool: &str) -> Value {
    if name.starts_with("anthropic:") {
        let call = json!({"type": "tool_use", "id": "t1", "name": tool, "input": {"item": "nails"}});
        json!({"id": "1", "type": "message", "role": "assistant", "model": "m", "content": [call],
            "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}})
    } else if name.starts_with("gemini:") {
        let call = json!({"functionCall": {"name": tool, "args": {"item": "nails"}}});
        json!({"candidates": [{"content": {"role": "model", "parts": [call]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}})
    } else {
        let call =
            json!({"id": "c1", "type": "function", "function": {"name": tool, "arguments": "{\"item\":\"nails\"}"}});
        json!({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0,
            "finish_reason": "tool_calls", "message": {"role": "assistant", "content": null, "tool_calls": [call]}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
    }
}

const SPEAKERS: [&str; 3] = ["openai:m", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash"];

#[tokio::test]
async fn whatever_breaks_on_the_way_may_pass_and_the_next_attempt_is_answered() {
    for name in SPEAKERS {
        let whole = one_call(name, "check").to_string();
        let cut = whole[..whole.len() * 2 / 3].to_owned();
        let broken = [
            Reply::Status(429, "retry-after: 1\r\n", "{}".to_owned()),
            Reply::Status(500, "", "{\"error\": ".to_owned()),
            Reply::Status(529, "", String::new()),
            Reply::Reset,
            Reply::BreakOff,
            Reply::Status(200, "", cut),
        ];
        let server = Server::new(broken.into_iter().chain([Reply::Status(200, "", whole)]));
        let model = model(name, &server);
        for number in 1..=6 {
            let error = error(&model).await;
            assert!(error.is_transient(), "{name} {number}: {error:?}");
            assert_eq!(error.retry_after().is_some(), number == 1, "{name} {number}: {error:?}");
        }
        assert!(ask(&model, &go()).await.is_ok(), "{name}");
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_anywhere_is_none() {
    for name in SPEAKERS {
        let whole = one_call(name, "check").to_string();
        let cuts = (0..whole.len()).step_by(7);
        let replies = cuts.clone().map(|end| Reply::Status(200, "", whole[..end].to_owned()));
        let model = model(name, &Server::new(replies));
        for end in cuts {
            let error = error(&model).await;
            assert!(error.is_transient(), "{name} after {end} bytes: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_call_of_no_tool_is_a_call_and_for_the_toolbox_to_refuse() {
    for name in SPEAKERS {
        let answer = ask(&model(name, &Server::json(one_call(name, "no_such_tool"))), &go()).await.unwrap();
        let calls: Vec<_> = answer.response.tool_calls().map(|call| (&*call.name, &*call.arguments)).collect();
        assert_eq!(calls, [("no_such_tool", "{\"item\":\"nails\"}")], "{name}");
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_reach_the_toolbox_as_they_were_sent() {
    for arguments in ["check nails", "{\"item\": ", "[1]", "\"nails\"", "{\"item\": NaN}"] {
        let mut body = one_call("openai:m", "check");
        body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = arguments.into();
        let answer = ask(&model("openai:m", &Server::json(body)), &go()).await.unwrap();
        let sent: Vec<_> = answer.response.tool_calls().map(|call| (&*call.arguments, call.rebuilt)).collect();
        assert_eq!(sent, [(arguments, false)]);
    }
}

#[tokio::test]
async fn an_answer_of_nothing_is_the_end_of_a_turn() {
    for name in ["openai:m", "anthropic:claude-sonnet-4-5"] {
        let mut body = one_call(name, "check");
        if name.starts_with("openai") {
            let choice = &mut body["choices"][0];
            choice["message"] = json!({"role": "assistant", "content": ""});
            choice["finish_reason"] = "stop".into();
        } else {
            (body["content"], body["stop_reason"]) = (json!([]), "end_turn".into());
        }
        let answer = ask(&model(name, &Server::json(body)), &go()).await.unwrap();
        assert!(answer.response.text().is_empty() && answer.response.tool_calls().next().is_none(), "{name}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_found_out_before_anything_is_spent() {
    // A port that is free, since its owner has gone.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = RigConfig { base_url: Some(format!("http://127.0.0.1:{port}/v1")), ..RigConfig::new("llamacpp:m") };
    let model = RigModel::new(config, &|_| None).unwrap();
    let error = model.preflight().await.unwrap_err();
    let ModelError::Unavailable { message, .. } = &error else { panic!("{error:?}") };
    assert!(message.starts_with(&format!("cannot connect to http://127.0.0.1:{port}/v1: ")), "{message}");
    assert!(message.contains("refused") && message.ends_with("is `base_url` right?"), "{message}");
}

/// What listens there takes no more connections, as a machine behind a firewall does.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_takes_no_connection_is_not_reached() {
    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = full.local_addr().unwrap();
    let connect = || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok();
    let _waiting: Vec<_> = std::iter::from_fn(connect).collect();
    let config = RigConfig {
        base_url: Some(format!("http://{address}/v1")),
        timeout_seconds: 1,
        ..RigConfig::new("llamacpp:m")
    };
    let error = error(&RigModel::new(config, &|_| None).unwrap()).await;
    let ModelError::Unavailable { message, .. } = &error else { panic!("{error:?}") };
    assert!(message.starts_with(&format!("cannot connect to http://{address}/v1: ")), "{message}");
}

#[tokio::test]
async fn the_preflight_costs_nothing_and_finds_a_wrong_key() {
    for name in ["openai:m", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash", "llamacpp:m", "mistral:m"] {
        let server = Server::new([200, 404, 401, 503].map(|status| Reply::Status(status, "", "{}".to_owned())));
        let model = model(name, &server);
        assert_eq!(model.preflight().await, Ok(()), "{name}");
        assert_eq!(model.preflight().await, Ok(()), "{name}: a server that does not know the question is there");
        let refused = model.preflight().await.unwrap_err().to_string();
        assert!(refused.contains("the key in `TEST_KEY` is not accepted"), "{name}: {refused}");
        assert!(model.preflight().await.unwrap_err().is_transient(), "{name}");
        for seen in server.seen() {
            assert!(seen.line.starts_with("GET "), "{name}: {}", seen.line);
        }
    }
}
