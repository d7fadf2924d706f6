//! What a provider refuses in a prompt, found before anything is spent.

use std::collections::{HashMap, HashSet};
use std::fmt;

use retrace_events::pairing::{PairedCall, Pairing, PlacedResult, pair};
use retrace_events::tokens::Tokens;
use retrace_events::{Event, History, MediaKind, PartBody};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::prompt::Prompt;
use crate::quote::quoted;

/// What a provider refuses in a prompt, beyond what all refuse, and how much it takes.
///
/// All refuse a call that is not answered right after its response, a result without its call, and a history that
/// leaves nothing to answer. The default is a provider that refuses nothing else, or whose adapter repairs the rest:
/// the fields are for models that cannot.
///
/// ```
/// use retrace_events::{Event, History, Outcome, ToolCall, ToolResult};
/// use retrace_model::{Prompt, Rules};
///
/// let call = ToolCall::new("c1", "look", "{}");
/// let result = ToolResult::text_result(&call, Outcome::Ok, "nothing new");
/// let raw = History::from(vec![Event::request("Keep watch."), Event::calls([call]), Event::results([result])]);
/// let flaws = |history: &History| {
///     Rules::default().flaws(&Prompt { instructions: None, history, tools: &[], seed: 0 }, &raw)
/// };
/// assert_eq!(flaws(&raw), []);
///
/// let newest = History::new(vec![raw.last().unwrap().clone()]);
/// assert_eq!(flaws(&newest)[0].to_string(), "the result of `look` (id `c1`) in event 1 answers no call");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// The ids of calls that it takes.
    pub ids: Spelling,
    /// Whether calls that wait for their results side by side need ids of their own. An id that is used again once its
    /// call has been answered is no flaw.
    pub distinct_ids: bool,
    /// The names of called tools that it takes.
    pub names: Spelling,
    /// Whether every called tool must be offered, also one that the raw history calls.
    pub only_offered: bool,
    /// Whether it takes texts alone: no image, sound or document.
    pub text_only: bool,
    /// The most tokens that it reads and writes in one request, if known. Nothing is measured against it here, since what
    /// a provider counts is not known; strategies keep to a share of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Tokens>,
}

/// How something must be spelt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Spelling {
    /// In any way.
    #[default]
    Any,
    /// In any way, but it must be there.
    NotEmpty,
    /// In letters, digits, `_` and `-` of ASCII: at least one, at most so many.
    Word {
        /// How many.
        most: usize,
    },
}

/// Why a provider would refuse a history. Events are counted from 0 in its fields and from 1 in its text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Flaw {
    /// There is no history.
    #[error("nothing is left to answer: the history is empty")]
    Empty,
    /// The newest event is the model's own.
    #[error("nothing is left to answer: the history ends with a response")]
    EndsWithResponse,
    /// A call has no result.
    #[error("the call of {0} has no result")]
    Unanswered(CallAt),
    /// The result of a call does not stand right after its response.
    #[error("the call of {call} is answered in event {}, and not right after its response", answer + 1)]
    AnsweredLate {
        /// The call.
        call: CallAt,
        /// The event of its result.
        answer: usize,
    },
    /// A result has no call.
    #[error("the result of {0} answers no call")]
    Orphan(CallAt),
    /// A result answers a call that has been answered.
    #[error("the result of {result} answers a call that event {} has answered", first + 1)]
    AnsweredTwice {
        /// The result.
        result: CallAt,
        /// The event with the first answer.
        first: usize,
    },
    /// Calls that wait side by side share an id.
    #[error("the id of the call of {0} is that of another call of the same response")]
    SharedId(CallAt),
    /// The provider does not take such an id.
    #[error("the id of the call of {call} is not {wanted}")]
    BadId {
        /// The call.
        call: CallAt,
        /// What it takes.
        wanted: Spelling,
    },
    /// The provider does not take such a name.
    #[error("the name of the tool of {call} is not {wanted}")]
    BadName {
        /// The call.
        call: CallAt,
        /// What it takes.
        wanted: Spelling,
    },
    /// It holds a medium, and the provider takes texts alone.
    #[error("event {} holds {kind}, and texts alone are taken", event + 1)]
    Medium {
        /// The event.
        event: usize,
        /// What it is.
        kind: &'static str,
    },
    /// No such tool is offered.
    #[error("the call of {0} is of a tool that is not offered")]
    NoSuchTool(CallAt),
}

/// A call or a result and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallAt {
    /// The index of its event.
    pub event: usize,
    /// The tool.
    pub name: String,
    /// The id of the call.
    pub id: String,
}

impl Rules {
    /// A provider that refuses all that can be refused.
    pub fn strict() -> Self {
        let word = Spelling::Word { most: 64 };
        Self { ids: word, distinct_ids: true, names: word, only_offered: true, text_only: true, window: None }
    }

