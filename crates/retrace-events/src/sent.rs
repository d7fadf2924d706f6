//! What a model was sent, as a hash: whether what a strategy kept has really reached it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

use crate::event::{Event, ToolResult};
use crate::part::{Media, MediaSource, Part, PartBody};
use crate::signature::canonical_arguments;

/// A hash of what of a history a model was sent: equal for two renderings of the same content, whatever the provider's
/// shapes. Written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SentHash([u8; 16]);

/// Hashes what is sent, piece by piece, in the order it is sent.
///
/// The state is 32 bytes, at first all zero. A piece makes it `SHA-256(state ‖ fields)`, where each field, the kind of
/// the piece first, is its length in bytes in decimal, a line feed, and its UTF-8 bytes. System texts, which many
/// providers send apart, have a state of their own. The hash is the first 16 bytes of `SHA-256(state ‖ system state)`.
///
/// Not hashed is what providers spell in their own ways: ids, the flag of a failure, the model's reasoning, and
/// texts that are empty, unless they are results.
///
/// ```
/// use retrace_events::sent::SentHasher;
/// use retrace_events::{Event, History, ToolCall};
///
/// let call = ToolCall::new("c1", "read", "{ \"page\": 1 }");
/// let history = History::from(vec![Event::request("Find it."), Event::calls([call])]);
///
/// let mut hasher = SentHasher::default();
/// hasher.user("Find it.");
/// hasher.call("read", "{\"page\":1}");
/// assert_eq!(history.sent_hash(), hasher.finish());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentHasher {
    state: [u8; 32],
    system: [u8; 32],
}

impl SentHasher {
    /// A system prompt.
    pub fn system(&mut self, text: &str) {
        if !text.is_empty() {
            self.system = next(self.system, &["system", text]);
        }
    }

    /// A text on the user's channel: one of a request, or of a summary.
    pub fn user(&mut self, text: &str) {
        self.text("user", text);
    }

    /// A text of the model's.
    pub fn assistant(&mut self, text: &str) {
        self.text("assistant", text);
    }

    /// An image, a sound or a document, wherever it stands: its media type, and its base64 text or its address.
    pub fn media(&mut self, media_type: &str, source: &str) {
        self.piece(&["media", media_type, source]);
    }

    /// A call: the tool and the JSON text of its arguments, of which the [canonical](canonical_arguments) form is
    /// hashed.
    pub fn call(&mut self, name: &str, arguments: &str) {
        self.piece(&["call", name, &canonical_arguments(arguments)]);
    }

    /// A result: the tool and its text, all text parts joined; its media come after it.
    pub fn result(&mut self, name: &str, text: &str) {
        self.piece(&["result", name, text]);
    }

    /// The hash of all that was added.
    pub fn finish(&self) -> SentHash {
        let hash = Sha256::new_with_prefix(self.state).chain_update(self.system).finalize();
        SentHash(std::array::from_fn(|index| hash[index]))
    }

    fn text(&mut self, kind: &str, text: &str) {
        if !text.is_empty() {
            self.piece(&[kind, text]);
        }
    }

    fn piece(&mut self, fields: &[&str]) {
        self.state = next(self.state, fields);
    }

    /// What these parts of an event say, or its results.
    fn event<'a>(&mut self, event: &'a Event, parts: impl Iterator<Item = &'a Part>) {
        let is_response = matches!(event, Event::Response(_));
        for part in parts {
            match &part.body {
                PartBody::Text(text) if is_response => self.assistant(text),
                PartBody::Text(text) => self.user(text),
                PartBody::System(text) => self.system(text),
                PartBody::Media(media) => self.medium(media),
                PartBody::ToolCall(call) => self.call(&call.name, &call.arguments),
                PartBody::Thinking(_) => {}
            }
        }
        if let Event::ToolResults(round) = event {
            round.results.iter().for_each(|result| self.answer(result));
        }
    }

    fn answer(&mut self, result: &ToolResult) {
        self.result(&result.name, &result.text());
        for part in &result.content {
            if let PartBody::Media(media) = &part.body {
                self.medium(media);
            }
        }
    }

    fn medium(&mut self, media: &Media) {
        let (MediaSource::Data(source) | MediaSource::Url(source)) = &media.source;
        self.media(&media.media_type, source);
    }
}

fn next(state: [u8; 32], fields: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(state);
    for field in fields {
        hash.update(field.len().to_string());
        hash.update("\n");
        hash.update(field);
    }
    hash.finalize().into()
}

/// The hash of a history that grows: each event is hashed when it is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SentChain {
    /// Without what is sent only while no response follows it.
    settled: SentHasher,
    /// With what of it is still sent.
    now: SentHasher,
}

impl SentChain {
    pub(crate) fn of<'a>(events: impl Iterator<Item = &'a Event>) -> Self {
        let mut chain = Self::default();
        events.for_each(|event| chain.push(event));
        chain
    }

    pub(crate) fn push(&mut self, event: &Event) {
        if matches!(event, Event::Response(_)) {
            self.now = self.settled;
        }
        let was_settled = self.now == self.settled;
        let lasting = || event.content().iter().filter(|part| !part.is_request_scoped());
        self.settled.event(event, lasting());
        if was_settled && lasting().count() == event.content().len() {
            self.now = self.settled;
        } else {
            self.now.event(event, event.content().iter());
        }
    }

    pub(crate) fn hash(&self) -> SentHash {
        self.now.finish()
    }
}

impl fmt::Display for SentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SentHash({self})")
    }
}

