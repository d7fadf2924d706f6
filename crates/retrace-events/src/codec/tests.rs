//! The laws of the codec, and every flaw with what is said about it.

use std::io::{self, Write};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::any_recording::{FIELDS, any_recording};
use super::*;
use crate::event::Outcome;
use crate::part::ToolCall;
use crate::{Extra, Raw, ToolResult};

const HEADER: &str = r#"{"type":"recording","version":1,"id":"run-1"}"#;

fn encode(recording: &Recording) -> Vec<u8> {
    let mut lines = Vec::new();
    write_recording(&mut lines, recording).unwrap();
    lines
}

fn decode(bytes: impl AsRef<[u8]>) -> Result<Read, ReadError> {
    read_recording(bytes.as_ref(), "run-1.jsonl")
}

/// The only event of a recording with this line.
fn event(line: &str) -> Event {
    let read = decode(format!("{HEADER}\n{line}\n")).unwrap();
    assert_eq!((read.recording.events.len(), read.torn_line), (1, None));
    Event::clone(&read.recording.events[0])
}

/// An object's text with its known fields in another order, and so in every object of the format that it holds; the
/// unknown ones stay in theirs, since a reader keeps it.
fn shuffled(json: &str, draw: &mut impl FnMut(usize) -> usize) -> String {
    if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) {
        let items: Vec<_> = items.iter().map(|item| shuffled(item.get(), draw)).collect();
        return format!("[{}]", items.join(","));
    }
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(json) else { return json.to_owned() };
    let (mut known, mut unknown): (Vec<_>, Vec<_>) =
        fields.0.into_iter().partition(|(key, _)| FIELDS.split_whitespace().any(|field| field == key));
    unknown.reverse();
    let mut written = Vec::new();
    while !(known.is_empty() && unknown.is_empty()) {
        let pick = draw(known.len() + 1);
        let (key, value) = if pick < known.len() {
            known.swap_remove(pick)
        } else if let Some(field) = unknown.pop() {
            field
        } else {
            continue;
        };
        let nested = matches!(&*key, "content" | "results" | "usage" | "tools");
        let value = if nested { shuffled(value.get(), draw) } else { value.get().to_owned() };
        written.push(format!("{}:{value}", serde_json::to_string(&key).unwrap()));
    }
    format!("{{{}}}", written.join(" , "))
}

/// The fields of an object, one that stands twice included.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Fields<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Vec<(String, &'de RawValue)>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Visitor).map(Self)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(256, 2_000)))]

    #[test]
    fn what_was_written_is_read_back(recording in any_recording()) {
        let lines = encode(&recording);
        let read = decode(&lines).unwrap();
        prop_assert_eq!(read.torn_line, None);
        prop_assert_eq!(encode(&read.recording), lines);
        prop_assert_eq!(read.recording, recording);
    }

    #[test]
    fn the_order_of_known_fields_does_not_count(recording in any_recording(), mut seed: u64) {
        let mut draw = |n: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % n
        };
        let lines = String::from_utf8(encode(&recording)).unwrap();
        let lines: Vec<_> = lines.lines().map(|line| shuffled(line, &mut draw)).collect();
        prop_assert_eq!(decode(lines.join("\n")).unwrap().recording, recording);
    }

    #[test]
    fn a_recording_cut_at_any_byte_gives_every_whole_line(
        recording in any_recording(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 32),
    ) {
        let lines = encode(&recording);
        let header = lines.iter().position(|&byte| byte == b'\n').unwrap();
        for cut in cuts.into_iter().map(|cut| 1 + cut.index(lines.len())) {
            let read = decode(&lines[..cut]);
            if cut < header {
                let error = read.unwrap_err().to_string();
                prop_assert_eq!(error, "run-1.jsonl:1: no recording header: the first line is cut off");
                continue;
            }
            let read = read.unwrap();
            // A line is whole with or without its line break.
            let n_whole = lines.iter().take(cut + 1).filter(|&&byte| byte == b'\n').count();
            let torn = lines[cut - 1] != b'\n' && lines.get(cut) != Some(&b'\n');
            prop_assert_eq!(&read.recording.header, &recording.header);
            prop_assert_eq!(&read.recording.events[..], &recording.events[..n_whole - 1]);
            prop_assert_eq!(read.torn_line, torn.then_some(n_whole + 1), "cut at {}", cut);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(bytes);
    }

    /// One byte of a recording made another: what is wrong is said in a short line without control characters.
    #[test]
    fn a_damaged_recording_is_read_or_refused_in_a_short_line(
        recording in any_recording(),
        at: prop::sample::Index,
        byte in prop_oneof![any::<u8>(), prop::sample::select(&b"{}[],:\"\\0e\n"[..])],
    ) {
        let mut lines = encode(&recording);
        let at = at.index(lines.len());
        lines[at] = byte;
        if let Err(error) = decode(lines) {
            let error = error.to_string();
            prop_assert!(error.starts_with("run-1.jsonl:"), "{}", error);
            prop_assert!(error.len() < 1_500 && !error.contains(char::is_control), "{}", error);
        }
    }
}

