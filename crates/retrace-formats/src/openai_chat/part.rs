//! The content of a message.

use retrace_events::{Media, MediaKind, MediaSource, Part, PartBody, Thinking};
use serde_json::value::RawValue;

use crate::error::ImportError;
use crate::finding::{Finding, FindingKind};
use crate::json::{Kind, Object, list, text, unexpected};
use crate::place::{Place, shown};

/// Who wrote a content, which says what parts it may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    System,
    User,
    Assistant,
    Tool,
}

impl Writer {
    /// The types of part that are read.
    fn part_types(self) -> &'static str {
        match self {
            Self::System => "`text`",
            Self::User | Self::Tool => "`text`, `image_url`, `input_audio` or `file`",
            Self::Assistant => "`text`, `refusal` or `thinking`",
        }
    }
}

/// Reads a content: a string, a list of parts, or none.
pub(super) fn content(
    value: Option<&RawValue>,
    place: Place,
    writer: Writer,
    findings: &mut Vec<Finding>,
) -> Result<Vec<Part>, ImportError> {
    let Some(value) = value else { return Ok(Vec::new()) };
    match Kind::of(value) {
        Kind::String => Ok(vec![text_part(text(value, || place.clone())?, writer)]),
        Kind::List => {
            let parts = list(value, || place.clone())?;
            let parts = parts.into_iter().enumerate().map(|(i, value)| part(value, place.index(i), writer, findings));
            parts.collect()
        }
        _ => Err(unexpected(value, place, "a string, null or a list of parts")),
    }
}

fn text_part(text: String, writer: Writer) -> Part {
    if writer == Writer::System { Part::system(text) } else { Part::text(text) }
}

fn part(value: &RawValue, place: Place, writer: Writer, findings: &mut Vec<Finding>) -> Result<Part, ImportError> {
    if Kind::of(value) == Kind::String {
        return Ok(text_part(text(value, || place.clone())?, writer));
    }
    let mut part = Object::read(value, place)?;
    let kind = part.need_text("type")?;
    let has_media = matches!(writer, Writer::User | Writer::Tool);
    let body = match &*kind {
        "text" | "input_text" | "output_text" => text_part(part.need_text("text")?, writer).body,
        "refusal" if writer == Writer::Assistant => {
            findings.push(Finding::new(part.place.clone(), FindingKind::Refusal));
            PartBody::Text(part.need_text("refusal")?.into())
        }
        "thinking" if writer == Writer::Assistant => {
            let (text, signature) = (part.need_text("thinking")?, part.take_text("signature")?);
            PartBody::Thinking(Thinking { text, signature })
        }
        "image_url" if has_media => PartBody::Media(image(&mut part)?),
        "input_audio" if has_media => PartBody::Media(audio(inner(&mut part, "input_audio")?)?),
        "file" if has_media => PartBody::Media(file(inner(&mut part, "file")?)?),
        _ => {
            let place = part.at("type");
            return Err(ImportError::UnknownPart { place, kind: shown(&kind), expected: writer.part_types() });
        }
    };
    Ok(Part { extra: part.rest(), ..Part::from(body) })
}

/// The object that a part has under the name of its type.
fn inner<'a>(part: &mut Object<'a>, key: &'static str) -> Result<Object<'a>, ImportError> {
    let value = part.take(key).ok_or_else(|| part.missing(key))?;
    Object::read(value, part.at(key))
}

fn image(part: &mut Object<'_>) -> Result<Media, ImportError> {
    let value = part.get("image_url").ok_or_else(|| part.missing("image_url"))?;
    let url = match Kind::of(value) {
        Kind::String => part.need_text("image_url")?,
        _ => inner(part, "image_url")?.need_text("url")?,
    };
    Ok(at_url(MediaKind::Image, url, "image/*"))
}

fn audio(mut audio: Object<'_>) -> Result<Media, ImportError> {
    let data = audio.need_text("data")?;
    let media_type = match audio.take_text("format")?.as_deref() {
        None => "audio/*".to_owned(),
        Some("mp3") => "audio/mpeg".to_owned(),
        Some(format) => format!("audio/{format}"),
    };
    Ok(Media { kind: MediaKind::Audio, media_type, source: MediaSource::Data(data) })
}

fn file(mut file: Object<'_>) -> Result<Media, ImportError> {
    let is_pdf = file.take_text("filename")?.is_some_and(|name| name.to_ascii_lowercase().ends_with(".pdf"));
    let media_type = if is_pdf { "application/pdf" } else { "application/octet-stream" };
    let source = match (file.take_text("file_data")?, file.take_text("file_id")?) {
        (Some(data), _) if data.starts_with("data:") => return Ok(at_url(MediaKind::Document, data, media_type)),
        (Some(data), _) => MediaSource::Data(data),
        (None, Some(id)) => MediaSource::Url(id),
        (None, None) => return Err(file.missing("file_data")),
    };
    Ok(Media { kind: MediaKind::Document, media_type: media_type.to_owned(), source })
}

/// A medium at an address, or in it: a `data:` address in base64 holds the bytes themselves.
fn at_url(kind: MediaKind, url: String, media_type: &str) -> Media {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match data {
        Some((own_type, data)) => {
            let media_type = if own_type.is_empty() { media_type } else { own_type };
            Media { kind, media_type: media_type.to_owned(), source: MediaSource::Data(data.to_owned()) }
        }
        None => Media { kind, media_type: media_type.to_owned(), source: MediaSource::Url(url) },
    }
}
