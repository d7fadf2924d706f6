//! A history as messages of rig.
//!
//! rig itself fits messages to a provider: it spells ids as the provider wants them, merges what must not stand in a row,
//! and puts system messages where they are taken. What is done here is what it would otherwise lose or refuse: each
//! result is put right after its response and gets the id of the call that it answers by its place, a result without a
//! call becomes text, and a conversation that starts or ends with the model is opened and closed with a word of the user.

use std::collections::HashMap;

use retrace_events::pairing::pair;
use retrace_events::{Event, OutcomeSource, Part, PartBody, Response, SentEvent, ToolCall, ToolResult};
use retrace_model::{ModelError, Prompt};
use rig_core::completion::message::{
    AssistantContent, AssistantMessage, CallId, Message, ToolFunction, ToolName, ToolResult as RigResult,
    ToolResultContent, UserContent,
};

use crate::ids::Ids;
use crate::media;
use crate::replay::{Turn, stored_turn};
use crate::sent::{Kind, Piece, Spot};
use crate::target::Target;

/// What opens a conversation that starts with the model.
pub(crate) const OPENER: &str = "(The conversation up to this point is left out.)";

/// What closes a conversation that ends with the model, so that there is something to answer.
pub(crate) const CLOSER: &str = "Go on.";

/// How a failed result starts where the provider has no flag for it.
pub(crate) const FAILED: &str = "[tool error] ";

/// A rendered prompt: the messages, and where in them the pieces of the history are, in the order of the history.
#[derive(Debug, Default)]
pub(crate) struct Rendered<'a> {
    pub(crate) messages: Vec<Message>,
    pub(crate) pieces: Vec<Piece<'a>>,
}

/// Renders a prompt for a model.
///
/// # Errors
/// [`ModelError::Refused`] for what the model cannot be sent: a medium that it does not take, a call of no name.
pub(crate) fn render<'a>(prompt: &Prompt<'a>, target: &Target) -> Result<Rendered<'a>, ModelError> {
    let events: Vec<SentEvent<'a>> = prompt.history.sent().events().collect();
    let mut renderer = Renderer::new(&events, target);
    if let Some(instructions) = prompt.instructions {
        renderer.out.messages.push(Message::system(instructions));
    }
    for (index, event) in events.iter().enumerate() {
        renderer.event(index, *event)?;
    }
    let mut rendered = renderer.out;
    rendered.open_and_close();
    Ok(rendered)
}

struct Renderer<'a, 't> {
    out: Rendered<'a>,
    target: &'t Target,
    events: Vec<&'a Event>,
    ids: Ids,
    /// The number of the first call of each event.
    first_call: HashMap<usize, usize>,
    /// For each call the place of its result: its event, and its index in it.
    answers: Vec<Option<(usize, usize)>>,
    /// The pieces of results that stand already, by the place of the result.
    placed: HashMap<(usize, usize), Vec<Piece<'a>>>,
}