#[test]
fn a_bare_string_is_short_for_one_text_part() {
    let long = event(r#"{"type":"request","content":[{"type":"text","text":"go"}]}"#);
    assert_eq!(event(r#"{"type":"request","content":"go"}"#), long);
    assert_eq!(serde_json::to_string(&long).unwrap(), r#"{"type":"request","content":"go"}"#);
}

#[test]
fn an_unknown_field_keeps_its_spelling_and_its_place_at_every_level() {
    let odd = r#""x":{"n":[1.00,-0,1E400,12345678901234567890],"s":"\u00e9\ud800","n":null},"é\"":[ 1 , 2 ]"#;
    let lines = [
        format!(
            r#"{{"type":"recording","version":1,"id":"r","tools":[{{"name":"t","parameters":{{}},{odd}}}],{odd}}}"#
        ),
        format!(r#"{{"type":"request","content":[{{"type":"text","text":"go",{odd}}}],"usage":[1.0],{odd}}}"#),
        format!(
            r#"{{"type":"response","content":[{{"type":"tool_call","id":"c","name":"t","arguments":"{{}}","text":1e0,{odd}}}],"usage":{{"input_tokens":1,"output_tokens":2,{odd}}},{odd}}}"#
        ),
        format!(
            r#"{{"type":"tool_results","results":[{{"call_id":"c","name":"t","content":"","outcome":"ok","type":"x",{odd}}}],{odd}}}"#
        ),
        format!(r#"{{"type":"summary","content":"s","replaced":3,"results":0.10,{odd}}}"#),
        format!(r#"{{"type":"usage","kind":"k","usage":{{"input_tokens":1,"output_tokens":2}},"content":1.0,{odd}}}"#),
    ];
    let text = lines.join("\n") + "\n";
    let read = decode(&text).unwrap().recording;
    assert_eq!(String::from_utf8(encode(&read)).unwrap(), text);
    assert_eq!(read.header.extra.get("é\"").unwrap().get(), "[ 1 , 2 ]");
}

#[test]
fn nulls_say_that_an_optional_field_is_not_there() {
    let response = event(r#"{"type":"response","content":"a","model":null,"usage":null,"provider_data":null}"#);
    assert_eq!(response, Event::answer("a"));
    let header = decode(r#"{"type":"recording","id":"r","instructions":null,"model":null,"tools":null}"#).unwrap();
    assert_eq!(header.recording.header, Header::new("r"));
}

#[test]
fn blank_lines_a_byte_order_mark_and_line_ends_of_windows_do_not_count() {
    let lines = format!("\u{feff}\n \t\r\n{HEADER}\r\n\r\n{{\"type\":\"request\",\"content\":\"go\"}}\r\n  \n\n");
    let read = decode(&lines).unwrap();
    assert_eq!((&read.recording.events[..], read.torn_line), (&[Arc::new(Event::request("go"))][..], None));
    assert_eq!(decode(format!("{lines}{{}}\r\n")).unwrap_err().line, Some(8));
}

#[test]
fn a_last_line_without_a_line_break_counts_if_it_is_whole() {
    let lines = format!("{HEADER}\n{{\"type\":\"request\",\"content\":\"go\"}}");
    assert_eq!(decode(&lines).unwrap().recording.events.len(), 1);
    assert_eq!(decode(HEADER).unwrap().recording.events.len(), 0);
    let read = decode(lines.strip_suffix('}').unwrap()).unwrap();
    assert_eq!((read.recording.events.len(), read.torn_line), (0, Some(2)));
}

#[test]
fn a_last_line_that_is_whole_and_wrong_is_no_torn_one() {
    for line in [r#"{"type":"req"}"#, r#"{"type":"request","content":"go"} {"#, "[", "{]", r#"{"type":1}"#, "hello"] {
        let read = decode(format!("{HEADER}\n{line}"));
        if line == "[" {
            assert_eq!(read.unwrap().torn_line, Some(2));
        } else {
            assert_eq!(read.unwrap_err().line, Some(2), "{line}");
        }
    }
    let stray = [HEADER.as_bytes(), b"\n", br#"{"type":"request","content":"go"}"#, b"\xe2\x82"].concat();
    assert_eq!(decode(stray).unwrap_err().line, Some(2));
}

#[test]
fn a_recording_cut_inside_a_character_or_a_number_of_an_unknown_field_is_torn() {
    let line = r#"{"type":"request","n":-1.5e+7,"content":"€"}"#;
    for cut in 1..line.len() {
        let read = decode([HEADER.as_bytes(), b"\n", &line.as_bytes()[..cut]].concat()).unwrap();
        assert_eq!((read.recording.events.len(), read.torn_line), (0, Some(2)), "cut at {cut}");
    }
}

#[test]
fn a_reader_stops_at_a_flaw() {
    let lines = format!("{HEADER}\n{{}}\n{{\"type\":\"request\",\"content\":\"go\"}}\n");
    let mut reader = RecordingReader::new(lines.as_bytes(), "run-1.jsonl").unwrap();
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
}

#[track_caller]
fn check_flaw(line: &str, expected: &str) {
    let error = decode(format!("{HEADER}\n{line}\n{HEADER}\n")).unwrap_err();
    assert_eq!(error.to_string(), format!("run-1.jsonl:2: {expected}"), "{line}");
    assert!(error.hint().unwrap().starts_with("fix the line"));
}

#[test]
fn a_flaw_of_a_line_names_its_file_and_line() {
    check_flaw("hello", "expected value at column 1");
    check_flaw(r#"{"type":"request","content":"go"#, "field `content`: EOF while parsing a string at column 31");
    check_flaw(r#"{"type":"request","content":"go",}"#, "trailing comma at column 34");
    check_flaw(r#"{"type":"request","x":[1,}"#, "field `x`: expected value at column 26");
    check_flaw(r#"{"type":"request","content":"a"}{"type":"request"}"#, "trailing characters at column 33");
    check_flaw("[1]", "invalid type: sequence, expected an event as an object");
    check_flaw("7", "invalid type: integer `7`, expected an event as an object");
    check_flaw(HEADER, "field `type`: a second header; one file holds one recording");
    check_flaw("{}", "missing field `type`");
    check_flaw(r#"{"content":"go"}"#, "missing field `type`");
    check_flaw(r#"{"type":7}"#, "field `type`: invalid type: integer `7`, expected a string");
    check_flaw(
        r#"{"type":"reqest","content":"go"}"#,
        "field `type`: unknown event type \"reqest\", expected `request`, `response`, `tool_results`, `summary` or `usage`",
    );
}

#[test]
fn a_flaw_of_a_field_names_the_path_to_it() {
    check_flaw(r#"{"type":"request"}"#, "missing field `content`");
    check_flaw(r#"{"type":"tool_results","content":"go"}"#, "missing field `results`");
    check_flaw(r#"{"type":"summary","content":"go"}"#, "missing field `replaced`");
    check_flaw(
        r#"{"type":"summary","content":"go","replaced":-1}"#,
        "field `replaced`: invalid value: integer `-1`, expected u64",
    );
    check_flaw(r#"{"type":"usage","kind":"k","usage":null}"#, "missing field `usage`");
    check_flaw(
        r#"{"type":"usage","kind":"k","usage":{"input_tokens":1}}"#,
        "field `usage`: missing field `output_tokens`",
    );
    check_flaw(
        r#"{"type":"response","content":"a","usage":{"input_tokens":1.5}}"#,
        "field `usage.input_tokens`: invalid type: floating point `1.5`, expected u64",
    );
    check_flaw(
        r#"{"type":"request","content":{"type":"text"}}"#,
        "field `content`: invalid type: map, expected a string or a list of parts",
    );
    check_flaw(r#"{"type":"request","content":[{"type":"text"}]}"#, "field `content[0]`: missing field `text`");
    check_flaw(
        r#"{"type":"request","content":["a"]}"#,
        "field `content[0]`: invalid type: string \"a\", expected a part as an object",
    );
    check_flaw(
        r#"{"type":"request","content":[{"type":"txt"}]}"#,
        "field `content[0].type`: unknown part type \"txt\", expected `text`, `system`, `image`, `audio`, `document`, \
         `thinking` or `tool_call`",
    );
    check_flaw(
        r#"{"type":"response","content":[{"type":"text","text":"a"},{"type":"thinking","text":"b"},{"type":"tool_call","id":"c1","name":"login","arguments":{}}]}"#,
        "field `content[2].arguments`: invalid type: map, expected a string",
    );
    check_flaw(
        r#"{"type":"tool_results","results":[{"call_id":"c","name":"n","outcome":"ok","content":[{"type":"text","text":"a"},{"type":"text","text":null}]}]}"#,
        "field `results[0].content[1].text`: invalid type: null, expected a string",
    );
    check_flaw(
        r#"{"type":"tool_results","results":[{"call_id":"c","name":"n","content":"","outcome":"fine"}]}"#,
        "field `results[0].outcome`: unknown variant `fine`, expected one of `ok`, `error`, `not_found`",
    );
    check_flaw(
        r#"{"type":"request","content":[{"type":"image","media_type":"image/png"}]}"#,
        "field `content[0]`: image needs either `data` or `url`",
    );
    check_flaw(
        r#"{"type":"request","content":[{"type":"image","media_type":"image/png","data":"","url":""}]}"#,
        "field `content[0]`: image needs either `data` or `url`",
    );
    check_flaw(
        r#"{"type":"request","content":[{"type":"text","text":"a","pinned":1}]}"#,
        "field `content[0].pinned`: invalid type: integer `1`, expected a boolean",
    );
    check_flaw(
        r#"{"type":"request","content":[{"type":"text","text":"\ud800"}]}"#,
        "field `content[0].text`: unexpected end of hex escape at column 59",
    );
}

#[test]
fn a_flaw_that_comes_before_the_type_is_named_as_well() {
    check_flaw(
        r#"{"content":[{"text":"a","type":"text"},{"text":7,"type":"text"}],"type":"request"}"#,
        "field `content[1].text`: invalid type: integer `7`, expected a string",
    );
    check_flaw(
        r#"{"results":[{"call_id":"c","name":"n","outcome":"ok","content":[{"text":["a"],"x":1,"type":"text"}]}],"type":"tool_results"}"#,
        "field `results[0].content[0].text`: invalid type: sequence, expected a string",
    );
    check_flaw(r#"{"content":"a","content":"b","type":"request"}"#, "field `content`: it stands there twice");
    check_flaw(r#"{"content":[1,],"type":"request"}"#, "field `content`: expected value at column 15");
}

#[test]
fn a_part_in_the_wrong_place_is_refused() {
    let parts = [
        (r#"{"type":"text","text":""}"#, "request response result summary"),
        (r#"{"type":"system","text":""}"#, "request"),
        (r#"{"type":"image","media_type":"","url":""}"#, "request result"),
        (r#"{"type":"audio","media_type":"","url":""}"#, "request result"),
        (r#"{"type":"document","media_type":"","data":""}"#, "request result"),
        (r#"{"type":"thinking","text":""}"#, "response"),
        (r#"{"type":"tool_call","id":"","name":"","arguments":""}"#, "response"),
    ];
    for (part, places) in parts {
        let kind = part.split('"').nth(3).unwrap();
        for place in ["request", "response", "result", "summary"] {
            let (line, path) = match place {
                "result" => (
                    format!(
                        r#"{{"type":"tool_results","results":[{{"call_id":"","name":"","outcome":"ok","content":[{part}]}}]}}"#
                    ),
                    "results[0].content[0]",
                ),
                _ => (format!(r#"{{"type":"{place}","content":[{part}],"replaced":1}}"#), "content[0]"),
            };
            let name = if place == "result" { "a result".to_owned() } else { format!("a `{place}`") };
            if places.contains(place) {
                event(&line);
            } else {
                check_flaw(&line, &format!("field `{path}`: a `{kind}` part does not belong in {name}"));
            }
        }
    }
}

#[test]
fn a_known_field_stands_once_and_an_unknown_one_as_often_as_it_likes() {
    check_flaw(r#"{"type":"request","content":"a","type":"request"}"#, "field `type`: it stands there twice");
    check_flaw(r#"{"type":"request","content":"a","content":"a"}"#, "field `content`: it stands there twice");
    check_flaw(r#"{"type":"response","content":"a","model":null,"model":"m"}"#, "field `model`: it stands there twice");
    check_flaw(
        r#"{"type":"request","content":[{"type":"text","text":"a","\u0074ext":"b"}]}"#,
        "field `content[0].text`: it stands there twice",
    );
    let line = r#"{"type":"request","content":"a","x":1,"x":2}"#;
    assert_eq!(serde_json::to_string(&event(line)).unwrap(), line);
}

#[test]
fn what_is_not_utf8_is_refused_with_its_place() {
    let lines = [HEADER.as_bytes(), b"\n{\"type\":\"request\",\"content\":\"\xff\"}\n"].concat();
    assert_eq!(decode(lines).unwrap_err().to_string(), "run-1.jsonl:2: not UTF-8 from byte 30 of the line on");
    let cut_inside_a_line = [HEADER.as_bytes(), b"\n\"\xe2\x82\n\n"].concat();
    assert!(matches!(decode(cut_inside_a_line).unwrap_err().reason, ReadReason::NotUtf8(2)));
}

#[track_caller]
fn check_header_flaw(line: &str, expected: &str) {
    let error = decode(line).unwrap_err();
    assert_eq!(error.to_string(), format!("run-1.jsonl{expected}"), "{line}");
    assert!(error.hint().is_some());
}

#[test]
fn what_does_not_start_with_a_header_is_no_recording() {
    check_header_flaw("", ": no recording: the file is empty");
    check_header_flaw(" \n\r\n", ": no recording: the file is empty");
    check_header_flaw("hello\n", ":1: no recording header: expected value at column 1");
    check_header_flaw(
        "[{\"role\":\"user\"}]",
        ":1: no recording header: invalid type: sequence, expected a header as an object",
    );
    check_header_flaw("{\"messages\":[]}\n", ":1: no recording header: missing field `type`");
    check_header_flaw(
        "{\"type\":\"request\",\"content\":\"go\"}\n",
        ":1: no recording header: the first line is of type \"request\", not the `recording` header",
    );
    check_header_flaw("{\"type\":\"recording\"}\n", ":1: no recording header: missing field `id`");
    check_header_flaw("\n{\"type\":\"recor", ":2: no recording header: the first line is cut off");
}

#[test]
fn a_flaw_of_a_header_names_the_path_to_it() {
    check_header_flaw(
        r#"{"type":"recording","version":2,"id":"r"}"#,
        ":1: field `version`: version 2 of the recording format is not known; this program reads version 1",
    );
    check_header_flaw(
        r#"{"version":"1","type":"recording"}"#,
        ":1: field `version`: invalid type: string \"1\", expected u64",
    );
    check_header_flaw(
        r#"{"type":"recording","id":"r","tools":[{"name":"a"},{"name":7}]}"#,
        ":1: field `tools[1].name`: invalid type: integer `7`, expected a string",
    );
    check_header_flaw(r#"{"type":"recording","id":"r","id":"r"}"#, ":1: field `id`: it stands there twice");
}

#[test]
fn a_source_that_fails_is_told_with_the_line_it_failed_at() {
    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let header = format!("{HEADER}\n");
    let source = io::BufReader::new(io::Read::chain(header.as_bytes(), Broken));
    let error = read_recording(source, "run-1.jsonl").unwrap_err();
    assert_eq!(error.to_string(), "run-1.jsonl:2: failed to read: the disk is gone");
}

#[test]
fn nesting_of_any_depth_needs_no_stack() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let lines = [
        format!(r#"{{"type":"recording","id":"r","x":{deep}}}"#),
        format!(
            r#"{{"x":{deep},"type":"response","content":[{{"x":{deep},"type":"text","text":""}}],"provider_data":{deep}}}"#
        ),
    ];
    let read = decode(lines.join("\n")).unwrap().recording;
    let Event::Response(response) = &*read.events[0] else { panic!("{:?}", read.events) };
    assert_eq!(response.provider_data.as_ref().unwrap().get(), deep);
    assert_eq!(decode(encode(&read)).unwrap().recording, read);

    let objects = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    for known in ["content", "model", "usage", "x"] {
        let line = format!(r#"{{"type":"response","{known}":{objects}"#);
        assert_eq!(decode(format!("{HEADER}\n{line}")).unwrap().torn_line, Some(2));
        assert!(decode(format!("{HEADER}\n{line},}}\n")).is_err());
    }
    let schema = format!(r#"{{"type":"recording","id":"r","tools":[{{"name":"t","parameters":{objects}}}]}}"#);
    let error = decode(schema).unwrap_err().to_string();
    assert!(error.contains("field `tools[0].parameters`: recursion limit exceeded"), "{error}");
}

#[test]
fn an_error_quotes_little_and_nothing_that_a_terminal_obeys() {
    let huge = "x".repeat(1_000_000);
    let hostile = r"\u001b[2J\u009b\r\n";
    for text in [&*huge, hostile] {
        for line in [
            format!(r#"{{"type":"{text}"}}"#),
            format!(r#"{{"type":"request","content":[{{"type":"{text}"}}]}}"#),
            format!(r#"{{"type":"summary","replaced":"{text}"}}"#),
            format!(r#"{{"type":"tool_results","results":[{{"outcome":"{text}"}}]}}"#),
            format!(r#"{{"type":"tool_results","results":[{{"outcome_from":"{text}"}}]}}"#),
            format!(r#"{{"type":"request","{text}":[,]}}"#),
            format!(r#"{{"type":"request","content":["{text}"]}}"#),
        ] {
            let error = decode(format!("{HEADER}\n{line}\n")).unwrap_err();
            let error = error.to_string();
            assert!(error.len() < 800 && !error.contains(char::is_control), "{error}");
        }
        let error = decode(format!(r#"{{"type":"{text}"}}"#)).unwrap_err().to_string();
        assert!(error.len() < 800 && !error.contains(char::is_control), "{error}");
    }
}

#[test]
fn a_laid_out_value_is_kept_on_one_line() {
    let raw: Raw = serde_json::from_str("{\r\n  \"a\": [1,\n2]\n}").unwrap();
    assert_eq!(raw.get(), "{\r   \"a\": [1, 2] }");
    assert_eq!(Raw::of(&raw).unwrap(), raw);
    let mut extra = Extra::default();
    extra.push("x", raw);
    let header = Header { extra, ..Header::new("r") };
    let recording = Recording::new(header, [Event::request("go")]);
    assert_eq!(decode(encode(&recording)).unwrap().recording, recording);
}

#[test]
fn each_line_is_written_at_once() {
    #[derive(Default)]
    struct Sink(Vec<Vec<u8>>);
    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let call = ToolCall::new("c1", "login", "{}");
    let result = ToolResult::text_result(&call, Outcome::Ok, "a\nb");
    let mut writer = RecordingWriter::new(Sink::default(), &Header::new("r")).unwrap();
    for event in [Event::calls([call]), Event::results([result])] {
        writer.write(&event).unwrap();
    }
    let Sink(writes) = writer.finish().unwrap();
    assert_eq!(writes.len(), 3);
    assert!(writes.iter().all(|line| line.iter().filter(|byte| **byte == b'\n').count() == 1 && line.ends_with(b"\n")));
}
