//! Rewriting events in place: what is not touched stays shared.

use std::iter::Peekable;
use std::sync::Arc;

use retrace_events::{Event, Few, History, Part, PartBody, Response, SmolStr, ToolCall, ToolResult, ToolResults};

/// A history of which some events are to be rewritten.
///
/// Nothing is copied before all edits are known, and then nothing that an edit replaces.
pub(crate) struct Edits<'a> {
    history: &'a History,
    /// The results whose content becomes the placeholder. The outcome stays, so that a model still learns of a failure.
    blanks: Vec<(Place, ())>,
    placeholder: SmolStr,
    /// The parts of responses whose text, or call's arguments, become another.
    texts: Vec<(Place, SmolStr)>,
}

/// The index of an event and that of a result, or a part, in it.
type Place = (usize, usize);

impl<'a> Edits<'a> {
    /// No edits yet; a result that is blanked will hold this placeholder.
    pub(crate) fn of(history: &'a History, placeholder: &str) -> Self {
        Self { history, blanks: Vec::new(), placeholder: placeholder.into(), texts: Vec::new() }
    }

    /// Replaces the content of the result at this index of the `tool_results` event at another by the placeholder.
    pub(crate) fn blank(&mut self, event: usize, index: usize) {
        self.blanks.push(((event, index), ()));
    }

    /// Replaces the text, or the arguments of the call, that the part at this index of the response at another is.
    pub(crate) fn replace(&mut self, event: usize, index: usize, text: impl Into<SmolStr>) {
        self.texts.push(((event, index), text.into()));
    }

    /// The history, if anything is rewritten.
    pub(crate) fn finish(self) -> Option<History> {
        if self.blanks.is_empty() && self.texts.is_empty() {
            return None;
        }
        let blank = |result: &ToolResult, ()| blanked(result, &self.placeholder);
        let (mut blanks, mut texts) = (InOrder::of(self.blanks), InOrder::of(self.texts));
        let events = read_ahead(self.history).enumerate().map(|(at, event)| match &**event {
            Event::ToolResults(round) if blanks.touch(at) => Arc::new(Event::ToolResults(ToolResults {
                results: rewritten(&round.results, |index| blanks.at((at, index)), blank),
                extra: round.extra.clone(),
            })),
            Event::Response(response) if texts.touch(at) => Arc::new(Event::Response(Response {
                content: rewritten(&response.content, |index| texts.at((at, index)), with_text),
                model: response.model.clone(),
                usage: response.usage.clone(),
                provider_data: response.provider_data.clone(),
                extra: response.extra.clone(),
            })),
            _ => Arc::clone(event),
        });
        let events: Vec<_> = events.collect();
        debug_assert!(blanks.0.len() == 0 && texts.0.len() == 0, "an edit is of no result and no part of a response");
        Some(History::new(events))
    }
}

/// The events of a history, a stretch of them read before the first is given: each that is shared or made would wait for
/// the memory of its own.
fn read_ahead(history: &History) -> impl Iterator<Item = &Arc<Event>> {
    let stretches = history.shared().chunks(64).chain(history.own().chunks(64));
    // The sum is of no use but that it takes all of them.
    let read = |stretch: &&[Arc<Event>]| {
        std::hint::black_box(stretch.iter().map(Arc::strong_count).sum::<usize>());
    };
    stretches.inspect(read).flatten()
}

/// Edits in the order of their places, of which each is taken when its place is come to.
struct InOrder<T>(Peekable<std::vec::IntoIter<(Place, T)>>);

impl<T> InOrder<T> {
    fn of(mut edits: Vec<(Place, T)>) -> Self {
        // They are made in this order but for calls that were answered in another.
        edits.sort_by_key(|(place, _)| *place);
        Self(edits.into_iter().peekable())
    }

    /// Whether the next one is of this event.
    fn touch(&mut self, event: usize) -> bool {
        self.0.peek().is_some_and(|(place, _)| place.0 == event)
    }

    /// The one of this place, if there is one.
    fn at(&mut self, place: Place) -> Option<T> {
        self.0.next_if(|(next, _)| *next == place).map(|(_, edit)| edit)
    }
}

/// The items, of which those with an edit are made anew.
fn rewritten<T: Clone, E>(items: &[T], mut edit: impl FnMut(usize) -> Option<E>, anew: impl Fn(&T, E) -> T) -> Few<T> {
    let items = items.iter().enumerate().map(|(index, item)| match edit(index) {
        Some(edit) => anew(item, edit),
        None => item.clone(),
    });
    items.collect()
}

