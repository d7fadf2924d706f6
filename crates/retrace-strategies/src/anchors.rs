//! What survives every strategy: the leading system prompts and the pinned parts.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::RandomState;
use retrace_events::{Event, History, Part, PartBody, Request};

/// The events of `before` from `cut` on, behind what no strategy may drop: the leading system prompts, then what the
/// strategy `made` in place of the events before the cut, then, in one request, the pinned parts that were cut off.
pub(crate) fn keep_from(before: &History, cut: usize, made: Option<Event>) -> History {
    let mut prompts = leading_prompts(before).peekable();
    let (mut events, mut cut_off) = (Vec::new(), Vec::new());
    for (index, event) in before.iter().take(cut).enumerate() {
        if let Some((_, prompts)) = prompts.next_if(|(of, _)| *of == index) {
            // An event of nothing but prompts stays as it is, so that a second pass finds it so.
            if event.content().iter().all(is_system) {
                events.push(Arc::clone(event));
                continue;
            }
            events.push(request(prompts.into_iter().cloned().collect()));
        }
        cut_off.extend(pins(event).cloned());
    }
    events.extend(made.map(Arc::new));
    if !cut_off.is_empty() {
        events.push(request(cut_off));
    }
    events.extend(before.iter().skip(cut).cloned());
    History::new(events)
}

/// The leading system prompts, request by request: the `system` parts met from the start, over consecutive requests,
/// up to the first part that is neither `system`, nor pinned, nor a receipt. A pinned one is among them only where its
/// request holds nothing but prompts; elsewhere it is a pin like any other.
pub(crate) fn leading_prompts(history: &History) -> impl Iterator<Item = (usize, Vec<&Part>)> {
    let mut ended = false;
    let requests = history.events().enumerate().map_while(move |(index, event)| {
        let Event::Request(Request { content, .. }) = event else { return None };
        let leading = &content[..content.iter().take_while(|part| leads(part)).count()];
        let was_ended = std::mem::replace(&mut ended, leading.len() < content.len());
        let only_prompts = content.iter().all(is_system);
        let prompts = leading.iter().filter(move |part| is_system(part) && (only_prompts || !part.marks.pinned));
        (!was_ended).then(|| (index, prompts.collect::<Vec<_>>()))
    });
    requests.filter(|(_, prompts)| !prompts.is_empty())
}

/// Whether an event is a request of nothing but prompts, pins and receipts: ahead of a cut there is no more to tell of it.
pub(crate) fn only_leads(event: &Event) -> bool {
    matches!(event, Event::Request(Request { content, .. }) if content.iter().all(leads))
}

/// The index of the first request with a text or medium that the user could have said.
pub(crate) fn first_user_event(history: &History) -> Option<usize> {
    history.events().position(
        |event| matches!(event, Event::Request(Request { content, .. }) if content.iter().any(Part::is_user_turn)),
    )
}

/// What a strategy made of `before`, a `head` in front of a `tail` of it, with the leading system prompts and the pinned
/// parts that it lost: the prompts in front, the pins in one request right after the leading events that are summaries or
/// hold nothing but prompts, and never inside the tail, where a second pass would count them.
pub(crate) fn bring_back(before: &History, head: Vec<Arc<Event>>, tail: Vec<Arc<Event>>) -> Vec<Arc<Event>> {
    let n_tail = tail.len();
    bring_back_pins(before, bring_back_prompts(before, head.into_iter().chain(tail).collect()), n_tail)
}

/// What a strategy made of `before`, with the pinned parts that it lost.
pub(crate) fn with_pins(before: &History, after: History) -> History {
    if missing_pins(before, after.events()).is_empty() {
        return after;
    }
    History::new(bring_back_pins(before, after.iter().map(Arc::clone).collect(), after.len()))
}

/// The pinned parts of `before` that are not among the events, each as often as it is missing. Those of an event that is
/// among them are there themselves; equal ones elsewhere stand in for the others.
fn missing_pins<'a>(before: &'a History, events: impl Iterator<Item = &'a Event>) -> Vec<Part> {
    let has_pins = |event: &&Event| pins(event).next().is_some();
    let mut wanted_events = before.events().filter(has_pins).peekable();
    if wanted_events.peek().is_none() {
        return Vec::new();
    }
    let mut kept: HashMap<*const Event, usize, RandomState> = HashMap::default();
    let mut events: Vec<_> = events.filter(has_pins).collect();
    events.iter().for_each(|event| *kept.entry(std::ptr::from_ref(*event)).or_default() += 1);
    let wanted_events = wanted_events.filter(|event| !take_one(&mut kept, &std::ptr::from_ref(*event)));
    let wanted: Vec<_> = wanted_events.flat_map(pins).collect();
    // Those left over were made.
    events.retain(|event| take_one(&mut kept, &std::ptr::from_ref(*event)));
    let mut made = events.into_iter().flat_map(pins).peekable();
    // Most were brought back before, in this order.
    let wanted: Vec<_> = wanted.into_iter().filter(|pin| made.next_if_eq(pin).is_none()).collect();
    let mut left: HashMap<&Part, usize, RandomState> = HashMap::default();
    made.for_each(|pin| *left.entry(pin).or_default() += 1);
    wanted.into_iter().filter(|pin| !take_one(&mut left, pin)).cloned().collect()
}

