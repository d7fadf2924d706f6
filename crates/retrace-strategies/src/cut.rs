//! Safe cuts: a cut at index *i* keeps `events[i..]`, and is safe when no result lies after it whose call lies before.

use retrace_events::pairing::pair;
use retrace_events::{Event, History};

/// Where to cut so that at most the last `target` events that count are kept, moved on until no result is kept
/// without its call; none if nothing would be cut, or nothing kept.
///
/// A result that never had a call is stepped over like one whose call was cut off. Linear in the history.
pub(crate) fn tail_cut(history: &History, target: usize) -> Option<usize> {
    if target == 0 {
        return None;
    }
    let from_the_end = history.events().rev().enumerate().filter(|(_, event)| event.counts());
    let mut cut = from_the_end.map(|(back, _)| history.len() - 1 - back).nth(target - 1)?;
    if cut == 0 {
        return None;
    }
    // For each event the oldest event that the calls of its results stand in; 0 for a result without a call, which
    // no cut can keep.
    let mut oldest_call = vec![usize::MAX; history.len()];
    let pairing = pair(history.events());
    for (call, answer) in pairing.calls.iter().filter_map(|call| call.answer.map(|answer| (call.event, answer.event))) {
        oldest_call[answer] = oldest_call[answer].min(call);
    }
    for orphan in &pairing.orphans {
        oldest_call[orphan.event] = 0;
    }
    for (index, &call) in oldest_call.iter().enumerate().skip(cut) {
        if call < cut && index >= cut {
            cut = index + 1;
        }
    }
    history.events().skip(cut).any(Event::counts).then_some(cut)
}
