//! How large a history is: for triggers by what the provider said of it, for tails event by event.

use retrace_events::tokens::{TokenCounter, Tokens, count_events, count_units};
use retrace_events::{Event, History, Usage};

/// The tokens that the next request will have: what the provider said of the newest response that told its input, and the
/// rule over the events after it. Where none did, the rule over everything.
///
/// A provider counts instructions, tools and dense text, which a rule cannot see. It knows nothing of what was rewritten
/// since.
pub(crate) fn anchored(counter: &dyn TokenCounter, history: &History) -> Tokens {
    let newest = history.events().rev().enumerate().find_map(|(back, event)| Some((back, input(event)?)));
    match newest {
        Some((back, usage)) => Tokens(usage.total_tokens()) + count_events(counter, history.events().rev().take(back)),
        None => count_events(counter, history.events()),
    }
}

/// What an event measures in a tail: its texts by the counter, or the output that its response reported, if that is more.
/// Where two responses follow each other and the second one's input is larger, the events from the first up to the second
/// share exactly the difference, in proportion to what they measure. Nothing is measured where no response reports.
pub(crate) fn measured(counter: &dyn TokenCounter, history: &History) -> Option<Vec<u64>> {
    let mut reports = false;
    let mut sizes: Vec<u64> = Vec::with_capacity(history.len());
    for event in history.events() {
        let usage = usage(event);
        reports |= usage.is_some_and(|usage| usage.input_tokens > 0 || usage.output_tokens > 0);
        let output = usage.map_or(0, |usage| usage.output_tokens);
        sizes.push(if event.counts() { texts(counter, event).max(output) } else { 0 });
    }
    if !reports {
        return None;
    }
    let responses = history.events().enumerate().filter_map(|(index, event)| Some((index, input(event)?.input_tokens)));
    let responses: Vec<_> = responses.collect();
    for pair in responses.windows(2) {
        let [(from, before), (to, after)] = [pair[0], pair[1]];
        if let Some(difference) = after.checked_sub(before).filter(|difference| *difference > 0) {
            share(difference, &mut sizes[from..to]);
        }
    }
    Some(sizes)
}

/// Gives each its share of `total` in proportion, rounded down, and what is left over to the first.
fn share(total: u64, sizes: &mut [u64]) {
    let sum: u128 = sizes.iter().map(|&size| u128::from(size)).sum();
    let mut left = total;
    for size in sizes.iter_mut() {
        let part = u128::from(total) * u128::from(*size);
        // At most `total`, so it fits.
        *size = part.checked_div(sum).unwrap_or(0) as u64;
        left -= *size;
    }
    if let Some(first) = sizes.first_mut() {
        *first += left;
    }
}

/// The tokens of an event's texts; media are none.
fn texts(counter: &dyn TokenCounter, event: &Event) -> u64 {
    counter.tokens(count_units(counter, [event])).0
}

/// What a response says of its own input, if it does.
fn input(event: &Event) -> Option<&Usage> {
    usage(event).filter(|usage| usage.input_tokens > 0)
}

fn usage(event: &Event) -> Option<&Usage> {
    if let Event::Response(response) = event { response.usage.as_ref() } else { None }
}
