//! Tests of the whole importer: `minimal`, `real` and `broken` input, and what holds for any.

use std::collections::HashSet;

use proptest::prelude::*;
use retrace_events::codec::{read_recording, write_recording};
use retrace_events::{
    Event, Media, MediaKind, MediaSource, OutcomeRule, OutcomeSource, Part, PartBody, Recording, ToolCall, Trajectory,
};
use serde_json::{Value, json};

use super::import;
use crate::{FindingKind, ImportError, ImportOptions, Imported};

fn read(source: &str) -> Result<Imported, ImportError> {
    import(&mut source.as_bytes(), &ImportOptions::new("run"))
}

/// The one recording of a list of messages, and the findings.
fn one(messages: Value) -> (Recording, Vec<String>) {
    let Imported { mut recordings, findings } = read(&messages.to_string()).unwrap();
    assert_eq!(recordings.len(), 1);
    (recordings.remove(0), findings.iter().map(ToString::to_string).collect())
}

fn events(recording: &Recording) -> Vec<Value> {
    recording.events.iter().map(|event| serde_json::to_value(event).unwrap()).collect()
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn calls(calls: Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn result(id: &str, content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content})
}

/// `name:text` of each action, in the order issued.
fn actions(recording: &Recording) -> Vec<String> {
    let trajectory = Trajectory::new(recording.clone());
    let action = |action: &retrace_events::RecordedAction| {
        format!("{}({}): {}", action.action.name(), action.action.arguments(), action.result().text())
    };
    trajectory.actions().iter().map(action).collect()
}

mod laws;

mod minimal {
    use super::*;

    #[track_caller]
    fn check(messages: Value, expected: Value) {
        let (recording, findings) = one(messages);
        assert_eq!(Value::from(events(&recording)), expected);
        assert_eq!(findings, [""; 0]);
    }

