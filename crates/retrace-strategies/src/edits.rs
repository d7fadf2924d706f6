//! Rewriting events in place: what is not touched stays shared.

use std::sync::Arc;

use retrace_events::{Event, History, Part, PartBody, Response, ToolCall, ToolResult, ToolResults};

/// A history of which some events are to be rewritten.
///
/// Nothing is copied before all edits are known, and then nothing that an edit replaces.
pub(crate) struct Edits<'a> {
    history: &'a History,
    /// Each with the index of its event and that of the result, or the part, in it.
    edits: Vec<(usize, usize, Edit<'a>)>,
}

enum Edit<'a> {
    /// The content of a result becomes this placeholder. The outcome stays, so that a model still learns of a failure.
    Blank(&'a str),
    /// A part of a response becomes this.
    Body(PartBody),
}

impl<'a> Edits<'a> {
    pub(crate) fn of(history: &'a History) -> Self {
        Self { history, edits: Vec::new() }
    }

    /// Replaces the content of the result at this index of the `tool_results` event at another by a placeholder.
    pub(crate) fn blank(&mut self, event: usize, index: usize, placeholder: &'a str) {
        self.edits.push((event, index, Edit::Blank(placeholder)));
    }

    /// Replaces what the part at this index of the response at another is.
    pub(crate) fn replace(&mut self, event: usize, index: usize, body: PartBody) {
        self.edits.push((event, index, Edit::Body(body)));
    }

    /// The history, if anything is rewritten.
    pub(crate) fn finish(mut self) -> Option<History> {
        if self.edits.is_empty() {
            return None;
        }
        self.edits.sort_by_key(|&(event, index, _)| (event, index));
        let mut edits = self.edits.into_iter().peekable();
        let events = self.history.iter().enumerate().map(|(at, event)| {
            if edits.peek().is_none_or(|(event, ..)| *event != at) {
                return Arc::clone(event);
            }
            let edit = |index| edits.next_if(|edit| (edit.0, edit.1) == (at, index)).map(|(.., edit)| edit);
            Arc::new(rewritten(event, edit))
        });
        Some(History::new(events.collect::<Vec<_>>()))
    }
}

/// The event with the edits at these indices.
fn rewritten<'a>(event: &Event, mut edit: impl FnMut(usize) -> Option<Edit<'a>>) -> Event {
    match event {
        Event::ToolResults(ToolResults { results, extra }) => {
            let results = results.iter().enumerate().map(|(index, result)| match edit(index) {
                Some(Edit::Blank(placeholder)) => blanked(result, placeholder),
                _ => result.clone(),
            });
            Event::ToolResults(ToolResults { results: results.collect(), extra: extra.clone() })
        }
        Event::Response(response) => {
            let content = response.content.iter().enumerate().map(|(index, part)| match edit(index) {
                Some(Edit::Body(body)) => Part { body, marks: part.marks.clone(), extra: part.extra.clone() },
                _ => part.clone(),
            });
            Event::Response(Response {
                content: content.collect(),
                model: response.model.clone(),
                usage: response.usage.clone(),
                provider_data: response.provider_data.clone(),
                extra: response.extra.clone(),
            })
        }
        other => other.clone(),
    }
}

/// The result with this text as its content.
pub(crate) fn blanked(result: &ToolResult, placeholder: &str) -> ToolResult {
    ToolResult {
        call_id: result.call_id.clone(),
        name: result.name.clone(),
        content: vec![Part::text(placeholder)],
        outcome: result.outcome,
        error: result.error.clone(),
        outcome_from: result.outcome_from,
        own: result.own,
        extra: result.extra.clone(),
    }
}

/// The call with other arguments.
pub(crate) fn with_arguments(call: &ToolCall, arguments: impl Into<String>) -> ToolCall {
    ToolCall { id: call.id.clone(), name: call.name.clone(), arguments: arguments.into(), rebuilt: call.rebuilt }
}

/// Whether the content of a result is the placeholder.
pub(crate) fn is_blank(result: &ToolResult, placeholder: &str) -> bool {
    matches!(&result.content[..], [part] if part.as_text() == Some(placeholder))
}
