//! How tokens are estimated.
//!
//! The rule: ⌊Σ characters / 4⌋ + 1000 for an image or a sound + 2000 for a document, over everything a model sees.
//! A character is a Unicode scalar value. Counted are texts, system prompts, thinking, the names and arguments of
//! calls, and the content of results; not ids, signatures or names in results. Flooring once, over the sum, keeps a
//! history of many small parts from being free.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

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
pub trait TokenCounter: Send + Sync {
    /// Its name, as reports give it.
    fn name(&self) -> &str;

    /// The tokens of these texts together.
    fn count_texts(&self, texts: &mut dyn Iterator<Item = &str>) -> Tokens;
}

/// The estimate of one token for every four characters.
#[derive(Clone, Copy, Debug, Default)]
pub struct FourCharacters;

impl TokenCounter for FourCharacters {
    fn name(&self) -> &str {
        "characters / 4"
    }

    fn count_texts(&self, texts: &mut dyn Iterator<Item = &str>) -> Tokens {
        Tokens(texts.map(|text| text.chars().count() as u64).sum::<u64>() / 4)
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
pub fn count_events<'a>(counter: &dyn TokenCounter, events: impl IntoIterator<Item = &'a Event> + Clone) -> Tokens {
    count(counter, events.into_iter().flat_map(|event| event.content().iter().chain(result_parts(event))))
}

/// The tokens of what a model is sent of a history.
pub fn count_sent(counter: &dyn TokenCounter, history: &History) -> Tokens {
    count(counter, history.sent().events().flat_map(|sent| sent.parts().chain(result_parts(sent.event))))
}

/// The parts of the results of a round.
fn result_parts(event: &Event) -> impl Iterator<Item = &Part> {
    let results = if let Event::ToolResults(round) = event { &round.results[..] } else { &[] };
    results.iter().flat_map(|result| &result.content)
}

fn count<'a>(counter: &dyn TokenCounter, parts: impl Iterator<Item = &'a Part>) -> Tokens {
    let mut flat = Tokens::default();
    let mut texts = parts.flat_map(|part| {
        let (first, second) = match &part.body {
            PartBody::Text(text) | PartBody::System(text) => (Some(&**text), None),
            PartBody::Thinking(thinking) => (Some(&*thinking.text), None),
            PartBody::ToolCall(call) => (Some(&*call.name), Some(&*call.arguments)),
            PartBody::Media(media) => {
                flat += flat_tokens(media);
                (None, None)
            }
        };
        first.into_iter().chain(second)
    });
    let texts = counter.count_texts(&mut texts);
    texts + flat
}

fn flat_tokens(media: &Media) -> Tokens {
    Tokens(match media.kind {
        MediaKind::Image | MediaKind::Audio => 1000,
        MediaKind::Document => 2000,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_agree_with_the_product_rows_of_the_vectors() {
        let rows = crate::vectors::read("strategies/token_estimate.jsonl").unwrap();
        let product: Vec<_> = rows.iter().filter(|row| row["rule"] == "product").collect();
        println!("{} of them are of the product rule", product.len());
        assert!(!product.is_empty());
        for row in product {
            let events: Vec<Event> = serde_json::from_value(row["events"].clone()).unwrap();
            let tokens = count_events(&FourCharacters, &events);
            assert_eq!(serde_json::json!(tokens), row["tokens"], "{}", row["name"]);
        }
    }

    #[test]
    fn what_is_no_longer_sent_costs_nothing() {
        let mut warning = Part::text("a warning of forty characters, all in all");
        warning.marks.scope = Some("request".to_owned());
        let request = Event::Request(crate::Request { content: vec![warning], ..Default::default() });
        let mut history = History::from(vec![Event::request("four"), request]);
        assert_eq!(count_sent(&FourCharacters, &history), Tokens(11));
        history.push(Event::answer("four"));
        assert_eq!(count_sent(&FourCharacters, &history), Tokens(2));
        assert_eq!(count_events(&FourCharacters, history.events()), Tokens(12));
    }
}