/// The part with this as its text, or as the arguments of its call.
fn with_text(part: &Part, text: SmolStr) -> Part {
    let body = match &part.body {
        PartBody::ToolCall(call) => PartBody::ToolCall(ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: text,
            rebuilt: call.rebuilt,
        }),
        _ => PartBody::Text(text),
    };
    Part { body, marks: part.marks.clone(), extra: part.extra.clone() }
}

/// The result with this text as its content.
pub(crate) fn blanked(result: &ToolResult, placeholder: &SmolStr) -> ToolResult {
    ToolResult {
        call_id: result.call_id.clone(),
        name: result.name.clone(),
        content: [Part::text(placeholder.clone())].into(),
        outcome: result.outcome,
        error: result.error.clone(),
        outcome_from: result.outcome_from,
        own: result.own,
        extra: result.extra.clone(),
    }
}

/// Whether the content of a result is the placeholder.
pub(crate) fn is_blank(result: &ToolResult, placeholder: &str) -> bool {
    matches!(&result.content[..], [part] if part.as_text() == Some(placeholder))
}

#[cfg(test)]
mod tests {
    use retrace_events::{Extra, Marks, Outcome, OutcomeSource, Raw, Usage};

    use super::*;
    use crate::{ClampOversizedMessages, ClearToolResults, CompactContext, Compacted, Strategy};

    fn compacted(strategy: &dyn Strategy, before: &History) -> History {
        let compacted = pollster::block_on(strategy.compact(before, &mut CompactContext::without_model()));
        let Ok(Compacted::Changed(after)) = compacted else { panic!("{compacted:?}") };
        after
    }

    /// A call and its result, with a value in every field.
    fn full_round(arguments: &str, content: &str) -> History {
        let raw = |value: &str| Raw::of(value).expect("a text is JSON");
        let extra = |value: &str| {
            let mut extra = Extra::default();
            extra.push("z", raw(value));
            extra
        };
        let text = Some("text".to_owned());
        let mut marks = Marks::default();
        (marks.pinned, marks.kept) = (true, true);
        marks.set_origin("text");
        marks.set_scope("text");
        marks.set_receipt(raw("receipt"));
        let part = |body| Part { body, marks: marks.clone(), extra: extra("part") };
        let call = ToolCall { rebuilt: true, ..ToolCall::new("c1", "read", arguments) };
        let usage = Usage { input_tokens: 1, output_tokens: 2, extra: extra("usage"), ..Usage::default() };
        let result = ToolResult {
            error: text.clone(),
            outcome_from: Some(OutcomeSource::Flag),
            own: true,
            extra: extra("result"),
            ..ToolResult::text_result(&call, Outcome::Error, content)
        };
        let response = Response {
            content: vec![part(PartBody::Text("text".into())), part(PartBody::ToolCall(call))].into(),
            model: text,
            usage: Some(usage),
            provider_data: Some(raw("data")),
            extra: extra("response"),
        };
        let round = ToolResults { results: [result].into(), extra: extra("results") };
        History::from(vec![Event::Response(response), Event::ToolResults(round)])
    }

    #[test]
    fn only_the_content_of_what_is_cleared_changes() {
        let clear = ClearToolResults {
            keep_pairs: 0,
            placeholder: "gone".to_owned(),
            clear_tool_inputs: true,
            ..ClearToolResults::default()
        };
        assert_eq!(compacted(&clear, &full_round("{\"path\":1}", "lines")), full_round("{}", "gone"));
    }

    #[test]
    fn only_the_text_of_what_is_clamped_changes() {
        let clamp = ClampOversizedMessages {
            max_part_chars: Some(90),
            keep_head_chars: 1,
            keep_tail_chars: 1,
            ..ClampOversizedMessages::default()
        };
        let clamped = "{\"_clamped\":\"x\\n[clamped: removed 98 of 100 characters]\\nx\"}";
        assert_eq!(compacted(&clamp, &full_round(&"x".repeat(100), "lines")), full_round(clamped, "lines"));
    }

    #[test]
    fn what_is_read_ahead_is_the_history() {
        let mut history = History::from((0..130).map(|n| Event::request(n.to_string())).collect::<Vec<_>>());
        for n in 0..70 {
            history.push(Event::answer(n.to_string()));
        }
        assert!(read_ahead(&history).eq(history.iter()));
    }
}