/// Whether there is one of these, which then is one less.
fn take_one<K: Hash + Eq>(counts: &mut HashMap<K, usize, RandomState>, key: &K) -> bool {
    let n_left = counts.get_mut(key).filter(|n_left| **n_left > 0);
    n_left.map(|n_left| *n_left -= 1).is_some()
}

/// The pinned parts of `before` that `events` lost, in one request ahead of the tail.
fn bring_back_pins(before: &History, mut events: Vec<Arc<Event>>, n_tail: usize) -> Vec<Arc<Event>> {
    let missing = missing_pins(before, events.iter().map(|event| &**event));
    if !missing.is_empty() {
        let leads = |event: &&Arc<Event>| match &***event {
            Event::Summary(_) => true,
            event @ Event::Request(_) => !event.content().is_empty() && event.content().iter().all(is_system),
            _ => false,
        };
        let head = &events[..events.len() - n_tail];
        // A pinned prompt among them must not lead where the kept ones do.
        let place = if missing.iter().any(is_system) { head.len() } else { head.iter().take_while(leads).count() };
        events.insert(place, request(missing));
    }
    events
}

/// Puts the leading prompts in front that are there no more; a request of nothing but prompts as the event it was.
fn bring_back_prompts(before: &History, made: Vec<Arc<Event>>) -> Vec<Arc<Event>> {
    let mut kept: Option<HashSet<*const Event>> = None;
    let mut events = Vec::with_capacity(made.len() + 1);
    for (index, prompts) in leading_prompts(before) {
        let kept = kept.get_or_insert_with(|| made.iter().map(Arc::as_ptr).collect());
        let Some(event) = before.get(index).filter(|event| !kept.contains(&Arc::as_ptr(event))) else { continue };
        if event.content().iter().all(is_system) {
            events.push(Arc::clone(event));
        } else {
            events.push(request(prompts.into_iter().cloned().collect()));
        }
    }
    events.extend(made);
    events
}

/// The pinned parts of a request.
pub(crate) fn pins(event: &Event) -> impl Iterator<Item = &Part> {
    let content = if let Event::Request(request) = event { &request.content[..] } else { &[] };
    content.iter().filter(|part| part.marks.pinned)
}

fn leads(part: &Part) -> bool {
    is_system(part) || part.marks.pinned || part.marks.receipt().is_some()
}

fn is_system(part: &Part) -> bool {
    matches!(part.body, PartBody::System(_))
}

fn request(content: Vec<Part>) -> Arc<Event> {
    Arc::new(Event::Request(Request { content: content.into(), ..Request::default() }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use retrace_events::Raw;

    use super::*;

    #[test]
    fn equal_pins_are_as_many_as_before() {
        let pin = |text: &str| Part::text(text).pinned();
        let kept = request(vec![pin("a"), Part::text("go")]);
        let before = History::new(vec![request(vec![pin("a"), pin("b"), pin("a")]), Arc::clone(&kept)]);
        let events = bring_back_pins(&before, vec![Arc::clone(&kept)], 1);
        assert_eq!(events, [request(vec![pin("a"), pin("b"), pin("a")]), kept]);
    }

    /// Of few texts, so that many are told apart by their fields alone, and some not at all.
    fn pin() -> impl Strategy<Value = Part> {
        ("[ab]", prop::option::of(0..3_u8)).prop_map(|(text, field)| {
            let mut pin = Part::text(text).pinned();
            if let Some(value) = field.and_then(|field| Raw::of(&field).ok()) {
                pin.extra.push("z", value);
            }
            pin
        })
    }

    /// Requests of pins, and some of these pins in any order, with a few others.
    fn pins_and_some_of_them() -> impl Strategy<Value = (History, Vec<Part>)> {
        prop::collection::vec(prop::collection::vec(pin(), 1..4), 1..6).prop_flat_map(|requests| {
            let before = History::new(requests.iter().cloned().map(request).collect::<Vec<_>>());
            let pins = requests.concat();
            let n_pins = pins.len();
            let some = prop::sample::subsequence(pins, 0..=n_pins);
            let made = (some, prop::collection::vec(pin(), 0..2)).prop_map(|(some, others)| [some, others].concat());
            (Just(before), made.prop_shuffle())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(retrace_testing::cases(1_000, 100_000)))]

        #[test]
        fn a_pin_is_missing_as_often_as_there_are_fewer(
            (before, made) in pins_and_some_of_them(), stays in prop::collection::vec(any::<bool>(), 6)
        ) {
            let kept = before.iter().zip(stays).filter(|(_, stays)| *stays).map(|(event, _)| Arc::clone(event));
            let after: Vec<_> = [request(made)].into_iter().chain(kept).collect();
            let missing = missing_pins(&before, after.iter().map(|event| &**event));
            let n = |pin: &Part, pins: &[&Part]| pins.iter().filter(|other| **other == pin).count();
            let wanted: Vec<_> = before.events().flat_map(pins).collect();
            let present: Vec<_> = after.iter().flat_map(|event| pins(event)).collect();
            for pin in &wanted {
                let n_missing = n(pin, &wanted).saturating_sub(n(pin, &present));
                prop_assert_eq!(n(pin, &missing.iter().collect::<Vec<_>>()), n_missing);
            }
            // In order.
            let mut rest = wanted.into_iter();
            prop_assert!(missing.iter().all(|pin| rest.any(|other| other == pin)));
        }
    }
}
