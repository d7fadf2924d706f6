//! Events as they go over the wire: those of retrace as text, and those of a program read back.

use std::sync::Arc;

use retrace_events::codec::{ReadReason, RecordingReader};
use retrace_events::{Event, Header, History, Outcome, Part, Raw, Response, ToolResult, ToolSpec, Usage};
use serde::Serialize;
use serde_json::Value;

/// What is wrong with what a program sent: a predicate, such as "sent an event that cannot be read: …".
pub(crate) type Problem = String;

/// Anything of the recording format as JSON.
pub(crate) fn raw(value: &(impl Serialize + ?Sized)) -> Result<Raw, Problem> {
    Raw::of(value).map_err(|error| format!("cannot be sent what it needs: {error}"))
}

/// The events of a history.
pub(crate) fn encode(history: &History) -> Result<Vec<Raw>, Problem> {
    history.events().map(raw).collect()
}

/// The history that a list of a program stands for. A number is the event at that place of `before`; an event that says
/// the same as the next one of `before` that is not yet taken is that one, however its JSON is spelt.
pub(crate) fn decode_onto(before: &History, list: &[Raw]) -> Result<History, Problem> {
    let mut before_as_json: Option<Vec<Option<Value>>> = None;
    let mut next = 0;
    let mut events = Vec::with_capacity(list.len());
    for (place, item) in list.iter().enumerate() {
        if let Ok(index) = item.read::<usize>() {
            let event = before.get(index).ok_or_else(|| {
                format!("names event {index} of a history that has {} (`events[{place}]`)", before.len())
            })?;
            next = next.max(index + 1);
            events.push(Arc::clone(event));
            continue;
        }
        if before_as_json.is_none() {
            before_as_json = Some(encode(before)?.iter().map(|event| event.read().ok()).collect());
        }
        let known = before_as_json.as_deref().unwrap_or_default();
        let said: Option<Value> = item.read().ok();
        if let Some(found) = (next..known.len()).find(|index| said.is_some() && known[*index] == said) {
            next = found + 1;
            events.extend(before.get(found).cloned());
        } else {
            events.push(Arc::new(decode_event(item).map_err(|problem| format!("{problem} (`events[{place}]`)"))?));
        }
    }
    Ok(History::new(events))
}

/// One event of a program.
pub(crate) fn decode_event(event: &Raw) -> Result<Event, Problem> {
    const HEADER: &str = "{\"type\":\"recording\",\"version\":1,\"id\":\"-\"}\n";
    let lines = format!("{HEADER}{}\n", event.get());
    let unreadable = |reason: &ReadReason| format!("sent an event that cannot be read: {reason}");
    let mut reader = RecordingReader::new(lines.as_bytes(), "").map_err(|error| unreadable(&error.reason))?;
    match reader.next() {
        Some(event) => event.map_err(|error| unreadable(&error.reason)),
        None => Err("sent an event that is empty".to_owned()),
    }
}

/// A `response` event of a program.
pub(crate) fn decode_response(event: &Raw) -> Result<Response, Problem> {
    match decode_event(event)? {
        Event::Response(response) => Ok(response),
        other => Err(format!("sent a `{}` event where a `response` is wanted", other.kind())),
    }
}

/// The tokens of a program.
pub(crate) fn decode_usage(usage: &Raw) -> Result<Usage, Problem> {
    let event = raw_of_text(format!("{{\"type\":\"usage\",\"kind\":\"compaction\",\"usage\":{}}}", usage.get()))?;
    match decode_event(&event)? {
        Event::Usage(event) => Ok(event.usage),
        other => Err(format!("sent a `{}` where tokens are wanted", other.kind())),
    }
}

/// A result as `results` of an event have it.
pub(crate) fn decode_result(result: &Raw) -> Result<ToolResult, Problem> {
    let event = raw_of_text(format!("{{\"type\":\"tool_results\",\"results\":[{}]}}", result.get()))?;
    match decode_event(&event)? {
        Event::ToolResults(round) => round.results.into_iter().next().ok_or_else(|| "sent no result".to_owned()),
        other => Err(format!("sent a `{}` where a result is wanted", other.kind())),
    }
}

/// The content of a result.
pub(crate) fn decode_content(content: &Raw) -> Result<Vec<Part>, Problem> {
    let result = format!("{{\"call_id\":\"\",\"name\":\"\",\"content\":{},\"outcome\":\"ok\"}}", content.get());
    Ok(decode_result(&raw_of_text(result)?)?.content.into_vec())
}

/// The content of a result as it is written: a text where it is nothing but one.
pub(crate) fn encode_content(result: &ToolResult) -> Result<Raw, Problem> {
    #[derive(serde::Deserialize)]
    struct Content {
        content: Raw,
    }
    let result = ToolResult { outcome: Outcome::Ok, ..result.clone() };
    let content = raw(&result)?.read::<Content>();
    content.map(|result| result.content).map_err(|error| format!("cannot be sent a result: {error}"))
}

