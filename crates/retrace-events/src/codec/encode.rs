//! From the words to JSON: the `type` first, then the known fields, then the others as they came.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::event::{Event, ToolResult, Usage};
use crate::part::{Marks, MediaSource, Part, PartBody};
use crate::raw::Extra;
use crate::recording::{FORMAT_VERSION, Header, ToolSpec};

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind())?;
        let extra = match self {
            Self::Request(request) => {
                map.serialize_entry("content", &Content(&request.content))?;
                &request.extra
            }
            Self::Response(response) => {
                map.serialize_entry("content", &Content(&response.content))?;
                optional(&mut map, "model", response.model.as_ref())?;
                optional(&mut map, "usage", response.usage.as_ref())?;
                optional(&mut map, "provider_data", response.provider_data.as_ref())?;
                &response.extra
            }
            Self::ToolResults(round) => {
                map.serialize_entry("results", &round.results[..])?;
                &round.extra
            }
            Self::Summary(summary) => {
                map.serialize_entry("content", &Content(&summary.content))?;
                map.serialize_entry("replaced", &summary.replaced)?;
                &summary.extra
            }
            Self::Usage(event) => {
                map.serialize_entry("kind", &event.kind)?;
                map.serialize_entry("usage", &event.usage)?;
                optional(&mut map, "model", event.model.as_ref())?;
                &event.extra
            }
        };
        finish(map, extra)
    }
}

impl Serialize for ToolResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("call_id", &self.call_id)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("content", &Content(&self.content))?;
        map.serialize_entry("outcome", &self.outcome)?;
        optional(&mut map, "error", self.error.as_ref())?;
        optional(&mut map, "outcome_from", self.outcome_from.as_ref())?;
        optional(&mut map, "own", self.own.then_some(&true))?;
        finish(map, &self.extra)
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind())?;
        match &self.body {
            PartBody::Text(text) | PartBody::System(text) => map.serialize_entry("text", text)?,
            PartBody::Media(media) => {
                map.serialize_entry("media_type", &media.media_type)?;
                match &media.source {
                    MediaSource::Data(data) => map.serialize_entry("data", data)?,
                    MediaSource::Url(url) => map.serialize_entry("url", url)?,
                }
            }
            PartBody::Thinking(thinking) => {
                map.serialize_entry("text", &thinking.text)?;
                optional(&mut map, "signature", thinking.signature.as_ref())?;
            }
            PartBody::ToolCall(call) => {
                map.serialize_entry("id", &call.id)?;
                map.serialize_entry("name", &call.name)?;
                map.serialize_entry("arguments", &call.arguments)?;
                optional(&mut map, "rebuilt", call.rebuilt.then_some(&true))?;
            }
        }
        let marks = &self.marks;
        optional(&mut map, "pinned", marks.pinned.then_some(&true))?;
        optional(&mut map, "kept", marks.kept.then_some(&true))?;
        optional(&mut map, "origin", marks.origin().as_ref())?;
        optional(&mut map, "scope", marks.scope().as_ref())?;
        optional(&mut map, "receipt", marks.receipt())?;
        finish(map, &self.extra)
    }
}

impl Serialize for Usage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("input_tokens", &self.input_tokens)?;
        map.serialize_entry("output_tokens", &self.output_tokens)?;
        optional(&mut map, "cache_read_tokens", self.cache_read_tokens.as_ref())?;
        optional(&mut map, "cache_write_tokens", self.cache_write_tokens.as_ref())?;
        finish(map, &self.extra)
    }
}

impl Serialize for Header {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "recording")?;
        map.serialize_entry("version", &FORMAT_VERSION)?;
        map.serialize_entry("id", &self.id)?;
        optional(&mut map, "task", self.task.as_ref())?;
        optional(&mut map, "instructions", self.instructions.as_ref())?;
        optional(&mut map, "model", self.model.as_ref())?;
        optional(&mut map, "tools", (!self.tools.is_empty()).then_some(&self.tools))?;
        finish(map, &self.extra)
    }
}

impl Serialize for ToolSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        optional(&mut map, "description", self.description.as_ref())?;
        map.serialize_entry("parameters", &self.parameters)?;
        finish(map, &self.extra)
    }
}

/// Parts, or a bare string where they are one plain text part.
struct Content<'a>(&'a [Part]);

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            [Part { body: PartBody::Text(text), marks, extra }] if *marks == Marks::default() && extra.is_empty() => {
                serializer.serialize_str(text)
            }
            parts => parts.serialize(serializer),
        }
    }
}

fn optional<M: SerializeMap, T: Serialize + ?Sized>(
    map: &mut M,
    key: &'static str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, value))
}

fn finish<M: SerializeMap>(mut map: M, extra: &Extra) -> Result<M::Ok, M::Error> {
    for (key, value) in extra.iter() {
        map.serialize_entry(key, value)?;
    }
    map.end()
}
