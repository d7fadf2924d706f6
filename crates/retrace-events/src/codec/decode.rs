//! From JSON to the words, field by field.

use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use smol_str::SmolStr;

use super::fields::{Fields, List, Nullable, Object, Trail, keep, once, once_with, required};
use crate::event::{
    Event, Outcome, OutcomeSource, Request, Response, Summary, ToolResult, ToolResults, Usage, UsageEvent,
};
use crate::few::Few;
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
        Object::<EventFields>::typed((), &Trail::default()).deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::<HeaderFields>::typed((), &Trail::default()).deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for ToolSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::<ToolSpecFields>::untyped((), &Trail::default()).deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for ToolResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::<ResultFields>::untyped((), &Trail::default()).deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Usage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::<UsageFields>::untyped((), &Trail::default()).deserialize(deserializer)
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

pub(super) struct EventFields {
    event: EventKind,
    content: Option<Few<Part>>,
    results: Option<Few<ToolResult>>,
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

    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D, trail: &Trail) -> Result<(), D::Error> {
        use EventKind as E;
        match (self.event, key) {
            (E::Request, "content") => once_with(&mut self.content, Content(Place::Request, trail), value),
            (E::Response, "content") => once_with(&mut self.content, Content(Place::Response, trail), value),
            (E::Summary, "content") => once_with(&mut self.content, Content(Place::Summary, trail), value),
            (E::Summary, "replaced") => once(&mut self.replaced, value),
            (E::ToolResults, "results") => {
                once_with(&mut self.results, List(Object::<ResultFields>::untyped((), trail)), value)
            }
            (E::Response | E::Usage, "model") => once(&mut self.model, value),
            (E::Response | E::Usage, "usage") => {
                once_with(&mut self.usage, Nullable(Object::<UsageFields>::untyped((), trail)), value)
            }
            (E::Response, "provider_data") => once(&mut self.provider_data, value),
            (E::Usage, "kind") => once(&mut self.kind, value),
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
struct Content<'t>(Place, &'t Trail);

impl<'de> DeserializeSeed<'de> for Content<'_> {
    type Value = Few<Part>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Few<Part>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Content<'_> {
    type Value = Few<Part>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of parts")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Few<Part>, E> {
        Ok([Part::text(text)].into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Few<Part>, A::Error> {
        List(Object::<PartFields>::typed(self.0, self.1)).visit_seq(seq)
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
    text: Option<SmolStr>,
    signature: Option<Option<String>>,
    id: Option<SmolStr>,
    name: Option<SmolStr>,
    arguments: Option<SmolStr>,
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
            other => {
                return Err(format!(
                    "unknown part type {other:?}, expected `text`, `system`, `image`, `audio`, `document`, `thinking` \
                     or `tool_call`"
                ));
            }
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

    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D, _: &Trail) -> Result<(), D::Error> {
        use PartKind as P;
        match (self.part, key) {
            (P::Text | P::System | P::Thinking, "text") => once(&mut self.text, value),
            (P::Thinking, "signature") => once(&mut self.signature, value),
            (P::ToolCall, "id") => once(&mut self.id, value),
            (P::ToolCall, "name") => once(&mut self.name, value),
            (P::ToolCall, "arguments") => once(&mut self.arguments, value),
            (P::ToolCall, "rebuilt") => once(&mut self.rebuilt, value),
            (P::Media(_), "media_type") => once(&mut self.media_type, value),
            (P::Media(_), "data") => once(&mut self.data, value),
            (P::Media(_), "url") => once(&mut self.url, value),
            (_, "pinned") => once(&mut self.pinned, value),
            (_, "kept") => once(&mut self.kept, value),
            (_, "origin") => once(&mut self.origin, value),
            (_, "scope") => once(&mut self.scope, value),
            (_, "receipt") => once(&mut self.receipt, value),
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
            PartKind::Thinking => PartBody::Thinking(Thinking {
                text: required(self.text, "text")?.into(),
                signature: self.signature.flatten(),
            }),
            PartKind::ToolCall => PartBody::ToolCall(ToolCall {
                id: required(self.id, "id")?,
                name: required(self.name, "name")?,
                arguments: required(self.arguments, "arguments")?,
                rebuilt: self.rebuilt.unwrap_or(false),
            }),
        };
        let mut part = Part { body, marks: Marks::default(), extra: self.extra };
        part.marks.pinned = self.pinned.unwrap_or(false);
        part.marks.kept = self.kept.unwrap_or(false);
        if let Some(origin) = self.origin.flatten() {
            part.marks.set_origin(origin);
        }
        if let Some(scope) = self.scope.flatten() {
            part.marks.set_scope(scope);
        }
        if let Some(receipt) = self.receipt.flatten() {
            part.marks.set_receipt(receipt);
        }
        if !self.place.admits(&part.body) {
            return Err(E::custom(format_args!("a `{}` part does not belong in {}", part.kind(), self.place.as_str())));
        }
        Ok(part)
    }
}

#[derive(Default)]
struct ResultFields {
    call_id: Option<SmolStr>,
    name: Option<SmolStr>,
    content: Option<Few<Part>>,
    outcome: Option<Outcome>,
    error: Option<Option<String>>,
    outcome_from: Option<Option<OutcomeSource>>,
    own: Option<bool>,
    extra: Extra,
}

impl Fields for ResultFields {
    const WHAT: &'static str = "a result";
    type Output = ToolResult;
    type Context = ();

    fn start(_: &str, (): ()) -> Result<Self, String> {
        Ok(Self::default())
    }

    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D, trail: &Trail) -> Result<(), D::Error> {
        match key {
            "call_id" => once(&mut self.call_id, value),
            "name" => once(&mut self.name, value),
            "content" => once_with(&mut self.content, Content(Place::Result, trail), value),
            "outcome" => once(&mut self.outcome, value),
            "error" => once(&mut self.error, value),
            "outcome_from" => once(&mut self.outcome_from, value),
            "own" => once(&mut self.own, value),
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
            own: self.own.unwrap_or_default(),
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

    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D, _: &Trail) -> Result<(), D::Error> {
        match key {
            "input_tokens" => once(&mut self.input_tokens, value),
            "output_tokens" => once(&mut self.output_tokens, value),
            "cache_read_tokens" => once(&mut self.cache_read_tokens, value),
            "cache_write_tokens" => once(&mut self.cache_write_tokens, value),
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
pub(super) struct HeaderFields {
    version: Option<u64>,
    id: Option<String>,
    task: Option<Option<String>>,
    instructions: Option<Option<String>>,
    model: Option<Option<String>>,
    tools: Option<Option<Few<ToolSpec>>>,
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

    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D, trail: &Trail) -> Result<(), D::Error> {
        match key {
            "version" => {
                once(&mut self.version, value)?;
                match self.version {
                    None | Some(FORMAT_VERSION) => Ok(()),
                    Some(version) => Err(de::Error::custom(format_args!(
                        "version {version} of the recording format is not known; this program reads version {FORMAT_VERSION}"
                    ))),
                }
            }
            "id" => once(&mut self.id, value),
            "task" => once(&mut self.task, value),
            "instructions" => once(&mut self.instructions, value),
            "model" => once(&mut self.model, value),
            "tools" => once_with(&mut self.tools, Nullable(List(Object::<ToolSpecFields>::untyped((), trail))), value),
            _ => keep(&mut self.extra, key, value),
        }
    }

    fn finish<E: de::Error>(self) -> Result<Header, E> {
        Ok(Header {
            id: required(self.id, "id")?,
            task: self.task.flatten(),
            instructions: self.instructions.flatten(),
            model: self.model.flatten(),
            tools: self.tools.flatten().unwrap_or_default().into_vec(),
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

    fn set<'de, D: Deserializer<'de>>(&mut self, key: &str, value: D, _: &Trail) -> Result<(), D::Error> {
        match key {
            "name" => once(&mut self.name, value),
            "description" => once(&mut self.description, value),
            "parameters" => once(&mut self.parameters, value),
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
