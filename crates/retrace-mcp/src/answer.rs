//! Answers of a server as results of calls.

use retrace_env::ToolOutput;
use retrace_events::{Media, MediaKind, MediaSource, Outcome, OutcomeRule, Part, PartBody, Raw};
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, ErrorData, ResourceContents};
use serde_json::Value;

use crate::shown_path::ShownPath;

/// How the answers of a server are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// Which are failures, beside those that say so.
    pub(crate) outcome: Option<OutcomeRule>,
    /// A JSON pointer to what of an answer is its result.
    pub(crate) result: Option<String>,
}

impl Reading {
    /// What a call gave.
    pub(crate) fn output(&self, answer: CallToolResult, path: Option<&ShownPath>) -> ToolOutput {
        let mut content: Vec<Part> = answer.content.into_iter().map(|block| part(block, path)).collect();
        let text: String = content.iter().filter_map(Part::as_text).collect();
        let mut error = answer.is_error.unwrap_or(false).then_some("ToolError");
        let is_failure = |text: &str| self.outcome.as_ref().is_some_and(|rule| rule.is_failure(text));
        match answer.structured_content {
            // The text of a server that sends both says the same.
            Some(structured) if text.is_empty() => {
                let text = structured.to_string();
                error = error.or(is_failure(&text).then_some("OutcomeRule"));
                content.insert(0, Part::text(self.unwrapped(structured)));
            }
            _ => {
                error = error.or(is_failure(&text).then_some("OutcomeRule"));
                if let Some(result) = self.unwrapped_text(&text) {
                    content.retain(|part| part.as_text().is_none());
                    content.insert(0, Part::text(result));
                }
            }
        }
        if let Some(path) = path {
            for part in &mut content {
                if let PartBody::Text(text) = &mut part.body {
                    *text = path.show(text).into();
                }
            }
        }
        let outcome = if error.is_some() { Outcome::Error } else { Outcome::Ok };
        ToolOutput { content, outcome, error: error.map(str::to_owned) }
    }

    fn unwrapped(&self, mut answer: Value) -> String {
        match self.result.as_ref().and_then(|pointer| answer.pointer_mut(pointer)) {
            Some(Value::String(text)) => std::mem::take(text),
            Some(inner) => inner.to_string(),
            None => answer.to_string(),
        }
    }

    fn unwrapped_text(&self, text: &str) -> Option<String> {
        let pointer = self.result.as_ref()?;
        let answer: Value = serde_json::from_str(text).ok()?;
        answer.pointer(pointer)?;
        Some(self.unwrapped(answer))
    }
}

/// What a call gave that the server refused on the level of the protocol.
pub(crate) fn refusal(name: &str, error: &ErrorData, path: Option<&ShownPath>) -> ToolOutput {
    let kind = match error.code {
        ErrorCode::METHOD_NOT_FOUND => return ToolOutput::not_found(name),
        ErrorCode::INVALID_PARAMS => "InvalidParams",
        ErrorCode::INTERNAL_ERROR => "InternalError",
        _ => "ProtocolError",
    };
    ToolOutput::failed(kind, path.map_or_else(|| error.message.to_string(), |path| path.show(&error.message)))
}

fn part(block: ContentBlock, path: Option<&ShownPath>) -> Part {
    match block {
        ContentBlock::Text(text) => Part::text(text.text),
        ContentBlock::Image(image) => media(image.mime_type, image.data),
        ContentBlock::Audio(audio) => media(audio.mime_type, audio.data),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => with_uri(Part::text(text), uri, path),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                with_uri(media(mime_type.unwrap_or_else(|| "application/octet-stream".to_owned()), blob), uri, path)
            }
            other => json(&other),
        },
        // A link, or what a later version of the protocol brings.
        other => json(&other),
    }
}

fn media(media_type: String, data: String) -> Part {
    let kind = match media_type.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        _ => MediaKind::Document,
    };
    PartBody::Media(Media { kind, media_type, source: MediaSource::Data(data) }).into()
}

/// The part, with the address of the resource that it shows.
fn with_uri(mut part: Part, uri: String, path: Option<&ShownPath>) -> Part {
    if let Ok(uri) = Raw::of(&path.map_or_else(|| uri.clone(), |path| path.show(&uri))) {
        part.extra.push("uri", uri);
    }
    part
}

