//! A history as text for a summarizer: one line an event, each event once.

use std::borrow::Cow;

use retrace_events::{Event, Part, PartBody};

use crate::bridge::is_bridge;

/// One line for an event: who speaks, and what. Line breaks in it are spelled `\n`, so that no content can pass for a
/// line of its own.
pub(crate) fn line(event: &Event) -> String {
    match event {
        Event::Request(request) => format!("user: {}", content(&request.content)),
        Event::Response(response) => format!("assistant: {}", content(&response.content)),
        Event::Summary(summary) => {
            format!("earlier summary: {}", content(summary.content.iter().filter(|part| !is_bridge(part))))
        }
        Event::ToolResults(round) => {
            let results = round.results.iter().map(|result| {
                let outcome = if result.outcome.is_blocked() { "failed" } else { "ok" };
                format!("{} {outcome}: {}", one_line(&result.name), content(&result.content))
            });
            format!("tool: {}", results.collect::<Vec<_>>().join(" | "))
        }
        Event::Usage(_) => String::new(),
    }
}

/// The parts that a summarizer can read, in order; the model's reasoning is left out.
fn content<'a>(parts: impl IntoIterator<Item = &'a Part>) -> String {
    let shown = parts.into_iter().filter_map(|part| match &part.body {
        PartBody::Text(text) => Some(one_line(text)),
        PartBody::System(text) => Some(Cow::Owned(format!("(system) {}", one_line(text)))),
        PartBody::Media(media) => Some(Cow::Owned(format!("({})", media.kind.as_str()))),
        PartBody::Thinking(_) => None,
        PartBody::ToolCall(call) => {
            Some(Cow::Owned(format!("calls {}({})", one_line(&call.name), one_line(&call.arguments))))
        }
    });
    shown.collect::<Vec<_>>().join(" | ")
}

fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(is_line_break) {
        Cow::Owned(text.split(is_line_break).collect::<Vec<_>>().join("\\n"))
    } else {
        Cow::Borrowed(text)
    }
}

fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