impl<'a, 't> Renderer<'a, 't> {
    fn new(events: &[SentEvent<'a>], target: &'t Target) -> Self {
        let events: Vec<_> = events.iter().map(|sent| sent.event).collect();
        let pairing = pair(events.iter().copied());
        let mut first_call = HashMap::new();
        for (number, call) in pairing.calls.iter().enumerate() {
            first_call.entry(call.event).or_insert(number);
        }
        Self {
            out: Rendered::default(),
            target,
            ids: Ids::of(pairing.calls.iter().map(|call| &*call.call.id)),
            answers: pairing.calls.iter().map(|call| call.answer.map(|at| (at.event, at.index))).collect(),
            events,
            first_call,
            placed: HashMap::new(),
        }
    }

    fn event(&mut self, index: usize, sent: SentEvent<'a>) -> Result<(), ModelError> {
        match sent.event {
            Event::Request(_) | Event::Summary(_) => self.said(sent),
            Event::Response(response) => self.response(index, response, sent),
            Event::ToolResults(round) => {
                for (at, result) in round.results.iter().enumerate() {
                    match self.placed.remove(&(index, at)) {
                        Some(pieces) => self.out.pieces.extend(pieces),
                        None => self.orphan(result)?,
                    }
                }
                Ok(())
            }
            Event::Usage(_) => Ok(()),
        }
    }

    /// A request or a summary.
    fn said(&mut self, sent: SentEvent<'a>) -> Result<(), ModelError> {
        let mut content = Vec::new();
        let mut pieces = Vec::new();
        for part in sent.parts() {
            let (block, kind) = match &part.body {
                PartBody::System(text) => {
                    self.user(std::mem::take(&mut content), std::mem::take(&mut pieces));
                    if !text.is_empty() {
                        self.out.push(Message::system(text.as_str()), [(Spot::System, Kind::System)]);
                    }
                    continue;
                }
                PartBody::Text(text) if text.is_empty() => continue,
                PartBody::Text(text) => (UserContent::text(text.as_str()), Kind::User),
                PartBody::Media(medium) => (media::sent_by_user(medium, self.target)?, Kind::Media(medium)),
                PartBody::Thinking(_) | PartBody::ToolCall(_) => continue,
            };
            pieces.push((Spot::Block(content.len()), kind));
            content.push(block);
        }
        self.user(content, pieces);
        Ok(())
    }

    fn user(&mut self, content: Vec<UserContent>, pieces: Vec<(Spot, Kind<'a>)>) {
        if !content.is_empty() {
            self.out.push(Message::User { content }, pieces);
        }
    }

    fn response(&mut self, index: usize, response: &'a Response, sent: SentEvent<'a>) -> Result<(), ModelError> {
        let is_sent = |part: &Part| sent.parts().any(|sent| std::ptr::eq(sent, part));
        let parts: Vec<&'a Part> = response.content.iter().filter(|part| is_sent(part)).collect();
        let mut turn = match stored_turn(response, &parts, self.target) {
            Some(turn) => turn,
            None => self.rebuilt(response, &parts)?,
        };

        let mut number = self.first_call.get(&index).copied().unwrap_or(0);
        let mut answered: Vec<((usize, usize), CallId, ToolName)> = Vec::new();
        let mut pieces = Vec::new();
        let mut blocks = turn.blocks_of_parts.iter().copied();
        for part in &response.content {
            let is_call = matches!(part.body, PartBody::ToolCall(_));
            let this_call = number;
            number += usize::from(is_call);
            if !is_sent(part) {
                continue;
            }
            let Some(Some(block)) = blocks.next() else { continue };
            let kind = match &part.body {
                PartBody::ToolCall(call) => {
                    let AssistantContent::ToolCall(rendered) = &mut turn.message.content[block] else { continue };
                    self.ids.give(this_call, rendered);
                    let (id, name) = (rendered.id.clone(), rendered.function.name.clone());
                    answered.extend(self.answers[this_call].map(|place| (place, id, name)));
                    Kind::Call(call)
                }
                PartBody::Text(_) => Kind::Assistant,
                _ => continue,
            };
            pieces.push((Spot::Block(block), kind));
        }
        if turn.message.content.is_empty() {
            return Ok(());
        }
        self.out.push(Message::Assistant(turn.message), pieces);
        answered.sort_by_key(|(place, ..)| *place);
        self.answers_of_turn(answered)
    }

    /// A turn from what the event says, without what a provider wants back.
    fn rebuilt(&self, response: &Response, parts: &[&Part]) -> Result<Turn, ModelError> {
        let mut turn = Turn { message: AssistantMessage::default(), blocks_of_parts: Vec::new() };
        for part in parts {
            let block = match &part.body {
                PartBody::Text(text) if !text.is_empty() => Some(AssistantContent::text(text.as_str())),
                PartBody::ToolCall(call) => Some(AssistantContent::ToolCall(self.call(call)?)),
                PartBody::Thinking(thinking) => self.target.signed_thinking(response, thinking),
                _ => None,
            };
            turn.blocks_of_parts.push(block.as_ref().map(|_| turn.message.content.len()));
            turn.message.content.extend(block);
        }
        if turn.message.content.iter().any(|block| matches!(block, AssistantContent::Reasoning(_))) {
            turn.message = turn.message.with_origin(self.target.origin());
        }
        Ok(turn)
    }

    fn call(&self, call: &ToolCall) -> Result<rig_core::completion::message::ToolCall, ModelError> {
        let function = ToolFunction::parse(tool_name(&call.name)?, &call.arguments);
        Ok(rig_core::completion::message::ToolCall::from_wire(&*call.id, function))
    }

    /// The results of a turn, right after it.
    fn answers_of_turn(&mut self, answered: Vec<((usize, usize), CallId, ToolName)>) -> Result<(), ModelError> {
        let mut content: Vec<UserContent> = Vec::new();
        let mut after: Vec<UserContent> = Vec::new();
        let message = self.out.messages.len();
        let n_results = answered.len();
        for (place, call, name) in answered {
            let Event::ToolResults(round) = self.events[place.0] else { continue };
            let result = &round.results[place.1];
            let (rendered, marked, others) = self.result(result, call, name)?;
            let block = content.len();
            let mut pieces = vec![Piece { message, spot: Spot::Block(block), kind: Kind::Result { result, marked } }];
            let mut n_images = 0;
            for part in &result.content {
                let PartBody::Media(medium) = &part.body else { continue };
                let spot = if media::fits_a_result(medium) {
                    n_images += 1;
                    Spot::InResult(block, n_images)
                } else {
                    Spot::Block(n_results + after.len() + pieces_after(&pieces))
                };
                pieces.push(Piece { message, spot, kind: Kind::Media(medium) });
            }
            after.extend(others);
            content.push(UserContent::ToolResult(rendered));
            self.placed.insert(place, pieces);
        }
        content.extend(after);
        if !content.is_empty() {
            self.out.messages.push(Message::User { content });
        }
        Ok(())
    }

    /// A result: its text and images, whether it is marked as failed in the text, and the media that stand after it.
    fn result(
        &self,
        result: &ToolResult,
        call: CallId,
        name: ToolName,
    ) -> Result<(RigResult, bool, Vec<UserContent>), ModelError> {
        let is_error = result.outcome.is_blocked();
        // A rule found the failure in the text, so the text says it.
        let is_said = result.outcome_from == Some(OutcomeSource::Rule);
        let marked = is_error && !is_said && !self.target.flags_failures();
        let mark = if marked { FAILED } else { "" };
        let mut content = vec![ToolResultContent::text(format!("{mark}{}", result.text()))];
        let mut after = Vec::new();
        for part in &result.content {
            let PartBody::Media(medium) = &part.body else { continue };
            match media::sent_by_tool(medium, self.target)? {
                Ok(image) => content.push(image),
                Err(other) => after.push(other),
            }
        }
        Ok((RigResult { call, name, content, is_error }, marked, after))
    }

    /// A result that answers no call, which every provider refuses as a result: it is said by the user.
    fn orphan(&mut self, result: &'a ToolResult) -> Result<(), ModelError> {
        let head = orphan_head(result);
        let mut content = vec![UserContent::text(format!("{head}{}", result.text()))];
        let mut pieces = vec![(Spot::Block(0), Kind::Orphan(result))];
        for part in &result.content {
            let PartBody::Media(medium) = &part.body else { continue };
            pieces.push((Spot::Block(content.len()), Kind::Media(medium)));
            content.push(media::sent_by_user(medium, self.target)?);
        }
        self.user(content, pieces);
        Ok(())
    }
}

/// How the text of a result without a call starts.
pub(crate) fn orphan_head(result: &ToolResult) -> String {
    let what = if result.outcome.is_blocked() { "error" } else { "result" };
    format!("[tool {} {what}] ", result.name)
}

fn pieces_after(pieces: &[Piece<'_>]) -> usize {
    pieces.iter().skip(1).filter(|piece| matches!(piece.spot, Spot::Block(_))).count()
}

pub(crate) fn tool_name(name: &str) -> Result<ToolName, ModelError> {
    ToolName::new(name).map_err(|_| ModelError::Refused {
        message:
            "the prompt has a tool without a name, which no provider takes: give every tool and every call in the \
                  recordings a name"
                .to_owned(),
    })
}

impl<'a> Rendered<'a> {
    fn push(&mut self, message: Message, pieces: impl IntoIterator<Item = (Spot, Kind<'a>)>) {
        let at = self.messages.len();
        self.pieces.extend(pieces.into_iter().map(|(spot, kind)| Piece { message: at, spot, kind }));
        self.messages.push(message);
    }

    /// Makes the user speak first and last.
    fn open_and_close(&mut self) {
        let start = self.messages.iter().take_while(|message| matches!(message, Message::System { .. })).count();
        let mut speakers = self.messages.iter().filter(|message| says_something(message));
        let (first, last) = (speakers.next(), self.messages.iter().rev().find(|message| says_something(message)));
        let waits = |turn: &AssistantMessage| turn.tool_calls().next().is_some();
        let close = matches!(last, Some(Message::Assistant(turn)) if !waits(turn));
        let open = matches!(first, Some(Message::Assistant(_)));
        if first.is_none() || close {
            self.messages.push(Message::user(CLOSER));
        }
        if open {
            self.messages.insert(start, Message::user(OPENER));
            self.pieces.iter_mut().filter(|piece| piece.message >= start).for_each(|piece| piece.message += 1);
        }
    }
}

/// Whether anything of a message is left once blank texts are dropped; the instructions are no part of the conversation.
fn says_something(message: &Message) -> bool {
    match message {
        Message::System { .. } => false,
        Message::User { content } => {
            content.iter().any(|part| !matches!(part, UserContent::Text(text) if text.text.trim().is_empty()))
        }
        Message::Assistant(turn) => turn.content.iter().any(|block| !block.is_blank()),
    }
}

#[cfg(test)]
mod tests;
