//! Safe cuts: a cut at index *i* keeps `events[i..]`, and is safe when no result lies after it whose call lies before.

use retrace_events::pairing::pair;
use retrace_events::tokens::TokenCounter;
use retrace_events::{Event, History, Part};

use crate::sizes::TailSizes;

/// Where to cut so that at most the last `target` events that count are kept, moved on until no result is kept
/// without its call; none if nothing would be cut, or nothing that counts kept.
///
/// A result that never had a call is stepped over like one whose call was cut off. Linear in what is kept.
pub(crate) fn tail_cut(history: &History, target: usize) -> Option<usize> {
    let newest_first = history.events().rev().enumerate().filter(|(_, event)| is_turn(event));
    let start = newest_first.map(|(back, _)| history.len() - 1 - back).nth(target.checked_sub(1)?)?;
    if start == 0 {
        return None;
    }
    if answers_in_order(history.events().skip(start)) {
        return Some(start);
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
    tail.iter().skip(cut).any(|event| is_turn(event)).then_some(start + cut)
}

/// Whether every result answers a call of these events, call by call in the order issued. Most histories are as tidy as
/// that, and to see it is much quicker than to pair them.
fn answers_in_order<'a>(events: impl Iterator<Item = &'a Event>) -> bool {
    let mut issued = [].iter();
    for event in events {
        match event {
            Event::Response(response) => issued = response.content.iter(),
            Event::ToolResults(round) => {
                for result in &round.results {
                    if issued.find_map(Part::as_tool_call).is_none_or(|call| call.id != result.call_id) {
                        return false;
                    }
                }
            }
            _ => {}
        }
    }
    true
}

/// Whether a window counts an event: a warning for the next request alone is no turn of the conversation.
pub(crate) fn is_turn(event: &Event) -> bool {
    event.counts() && !event.is_request_scoped()
}

/// What stays behind a cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keep {
    /// So many events that count, at least one.
    Events(usize),
    /// At least so many tokens.
    Tokens(u64),
}

/// Where to cut so that this stays, moved back until no result is kept without its call; 0 if nothing would be cut.
pub(crate) fn window_cut(history: &History, keep: Keep, counter: &dyn TokenCounter) -> usize {
    match keep {
        Keep::Events(n) => {
            let newest_first = history.events().rev().enumerate().filter(|(_, event)| is_turn(event));
            let mut newest_first = newest_first.map(|(back, _)| history.len() - 1 - back).skip(n.max(1) - 1);
            // There is something to cut only if an event that counts lies before.
            match (newest_first.next(), newest_first.next()) {
                (Some(cut), Some(_)) => retreat(history, cut),
                _ => 0,
            }
        }
        Keep::Tokens(n) => {
            let mut sizes = TailSizes::of(history, counter);
            let mut from = 0;
            loop {
                let cut = tokens_cut(&mut sizes, from, n);
                if cut == from {
                    return cut;
                }
                let cut = retreat(history, cut);
                if cut == from || !sizes.reports(from) {
                    return cut;
                }
                // What is cut off may have said how large the rest is, up to the next response that reports. Measured
                // without it, there may be more to cut, which a second pass would find.
                from = cut;
            }
        }
    }
}

/// The newest start of a tail of the events from `from` on that measures at least `n` tokens; for 0 the oldest one that
/// measures nothing.
fn tokens_cut(sizes: &mut TailSizes<'_>, from: usize, n: u64) -> usize {
    let mut nothing_from = None;
    for (start, size) in sizes.tails(from) {
        if n > 0 && size >= n {
            return start;
        }
        if n == 0 && size > 0 {
            // The newest event stays whatever it measures.
            return nothing_from.unwrap_or(start);
        }
        nothing_from = Some(start);
    }
    from
}

