//! The steps of a history: a response and what follows it, up to the next one.

use std::sync::Arc;

use retrace_events::pairing::pair;
use retrace_events::tokens::{TokenCounter, count_events, count_parts};
use retrace_events::{Event, History, Outcome, Part, ToolResult, ToolResults};

use crate::anchors::pins;
use crate::edits::blanked;

/// A history in three: what comes before the first response, older steps, and the newest steps in one.
///
/// No part has a result whose call is in another one, and neither has a step.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) head: Vec<Arc<Event>>,
    pub(super) middle: Vec<Vec<Arc<Event>>>,
    pub(super) tail: Vec<Arc<Event>>,
}

/// A step of the middle.
pub(super) struct Step {
    /// Whether a part of it is a turn of the user.
    pub(super) has_turn: bool,
    /// The tokens that it takes to keep it whole, beyond those that are taken in any case.
    pub(super) cost: u64,
    pub(super) reduced: Reduced,
    /// The tokens of what it is reduced to.
    pub(super) reduced_size: u64,
}

/// What a step can be reduced to.
pub(super) enum Reduced {
    /// Its events with their results cut.
    Cut(Vec<Arc<Event>>),
    /// What a summarizer is shown of it.
    Told(String),
}

impl Layout {
    /// The tail has at least so many tokens, and at least the newest step.
    pub(super) fn of(history: &History, keep_tokens: u64, counter: &dyn TokenCounter) -> Self {
        let events: Vec<_> = history.iter().map(Arc::clone).collect();
        let starts = starts(history);
        let ends = starts.iter().skip(1).copied().chain([events.len()]);
        let mut middle: Vec<_> = starts.iter().zip(ends).map(|(&start, end)| events[start..end].to_vec()).collect();
        let (mut kept, mut size) = (0, 0);
        for step in middle.iter().rev() {
            if kept > 0 && size >= keep_tokens {
                break;
            }
            kept += 1;
            size += count_events(counter, step.iter().map(|event| &**event)).0;
        }
        let tail = middle.split_off(middle.len() - kept).concat();
        let head = events[..starts.first().copied().unwrap_or(events.len())].to_vec();
        Self { head, middle, tail }
    }

    /// The tokens of what stays whatever becomes of the steps, with these events in the place of the head.
    pub(super) fn size_of_rest<'a>(
        &'a self,
        head: impl Iterator<Item = &'a Arc<Event>>,
        counter: &dyn TokenCounter,
    ) -> u64 {
        let pinned = self.middle.iter().flatten().flat_map(|event| pins(event));
        count_parts(counter, head.chain(&self.tail).flat_map(|event| parts(event)).chain(pinned)).0
    }
}

impl Step {
    pub(super) fn new(events: &[Arc<Event>], reduced: Reduced, counter: &dyn TokenCounter) -> Self {
        let has_turn = events
            .iter()
            .any(|event| matches!(&**event, Event::Request(request) if request.content.iter().any(Part::is_user_turn)));
        let size = size(events, counter);
        let (reduced_size, cost) = match &reduced {
            Reduced::Told(transcript) => (counter.tokens(counter.units(transcript)).0, size),
            Reduced::Cut(cut) => {
                let reduced_size = self::size(cut, counter);
                (reduced_size, if has_turn { size.saturating_sub(reduced_size) } else { size })
            }
        };
        Self { has_turn, cost, reduced, reduced_size }
    }
}

/// Where steps start. Two steps that a call and its result would link are one, with all between them.
fn starts(history: &History) -> Vec<usize> {
    // How many more answered calls wait at an event than at the one before it.
    let mut waiting = vec![0_isize; history.len() + 1];
    for (call, answer) in pair(history.events()).answered() {
        waiting[call.event + 1] += 1;
        waiting[answer.event + 1] -= 1;
    }
    let mut open = 0;
    let is_start = |(index, event): (usize, &Event)| {
        open += waiting[index];
        (open == 0 && matches!(event, Event::Response(_))).then_some(index)
    };
    history.events().enumerate().filter_map(is_start).collect()
}

/// The tokens of what goes with these events: pinned parts stay. Many small steps are not to pass for nothing, so the
/// rest that rounding leaves out counts one.
fn size(events: &[Arc<Event>], counter: &dyn TokenCounter) -> u64 {
    let is_pin = |event: &Event, part: &Part| matches!(event, Event::Request(_)) && part.marks.pinned;
    let mut parts = events.iter().flat_map(|event| parts(event).filter(|part| !is_pin(event, part))).peekable();
    if parts.peek().is_none() { 0 } else { count_parts(counter, parts).0.saturating_add(1) }
}

fn parts(event: &Event) -> impl Iterator<Item = &Part> {
    let results = if let Event::ToolResults(round) = event { &round.results[..] } else { &[] };
    event.content().iter().chain(results.iter().flat_map(|result| &result.content))
}

/// The event with each of its results cut to so many characters, the note that says so among them. A model must see what
/// corrects it, so a result that says that there is no such tool stays.
pub(super) fn cut_results(event: &Arc<Event>, most: usize) -> Arc<Event> {
    let Event::ToolResults(ToolResults { results, extra }) = &**event else { return Arc::clone(event) };
    let stays = |result: &ToolResult| {
        let sizes = result.content.iter().map(|part| part.as_text().map(|text| text.chars().count()));
        result.outcome == Outcome::NotFound || sizes.sum::<Option<usize>>().is_some_and(|n| n <= most)
    };
    if results.iter().all(stays) {
        return Arc::clone(event);
    }
    let cut = |result: &ToolResult| {
        if stays(result) { result.clone() } else { blanked(result, &cut_text(result, most).into()) }
    };
    Arc::new(Event::ToolResults(ToolResults { results: results.iter().map(cut).collect(), extra: extra.clone() }))
}

/// The start of a result and a note of what is gone.
fn cut_text(result: &ToolResult, most: usize) -> String {
    let text = result.text();
    let n_media = result.content.iter().filter(|part| part.as_text().is_none()).count();
    let media = if n_media == 0 { String::new() } else { format!(" and {n_media} media") };
    let note = format!("[cut: {} characters{media} in all; call again to see them]", text.chars().count());
    let kept = most.saturating_sub(note.chars().count());
    text.chars().take(kept).chain(note.chars().take(most)).collect()
}