/// What is neither text nor media, as its JSON text.
fn json(value: &impl serde::Serialize) -> Part {
    Part::text(serde_json::to_string(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(reading: &Reading, answer: Value) -> ToolOutput {
        reading.output(serde_json::from_value(answer).unwrap(), Some(&ShownPath::new("/tmp/1", "/workspace")))
    }

    fn text(text: &str) -> Value {
        json!({"content": [{"type": "text", "text": text}]})
    }

    #[test]
    fn all_kinds_of_content_are_kept() {
        let answer = json!({"content": [
            {"type": "text", "text": "in /tmp/1/a"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///tmp/1/a", "text": "hi"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "aGk=", "mimeType": "application/pdf"}},
            {"type": "resource_link", "uri": "file:///tmp/1/c", "name": "c"},
        ], "structuredContent": {"a": 1}});
        let output = read(&Reading::default(), answer);
        let media = |index: usize| match &output.content[index].body {
            PartBody::Media(media) => (media.kind, media.media_type.as_str(), media.source.clone()),
            other => panic!("{other:?}"),
        };
        let data = MediaSource::Data("aGk=".to_owned());
        assert_eq!((output.outcome, output.content.len()), (Outcome::Ok, 6));
        assert_eq!(output.content[0], Part::text("in /workspace/a"));
        assert_eq!(media(1), (MediaKind::Image, "image/png", data.clone()));
        assert_eq!(media(2), (MediaKind::Audio, "audio/wav", data.clone()));
        assert_eq!(output.content[3].as_text(), Some("hi"));
        assert_eq!(output.content[3].extra.get("uri").unwrap().get(), "\"file:///workspace/a\"");
        assert_eq!(media(4), (MediaKind::Document, "application/pdf", data));
        let link: Value = serde_json::from_str(output.content[5].as_text().unwrap()).unwrap();
        assert_eq!(link, json!({"type": "resource_link", "uri": "file:///workspace/c", "name": "c"}));
    }

    #[test]
    fn structured_content_is_shown_where_there_is_no_text() {
        let structured = json!({"b": 1, "a": [null]});
        let image = json!([{"type": "image", "data": "", "mimeType": "image/png"}]);
        for content in [json!([]), image] {
            let output = read(&Reading::default(), json!({"content": content, "structuredContent": structured}));
            assert_eq!(output.text(), r#"{"b":1,"a":[null]}"#);
        }
    }

    #[test]
    fn failures_are_what_says_so_and_what_the_rule_finds() {
        let reading = Reading { outcome: Some("pointer:/ok=false".parse().unwrap()), result: None };
        let outcome = |answer| read(&reading, answer).error;
        assert_eq!(outcome(json!({"content": [], "isError": true})).as_deref(), Some("ToolError"));
        assert_eq!(outcome(text(r#"{"ok": false}"#)).as_deref(), Some("OutcomeRule"));
        assert_eq!(outcome(json!({"structuredContent": {"ok": false}})).as_deref(), Some("OutcomeRule"));
        assert_eq!(outcome(text(r#"{"ok": true}"#)), None);
    }

    #[test]
    fn a_wrapped_result_is_unwrapped_and_another_answer_is_its_own() {
        let rule = Some("pointer:/ok=false".parse().unwrap());
        let reading = Reading { outcome: rule, result: Some("/r/0".to_owned()) };
        let shown = |answer| {
            let output = read(&reading, answer);
            (output.text(), output.outcome)
        };
        assert_eq!(shown(text(r#"{"ok":false,"r":["Error: no"]}"#)), ("Error: no".to_owned(), Outcome::Error));
        assert_eq!(shown(text(r#"{"r":[{"b":1,"a":2}]}"#)), (r#"{"b":1,"a":2}"#.to_owned(), Outcome::Ok));
        assert_eq!(shown(json!({"structuredContent": {"r": ["x"]}})), ("x".to_owned(), Outcome::Ok));
        assert_eq!(shown(text(r#"{"r":[]}"#)), (r#"{"r":[]}"#.to_owned(), Outcome::Ok));
        assert_eq!(shown(text("plain")), ("plain".to_owned(), Outcome::Ok));
    }

    #[test]
    fn a_refusal_is_a_failed_result() {
        let path = ShownPath::new("/tmp/1", "/workspace");
        let refuse = |code| {
            refusal("a", &ErrorData { code: ErrorCode(code), message: "no /tmp/1/a".into(), data: None }, Some(&path))
        };
        assert_eq!(refuse(-32601).outcome, Outcome::NotFound);
        let output = refuse(-32602);
        assert_eq!((output.outcome, output.error.as_deref()), (Outcome::Error, Some("InvalidParams")));
        assert_eq!((refuse(-32000).outcome, refuse(-32000).text()), (Outcome::Error, "no /workspace/a".to_owned()));
    }
}