    #[test]
    fn a_round_and_an_answer() {
        let (recording, findings) = one(json!([
            {"role": "system", "content": "You keep the shop."},
            {"role": "user", "content": "Is there tea left?"},
            {"role": "assistant", "content": "I look.", "tool_calls": [call("c1", "check", "{\"item\" : \"tea\"}")]},
            result("c1", "12 packs"),
            {"role": "assistant", "content": "Yes."},
        ]));
        assert_eq!(recording.header.id, "run");
        assert_eq!(recording.header.instructions.as_deref(), Some("You keep the shop."));
        assert_eq!(
            Value::from(events(&recording)),
            json!([
                {"type": "request", "content": "Is there tea left?"},
                {"type": "response", "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_call", "id": "c1", "name": "check", "arguments": "{\"item\" : \"tea\"}"}]},
                {"type": "tool_results", "results": [{"call_id": "c1", "name": "check", "content": "12 packs",
                    "outcome": "ok", "outcome_from": "unknown"}]},
                {"type": "response", "content": "Yes."},
            ])
        );
        assert!(findings.is_empty());
    }

    #[test]
    fn system_prompts_ahead_are_instructions_and_later_ones_stay_in_the_history() {
        let (recording, _) = one(json!([
            {"role": "system", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]},
            {"role": "developer", "content": "C"},
            {"role": "user", "content": "go"},
            {"role": "system", "content": "D"},
        ]));
        assert_eq!(recording.header.instructions.as_deref(), Some("A\n\nB\n\nC"));
        assert_eq!(events(&recording)[1], json!({"type": "request", "content": [{"type": "system", "text": "D"}]}));
    }

    #[test]
    fn results_that_follow_one_another_are_one_event_in_their_order() {
        let (recording, findings) = one(json!([
            calls(json!([call("a", "f", "1"), call("b", "g", "2"), call("c", "h", "3")])),
            result("b", "two"),
            result("a", "one"),
            {"role": "user", "content": "and?"},
            result("c", "three"),
            {"role": "assistant", "content": "done"},
        ]));
        let kinds: Vec<_> = recording.events.iter().map(|event| event.kind()).collect();
        assert_eq!(kinds, ["response", "tool_results", "request", "tool_results", "response"]);
        assert_eq!(events(&recording)[1]["results"][0]["name"], "g");
        assert_eq!(actions(&recording), ["f(1): one", "g(2): two", "h(3): three"]);
        assert!(findings.is_empty());
    }

    #[test]
    fn media_keep_their_bytes_or_their_address() {
        let (recording, findings) = one(json!([{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO", "detail": "low"}},
            {"type": "image_url", "image_url": "https://example.com/a.png"},
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "mp3"}},
            {"type": "file", "file": {"filename": "A.PDF", "file_data": "data:application/pdf;base64,JVBE"}},
            {"type": "file", "file": {"file_id": "file-1"}},
        ]}]));
        let media = |kind, media_type: &str, source| {
            Part::from(PartBody::Media(Media { kind, media_type: media_type.to_owned(), source }))
        };
        let data = |data: &str| MediaSource::Data(data.to_owned());
        let url = |url: &str| MediaSource::Url(url.to_owned());
        assert_eq!(
            recording.events[0].content(),
            [
                media(MediaKind::Image, "image/png", data("iVBO")),
                media(MediaKind::Image, "image/*", url("https://example.com/a.png")),
                media(MediaKind::Audio, "audio/mpeg", data("UklG")),
                media(MediaKind::Document, "application/pdf", data("JVBE")),
                media(MediaKind::Document, "application/octet-stream", url("file-1")),
            ]
        );
        assert!(findings.is_empty());
    }

    #[test]
    fn reasoning_is_thinking_and_comes_first() {
        check(
            json!([{"role": "assistant", "content": "4.", "reasoning_content": "2 + 2"}]),
            json!([{"type": "response", "content": [{"type": "thinking", "text": "2 + 2"}, {"type": "text", "text": "4."}]}]),
        );
    }

    #[test]
    fn arguments_that_were_parsed_are_rebuilt_without_a_change_of_meaning() {
        let source = r#"[{"role": "assistant", "tool_calls": [
            {"id": "c1", "function": {"name": "f", "arguments": {"b": 1.50, "a": [12345678901234567890123, "x y"]}}},
            {"id": "c2", "function": {"name": "f", "arguments": null}},
            {"id": "c3", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}]}]"#;
        let imported = read(source).unwrap();
        let calls: Vec<_> = imported.recordings[0].events[0].tool_calls().map(|(_, call)| call.clone()).collect();
        let rebuilt = |call| ToolCall { rebuilt: true, ..call };
        assert_eq!(
            calls,
            [
                rebuilt(ToolCall::new("c1", "f", r#"{"b":1.50,"a":[12345678901234567890123,"x y"]}"#)),
                rebuilt(ToolCall::new("c2", "f", "{}")),
                ToolCall::new("c3", "patch", "*** Begin"),
            ]
        );
    }

    #[test]
    fn fields_without_a_place_are_kept_where_they_cannot_be_taken_for_ours() {
        let source = r#"[{"role": "user", "content": [{"type": "text", "text": "go", "pinned": true,
            "cache_control": {"type":
            "ephemeral"}}], "name": "ada", "audio": null, "annotations": []}]"#;
        let imported = read(source).unwrap();
        assert_eq!(
            serde_json::to_string(&*imported.recordings[0].events[0]).unwrap(),
            r#"{"type":"request","content":[{"type":"text","text":"go","source":{"pinned":true,"cache_control":{"type":"ephemeral"}}}],"source":{"name":"ada"}}"#
        );
    }

    #[test]
    fn a_logged_exchange_has_its_tools_model_and_tokens_and_ends_with_the_response() {
        let exchange = json!({
            "id": "x/1", "api_key": "secret", "latency": 1.5, "cached": false, "metadata": {"a": 1},
            "request": {"model": "m", "temperature": 0, "messages": [{"role": "user", "content": "go"}], "tools": [
                {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": true}},
                {"type": "custom", "custom": {"name": "patch"}},
                {"type": "web_search"}]},
            "response": {"model": "m-2", "choices": [{"message": {"role": "assistant", "content": "gone"}}, {}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}},
        });
        let (recording, findings) = one(exchange);
        assert_eq!(
            serde_json::to_value(&recording.header).unwrap(),
            json!({"type": "recording", "version": 1, "id": "run", "model": "m", "tools": [
                    {"name": "f", "description": "d", "parameters": {"type": "object"}, "source": {"strict": true}},
                    {"name": "patch", "parameters": {"type": "string"}}],
                "source": {"id": "x/1", "latency": 1.5, "cached": false}})
        );
        assert_eq!(
            events(&recording)[1],
            json!({"type": "response", "content": "gone", "model": "m-2",
                "usage": {"input_tokens": 9, "output_tokens": 2, "cache_read_tokens": 4}})
        );
        assert_eq!(
            findings,
            [
                "request.tools[2]: a tool without a name is left out",
                "response.choices: the first of 2 answers is taken"
            ]
        );
    }

    #[test]
    fn a_response_that_the_messages_end_with_stands_once() {
        let answer = json!({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]});
        let (recording, _) = one(json!({
            "messages": [{"role": "user", "content": "go"}, answer],
            "response": {"choices": [{"message": answer}], "usage": {"prompt_tokens": 1}},
        }));
        assert_eq!(recording.events.len(), 2);
        assert_eq!(events(&recording)[1]["usage"]["input_tokens"], 1);
    }

    #[test]
    fn of_exchanges_that_repeat_a_conversation_the_longest_is_kept() {
        let exchange = |said: &[&str], answer: Value| {
            let messages: Vec<_> = said
                .iter()
                .enumerate()
                .map(|(i, text)| json!({"role": if i % 2 == 0 { "user" } else { "assistant" }, "content": text}))
                .collect();
            let response = json!({"choices": [{"message": answer}], "usage": {"prompt_tokens": said.len()}});
            json!({"messages": messages, "response": response})
        };
        let answer = |text: &str| json!({"role": "assistant", "content": text, "reasoning_content": "hm"});
        let log = [
            exchange(&["a"], answer("b")),
            exchange(&["x"], answer("y")),
            exchange(&["a", "b", "c"], answer("d")),
            exchange(&["a", "no", "c"], answer("d")),
            exchange(&["a", "no", "c"], answer("d")),
            exchange(&["a", "b", "c", "d", "e"], answer("f")),
        ];
        let imported = read(&log.map(|exchange| exchange.to_string()).join("\n")).unwrap();
        let lengths: Vec<_> = imported.recordings.iter().map(|recording| recording.events.len()).collect();
        assert_eq!(lengths, [2, 4, 4, 6]);
        let findings: Vec<_> = imported.findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            findings,
            ["line 1: goes on at line 3, which stands for both", "line 3: goes on at line 6, which stands for both"]
        );
        // What an earlier exchange knows of the common part stays known.
        let of_first = &events(&imported.recordings[3])[1];
        assert_eq!(of_first["usage"]["input_tokens"], 1);
        assert_eq!(of_first["content"][0]["type"], "thinking");
    }

    #[test]
    fn runs_that_are_no_exchanges_are_all_kept() {
        let run = json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": "gone"}]);
        let imported = read(&json!([run, run]).to_string()).unwrap();
        let ids: Vec<_> = imported.recordings.iter().map(|recording| &*recording.header.id).collect();
        assert_eq!(ids, ["run-1", "run-2"]);
    }

    #[test]
    fn messages_are_taken_from_the_key_that_was_named() {
        let run = json!({"messages": [{"role": "user", "content": "a"}], "raw": [{"role": "user", "content": "b"}]});
        let text = |options| {
            let imported = import(&mut run.to_string().as_bytes(), &options).unwrap();
            imported.recordings[0].events[0].content()[0].as_text().unwrap().to_owned()
        };
        assert_eq!(text(ImportOptions::new("run")), "a");
        assert_eq!(text(ImportOptions::new("run").messages_key("raw")), "b");
    }
}

