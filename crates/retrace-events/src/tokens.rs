//! How tokens are estimated.
//!
//! The rule: ⌊Σ characters / 4⌋ + 1000 for an image or a sound + 2000 for a document, over everything a model sees.
//! A character is a Unicode scalar value. Counted are texts, system prompts, thinking, the names and arguments of
//! calls, and the content of results; not ids, signatures or names in results. Flooring once, over the sum, keeps a
//! history of many small parts from being free. Another [`TokenCounter`] takes the place of ⌊Σ characters / 4⌋, with the
//! feature `tokens-openai` one of OpenAI's tokenizers; media cost the same under all.

#[cfg(feature = "tokens-openai")]
mod openai;

use std::iter::Sum;
use std::ops::{Add, AddAssign, SubAssign};

use serde::{Deserialize, Serialize};

#[cfg(feature = "tokens-openai")]
pub use self::openai::OpenAiTokens;
use crate::event::Event;
use crate::history::History;
use crate::part::{Media, MediaKind, Part, PartBody};

/// A number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Add for Tokens {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(tokens: I) -> Self {
        tokens.fold(Self::default(), Add::add)
    }
}

/// Counts the tokens of texts; media cost a flat number whatever the counter.
///
/// It counts in units that add up over texts, so that a history can be counted event by event.
pub trait TokenCounter: Send + Sync {
    /// Its name, as reports give it.
    fn name(&self) -> &str;

    /// The units of a text.
    fn units(&self, text: &str) -> u64;

    /// The tokens of so many units.
    fn tokens(&self, units: u64) -> Tokens;
}

/// The estimate of one token for every four characters.
#[derive(Clone, Copy, Debug, Default)]
pub struct FourCharacters;

impl TokenCounter for FourCharacters {
    fn name(&self) -> &str {
        "characters / 4"
    }

    fn units(&self, text: &str) -> u64 {
        // Most texts are ASCII, which is seen several times faster than characters are counted.
        let n = if text.is_ascii() { text.len() } else { text.chars().count() };
        n as u64
    }

    fn tokens(&self, units: u64) -> Tokens {
        Tokens(units / 4)
    }
}

/// The tokens of these events, whether or not all of it would still be sent.
///
/// ```
/// use retrace_events::{Event, tokens::{FourCharacters, Tokens, count_events}};
///
/// let events = [Event::request("abc"), Event::answer("abc"), Event::request("ab")];
/// assert_eq!(count_events(&FourCharacters, &events), Tokens(2));
/// ```
pub fn count_events<'a>(counter: &dyn TokenCounter, events: impl IntoIterator<Item = &'a Event>) -> Tokens {
    count_parts(counter, events.into_iter().flat_map(|event| event.content().iter().chain(result_parts(event))))
}

/// The units of the texts of these events; media have none.
pub fn count_units<'a>(counter: &dyn TokenCounter, events: impl IntoIterator<Item = &'a Event>) -> u64 {
    let mut size = Size::default();
    events.into_iter().for_each(|event| size += Size::of_event(counter, event));
    size.units
}

/// The tokens of these parts.
pub fn count_parts<'a>(counter: &dyn TokenCounter, parts: impl IntoIterator<Item = &'a Part>) -> Tokens {
    let mut size = Size::default();
    parts.into_iter().for_each(|part| size += Size::of(counter, part));
    size.tokens(counter)
}

/// The tokens of what a model is sent of a history.
pub fn count_sent(counter: &dyn TokenCounter, history: &History) -> Tokens {
    let mut count = SentCount::new(counter);
    history.events().for_each(|event| count.push(event));
    count.tokens()
}

/// Counts what a model is sent of a history while it grows, each event once.
#[derive(Clone, Copy)]
pub struct SentCount<'c> {
    counter: &'c dyn TokenCounter,
    sent: Size,
    /// What of it the next response takes away.
    scoped: Size,
}

impl<'c> SentCount<'c> {
    /// The count of no events.
    pub fn new(counter: &'c dyn TokenCounter) -> Self {
        Self { counter, sent: Size::default(), scoped: Size::default() }
    }

    /// Adds the next event of the history.
    pub fn push(&mut self, event: &Event) {
        if matches!(event, Event::Response(_)) {
            self.sent -= std::mem::take(&mut self.scoped);
        }
        for part in event.content() {
            let size = Size::of(self.counter, part);
            self.sent += size;
            if part.is_request_scoped() {
                self.scoped += size;
            }
        }
        result_parts(event).for_each(|part| self.sent += Size::of(self.counter, part));
    }

