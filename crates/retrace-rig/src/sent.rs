//! The hash of what a model is sent, made from the rendered messages.

use retrace_events::sent::{SentHash, SentHasher};
use retrace_events::{Media, MediaSource, ToolCall, ToolResult};
use rig_core::completion::message::{
    AssistantContent, DocumentSourceKind, Message, ToolFunction, ToolResultContent, UserContent,
};

use crate::render::{FAILED, Rendered, orphan_head};

/// A piece of the history in the rendered messages. They say where it is and what it should be; what it *is* is read
/// from the message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) message: usize,
    pub(crate) spot: Spot,
    pub(crate) kind: Kind<'a>,
}

/// Where in its message a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// A system message, as a whole.
    System,
    /// A block.
    Block(usize),
    /// A block of a result, which is a block itself.
    InResult(usize, usize),
}

/// What a piece is in the history.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'a> {
    System,
    User,
    Assistant,
    Call(&'a ToolCall),
    Result {
        result: &'a ToolResult,
        /// Whether its text starts with the mark of a failure.
        marked: bool,
    },
    /// A result that answers no call.
    Orphan(&'a ToolResult),
    Media(&'a Media),
}

/// A block of a message.
enum Block<'m> {
    System(&'m str),
    User(&'m UserContent),
    Assistant(&'m AssistantContent),
    InResult(&'m ToolResultContent),
}

impl Rendered<'_> {
    /// The hash of what the messages hold of the history. A piece that is not in its place is not hashed, so the hash is
    /// another than that of the history.
    pub(crate) fn sent_hash(&self) -> SentHash {
        let mut hasher = SentHasher::default();
        for piece in &self.pieces {
            if let Some(block) = self.messages.get(piece.message).and_then(|message| block(message, piece.spot)) {
                hash(&mut hasher, &piece.kind, &block);
            }
        }
        hasher.finish()
    }
}

fn block(message: &Message, spot: Spot) -> Option<Block<'_>> {
    match (message, spot) {
        (Message::System { content }, Spot::System) => Some(Block::System(content)),
        (Message::User { content }, Spot::Block(at)) => content.get(at).map(Block::User),
        (Message::Assistant(turn), Spot::Block(at)) => turn.content.get(at).map(Block::Assistant),
        (Message::User { content }, Spot::InResult(at, within)) => match content.get(at) {
            Some(UserContent::ToolResult(result)) => result.content.get(within).map(Block::InResult),
            _ => None,
        },
        _ => None,
    }
}

fn hash(hasher: &mut SentHasher, kind: &Kind<'_>, block: &Block<'_>) {
    match (kind, block) {
        (Kind::System, Block::System(text)) => hasher.system(text),
        (Kind::User, Block::User(UserContent::Text(text))) => hasher.user(&text.text),
        (Kind::Assistant, Block::Assistant(AssistantContent::Text(text))) => hasher.assistant(&text.text),
        (Kind::Call(call), Block::Assistant(AssistantContent::ToolCall(rendered))) => {
            let function = &rendered.function;
            // The text of the event, if it is what the message holds: a message has no digits beyond a double's.
            let parsed = ToolFunction::parse(function.name.clone(), &call.arguments);
            if parsed.arguments == function.arguments {
                hasher.call(function.name.as_str(), &call.arguments);
            } else {
                hasher.call(function.name.as_str(), &function.arguments_value().to_string());
            }
        }
        (Kind::Result { result, marked }, Block::User(UserContent::ToolResult(rendered))) => {
            let text: String = rendered.content.iter().filter_map(ToolResultContent::as_text).collect();
            let text = if *marked { text.strip_prefix(FAILED).unwrap_or(&text) } else { &text };
            // A result may name its tool in its own way; the message has the call's name.
            hasher.result(&result.name, text);
        }
        (Kind::Orphan(result), Block::User(UserContent::Text(text))) => {
            hasher.result(&result.name, text.text.strip_prefix(&orphan_head(result)).unwrap_or(&text.text));
        }
        (Kind::Media(medium), block) => {
            let (MediaSource::Data(source) | MediaSource::Url(source)) = &medium.source;
            let rendered = match block {
                Block::User(UserContent::Image(image)) => &image.data,
                Block::User(UserContent::Audio(audio)) => &audio.data,
                Block::User(UserContent::Document(document)) => &document.data,
                Block::InResult(ToolResultContent::Image(image)) => &image.data,
                _ => return,
            };
            if let DocumentSourceKind::Base64(text) | DocumentSourceKind::Url(text) = rendered
                && text == source
            {
                hasher.media(&medium.media_type, text);
            }
        }
        _ => {}
    }
}
