//! Safe cuts: a cut at index *i* keeps `events[i..]`, and is safe when no result lies after it whose call lies before.

use retrace_events::History;
use retrace_events::pairing::pair;

/// Where to cut so that at most the last `target` events that count are kept, moved on until no result is kept
/// without its call; none if nothing would be cut, or nothing that counts kept.
///
/// A result that never had a call is stepped over like one whose call was cut off. Linear in what is kept.
pub(crate) fn tail_cut(history: &History, target: usize) -> Option<usize> {
    let newest_first = history.events().rev().enumerate().filter(|(_, event)| event.counts());
    let start = newest_first.map(|(back, _)| history.len() - 1 - back).nth(target.checked_sub(1)?)?;
    if start == 0 {
        return None;
    }
    // A call that waits in the tail is newer than any before it, so pairing the tail alone gives its results the same
    // calls as pairing the whole. For each event of the tail the oldest event that the calls of its results stand in;
    // none for a result whose call lies before the tail, or nowhere.
    let tail: Vec<_> = history.events().skip(start).collect();
    let pairing = pair(tail.iter().copied());
    let mut oldest_call: Vec<_> = (0..tail.len()).map(Some).collect();
    for (call, answer) in pairing.answered() {
        oldest_call[answer.event] = oldest_call[answer.event].map(|oldest| oldest.min(call.event));
    }
    for orphan in &pairing.orphans {
        oldest_call[orphan.event] = None;
    }
    let mut cut = 0;
    for (index, &call) in oldest_call.iter().enumerate() {
        if call.is_none_or(|call| call < cut) && index >= cut {
            cut = index + 1;
        }
    }
    tail.iter().skip(cut).any(|event| event.counts()).then_some(start + cut)
}
