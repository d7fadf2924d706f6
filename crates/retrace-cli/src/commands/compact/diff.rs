//! What became of each event of a history.

use std::collections::HashMap;
use std::sync::Arc;

use retrace_events::tokens::{TokenCounter, count_events};
use retrace_events::{Event, History, Part};
use retrace_report::printable;

/// How many characters of an event are shown.
const SHOWN: usize = 48;

/// What became of an event, or where one comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The event stayed as it was.
    Kept { before: usize },
    /// The event stayed, but not all that it held.
    Blanked { before: usize, after: usize },
    /// The event is gone.
    Dropped { before: usize },
    /// The strategy made the event.
    Made { after: usize },
}

/// One line an event, in the order of the two histories.
pub(super) fn text(before: &History, after: &History, counter: &dyn TokenCounter) -> String {
    let tokens = |event: &Event| count_events(counter, [event]).0.to_string();
    let line = |fate, number: Option<usize>, event: &Event, tokens: String| {
        let number = number.map_or(String::new(), |index| (index + 1).to_string());
        format!("{fate:<8}{number:>6}  {:<13}{tokens:>14}  {}", event.kind(), shown(event)).trim_end().to_owned() + "\n"
    };
    let mut lines = format!("{:<8}{:>6}  {:<13}{:>14}\n", "", "event", "kind", "tokens");
    for fate in fates(before, after) {
        let (of_before, of_after) = (|index| before.get(index), |index| after.get(index));
        lines += &match fate {
            Fate::Kept { before } => of_before(before).map(|event| line("kept", Some(before), event, tokens(event))),
            Fate::Dropped { before } => {
                of_before(before).map(|event| line("dropped", Some(before), event, tokens(event)))
            }
            Fate::Made { after } => of_after(after).map(|event| line("made", None, event, tokens(event))),
            Fate::Blanked { before, after } => of_before(before)
                .zip(of_after(after))
                .map(|(old, new)| line("blanked", Some(before), new, format!("{} -> {}", tokens(old), tokens(new)))),
        }
        .unwrap_or_default();
    }
    lines
}

/// The fates of all events of both histories: kept events are shared by them, in the same order; what stands between two
/// of them and is no other event's shape was made.
fn fates(before: &History, after: &History) -> Vec<Fate> {
    let places: HashMap<_, _> = before.iter().enumerate().map(|(index, event)| (Arc::as_ptr(event), index)).collect();
    let (mut fates, mut next, mut waiting) = (Vec::new(), 0, Vec::new());
    for (index, event) in after.iter().enumerate() {
        match places.get(&Arc::as_ptr(event)).filter(|place| **place >= next) {
            Some(&place) => {
                between(before, next..place, after, &std::mem::take(&mut waiting), &mut fates);
                fates.push(Fate::Kept { before: place });
                next = place + 1;
            }
            None => waiting.push(index),
        }
    }
    between(before, next..before.len(), after, &waiting, &mut fates);
    fates
}

/// The fates of events between two that were kept.
fn between(before: &History, range: std::ops::Range<usize>, after: &History, new: &[usize], fates: &mut Vec<Fate>) {
    let mut new = new.iter().copied().peekable();
    for index in range {
        let old = shape_at(before, index);
        while let Some(made) = new.next_if(|&made| shape_at(after, made).is_none()) {
            fates.push(Fate::Made { after: made });
        }
        match new.next_if(|&made| old.is_some() && shape_at(after, made) == old) {
            Some(made) => fates.push(Fate::Blanked { before: index, after: made }),
            None => fates.push(Fate::Dropped { before: index }),
        }
    }
    fates.extend(new.map(|made| Fate::Made { after: made }));
}

fn shape_at(history: &History, index: usize) -> Option<(usize, Vec<&str>)> {
    history.get(index).and_then(|event| shape(event))
}

/// What blanking leaves of an event: the number of parts of a response, and its calls; the calls of results.
fn shape(event: &Event) -> Option<(usize, Vec<&str>)> {
    match event {
        Event::Response(response) => {
            Some((response.content.len(), response.tool_calls().map(|call| &*call.id).collect()))
        }
        Event::ToolResults(round) => Some((usize::MAX, round.results.iter().map(|result| &*result.call_id).collect())),
        _ => None,
    }
}

/// The start of what an event says.
fn shown(event: &Event) -> String {
    let text = match event {
        Event::ToolResults(round) => round.results.iter().map(|result| result.text()).collect::<Vec<_>>().join(" | "),
        Event::Response(response) if response.tool_calls().next().is_some() => {
            let calls = response.tool_calls().map(|call| format!("{}({})", call.name, call.arguments));
            calls.collect::<Vec<_>>().join(" | ")
        }
        _ => event.content().iter().filter_map(Part::as_text).collect::<Vec<_>>().join(" | "),
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut cut: String = text.chars().take(SHOWN).collect();
    if cut.len() < text.len() {
        cut.push_str("...");
    }
    printable(&cut).into_owned()
}
