//! Parts: what the content of an event is made of.

use smol_str::SmolStr;

use crate::raw::{Extra, Raw};

/// One piece of an event's content.
///
/// Clones share a text, a system prompt, and the arguments of a call, so that rewriting an event copies little else.
/// Reasoning, the data of media and fields that retrace does not know are copied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// What it is.
    pub body: PartBody,
    /// What strategies have noted on it.
    pub marks: Marks,
    /// Fields retrace does not know.
    pub extra: Extra,
}

/// What a part is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PartBody {
    /// Plain text; stands in every content.
    Text(SmolStr),
    /// A system prompt kept in the history; stands in a request.
    System(SmolStr),
    /// An image, a sound or a document; stands in a request or a result.
    Media(Media),
    /// The model's reasoning; stands in a response.
    Thinking(Thinking),
    /// A call of a tool; stands in a response.
    ToolCall(ToolCall),
}

/// An image, a sound or a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Media {
    /// Which of the three.
    pub kind: MediaKind,
    /// Its media type, such as `image/png`.
    pub media_type: String,
    /// Where its bytes are.
    pub source: MediaSource,
}

/// The kinds of media, each of which costs a flat number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// A picture.
    Image,
    /// A sound.
    Audio,
    /// A document, such as a PDF.
    Document,
}

/// Where the bytes of a medium are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MediaSource {
    /// Here, in base64.
    Data(String),
    /// At an address.
    Url(String),
}

/// The model's reasoning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thinking {
    /// The text, as far as the provider gives it.
    pub text: String,
    /// The provider's signature over it.
    pub signature: Option<String>,
}

/// A call of a tool, as the model wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ToolCall {
    /// Its id; not unique over a recording, nor within a response.
    pub id: SmolStr,
    /// The tool.
    pub name: SmolStr,
    /// The JSON text of the arguments, exactly as the model sent it.
    pub arguments: SmolStr,
    /// The source gave only a parsed form of the arguments.
    pub rebuilt: bool,
}

/// What strategies note on a part. A reader that does not know a mark keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marks {
    /// Every strategy keeps it verbatim.
    pub pinned: bool,
    /// A copy of a user turn that a strategy carried over.
    pub kept: bool,
    // Hardly any part has one, and all have room for them: that of a pointer.
    notes: Option<Box<Notes>>,
}

/// The marks that say something; at least one is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Notes {
    origin: Option<String>,
    scope: Option<String>,
    receipt: Option<Raw>,
}

impl Marks {
    /// The kind of the strategy that made the part; it is not a user turn.
    pub fn origin(&self) -> Option<&str> {
        self.notes.as_ref()?.origin.as_deref()
    }

    /// `request`: the part is sent only while no `response` follows it.
    pub fn scope(&self) -> Option<&str> {
        self.notes.as_ref()?.scope.as_deref()
    }

    /// A note of what was removed here.
    pub fn receipt(&self) -> Option<&Raw> {
        self.notes.as_ref()?.receipt.as_ref()
    }

    /// Notes the kind of the strategy that made the part.
    pub fn set_origin(&mut self, origin: impl Into<String>) {
        self.notes.get_or_insert_default().origin = Some(origin.into());
    }

    /// Notes how long the part is sent.
    pub fn set_scope(&mut self, scope: impl Into<String>) {
        self.notes.get_or_insert_default().scope = Some(scope.into());
    }

    /// Notes what was removed here.
    pub fn set_receipt(&mut self, receipt: Raw) {
        self.notes.get_or_insert_default().receipt = Some(receipt);
    }
}

impl MediaKind {
    /// Its spelling in the format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Document => "document",
        }
    }
}

impl ToolCall {
    /// A call as the model sent it.
    pub fn new(id: impl Into<SmolStr>, name: impl Into<SmolStr>, arguments: impl Into<SmolStr>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), rebuilt: false }
    }
}

impl Part {
    /// A plain text part.
    pub fn text(text: impl Into<SmolStr>) -> Self {
        PartBody::Text(text.into()).into()
    }

    /// A system prompt.
    pub fn system(text: impl Into<SmolStr>) -> Self {
        PartBody::System(text.into()).into()
    }

    /// The same part, pinned.
    #[must_use]
    pub fn pinned(mut self) -> Self {
        self.marks.pinned = true;
        self
    }

    /// Its `type`, as the format spells it.
    pub fn kind(&self) -> &'static str {
        match &self.body {
            PartBody::Text(_) => "text",
            PartBody::System(_) => "system",
            PartBody::Media(media) => media.kind.as_str(),
            PartBody::Thinking(_) => "thinking",
            PartBody::ToolCall(_) => "tool_call",
        }
    }

    /// The text of a plain text part.
    pub fn as_text(&self) -> Option<&str> {
        if let PartBody::Text(text) = &self.body { Some(text) } else { None }
    }

    /// The call, if it is one.
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        if let PartBody::ToolCall(call) = &self.body { Some(call) } else { None }
    }

    /// Whether it is sent only while no response follows it.
    pub fn is_request_scoped(&self) -> bool {
        self.marks.scope() == Some("request")
    }

    /// Whether a user could have said it: text or media that no strategy made, pinned or noted.
    pub fn is_user_turn(&self) -> bool {
        let marks = &self.marks;
        matches!(self.body, PartBody::Text(_) | PartBody::Media(_))
            && !marks.pinned
            && marks.origin().is_none()
            && marks.receipt().is_none()
    }
}

impl From<PartBody> for Part {
    fn from(body: PartBody) -> Self {
        Self { body, marks: Marks::default(), extra: Extra::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    use super::*;

    #[test]
    fn parts_are_hashed_by_all_that_tells_them_apart() {
        let raw = |n: u32| Raw::of(&n).expect("a number is JSON");
        let extra = |n| {
            let mut extra = Extra::default();
            extra.push("z", raw(n));
            Part { extra, ..Part::text("a") }
        };
        let media = |kind, media_type: &str, source| {
            Part::from(PartBody::Media(Media { kind, media_type: media_type.into(), source }))
        };
        let parts = || {
            let (url, data) = (|| MediaSource::Url("a".into()), MediaSource::Data("a".into()));
            let unlike = [
                Part::text("a"),
                Part::text("b"),
                Part::system("a"),
                Part::text("a").pinned(),
                PartBody::Thinking(Thinking { text: "a".into(), signature: None }).into(),
                media(MediaKind::Image, "a", url()),
                media(MediaKind::Audio, "a", url()),
                media(MediaKind::Image, "b", url()),
                media(MediaKind::Image, "a", data),
            ];
            let receipts = (0..100).map(|n| {
                let mut part = Part::text("a");
                part.marks.set_receipt(raw(n));
                part
            });
            unlike.into_iter().chain(receipts).chain((0..100).map(extra))
        };
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let hashes: HashSet<u64> = parts().map(|part| hasher.hash_one(part)).collect();
        assert_eq!(hashes.len(), parts().count());
        assert!(parts().all(|part| hashes.contains(&hasher.hash_one(part))));
    }
}