/// Moves a cut back until no answered call lies before it whose result lies after it.
fn retreat(history: &History, mut cut: usize) -> usize {
    let tail = || history.events().skip(cut);
    if cut == 0 || answers_in_order(tail()) || pair(tail()).orphans.is_empty() {
        return cut;
    }
    // For each event the oldest one that has a call which it, or an event after it, answers.
    let mut oldest_call: Vec<usize> = (0..history.len()).collect();
    for (call, answer) in pair(history.events()).answered() {
        oldest_call[answer.event] = oldest_call[answer.event].min(call.event);
    }
    for index in (0..oldest_call.len().saturating_sub(1)).rev() {
        oldest_call[index] = oldest_call[index].min(oldest_call[index + 1]);
    }
    while oldest_call.get(cut).is_some_and(|&oldest| oldest < cut) {
        cut = oldest_call[cut];
    }
    cut
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::histories::{Characters, history};

    /// The rule, word for word: the newest tail that measures enough; of nothing, the oldest one that is still nothing, or
    /// the newest event alone.
    fn by_the_rule(tails: &[(usize, u64)], from: usize, n: u64) -> usize {
        let mut nothing = tails.iter().filter(|(_, size)| *size == 0);
        let cut = match tails.iter().find(|(_, size)| *size >= n.max(1)) {
            enough if n > 0 => enough,
            None => None,
            Some(_) => nothing.next_back().or(tails.first()),
        };
        cut.map_or(from, |(start, _)| *start)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(1_000, 100_000)))]

        #[test]
        fn what_answers_in_order_has_no_orphans(history in history()) {
            if answers_in_order(history.events()) {
                prop_assert!(pair(history.events()).orphans.is_empty());
            }
        }

        #[test]
        fn a_tail_of_tokens_is_cut_by_the_rule(history in history(), from in 0..14_usize, n in 0..30_u64) {
            let mut sizes = TailSizes::of(&history, &Characters);
            let tails: Vec<_> = sizes.tails(from).collect();
            prop_assert_eq!(tokens_cut(&mut sizes, from, n), by_the_rule(&tails, from, n));
        }

        #[test]
        fn a_window_of_tokens_is_that_of_what_a_first_cut_leaves(history in history(), n in 0..30_u64) {
            let window = |history: &History| window_cut(history, Keep::Tokens(n), &Characters);
            let mut sizes = TailSizes::of(&history, &Characters);
            let first = retreat(&history, tokens_cut(&mut sizes, 0, n));
            let left = History::new(history.iter().skip(first).cloned().collect::<Vec<_>>());
            let again = if first > 0 && sizes.reports(0) { window(&left) } else { 0 };
            prop_assert_eq!(window(&history), first + again);
        }
    }

    #[test]
    fn a_window_of_no_tokens_keeps_the_newest_events_that_measure_nothing() {
        let cut = |events: &[Event]| window_cut(&History::from(events.to_vec()), Keep::Tokens(0), &Characters);
        let (text, empty) = (Event::request("x"), Event::Response(retrace_events::Response::default()));
        assert_eq!(cut(&[text.clone(), text.clone(), empty.clone(), empty.clone()]), 2);
        assert_eq!(cut(&[text.clone(), empty.clone(), text]), 2);
        assert_eq!(cut(&[empty.clone(), empty]), 0);
    }

    #[test]
    fn a_tidy_tail_answers_in_order_and_others_do_not() {
        let calls = ["a", "b"].map(|id| retrace_events::ToolCall::new(id, "f", "{}"));
        let result =
            |at: usize| retrace_events::ToolResult::text_result(&calls[at], retrace_events::Outcome::Ok, "text");
        let issue = || Event::calls(calls.clone());
        for (is_tidy, events) in [
            (true, vec![issue(), Event::results([result(0), result(1)])]),
            (true, vec![issue(), Event::results([result(0)]), Event::request("x"), Event::results([result(1)])]),
            (false, vec![issue(), Event::results([result(1), result(0)])]),
            (false, vec![Event::results([result(0)]), issue()]),
            (false, vec![issue(), Event::answer("x"), Event::results([result(0)])]),
        ] {
            assert_eq!(answers_in_order(events.iter()), is_tidy, "{events:?}");
        }
    }
}