impl Serialize for SentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.as_bytes();
        let byte = |index: usize| {
            let digit = |index: usize| digits.get(index).and_then(|digit| char::from(*digit).to_digit(16));
            Some((digit(2 * index)? * 16 + digit(2 * index + 1)?) as u8)
        };
        let mut bytes = [0; 16];
        let is_hash = digits.len() == 32
            && bytes.iter_mut().enumerate().all(|(index, to)| byte(index).map(|byte| *to = byte).is_some());
        if is_hash { Ok(Self(bytes)) } else { Err(de::Error::custom("expected 32 hexadecimal digits")) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::any_events::any_events;
    use crate::event::{Outcome, Request, Response, Summary};
    use crate::history::History;
    use crate::part::{MediaKind, Thinking, ToolCall};

    fn scoped(text: &str) -> Part {
        let mut part = Part::text(text);
        part.marks.set_scope("request");
        part
    }

    /// Computed with Python from the words of [`SentHasher`]: `hashlib.sha256` over the fields with their lengths.
    #[test]
    fn the_hash_is_the_same_in_every_language() {
        let call = ToolCall::new("c1", "read", "{ \"page\": 1 }");
        let result = ToolResult::text_result(&call, Outcome::Error, "no page “1”");
        let events = vec![
            Event::Request(Request {
                content: vec![Part::system("Be brief."), Part::text("Find it.")].into(),
                ..Request::default()
            }),
            Event::calls([call]),
            Event::results([result]),
            Event::Summary(Summary { content: [Part::text("so far")].into(), ..Summary::default() }),
        ];
        assert_eq!(History::from(events).sent_hash().to_string(), KNOWN_HASH);
        assert_eq!(History::from(Vec::new()).sent_hash().to_string(), KNOWN_HASH_OF_NOTHING);
    }

    const KNOWN_HASH: &str = "3b94fad816bb8f3c99ac13087a443043";
    const KNOWN_HASH_OF_NOTHING: &str = "f5a5fd42d16a20302798ef6ed309979b";

    #[test]
    fn what_providers_spell_in_their_own_ways_makes_no_difference() {
        let hash = |content: Vec<Part>, id: &str, outcome| {
            let call = ToolCall::new(id, "read", "{}");
            let response = Event::Response(Response { content: content.into(), ..Response::default() });
            History::from(vec![response, Event::results([ToolResult::text_result(&call, outcome, "text")])]).sent_hash()
        };
        let thinking = PartBody::Thinking(Thinking { text: "hm".to_owned(), signature: None }).into();
        let plain = hash(vec![Part::text("a")], "c1", Outcome::Ok);
        assert_eq!(plain, hash(vec![thinking, Part::text("a"), Part::text("")], "c2", Outcome::Error));
        assert_ne!(plain, hash(vec![Part::text("b")], "c1", Outcome::Ok));
    }

    #[test]
    fn media_count_in_requests_and_in_results() {
        let medium = |data: &str| {
            Part::from(PartBody::Media(Media {
                kind: MediaKind::Image,
                media_type: "image/png".to_owned(),
                source: MediaSource::Data(data.to_owned()),
            }))
        };
        let request = |data: &str| Event::Request(Request { content: [medium(data)].into(), ..Request::default() });
        let results = |data: &str| {
            let result = ToolResult::text_result(&ToolCall::new("c1", "look", "{}"), Outcome::Ok, "seen");
            Event::results([ToolResult { content: vec![medium(data), Part::text("seen")].into(), ..result }])
        };
        let hash = |event| History::from(vec![event]).sent_hash();
        assert_ne!(hash(request("AA==")), hash(request("AQ==")));
        assert_ne!(hash(results("AA==")), hash(results("AQ==")));
    }

    #[test]
    fn a_hash_is_read_back_and_nothing_else_is_a_hash() {
        let hash = History::from(vec![Event::request("go")]).sent_hash();
        let text = serde_json::to_string(&hash).unwrap();
        assert_eq!(serde_json::from_str::<SentHash>(&text).unwrap(), hash);
        for other in ["\"\"", "\"0g\"", "7", &text.replace('"', "").repeat(2), "\"ÄÖÜÄÖÜÄÖÜÄÖÜÄÖÜÄ\""] {
            assert!(serde_json::from_str::<SentHash>(other).is_err(), "{other}");
        }
    }

    proptest! {
        #[test]
        fn the_hash_of_a_growing_history_is_that_of_all_its_events(
            events in any_events(),
            scopes in proptest::collection::vec(any::<bool>(), 12),
            asked in proptest::collection::vec(any::<bool>(), 12),
        ) {
            let mut events = events;
            for (event, is_scoped) in events.iter_mut().zip(scopes) {
                match event {
                    Event::Request(Request { content, .. }) | Event::Response(Response { content, .. }) if is_scoped => {
                        content.insert(0, scoped("wrap up"));
                    }
                    _ => {}
                }
            }
            let mut growing = History::from(Vec::new());
            for (event, asked) in events.iter().zip(asked.into_iter().chain(std::iter::repeat(true))) {
                growing.push(event.clone());
                if asked {
                    growing.sent_hash();
                }
            }
            // Hashed in the plainest way: what is sent, all at once.
            let mut hasher = SentHasher::default();
            for sent in growing.sent().events() {
                hasher.event(sent.event, sent.parts());
            }
            prop_assert_eq!(growing.sent_hash(), hasher.finish());
            prop_assert_eq!(growing.clone().sent_hash(), hasher.finish());
        }
    }
}
