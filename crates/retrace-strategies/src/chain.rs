//! What a compacted history becomes as the recorded run goes on.

use std::sync::Arc;

use retrace_events::tokens::{TokenCounter, count_events};
use retrace_events::{Event, History};

/// What was `left` of the history `before`, and the events that the run added.
///
/// What the provider said of the input of an added response was said of the raw history. What is gone is taken off, by the
/// counter, so that nothing takes the compacted history for as large as the raw one.
pub fn go_on(before: &History, left: &History, added: &[Arc<Event>], counter: &dyn TokenCounter) -> History {
    let size = |history: &History| count_events(counter, history.events()).0;
    let removed = size(before).saturating_sub(size(left));
    let added = added.iter().map(|event| match &**event {
        Event::Response(response) if removed > 0 => {
            let mut response = response.clone();
            match &mut response.usage {
                Some(usage) if usage.input_tokens > 0 => {
                    usage.input_tokens = usage.input_tokens.saturating_sub(removed).max(1);
                    Arc::new(Event::Response(response))
                }
                _ => Arc::clone(event),
            }
        }
        _ => Arc::clone(event),
    });
    History::new(left.iter().map(Arc::clone).chain(added).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use retrace_events::{Part, Response, Usage};

    use super::*;
    use crate::histories::Characters;

    #[test]
    fn what_a_provider_said_of_the_raw_history_is_less_by_what_is_gone() {
        let before = History::from(vec![Event::request("x".repeat(100)), Event::request("y".repeat(20))]);
        let left = History::new([Arc::clone(before.get(1).unwrap())]);
        let told = |input_tokens| {
            let usage = Some(Usage { input_tokens, output_tokens: 7, ..Usage::default() });
            Arc::new(Event::Response(Response { content: [Part::text("well")].into(), usage, ..Response::default() }))
        };
        let added = [told(150), Arc::new(Event::request("go on")), told(90), told(0)];
        let input = |event: &Event| match event {
            Event::Response(response) => response.usage.as_ref().map(|usage| (usage.input_tokens, usage.output_tokens)),
            _ => None,
        };
        let inputs = |left: &History| {
            let gone_on = go_on(&before, left, &added, &Characters);
            assert!(Arc::ptr_eq(gone_on.get(left.len() + 1).unwrap(), &added[1]));
            gone_on.events().filter_map(input).collect::<Vec<_>>()
        };
        assert_eq!(inputs(&left), [(50, 7), (1, 7), (0, 7)]);
        assert_eq!(inputs(&before), [(150, 7), (90, 7), (0, 7)]);
    }
}