mod pairing {
    use super::*;

    #[track_caller]
    fn check(messages: Value, expected_actions: &[&str], expected_findings: &[&str]) {
        let (recording, findings) = one(messages);
        assert_eq!(actions(&recording), expected_actions);
        assert_eq!(findings, expected_findings);
    }

    fn no_id(name: &str, arguments: &str) -> Value {
        json!({"function": {"name": name, "arguments": arguments}})
    }

    fn named(name: &str, content: &str) -> Value {
        json!({"role": "tool", "name": name, "content": content})
    }

    #[test]
    fn a_function_call_is_answered_by_the_function() {
        check(
            json!([
                {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "function", "name": "f", "content": "one"},
                {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "function", "name": "f", "content": "two"},
            ]),
            &["f({}): one", "f({}): two"],
            &[
                "[0]: a call of `f` without an id was given one",
                "[1]: a result without a usable id is given to the one call of `f` that waits",
                "[2]: a call of `f` without an id was given one",
                "[3]: a result without a usable id is given to the one call of `f` that waits",
            ],
        );
    }

    #[test]
    fn without_ids_names_decide_whatever_the_order() {
        let findings = [
            "[0]: a call of `f` without an id was given one",
            "[0]: a call of `g` without an id was given one",
            "[1]: a result without a usable id is given to the one call of `g` that waits",
            "[2]: a result without a usable id is given to the one call of `f` that waits",
        ];
        let calls = calls(json!([no_id("f", "1"), no_id("g", "2")]));
        check(json!([calls, named("g", "two"), named("f", "one")]), &["f(1): one", "g(2): two"], &findings);
        // The one without a name is what is left.
        let nameless = json!({"role": "tool", "content": "one"});
        check(json!([calls, named("g", "two"), nameless]), &["f(1): one", "g(2): two"], &findings);
    }

