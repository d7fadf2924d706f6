//! What a provider wants back of its own turns, such as signed or encrypted reasoning.
//!
//! It is kept in a response's `provider_data` as `{"rig": …}`, rig's own form of the turn, and goes back only to the same
//! model of the same provider, and only while the response still says what the provider said. Everywhere else the turn
//! is made anew from its texts and calls, without its reasoning.

use retrace_events::{Part, PartBody, Raw, Response};
use rig_core::completion::message::{AssistantContent, AssistantMessage, ToolFunction};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::target::Target;

/// A turn of the model.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) message: AssistantMessage,
    /// For each part of the response the block that it became, if it became one.
    pub(crate) blocks_of_parts: Vec<Option<usize>>,
}

/// The content of `provider_data`.
#[derive(Serialize, Deserialize)]
struct Stored {
    rig: AssistantMessage,
}

/// What is to be kept of a turn; nothing of one that is its texts and calls.
pub(crate) fn to_keep(message: &AssistantMessage) -> Option<Raw> {
    if message.content.iter().all(is_plain) { None } else { stored(message) }
}

/// A turn as rig has it.
pub(crate) fn stored(message: &AssistantMessage) -> Option<Raw> {
    Raw::of(&Stored { rig: message.clone() }).ok()
}

/// Whether a block can be made anew from what the event says.
fn is_plain(block: &AssistantContent) -> bool {
    /// What an item of a text or a call holds beside what marks it as the provider's.
    const OURS: [&str; 13] = [
        "annotations",
        "arguments",
        "call_id",
        "content",
        "function",
        "id",
        "index",
        "input",
        "logprobs",
        "name",
        "status",
        "text",
        "type",
    ];
    let is_ours = |item: &Value| item.as_object().is_some_and(|item| item.keys().all(|key| OURS.contains(&&**key)));
    match block {
        AssistantContent::Text(_) | AssistantContent::ToolCall(_) => block.native_item().is_none_or(is_ours),
        _ => false,
    }
}

/// The turn as the provider made it, if this is the model that made it and the parts are what it said.
pub(crate) fn stored_turn(response: &Response, parts: &[&Part], target: &Target) -> Option<Turn> {
    let stored: Stored = response.provider_data.as_ref()?.read().ok()?;
    let message = stored.rig.with_stop(None);
    if !target.made(message.origin.as_ref()) {
        return None;
    }
    let mut said = message.content.iter().enumerate().filter(|(_, block)| is_said(block));
    let mut blocks_of_parts = Vec::new();
    for part in parts {
        if part.as_text().is_some_and(str::is_empty) {
            blocks_of_parts.push(None);
            continue;
        }
        let (at, _) = said.next().filter(|(_, block)| says(block, part))?;
        blocks_of_parts.push(Some(at));
    }
    let is_whole = said.next().is_none();
    is_whole.then_some(Turn { message, blocks_of_parts })
}

/// Whether a block has a part of its own in the event.
pub(crate) fn is_said(block: &AssistantContent) -> bool {
    match block {
        AssistantContent::Text(text) => !text.text.is_empty(),
        AssistantContent::ToolCall(_) | AssistantContent::Reasoning(_) => true,
        _ => false,
    }
}

fn says(block: &AssistantContent, part: &Part) -> bool {
    match (block, &part.body) {
        (AssistantContent::Text(block), PartBody::Text(text)) => block.text == *text,
        (AssistantContent::Reasoning(block), PartBody::Thinking(thinking)) => block.text == thinking.text,
        (AssistantContent::ToolCall(block), PartBody::ToolCall(call)) => {
            let name = &block.function.name;
            name.as_str() == call.name
                && ToolFunction::parse(name.clone(), &call.arguments).arguments == block.function.arguments
        }
        _ => false,
    }
}
