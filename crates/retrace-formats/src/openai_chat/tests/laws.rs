//! What holds of any transcript.

use retrace_events::{Header, Outcome, Request, Response, ToolResult};

use super::*;

/// A recording of texts, calls and results as messages.
fn export(recording: &Recording) -> Vec<Value> {
    let mut messages = Vec::new();
    messages.extend(recording.header.instructions.iter().map(|text| json!({"role": "system", "content": text})));
    let part = |part: &Part| match &part.body {
        PartBody::Text(text) => json!({"type": "text", "text": text}),
        other => panic!("{other:?} is not exported"),
    };
    for event in recording.events.iter() {
        match &**event {
            Event::Request(Request { content, .. }) => {
                messages.push(json!({"role": "user", "content": content.iter().map(part).collect::<Vec<_>>()}));
            }
            Event::Response(response) => {
                let call = |c: &ToolCall| call(&c.id, &c.name, &c.arguments);
                let calls: Vec<_> = response.tool_calls().map(call).collect();
                messages.push(json!({"role": "assistant", "content": response.text(), "tool_calls": calls}));
            }
            Event::ToolResults(round) => messages.extend(round.results.iter().map(|result| {
                json!({"role": "tool", "tool_call_id": result.call_id, "name": result.name, "content": result.text()})
            })),
            other => panic!("{other:?} is not exported"),
        }
    }
    messages
}

fn text() -> impl Strategy<Value = String> {
    "[a-z\"\\\\ \n\u{1b}é𝄞]{0,8}"
}

/// A response, and the results of its calls if it has any.
fn turn() -> impl Strategy<Value = Vec<Event>> {
    let call = ("[a-c]", "[fg]", text()).prop_map(|(id, name, arguments)| ToolCall::new(id, name, arguments));
    let answered = (call, text(), any::<bool>());
    (text(), prop::collection::vec(answered, 0..4)).prop_map(|(said, answered)| {
        let mut content = Vec::new();
        content.extend((!said.is_empty()).then(|| Part::text(said)));
        content.extend(answered.iter().map(|(call, ..)| Part::from(PartBody::ToolCall(call.clone()))));
        let results = answered.into_iter().filter(|(.., is_answered)| *is_answered).map(|(call, text, _)| ToolResult {
            outcome_from: Some(OutcomeSource::Unknown),
            ..ToolResult::text_result(&call, Outcome::Ok, text)
        });
        let results: Vec<_> = results.collect();
        let mut events = vec![Event::Response(Response { content: content.into(), ..Response::default() })];
        events.extend((!results.is_empty()).then(|| Event::results(results)));
        events
    })
}

fn recording() -> impl Strategy<Value = Recording> {
    let request = prop::collection::vec(text().prop_map(Part::text), 1..3)
        .prop_map(|content| vec![Event::Request(Request { content: content.into(), ..Request::default() })]);
    let events = prop::collection::vec(prop_oneof![request, turn()], 1..8);
    (prop::option::of(text()), events).prop_map(|(instructions, events)| {
        let header = Header { instructions, ..Header::new("run") };
        Recording::new(header, events.concat())
    })
}

/// JSON made of the words of the format.
fn words() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "",
        "user",
        "assistant",
        "tool",
        "system",
        "function",
        "text",
        "image_url",
        "file",
        "refusal",
        "c1",
        "f",
        "{}",
    ]);
    let key = prop::sample::select(vec![
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "name",
        "id",
        "type",
        "function",
        "arguments",
        "text",
        "function_call",
        "messages",
        "traj",
        "request",
        "response",
        "choices",
        "message",
        "usage",
        "tools",
        "custom",
        "image_url",
        "url",
        "file",
        "refusal",
        "model",
        "prompt_tokens",
        "reasoning_content",
        "pinned",
        "x\u{1b}",
    ]);
    let scalar = prop_oneof![
        4 => word.prop_map(Value::from),
        1 => any::<i8>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    scalar.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

/// Messages most of which are sound, with anything in between.
fn messages() -> impl Strategy<Value = Value> {
    let id = || prop::option::of(prop::sample::select(vec!["", "a", "b"]));
    let name = || prop::sample::select(vec!["f", "g"]);
    let call = (id(), name()).prop_map(|(id, name)| json!({"id": id, "function": {"name": name, "arguments": {}}}));
    let message = prop_oneof![
        3 => prop::collection::vec(call, 0..4).prop_map(calls),
        3 => (id(), prop::option::of(name())).prop_map(|(id, name)| json!({"role": "tool", "tool_call_id": id, "name": name, "content": "r"})),
        1 => text().prop_map(|text| json!({"role": "user", "content": text})),
        1 => words().prop_map(|field| json!({"role": "user", "content": "", "field": field})),
    ];
    fn calls(calls: Vec<Value>) -> Value {
        super::calls(calls.into())
    }
    prop::collection::vec(message, 1..12).prop_map(Value::from)
}

proptest! {
    #[test]
    fn importing_an_export_gives_the_recording_back(recording in recording()) {
        let messages = Value::from(export(&recording));
        for source in [messages.to_string(), serde_json::to_string_pretty(&json!([{"traj": messages}])).unwrap()] {
            let imported = read(&source).unwrap();
            prop_assert_eq!(&imported.recordings[0].header.instructions, &recording.header.instructions);
            prop_assert_eq!(&imported.recordings[0].events, &recording.events);
        }
    }

    #[test]
    fn any_json_is_imported_or_refused(value in words()) {
        if let Ok(imported) = read(&value.to_string()) {
            imported.recordings.iter().for_each(assert_is_written_and_read);
        }
    }

    #[test]
    fn any_bytes_are_imported_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = import(&mut &*bytes, &ImportOptions::new("run"));
    }

    #[test]
    fn every_flaw_of_pairing_is_reported(messages in messages()) {
        let (recording, findings) = one(messages);
        assert_is_written_and_read(&recording);
        let reported = findings.iter().filter(|finding| {
            ["never answered", "waits for this result", "answers none"].iter().any(|end| finding.ends_with(end))
        });
        let n_reported = reported.count();
        let trajectory = Trajectory::new(recording);
        prop_assert_eq!(n_reported, trajectory.findings().len());
    }

    #[test]
    fn a_source_cut_at_any_byte_is_refused_or_short(recording in recording(), at in any::<prop::sample::Index>()) {
        let line = Value::from(export(&recording)).to_string();
        let source = format!("{line}\n{line}\n{line}");
        let mut end = at.index(source.len());
        while !source.is_char_boundary(end) {
            end -= 1;
        }
        match read(&source[..end]) {
            Ok(imported) => {
                let n_whole = end.div_ceil(line.len() + 1).max(1);
                prop_assert!(imported.recordings.len() <= n_whole);
                for cut in imported.recordings {
                    prop_assert_eq!(&cut.events, &recording.events);
                }
            }
            Err(_) => prop_assert!(end < line.len()),
        }
    }
}