    #[test]
    fn results_that_could_be_either_calls_are_given_to_none() {
        let (recording, findings) = one(json!([
            calls(json!([no_id("weather", "{\"of\":\"Paris\"}"), no_id("weather", "{\"of\":\"Rome\"}")])),
            named("weather", "rain in Rome"),
            named("weather", "sun in Paris"),
            {"role": "assistant", "content": "…"},
        ]));
        let trajectory = Trajectory::new(recording);
        assert!(trajectory.actions().is_empty());
        assert!(trajectory.resumable_points().is_empty());
        assert_eq!(findings.len(), 6, "{findings:?}");
        assert!(findings[2].starts_with("[1]: a result without an id is not clearly"));
        assert!(findings[5].starts_with("[0]: a call of `weather` is never answered"));
    }

    #[test]
    fn an_id_of_the_result_alone_is_no_id() {
        check(
            json!([calls(json!([no_id("f", "1")])), result("x", "one")]),
            &["f(1): one"],
            &[
                "[0]: a call of `f` without an id was given one",
                "[1]: a result without a usable id is given to the one call of `f` that waits",
            ],
        );
        check(
            json!([calls(json!([call("c", "f", "1")])), result("x", "one")]),
            &[],
            &["[0]: a call of `f` is never answered", "[1]: no call with the id `x` waits for this result"],
        );
    }

    #[test]
    fn an_empty_id_of_the_result_alone_is_made_good() {
        check(
            json!([calls(json!([call("a", "f", "1"), call("b", "f", "2")])), result("", "two"), result("a", "one")]),
            &["f(1): one", "f(2): two"],
            &["[1]: a result without a usable id is given to the one call of `f` that waits"],
        );
    }

    #[test]
    fn one_id_for_two_calls_is_answered_in_order() {
        check(
            json!([
                calls(json!([call("f", "f", "1"), call("f", "f", "2")])),
                result("f", "one"),
                result("f", "two"),
                result("f", "three"),
            ]),
            &["f(1): one", "f(2): two"],
            &[
                "[0]: calls of one response share the id `f`; results answer them in order",
                "[3]: no call with the id `f` waits for this result",
            ],
        );
    }

    #[test]
    fn an_id_may_be_used_again_after_its_answer() {
        check(
            json!([
                calls(json!([call("0", "f", "1")])),
                result("0", "one"),
                calls(json!([call("0", "g", "2")])),
                result("0", "two"),
            ]),
            &["f(1): one", "g(2): two"],
            &[],
        );
    }

    #[test]
    fn what_says_nothing_is_reported() {
        check(
            json!([{"role": "user", "content": null}, {"role": "assistant", "content": "", "refusal": null},
                {"role": "assistant", "content": null, "refusal": "No."}]),
            &[],
            &[
                "[0]: a message says nothing and calls nothing",
                "[1]: a message says nothing and calls nothing",
                "[2].refusal: a refusal is kept as text",
            ],
        );
    }
}

mod real {
    use super::*;

