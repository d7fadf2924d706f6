//! What a summarizer is shown: the events as elements of a transcript, which nothing in them can forge.

use std::borrow::Cow;
use std::fmt::Write as _;

use retrace_events::{Event, Outcome, Part, PartBody};

use crate::bridge::notes;

/// One element: what a part, or a result, shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Element<'a> {
    /// The index of its event.
    pub(crate) event: usize,
    pub(crate) role: Role<'a>,
    /// Its text, escaped and cut.
    pub(crate) text: String,
}

/// Whose text it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Role<'a> {
    User,
    System,
    Assistant,
    Call(&'a str),
    Result(&'a str, Outcome),
    Summary,
}

/// The words that the transcript's own marks start with.
const TAGS: [&str; 11] = [
    "user",
    "system",
    "assistant",
    "call",
    "result",
    "summary",
    "previous_summary",
    "transcript",
    "agent_task",
    "newest_events",
    "agent_step",
];

/// How much of a result is shown, in characters; all of it where nothing is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Show {
    pub(crate) result_chars: Option<usize>,
    /// Whether earlier summaries are shown among the events.
    pub(crate) summaries: bool,
}

/// The elements of these events, each event with its index. Reasoning, media, warnings and copies of user turns are left
/// out.
pub(crate) fn elements<'a>(events: impl Iterator<Item = (usize, &'a Event)>, show: Show) -> Vec<Element<'a>> {
    let mut elements = Vec::new();
    for (index, event) in events {
        match event {
            Event::Request(request) => of_request(index, &request.content, &mut elements),
            Event::Response(response) => {
                elements.extend(response.content.iter().filter_map(|part| of_response(index, part)));
            }
            Event::ToolResults(round) => elements.extend(round.results.iter().map(|result| Element {
                event: index,
                role: Role::Result(&result.name, result.outcome),
                text: cut(escape(&result.text()), show.result_chars),
            })),
            Event::Summary(summary) if show.summaries => {
                elements.push(Element { event: index, role: Role::Summary, text: escape(&notes(summary)) });
            }
            Event::Summary(_) | Event::Usage(_) => {}
        }
    }
    elements
}

/// The elements of these events as they stand in the transcript.
pub(crate) fn rendered<'a>(events: impl Iterator<Item = &'a Event>, show: Show) -> String {
    let mut transcript = String::new();
    for element in elements(events.enumerate(), show) {
        element.write(&mut transcript);
    }
    transcript
}

/// Plain texts that stand side by side are one element.
fn of_request<'a>(event: usize, content: &'a [Part], elements: &mut Vec<Element<'a>>) {
    let mut run: Vec<&str> = Vec::new();
    let close = |run: &mut Vec<&str>, elements: &mut Vec<Element<'a>>| {
        if !run.is_empty() {
            let text = escape(&std::mem::take(run).join(" "));
            elements.push(Element { event, role: Role::User, text });
        }
    };
    for part in content.iter().filter(|part| part.marks.scope().is_none() && !part.marks.kept) {
        match &part.body {
            PartBody::Text(text) if part.marks.receipt().is_none() && !part.marks.pinned => run.push(text),
            PartBody::Text(text) if part.marks.receipt().is_none() => {
                close(&mut run, elements);
                elements.push(Element { event, role: Role::User, text: escape(text) });
            }
            PartBody::System(text) => {
                close(&mut run, elements);
                elements.push(Element { event, role: Role::System, text: escape(text) });
            }
            _ => {}
        }
    }
    close(&mut run, elements);
}

fn of_response(event: usize, part: &Part) -> Option<Element<'_>> {
    let (role, text) = match &part.body {
        PartBody::Text(text) => (Role::Assistant, text),
        PartBody::ToolCall(call) => (Role::Call(&call.name), &call.arguments),
        _ => return None,
    };
    Some(Element { event, role, text: escape(text) })
}

impl Element<'_> {
    /// The element as it stands in the transcript.
    fn write(&self, transcript: &mut String) {
        let text = &self.text;
        // Writing to a text cannot fail.
        let _ = match self.role {
            Role::User => writeln!(transcript, "<user>{text}</user>"),
            Role::System => writeln!(transcript, "<system>{text}</system>"),
            Role::Assistant => writeln!(transcript, "<assistant>{text}</assistant>"),
            Role::Call(tool) => writeln!(transcript, "<call tool=\"{}\">{text}</call>", attribute(tool)),
            Role::Result(tool, outcome) => {
                let outcome = match outcome {
                    Outcome::Ok => "ok",
                    Outcome::Error => "error",
                    Outcome::NotFound => "no such tool",
                };
                writeln!(transcript, "<result tool=\"{}\" outcome=\"{outcome}\">{text}</result>", attribute(tool))
            }
            Role::Summary => writeln!(transcript, "<summary>{text}</summary>"),
        };
    }
}

/// The text with every mark defused that looks like one of the transcript's own, in any case and spacing.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find('<') {
        let (before, from) = rest.split_at(place);
        escaped.push_str(before);
        escaped.push_str(if is_mark(&from[1..]) { "&lt;" } else { "<" });
        rest = &from[1..];
    }
    escaped.push_str(rest);
    escaped
}

/// Whether what follows a `<` makes it a mark.
fn is_mark(text: &str) -> bool {
    let invisible =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    let word = text.trim_start_matches(invisible).trim_start_matches('/').trim_start_matches(invisible);
    let word: String = word.chars().take_while(|c| c.is_ascii_alphabetic() || *c == '_').collect();
    TAGS.iter().any(|tag| word.eq_ignore_ascii_case(tag))
}

fn attribute(name: &str) -> String {
    name.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace(char::is_control, " ")
}

/// The text cut to so many characters, the mark that says so among them.
pub(crate) fn cut(text: String, most: Option<usize>) -> String {
    const MARK: &str = "[...]";
    let Some(most) = most.filter(|most| text.chars().count() > *most) else { return text };
    let kept = most.saturating_sub(MARK.len());
    let mark: String = MARK.chars().take(most).collect();
    text.chars().take(kept).chain(mark.chars()).collect()
}

/// The text with its middle cut out if it has more characters than this, about as many of its start and its end left.
pub(crate) fn cut_middle(text: &str, most: usize) -> Cow<'_, str> {
    let n = text.chars().count();
    if n <= most {
        return Cow::Borrowed(text);
    }
    let mark = format!("\n[... the middle of {n} characters ...]\n");
    let kept = most.saturating_sub(mark.chars().count());
    format!("{}{mark}{}", first(text, kept - kept / 2), last(text, kept / 2)).into()
}

/// The first characters of a text.
fn first(text: &str, n: usize) -> &str {
    text.char_indices().nth(n).map_or(text, |(byte, _)| &text[..byte])
}

/// The last characters of a text.
pub(crate) fn last(text: &str, n: usize) -> &str {
    let start = n.checked_sub(1).and_then(|before| text.char_indices().rev().nth(before));
    match start {
        Some((byte, _)) => &text[byte..],
        None if n == 0 => "",
        None => text,
    }
}
