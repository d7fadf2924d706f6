//! From JSON to the words, field by field.

use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, SeqAccess, Visitor};

use super::fields::{Fields, Object, keep, once, once_with, required};
use crate::event::{
    Event, Outcome, OutcomeSource, Request, Response, Summary, ToolResult, ToolResults, Usage, UsageEvent,
};
use crate::part::{Marks, Media, MediaKind, MediaSource, Part, PartBody, Thinking, ToolCall};
use crate::raw::{Extra, Raw};
use crate::recording::{FORMAT_VERSION, Header, ToolSpec};

/// Where a content stands, which says what parts it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Request,
    Response,
    Result,
    Summary,
}

impl Place {
    fn admits(self, body: &PartBody) -> bool {
        match body {
            PartBody::Text(_) => true,
            PartBody::System(_) => self == Self::Request,
            PartBody::Media(_) => matches!(self, Self::Request | Self::Result),
            PartBody::Thinking(_) | PartBody::ToolCall(_) => self == Self::Response,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Request => "a `request`",
            Self::Response => "a `response`",
            Self::Result => "a result",
            Self::Summary => "a `summary`",
        }
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::<EventFields>::typed(()).deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::<HeaderFields>::typed(()).deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for ToolSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::<ToolSpecFields>::untyped(()).deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for ToolResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::<ResultFields>::untyped(()).deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Usage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::<UsageFields>::untyped(()).deserialize(deserializer)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EventKind {
    Request,
    Response,
    ToolResults,
    Summary,
    Usage,
}

struct EventFields {
    event: EventKind,
    content: Option<Vec<Part>>,
    results: Option<Vec<ToolResult>>,
    kind: Option<String>,
    model: Option<Option<String>>,
    usage: Option<Option<Usage>>,
    provider_data: Option<Option<Raw>>,
    replaced: Option<u64>,
    extra: Extra,
}

impl Fields for EventFields {
    const WHAT: &'static str = "an event";
    type Output = Event;
    type Context = ();

    fn start(kind: &str, (): ()) -> Result<Self, String> {
        let event = match kind {
            "request" => EventKind::Request,
            "response" => EventKind::Response,
            "tool_results" => EventKind::ToolResults,
            "summary" => EventKind::Summary,
            "usage" => EventKind::Usage,
            "recording" => return Err("a second header; one file holds one recording".to_owned()),
            other => {
                return Err(format!(
                    "unknown event type {other:?}, expected `request`, `response`, `tool_results`, `summary` or `usage`"
                ));
            }
        };
        Ok(Self {
            event,
            content: None,
            results: None,
            kind: None,
            model: None,
            usage: None,
            provider_data: None,
            replaced: None,
            extra: Extra::default(),
        })
    }

    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D) -> Result<(), D::Error> {
        use EventKind as E;
        match (self.event, key) {
            (E::Request, "content") => once_with(&mut self.content, key, Content(Place::Request), value),
            (E::Response, "content") => once_with(&mut self.content, key, Content(Place::Response), value),
            (E::Summary, "content") => once_with(&mut self.content, key, Content(Place::Summary), value),
            (E::Summary, "replaced") => once(&mut self.replaced, key, value),
            (E::ToolResults, "results") => once(&mut self.results, key, value),
            (E::Response | E::Usage, "model") => once(&mut self.model, key, value),
            (E::Response | E::Usage, "usage") => once(&mut self.usage, key, value),
            (E::Response, "provider_data") => once(&mut self.provider_data, key, value),
            (E::Usage, "kind") => once(&mut self.kind, key, value),
            _ => keep(&mut self.extra, key, value),
        }
    }

    fn finish<E: de::Error>(self) -> Result<Event, E> {
        let Self { event, content, results, kind, model, usage, provider_data, replaced, extra } = self;
        let (model, usage) = (model.flatten(), usage.flatten());
        Ok(match event {
            EventKind::Request => Event::Request(Request { content: required(content, "content")?, extra }),
            EventKind::Response => Event::Response(Response {
                content: required(content, "content")?,
                model,
                usage,
                provider_data: provider_data.flatten(),
                extra,
            }),
            EventKind::ToolResults => Event::ToolResults(ToolResults { results: required(results, "results")?, extra }),
            EventKind::Summary => Event::Summary(Summary {
                content: required(content, "content")?,
                replaced: required(replaced, "replaced")?,
                extra,
            }),
            EventKind::Usage => Event::Usage(UsageEvent {
                kind: required(kind, "kind")?,
                usage: required(usage, "usage")?,
                model,
                extra,
            }),
        })
    }
}

/// A list of parts, or a bare string for one text part.
#[derive(Clone, Copy)]
struct Content(Place);

impl<'de> DeserializeSeed<'de> for Content {
    type Value = Vec<Part>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Part>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Content {
    type Value = Vec<Part>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of parts")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<Part>, E> {
        Ok(vec![Part::text(text)])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Part>, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = seq.next_element_seed(Object::<PartFields>::typed(self.0))? {
            parts.push(part);
        }
        Ok(parts)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Text,
    System,
    Media(MediaKind),
    Thinking,
    ToolCall,
}

struct PartFields {
    part: PartKind,
    place: Place,
    text: Option<String>,
    signature: Option<Option<String>>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    rebuilt: Option<bool>,
    media_type: Option<String>,
    data: Option<String>,
    url: Option<String>,
    pinned: Option<bool>,
    kept: Option<bool>,
    origin: Option<Option<String>>,
    scope: Option<Option<String>>,
    receipt: Option<Option<Raw>>,
    extra: Extra,
}

impl Fields for PartFields {
    const WHAT: &'static str = "a part";
    type Output = Part;
    type Context = Place;