    fn sample(path: &str) -> Imported {
        let path = format!("{}/../../tests/{path}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let imported = import(&mut text.as_bytes(), &ImportOptions::new("s")).unwrap();
        for recording in &imported.recordings {
            assert_is_written_and_read(recording);
        }
        imported
    }

    fn blocked(recordings: &mut [Recording], rule: &str) -> usize {
        let rule: OutcomeRule = rule.parse().unwrap();
        let mut blocked = 0;
        for recording in recordings {
            recording.apply_outcome_rule(&rule);
            blocked += Trajectory::new(recording.clone()).actions().iter().filter(|a| a.action.is_blocked()).count();
        }
        blocked
    }

    #[test]
    fn tasks_keep_their_names_word_for_word() {
        let run = |id: Value| json!({"task_id": id, "traj": [{"role": "user", "content": "Hi."}]});
        let ids = [json!("src/a"), json!("src a"), json!("数学1"), json!("语文1"), json!(7), json!("")];
        let imported = read(&json!(ids.map(run)).to_string()).unwrap();
        let tasks: Vec<_> = imported.recordings.iter().map(|recording| recording.header.task.as_deref()).collect();
        assert_eq!(tasks, [Some("src/a"), Some("src a"), Some("数学1"), Some("语文1"), Some("task7"), None]);
    }

    #[test]
    fn tau_bench_runs() {
        let mut imported = sample("samples/tau-bench/gpt-4o-airline-10-longest.json");
        assert_eq!(imported.findings, []);
        let ids: Vec<_> = imported.recordings.iter().map(|recording| &*recording.header.id).collect();
        assert_eq!(ids[..3], ["s-task2-trial1", "s-task33-trial0", "s-task9-trial2"]);
        assert_eq!(imported.recordings[0].header.task.as_deref(), Some("task2"));
        assert_eq!(
            serde_json::to_value(&imported.recordings[0].header).unwrap()["source"],
            json!({"task_id": 2, "reward": 0.0, "trial": 1})
        );
        assert!(imported.recordings.iter().all(|r| r.header.instructions.as_ref().is_some_and(|i| i.len() > 1000)));

        let (mut n_calls, mut n_results, mut n_reused, mut n_repeated) = (0, 0, 0, 0);
        for recording in &imported.recordings {
            let calls: Vec<_> = recording.events.iter().flat_map(|event| event.tool_calls()).collect();
            let mut ids = HashSet::new();
            n_reused += calls.iter().filter(|(_, call)| !ids.insert(&*call.id)).count();
            n_calls += calls.len();
            let trajectory = Trajectory::new(recording.clone());
            assert_eq!(trajectory.findings(), []);
            n_results += trajectory.actions().len();
            assert!(!trajectory.actions().iter().any(|recorded| recorded.action.is_blocked()));
            let mut seen = HashSet::new();
            n_repeated += trajectory.actions().iter().filter(|a| !seen.insert(a.action.signature().clone())).count();
        }
        assert_eq!((ids.len(), n_calls, n_results), (10, 190, 190));
        assert_eq!((n_reused, n_repeated), (27, 17));
        assert_eq!(blocked(&mut imported.recordings, "prefix:Error"), 24);
    }

    #[test]
    fn a_litellm_log() {
        let mut imported = sample("samples/openai-chat/litellm-call-1757015046.707.json");
        let findings: Vec<_> = imported.findings.iter().map(ToString::to_string).collect();
        assert_eq!(findings, ["response.choices[0].message: a call of `finish` is never answered"]);
        let recording = &imported.recordings[0];
        assert_eq!(recording.header.model.as_deref(), Some("litellm_proxy/claude-sonnet-4-20250514"));
        let tools: Vec<_> = recording.header.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(tools, ["terminal", "str_replace_editor", "finish"]);
        let Some(Event::Response(answer)) = recording.events.last().map(|event| &**event) else { panic!() };
        assert_eq!(answer.usage.as_ref().unwrap().input_tokens, 6729);
        let unknown = |event: &Event| match event {
            Event::ToolResults(round) => round.results.iter().all(|r| r.outcome_from == Some(OutcomeSource::Unknown)),
            _ => true,
        };
        assert!(recording.events.iter().all(|event| unknown(event)));
        assert_eq!(actions(recording).len(), 5);
        // No flag says so: only a rule of the user does.
        assert_eq!(blocked(&mut imported.recordings, r"regex:^Ran into \[Errno|^Invalid `"), 2);
    }

    #[test]
    fn a_log_of_exchanges_with_two_services() {
        let imported = sample("samples/openai-chat/multi-agent-tool-calls.json");
        let findings: Vec<_> = imported.findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            findings,
            [
                "[0]: a request without a list of messages is left out",
                "[1]: a request without a list of messages is left out",
                "[2]: goes on at [3], which stands for both",
            ]
        );
        assert_eq!(imported.recordings.len(), 1);
        assert_eq!(
            actions(&imported.recordings[0]),
            ["get_capital({\"country\":\"France\"}): Paris", "get_capital({\"country\":\"England\"}): London"]
        );
    }