    /// Why the provider would refuse this prompt; nothing if it would not.
    ///
    /// `raw` is the history that the prompt's was made from, or the prompt's own: a tool that it calls was there once, so
    /// a call of it is not an invention.
    pub fn flaws(&self, prompt: &Prompt<'_>, raw: &History) -> Vec<Flaw> {
        let asked = rounds(prompt.history);
        let mut flaws = Vec::new();
        match asked.newest {
            None => flaws.push(Flaw::Empty),
            Some(Event::Response(_)) => flaws.push(Flaw::EndsWithResponse),
            Some(_) => {}
        }
        let pairing = pair(prompt.history.events());
        flaws.extend(pairing.calls.iter().filter_map(|call| unanswered(call, &asked.answers_to)));
        flaws.extend(orphans(&pairing, &asked.answers_to));
        self.check_calls(&pairing.calls, prompt, raw, &mut flaws);
        if self.text_only {
            flaws.extend(prompt.history.events().enumerate().filter_map(|(event, it)| medium(event, it)));
        }
        flaws
    }

    fn check_calls(&self, calls: &[PairedCall<'_>], prompt: &Prompt<'_>, raw: &History, flaws: &mut Vec<Flaw>) {
        let mut known: HashSet<&str> = prompt.tools.iter().map(|tool| &*tool.name).collect();
        if !self.only_offered {
            known.extend(raw.events().flat_map(Event::tool_calls).map(|(_, call)| &*call.name));
        }
        let mut ids_of_response = HashSet::new();
        let mut response = None;
        for issued in calls {
            let (call, at) = (issued.call, || CallAt::new(issued.event, &issued.call.name, &issued.call.id));
            if response.replace(issued.event) != Some(issued.event) {
                ids_of_response.clear();
            }
            if !ids_of_response.insert(&*call.id) && self.distinct_ids {
                flaws.push(Flaw::SharedId(at()));
            }
            if !self.ids.takes(&call.id) {
                flaws.push(Flaw::BadId { call: at(), wanted: self.ids });
            }
            if !self.names.takes(&call.name) {
                flaws.push(Flaw::BadName { call: at(), wanted: self.names });
            }
            if !known.contains(&*call.name) {
                flaws.push(Flaw::NoSuchTool(at()));
            }
        }
    }
}

/// How the events that are sent follow each other.
struct Rounds<'a> {
    newest: Option<&'a Event>,
    /// The index of each `tool_results` event that stands right after a response, or after others that do, and the
    /// index of that response.
    answers_to: HashMap<usize, usize>,
}

fn rounds(history: &History) -> Rounds<'_> {
    let (mut newest, mut answers_to, mut response) = (None, HashMap::new(), None);
    let counting = history.events().enumerate().filter(|(_, event)| event.counts());
    for ((index, event), sent) in counting.zip(history.sent().events()) {
        // What holds nothing is not sent, so it stands between nothing.
        let is_sent = match event {
            Event::ToolResults(round) => !round.results.is_empty(),
            _ => sent.parts().next().is_some(),
        };
        if !is_sent {
            continue;
        }
        newest = Some(event);
        match event {
            Event::Response(_) => response = Some(index),
            Event::ToolResults(_) => answers_to.extend(response.map(|response| (index, response))),
            _ => response = None,
        }
    }
    Rounds { newest, answers_to }
}

/// The results that answer no call, told from those that answer one a second time.
fn orphans(pairing: &Pairing<'_>, answers_to: &HashMap<usize, usize>) -> Vec<Flaw> {
    if pairing.orphans.is_empty() {
        return Vec::new();
    }
    let answers: HashMap<_, _> =
        pairing.answered().map(|(issued, answer)| ((issued.event, &*issued.call.id), answer.event)).collect();
    let flaw = |orphan: &PlacedResult<'_>| {
        let result = CallAt::new(orphan.event, &orphan.result.name, &orphan.result.call_id);
        let first = answers_to.get(&orphan.event).and_then(|response| answers.get(&(*response, &*result.id)));
        match first {
            Some(&first) => Flaw::AnsweredTwice { result, first },
            None => Flaw::Orphan(result),
        }
    };
    pairing.orphans.iter().map(flaw).collect()
}

/// The first medium of an event, in its own content or in a result.
fn medium(event: usize, it: &Event) -> Option<Flaw> {
    let results = if let Event::ToolResults(round) = it { &round.results[..] } else { &[] };
    let mut parts = it.content().iter().chain(results.iter().flat_map(|result| &result.content));
    parts.find_map(|part| match &part.body {
        PartBody::Media(media) => Some(Flaw::Medium {
            event,
            kind: match media.kind {
                MediaKind::Image => "an image",
                MediaKind::Audio => "a sound",
                MediaKind::Document => "a document",
            },
        }),
        _ => None,
    })
}