    fn start(kind: &str, place: Place) -> Result<Self, String> {
        let part = match kind {
            "text" => PartKind::Text,
            "system" => PartKind::System,
            "image" => PartKind::Media(MediaKind::Image),
            "audio" => PartKind::Media(MediaKind::Audio),
            "document" => PartKind::Media(MediaKind::Document),
            "thinking" => PartKind::Thinking,
            "tool_call" => PartKind::ToolCall,
            other => return Err(format!("unknown part type {other:?}")),
        };
        Ok(Self {
            part,
            place,
            text: None,
            signature: None,
            id: None,
            name: None,
            arguments: None,
            rebuilt: None,
            media_type: None,
            data: None,
            url: None,
            pinned: None,
            kept: None,
            origin: None,
            scope: None,
            receipt: None,
            extra: Extra::default(),
        })
    }

    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D) -> Result<(), D::Error> {
        use PartKind as P;
        match (self.part, key) {
            (P::Text | P::System | P::Thinking, "text") => once(&mut self.text, key, value),
            (P::Thinking, "signature") => once(&mut self.signature, key, value),
            (P::ToolCall, "id") => once(&mut self.id, key, value),
            (P::ToolCall, "name") => once(&mut self.name, key, value),
            (P::ToolCall, "arguments") => once(&mut self.arguments, key, value),
            (P::ToolCall, "rebuilt") => once(&mut self.rebuilt, key, value),
            (P::Media(_), "media_type") => once(&mut self.media_type, key, value),
            (P::Media(_), "data") => once(&mut self.data, key, value),
            (P::Media(_), "url") => once(&mut self.url, key, value),
            (_, "pinned") => once(&mut self.pinned, key, value),
            (_, "kept") => once(&mut self.kept, key, value),
            (_, "origin") => once(&mut self.origin, key, value),
            (_, "scope") => once(&mut self.scope, key, value),
            (_, "receipt") => once(&mut self.receipt, key, value),
            _ => keep(&mut self.extra, key, value),
        }
    }

    fn finish<E: de::Error>(self) -> Result<Part, E> {
        let body = match self.part {
            PartKind::Text => PartBody::Text(required(self.text, "text")?),
            PartKind::System => PartBody::System(required(self.text, "text")?),
            PartKind::Media(kind) => PartBody::Media(Media {
                kind,
                media_type: required(self.media_type, "media_type")?,
                source: match (self.data, self.url) {
                    (Some(data), None) => MediaSource::Data(data),
                    (None, Some(url)) => MediaSource::Url(url),
                    _ => return Err(E::custom(format_args!("{} needs either `data` or `url`", kind.as_str()))),
                },
            }),
            PartKind::Thinking => {
                PartBody::Thinking(Thinking { text: required(self.text, "text")?, signature: self.signature.flatten() })
            }
            PartKind::ToolCall => PartBody::ToolCall(ToolCall {
                id: required(self.id, "id")?,
                name: required(self.name, "name")?,
                arguments: required(self.arguments, "arguments")?,
                rebuilt: self.rebuilt.unwrap_or(false),
            }),
        };
        let marks = Marks {
            pinned: self.pinned.unwrap_or(false),
            kept: self.kept.unwrap_or(false),
            origin: self.origin.flatten(),
            scope: self.scope.flatten(),
            receipt: self.receipt.flatten(),
        };
        let part = Part { body, marks, extra: self.extra };
        if !self.place.admits(&part.body) {
            return Err(E::custom(format_args!("a `{}` part does not belong in {}", part.kind(), self.place.as_str())));
        }
        Ok(part)
    }
}

#[derive(Default)]
struct ResultFields {
    call_id: Option<String>,
    name: Option<String>,
    content: Option<Vec<Part>>,
    outcome: Option<Outcome>,
    error: Option<Option<String>>,
    outcome_from: Option<Option<OutcomeSource>>,
    extra: Extra,
}

impl Fields for ResultFields {
    const WHAT: &'static str = "a result";
    type Output = ToolResult;
    type Context = ();