    #[test]
    fn every_shape_of_file() {
        let shapes = [("list.json", 1), ("object.json", 1), ("lists.jsonl", 2), ("objects.jsonl", 2), ("runs.json", 2)];
        for (file, n) in shapes {
            let imported = sample(&format!("fixtures/openai_chat/{file}"));
            assert_eq!(imported.recordings.len(), n, "{file}");
            assert_eq!(actions(&imported.recordings[0]).len(), 3, "{file}");
        }
        let dangling = sample("fixtures/openai_chat/dangling.json");
        let kinds: Vec<_> = dangling.findings.into_iter().map(|finding| finding.kind).collect();
        let expected = [
            FindingKind::UnansweredCall { tool: "find_seats".to_owned() },
            FindingKind::OrphanResult { id: "call_9".to_owned() },
        ];
        assert_eq!(kinds, expected);
    }
}

mod broken {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &str) {
        let error = read(source).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().is_some());
    }

    #[test]
    fn errors_name_the_place_and_what_was_found() {
        check("", "no transcript: the file is empty");
        check("[]", "no run in the transcript: the whole of it: a run without messages is left out");
        check("7", "the whole of it: found a number, expected a list of messages or an object that has one");
        check("{\"type\":\"user\"}\n", "the whole of it: no list of messages (its keys: `type`)");
        check(
            r#"[{"traj": [{"role": "user", "content": "a"}, {"role": "narrator"}]}]"#,
            "[0].traj[1].role: unknown role `narrator`, expected `system`, `developer`, `user`, `assistant`, `tool` or `function`",
        );
        check(
            "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",\"content\":\"b\"}\n",
            "line 1: found a single message, expected a list of them or an object that has one",
        );
        check(
            "[{\"role\":\"user\",\"content\":\"a\"}]\n[{\"role\":\"user\",\"content\":7}]\n",
            "line 2, [0].content: found a number, expected a string, null or a list of parts",
        );
        check(
            "[\n{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"function\":{\"arguments\":\"\"}}]}]",
            "[0].tool_calls[0].function: no `name`",
        );
        check(
            "[\n{\"role\":\"user\",\"content\":[{\"type\":\"video_url\"}]}]",
            "[0].content[0].type: part of type `video_url`, expected `text`, `image_url`, `input_audio` or `file`",
        );
        check("[\n{\"role\":\"user\",\"content\":\"\\ud800\"}]", "[0].content: unexpected end of hex escape");
        check(
            "[\n{\"role\":\"user\\u001b[2J\",\"content\":\"\"}]",
            "[0].role: unknown role `user\\u{1b}[2J`, expected `system`, `developer`, `user`, `assistant`, `tool` or `function`",
        );
    }

    #[test]
    fn a_key_that_is_not_there_is_named() {
        let options = ImportOptions::new("run").messages_key("traj");
        let error = import(&mut &br#"{"messages": []}"#[..], &options).unwrap_err();
        assert_eq!(error.to_string(), "the whole of it: no list under the key `traj` (its keys: `messages`)");
    }

    #[test]
    fn a_cut_off_last_line_is_reported_and_left_out() {
        let imported = read("[{\"role\":\"user\",\"content\":\"a\"}]\n[{\"role\":\"us").unwrap();
        assert_eq!(imported.recordings.len(), 1);
        assert_eq!(imported.findings[0].to_string(), "line 2: the last line is cut off and left out");
    }

    #[test]
    fn depth_is_no_danger() {
        let deep = |n| format!("{}{}", "[".repeat(n), "]".repeat(n));
        let error = read(&deep(1_000_000)).unwrap_err();
        assert_eq!(error.to_string(), "[0][0]: found a list, expected an object");
        let parameters = format!(r#"{{"a":{}}}"#, deep(1000));
        let tools = format!(r#"[{{"function":{{"name":"f","parameters":{parameters}}}}}]"#);
        let source = format!(r#"{{"messages":[{{"role":"user","content":"a"}}],"tools":{tools}}}"#);
        assert_eq!(read(&source).unwrap_err().to_string(), "tools[0].function.parameters: recursion limit exceeded");
        // What is only kept may be of any depth.
        let imported = read(&format!(r#"[{{"role":"user","content":"a","x":{}}}]"#, deep(100_000))).unwrap();
        assert_is_written_and_read(&imported.recordings[0]);
    }
}

/// Writes a recording and reads it back.
#[track_caller]
fn assert_is_written_and_read(recording: &Recording) {
    let mut lines = Vec::new();
    write_recording(&mut lines, recording).unwrap();
    assert_eq!(lines.iter().filter(|&&byte| byte == b'\n').count(), recording.events.len() + 1);
    assert_eq!(&read_recording(&lines[..], "written").unwrap().recording, recording);
}