    /// The tokens that are sent of the events so far.
    pub fn tokens(&self) -> Tokens {
        self.sent.tokens(self.counter)
    }
}

/// The size of parts, before it is rounded to tokens: sizes add up, tokens do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    units: u64,
    media: Tokens,
}

impl Size {
    /// The size of an event, the contents of its results included.
    pub fn of_event(counter: &dyn TokenCounter, event: &Event) -> Self {
        let mut size = Self::default();
        event.content().iter().chain(result_parts(event)).for_each(|part| size += Self::of(counter, part));
        size
    }

    fn of(counter: &dyn TokenCounter, part: &Part) -> Self {
        let units = |text: &str| Self { units: counter.units(text), media: Tokens::default() };
        match &part.body {
            PartBody::Text(text) | PartBody::System(text) => units(text),
            PartBody::Thinking(thinking) => units(&thinking.text),
            PartBody::ToolCall(call) => {
                let mut size = units(&call.name);
                size += units(&call.arguments);
                size
            }
            PartBody::Media(media) => Self { units: 0, media: flat_tokens(media) },
        }
    }

    /// The tokens of a size.
    pub fn tokens(self, counter: &dyn TokenCounter) -> Tokens {
        counter.tokens(self.units) + self.media
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.units = self.units.saturating_add(other.units);
        self.media += other.media;
    }
}

impl SubAssign for Size {
    fn sub_assign(&mut self, other: Self) {
        self.units = self.units.saturating_sub(other.units);
        self.media.0 = self.media.0.saturating_sub(other.media.0);
    }
}

/// The parts of the results of a round.
fn result_parts(event: &Event) -> impl Iterator<Item = &Part> {
    let results = if let Event::ToolResults(round) = event { &round.results[..] } else { &[] };
    results.iter().flat_map(|result| &result.content)
}

fn flat_tokens(media: &Media) -> Tokens {
    Tokens(match media.kind {
        MediaKind::Image | MediaKind::Audio => 1000,
        MediaKind::Document => 2000,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn estimates_agree_with_the_product_rows_of_the_vectors() {
        let rows = retrace_testing::vectors::rows("strategies/token_estimate.jsonl");
        let product: Vec<_> = rows.iter().filter(|row| row["rule"] == "product").collect();
        println!("{} of them are of the product rule", product.len());
        assert!(rows.is_empty() || !product.is_empty());
        for row in product {
            let events: Vec<Event> = serde_json::from_value(row["events"].clone()).unwrap();
            let tokens = count_events(&FourCharacters, &events);
            assert_eq!(serde_json::json!(tokens), row["tokens"], "{}", row["name"]);
        }
    }

    proptest! {
        #[test]
        fn a_count_that_grows_is_that_of_the_whole(texts in prop::collection::vec((0..3_u8, "[a-é]{0,9}"), 0..12)) {
            let events: Vec<_> = texts.into_iter().map(|(kind, text)| match kind {
                0 => Event::answer(text),
                1 => Event::request(text),
                _ => {
                    let mut part = Part::text(text);
                    part.marks.set_scope("request");
                    Event::Request(crate::Request { content: [part].into(), ..Default::default() })
                }
            }).collect();
            let mut count = SentCount::new(&FourCharacters);
            for n in 0..=events.len() {
                let history = History::from(events[..n].to_vec());
                let sent = history.sent().events().flat_map(|sent| sent.parts().collect::<Vec<_>>());
                let characters: usize = sent.filter_map(Part::as_text).map(|text| text.chars().count()).sum();
                prop_assert_eq!(count.tokens(), Tokens(characters as u64 / 4));
                events.get(n).into_iter().for_each(|event| count.push(event));
            }
        }
    }

    #[test]
    fn what_is_no_longer_sent_costs_nothing() {
        let mut warning = Part::text("a warning of forty characters, all in all");
        warning.marks.set_scope("request");
        let request = Event::Request(crate::Request { content: [warning].into(), ..Default::default() });
        let mut history = History::from(vec![Event::request("four"), request]);
        assert_eq!(count_sent(&FourCharacters, &history), Tokens(11));
        history.push(Event::answer("four"));
        assert_eq!(count_sent(&FourCharacters, &history), Tokens(2));
        assert_eq!(count_events(&FourCharacters, history.events()), Tokens(12));
    }
}