    fn start(_: &str, (): ()) -> Result<Self, String> {
        Ok(Self::default())
    }

    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D) -> Result<(), D::Error> {
        match key {
            "call_id" => once(&mut self.call_id, key, value),
            "name" => once(&mut self.name, key, value),
            "content" => once_with(&mut self.content, key, Content(Place::Result), value),
            "outcome" => once(&mut self.outcome, key, value),
            "error" => once(&mut self.error, key, value),
            "outcome_from" => once(&mut self.outcome_from, key, value),
            _ => keep(&mut self.extra, key, value),
        }
    }

    fn finish<E: de::Error>(self) -> Result<ToolResult, E> {
        Ok(ToolResult {
            call_id: required(self.call_id, "call_id")?,
            name: required(self.name, "name")?,
            content: required(self.content, "content")?,
            outcome: required(self.outcome, "outcome")?,
            error: self.error.flatten(),
            outcome_from: self.outcome_from.flatten(),
            extra: self.extra,
        })
    }
}

#[derive(Default)]
struct UsageFields {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<Option<u64>>,
    cache_write_tokens: Option<Option<u64>>,
    extra: Extra,
}

impl Fields for UsageFields {
    const WHAT: &'static str = "usage";
    type Output = Usage;
    type Context = ();

    fn start(_: &str, (): ()) -> Result<Self, String> {
        Ok(Self::default())
    }

    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D) -> Result<(), D::Error> {
        match key {
            "input_tokens" => once(&mut self.input_tokens, key, value),
            "output_tokens" => once(&mut self.output_tokens, key, value),
            "cache_read_tokens" => once(&mut self.cache_read_tokens, key, value),
            "cache_write_tokens" => once(&mut self.cache_write_tokens, key, value),
            _ => keep(&mut self.extra, key, value),
        }
    }

    fn finish<E: de::Error>(self) -> Result<Usage, E> {
        Ok(Usage {
            input_tokens: required(self.input_tokens, "input_tokens")?,
            output_tokens: required(self.output_tokens, "output_tokens")?,
            cache_read_tokens: self.cache_read_tokens.flatten(),
            cache_write_tokens: self.cache_write_tokens.flatten(),
            extra: self.extra,
        })
    }
}

#[derive(Default)]
struct HeaderFields {
    version: Option<u64>,
    id: Option<String>,
    instructions: Option<Option<String>>,
    model: Option<Option<String>>,
    tools: Option<Option<Vec<ToolSpec>>>,
    extra: Extra,
}

impl Fields for HeaderFields {
    const WHAT: &'static str = "a header";
    type Output = Header;
    type Context = ();

    fn start(kind: &str, (): ()) -> Result<Self, String> {
        match kind {
            "recording" => Ok(Self::default()),
            other => Err(format!("the first line is of type {other:?}, not the `recording` header")),
        }
    }

    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D) -> Result<(), D::Error> {
        match key {
            "version" => once(&mut self.version, key, value),
            "id" => once(&mut self.id, key, value),
            "instructions" => once(&mut self.instructions, key, value),
            "model" => once(&mut self.model, key, value),
            "tools" => once(&mut self.tools, key, value),
            _ => keep(&mut self.extra, key, value),
        }
    }

    fn finish<E: de::Error>(self) -> Result<Header, E> {
        match self.version {
            None | Some(FORMAT_VERSION) => {}
            Some(version) => {
                return Err(E::custom(format_args!(
                    "version {version} of the recording format; this program reads version {FORMAT_VERSION}"
                )));
            }
        }
        Ok(Header {
            id: required(self.id, "id")?,
            instructions: self.instructions.flatten(),
            model: self.model.flatten(),
            tools: self.tools.flatten().unwrap_or_default(),
            extra: self.extra,
        })
    }
}

#[derive(Default)]
struct ToolSpecFields {
    name: Option<String>,
    description: Option<Option<String>>,
    parameters: Option<serde_json::Value>,
    extra: Extra,
}

impl Fields for ToolSpecFields {
    const WHAT: &'static str = "a tool";
    type Output = ToolSpec;
    type Context = ();

    fn start(_: &str, (): ()) -> Result<Self, String> {
        Ok(Self::default())
    }

    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D) -> Result<(), D::Error> {
        match key {
            "name" => once(&mut self.name, key, value),
            "description" => once(&mut self.description, key, value),
            "parameters" => once(&mut self.parameters, key, value),
            _ => keep(&mut self.extra, key, value),
        }
    }

    fn finish<E: de::Error>(self) -> Result<ToolSpec, E> {
        Ok(ToolSpec {
            name: required(self.name, "name")?,
            description: self.description.flatten(),
            parameters: self.parameters.unwrap_or_else(ToolSpec::any_arguments),
            extra: self.extra,
        })
    }
}