fn unanswered(issued: &PairedCall<'_>, answers_to: &HashMap<usize, usize>) -> Option<Flaw> {
    let call = CallAt::new(issued.event, &issued.call.name, &issued.call.id);
    match issued.answer {
        None => Some(Flaw::Unanswered(call)),
        Some(answer) if answers_to.get(&answer.event) == Some(&issued.event) => None,
        Some(answer) => Some(Flaw::AnsweredLate { call, answer: answer.event }),
    }
}

impl Spelling {
    fn takes(self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::NotEmpty => !text.is_empty(),
            Self::Word { most } => {
                (1..=most).contains(&text.len())
                    && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
            }
        }
    }
}

impl CallAt {
    fn new(event: usize, name: &str, id: &str) -> Self {
        Self { event, name: name.to_owned(), id: id.to_owned() }
    }
}

impl fmt::Display for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("anything"),
            Self::NotEmpty => f.write_str("there"),
            Self::Word { most } => write!(f, "1 to {most} letters, digits, `_` or `-`"),
        }
    }
}

impl fmt::Display for CallAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (id {}) in event {}", quoted(&self.name), quoted(&self.id), self.event + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use retrace_events::{Outcome, Part, Request, Summary, ToolCall, ToolResult, ToolSpec};

    use super::*;

    /// A history in a small language: `u` a request, `s` a summary, `a` a response, `A:read.1,write.2` a response with
    /// calls, `R:read.1` results, `w` a warning for the next request only.
    fn history(text: &str) -> History {
        let calls = |list: &str| {
            let call = |it: &str| {
                let (name, id) = it.split_once('.').unwrap();
                ToolCall::new(id, name, "{}")
            };
            list.split_terminator(',').map(call).collect::<Vec<_>>()
        };
        let event = |word: &str| match word.split_once(':').unwrap_or((word, "")) {
            ("u", _) => Event::request("go on"),
            ("s", _) => Event::Summary(Summary { content: [Part::text("so far")].into(), ..Summary::default() }),
            ("a", _) => Event::answer("done"),
            ("A", list) => Event::calls(calls(list)),
            ("R", list) => {
                Event::results(calls(list).iter().map(|call| ToolResult::text_result(call, Outcome::Ok, "text")))
            }
            ("w", _) => {
                let mut part = Part::text("wrap up");
                part.marks.set_scope("request");
                Event::Request(Request { content: [part].into(), ..Request::default() })
            }
            other => panic!("{other:?}"),
        };
        History::from(text.split_whitespace().map(event).collect::<Vec<_>>())
    }

    fn flaws_with(rules: Rules, offered: &[&str], raw: &str, text: &str) -> Vec<String> {
        let tool = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: None,
            parameters: ToolSpec::any_arguments(),
            extra: retrace_events::Extra::default(),
        };
        let (history, tools) = (history(text), offered.iter().map(tool).collect::<Vec<_>>());
        let prompt = Prompt { instructions: None, history: &history, tools: &tools, seed: 0 };
        rules.flaws(&prompt, &self::history(raw)).iter().map(ToString::to_string).collect()
    }

    fn flaws(text: &str) -> Vec<String> {
        flaws_with(Rules::default(), &["read", "write"], "", text)
    }

    #[test]
    fn a_medium_is_a_flaw_where_texts_alone_are_taken() {
        let image = || {
            let source = retrace_events::MediaSource::Data("AA==".to_owned());
            let media = retrace_events::Media { kind: MediaKind::Image, media_type: "image/png".to_owned(), source };
            Part::from(PartBody::Media(media))
        };
        let result = ToolResult::text_result(&ToolCall::new("c1", "look", "{}"), Outcome::Ok, "seen");
        let result = ToolResult { content: [image()].into(), ..result };
        for newest in [
            vec![Event::Request(Request { content: [image()].into(), ..Request::default() })],
            vec![Event::calls([ToolCall::new("c1", "look", "{}")]), Event::results([result])],
        ] {
            let history = History::from([vec![Event::request("go")], newest].concat());
            let prompt = Prompt { instructions: None, history: &history, tools: &[], seed: 0 };
            assert_eq!(Rules::default().flaws(&prompt, &history), []);
            let rules = Rules { text_only: true, ..Rules::default() };
            let [flaw] = &rules.flaws(&prompt, &history)[..] else { panic!("one flaw") };
            assert_eq!(flaw.to_string(), format!("event {} holds an image, and texts alone are taken", history.len()));
        }
    }

    #[test]
    fn a_sound_history_has_no_flaw() {
        for text in [
            "u",
            "s u",
            "u a u",
            "u A:read.1 R:read.1",
            "A:read.1,write.2 R:write.2,read.1 w",
            "u A:read.1,write.2 R:read.1 R:write.2",
            "u A:read.0 R:read.0 A:write.0 R:write.0",
            "u A:read.,read. R:read.,read.",
            "s A:read.1 R:read.1 R: a w A:read.1 R: R:read.1 w",
        ] {
            assert_eq!(flaws(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_broken_pair_is_named_with_its_place() {
        let cases = [
            ("", "nothing is left to answer: the history is empty"),
            ("u a", "nothing is left to answer: the history ends with a response"),
            ("u R:read.1 u", "the result of `read` (id `1`) in event 2 answers no call"),
            ("u A:read.1 u", "the call of `read` (id `1`) in event 2 has no result"),
            (
                "u A:read.1 u R:read.1",
                "the call of `read` (id `1`) in event 2 is answered in event 4, and not right after its response",
            ),
            (
                "A:read.1,read.2 R:read.1 R:read.1 R:read.2",
                "the result of `read` (id `1`) in event 3 answers a call that event 2 has answered",
            ),
            // A checker of ids as sets sees nothing here.
            ("u A:read.0 R:read.0 A:write.0 u", "the call of `write` (id `0`) in event 4 has no result"),
            ("A:read.0 R:read.0 s R:write.0", "the result of `write` (id `0`) in event 4 answers no call"),
        ];
        for (text, flaw) in cases {
            assert_eq!(flaws(text), [flaw], "{text}");
        }
    }

    #[test]
    fn ids_and_names_are_the_business_of_a_provider() {
        let strict = |text: &str| flaws_with(Rules::strict(), &["read", "rm -r"], "A:old.1 R:old.1", text);
        assert_eq!(strict("u A:read.1 R:read.1 A:read.1 R:read.1"), [""; 0]);
        assert_eq!(
            strict("A:read.1,read.1 R:read.1,read.1"),
            ["the id of the call of `read` (id `1`) in event 1 is that of another call of the same response"]
        );
        assert_eq!(
            strict("A:read. R:read."),
            ["the id of the call of `read` (id ``) in event 1 is not 1 to 64 letters, digits, `_` or `-`"]
        );
        assert_eq!(
            strict("A:old.1 R:old.1"),
            ["the call of `old` (id `1`) in event 1 is of a tool that is not offered"]
        );
        assert!(flaws("A:read.1,read.1 R:read.1,read.1").is_empty());
    }

    #[test]
    fn a_tool_is_invented_if_it_is_neither_offered_nor_called_before() {
        let flaws = |raw, text| flaws_with(Rules::default(), &["read"], raw, text);
        assert_eq!(flaws("u A:old.1 R:old.1", "A:old.2 R:old.2"), [""; 0]);
        assert_eq!(
            flaws("u A:read.1 R:read.1", "A:recall.1 R:recall.1"),
            ["the call of `recall` (id `1`) in event 1 is of a tool that is not offered"]
        );
    }

    #[test]
    fn what_a_flaw_quotes_is_cut_short_and_no_terminal_obeys_it() {
        let orphan = CallAt { event: 0, name: "\u{1b}[2J".repeat(500), id: "x".repeat(100_000) };
        let text = Flaw::Orphan(orphan).to_string();
        assert!(text.chars().count() < 250 && !text.contains('\u{1b}'), "{text}");
    }

    proptest! {
        #[test]
        fn rounds_in_any_order_of_calls_and_results_have_no_flaw(
            rounds in prop::collection::vec((prop::collection::vec(0..3_u8, 1..4), any::<u64>(), any::<bool>()), 0..5),
        ) {
            let words = rounds.iter().map(|(ids, seed, split)| {
                let calls: Vec<_> = ids.iter().map(|id| format!("read.{id}")).collect();
                let mut results = calls.clone();
                results.sort_by_key(|it| crate::mix(*seed, u64::from(it.as_bytes()[5])));
                let results = if *split { results.join(" R:") } else { results.join(",") };
                format!("A:{} R:{results}", calls.join(","))
            });
            let text = format!("u {}", words.collect::<Vec<_>>().join(" "));
            prop_assert_eq!(flaws(&text), [""; 0]);
        }

        #[test]
        fn whatever_one_result_less_or_more_is_a_flaw(n in 1_usize..5, which in any::<prop::sample::Index>()) {
            let round = |id: usize| format!("A:read.{id} R:read.{id}");
            let which = which.index(n);
            let without: Vec<_> =
                (0..n).map(|id| if id == which { format!("A:read.{id}") } else { round(id) }).collect();
            let twice: Vec<_> =
                (0..n).map(|id| if id == which { format!("{} R:read.{id}", round(id)) } else { round(id) }).collect();
            let called: Vec<_> = (0..n).map(|id| if id == which { format!("R:read.{id}") } else { round(id) }).collect();
            for words in [without, twice, called] {
                prop_assert_eq!(flaws(&format!("u {} u", words.join(" "))).len(), 1, "{:?}", words);
            }
        }
    }
}