/// Tools, as the header of a recording has them.
pub(crate) fn decode_tools(tools: &[Raw]) -> Result<Vec<ToolSpec>, Problem> {
    let tools: Vec<_> = tools.iter().map(Raw::get).collect();
    let line = format!("{{\"type\":\"recording\",\"id\":\"-\",\"tools\":[{}]}}\n", tools.join(","));
    match RecordingReader::new(line.as_bytes(), "") {
        Ok(reader) => Ok(Header::clone(reader.header()).tools),
        Err(error) => Err(format!("sent tools that cannot be read: {}", error.reason)),
    }
}

fn raw_of_text(json: String) -> Result<Raw, Problem> {
    serde_json::from_str(&json).map_err(|error| format!("sent JSON that cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use retrace_events::codec::read_recording;

    use super::*;

    /// Events with all that a program may respell: numbers, spaces, escapes, and fields that retrace does not know.
    fn history() -> History {
        let lines = r#"{"type":"recording","id":"r"}
{"type":"request","content":"go","source":{"a": 1e2, "b":[ 1.50, "\u00e9\/" ]}}
{"type":"response","content":[{"type":"tool_call","id":"c","name":"t","arguments":"{ }"}],"provider_data":{ "x" : 10 }}
{"type":"tool_results","results":[{"call_id":"c","name":"t","content":"ok","outcome":"ok","cost":2.0}]}
{"type":"request","content":"go","source":{"a": 1e2, "b":[ 1.50, "\u00e9\/" ]}}
{"type":"response","content":"done"}
"#;
        History::new(read_recording(lines.as_bytes(), "").unwrap().recording.events)
    }

    proptest! {
        #[test]
        fn an_event_that_comes_back_is_the_one_that_went_out(
            kept in proptest::sample::subsequence((0..5_usize).collect::<Vec<_>>(), 0..=5),
            written in proptest::collection::vec(any::<bool>(), 5),
        ) {
            let history = history();
            let item = |(&place, written): (&usize, &bool)| {
                // As a program would: read, and written anew.
                let event: Value = raw(&**history.get(place).unwrap()).unwrap().read().unwrap();
                if *written { raw(&event).unwrap() } else { raw(&place).unwrap() }
            };
            let list: Vec<_> = kept.iter().zip(&written).map(item).collect();
            let decoded = decode_onto(&history, &list).unwrap();
            prop_assert_eq!(decoded.len(), kept.len());
            for (event, place) in decoded.iter().zip(kept) {
                let before = history.get(place).unwrap();
                // The first and the fourth say the same: either stands for the other.
                prop_assert!(Arc::ptr_eq(event, before) || event == before);
                prop_assert!(history.iter().any(|known| Arc::ptr_eq(event, known)));
            }
        }
    }

    /// JSON that is nested too deeply for a value equals no other such JSON.
    #[test]
    fn what_is_nested_too_deeply_is_not_taken_for_something_else() {
        let nested = |text: &str| {
            let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
            let line = format!("{{\"type\":\"request\",\"content\":\"{text}\",\"deep\":{deep}}}");
            serde_json::from_str::<Raw>(&line).unwrap()
        };
        let before = History::from(vec![decode_event(&nested("old")).unwrap()]);
        let made = decode_onto(&before, &[nested("new")]).unwrap();
        assert_ne!(made, before);
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_place() {
        let list = |json: &str| decode_onto(&history(), &serde_json::from_str::<Vec<Raw>>(json).unwrap());
        assert_eq!(list("[0, 5]").unwrap_err(), "names event 5 of a history that has 5 (`events[1]`)");
        let errors = [
            ("[null]", "sent an event that cannot be read: "),
            ("[-1]", "sent an event that cannot be read: "),
            (r#"[0, {"type":"request"}]"#, "sent an event that cannot be read: missing field `content` (`events[1]`)"),
        ];
        for (json, error) in errors {
            let problem = list(json).unwrap_err();
            assert!(problem.starts_with(error), "{problem}");
        }
        let made = list(r#"[4, {"type":"summary","content":"so far","replaced":4}, 0]"#).unwrap();
        assert_eq!(made.events().map(Event::kind).collect::<Vec<_>>(), ["response", "summary", "request"]);
    }

    #[test]
    fn a_round_trip_of_tools_tokens_and_results_changes_nothing() {
        let tools = r#"[{"name":"a","description":"d","parameters":{"type":"object"},"strict":true},{"name":"b"}]"#;
        let tools = decode_tools(&serde_json::from_str::<Vec<Raw>>(tools).unwrap()).unwrap();
        let again: Vec<_> = tools.iter().map(|tool| raw(tool).unwrap()).collect();
        assert_eq!(decode_tools(&again).unwrap(), tools);
        assert!(decode_tools(&[raw("a").unwrap()]).is_err());

        let history = history();
        let Event::ToolResults(round) = &**history.get(2).unwrap() else { panic!() };
        let result = &round.results[0];
        assert_eq!(decode_result(&raw(result).unwrap()).unwrap(), *result);
        assert_eq!(decode_content(&encode_content(result).unwrap()).unwrap(), result.content.to_vec());
        assert!(decode_usage(&raw(&serde_json::json!({"input_tokens": -1})).unwrap()).is_err());
    }
}
