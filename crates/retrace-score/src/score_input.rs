//! The file that `retrace score` reads: rollouts that were collected elsewhere. `docs/formats.md` specifies it.

#[cfg(test)]
mod tests;

use std::fmt;
use std::marker::PhantomData;

use indexmap::IndexMap;
use retrace_events::tokens::Tokens;
use retrace_events::{
    Action, Dollars, EndReason, Event, Failure, Outcome, Prices, Rollout, Signature, Spend, Stage, actions_from_events,
};
use serde::de::value::MapAccessDeserializer;
use serde::de::{IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::executed::ExecutedCalls;
use crate::input::{
    BoundaryOutcome, Compaction, EnvironmentKind, MAX_HORIZON, RecordingFacts, Size, StrategyOutcome, Verification,
};

/// The only version of the file there is.
const VERSION: u32 = 1;

/// The strategy that is the control if none is named.
const CONTROL: &str = "control";

/// Rollouts that were collected elsewhere, as read from JSON.
///
/// ```
/// use retrace_score::{Report, ScoreInput};
///
/// let input = ScoreInput::from_json(
///     r#"{
///         "horizon": 2,
///         "boundaries": [{
///             "recording": "shop-1",
///             "cut": 9,
///             "history": [{"name": "login", "arguments": {"user": "ada"}}],
///             "pre": [{"actions": [{"name": "stock", "arguments": {"item": "tea"}, "blocked": false}]}],
///             "strategies": {
///                 "tail": {"post": [{"actions": [{"name": "login", "arguments": {"user": "ada"}, "blocked": false}]}]}
///             }
///         }]
///     }"#,
/// )?;
/// let report = Report::new(input.into_verification())?;
/// let at_2 = report.strategies["tail"].at(2).expect("the full horizon");
/// assert_eq!(at_2.deltas.as_ref().expect("one boundary").refetch.mean, "1".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Deserialize)]
#[serde(try_from = "Object<Fields>")]
pub struct ScoreInput {
    horizon: usize,
    seed: u64,
    token_counter: String,
    prices: Option<Prices>,
    control: Option<String>,
    strategies: Vec<String>,
    boundaries: Vec<BoundaryFields>,
}

/// Why a file of rollouts could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{message}", if path == "." { String::new() } else { format!("`{path}`: ") })]
#[non_exhaustive]
pub struct ScoreInputError {
    /// The path to the field that is wrong, such as `boundaries[0].pre[2].actions[1]`; `.` for the file as a whole.
    pub path: String,
    /// What is wrong there, with line and column where they are known.
    pub message: String,
}

impl ScoreInputError {
    fn new(path: String, error: &serde_json::Error) -> Self {
        Self { path, message: plain(error.to_string()) }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<&'static str> {
        Some("docs/formats.md has an example and every field under \"Input of `retrace score`\"")
    }
}

impl ScoreInput {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ScoreInputError`] for text that is no JSON, for a field that is unknown, missing or of the wrong type, and for
    /// fields that contradict each other.
    pub fn from_json(text: &str) -> Result<Self, ScoreInputError> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let input = serde_path_to_error::deserialize(&mut deserializer)
            .map_err(|error| ScoreInputError::new(path(error.path()), error.inner()))?;
        deserializer.end().map_err(|error| ScoreInputError::new(".".to_owned(), &error))?;
        Ok(input)
    }

    /// What a report is made of.
    pub fn into_verification(self) -> Verification {
        let mut recordings: IndexMap<String, RecordingFacts> = IndexMap::new();
        for boundary in &self.boundaries {
            let id = boundary.recording.clone();
            recordings.entry(id.clone()).or_insert(RecordingFacts::new(id, EnvironmentKind::Unknown));
        }
        let boundaries: Vec<BoundaryOutcome> = self.boundaries.into_iter().map(BoundaryFields::outcome).collect();
        let arms = boundaries.iter().flat_map(|boundary| {
            boundary.strategies.values().map(|strategy| strategy.post.len()).chain([boundary.pre.len()])
        });
        Verification {
            horizon: self.horizon,
            samples: arms.max().unwrap_or(0),
            seed: self.seed,
            token_counter: self.token_counter,
            model: None,
            prices: self.prices,
            strategies: self.strategies,
            control: self.control,
            recordings: recordings.into_values().collect(),
            unusable: Vec::new(),
            n_left_out: 0,
            chain: false,
            judging: crate::Judging::default(),
            n_not_reached: 0,
            unfinished: None,
            boundaries,
        }
    }
}

/// A message in the words of JSON.
pub(crate) fn plain(message: String) -> String {
    const FOUND: [(&str, &str); 3] = [("map", "an object"), ("sequence", "an array"), ("floating point", "the number")];
    const EXPECTED: [(&str, &str); 5] = [
        ("a map", "an object"),
        ("a sequence", "an array"),
        ("usize", "a whole number"),
        ("u64", "a whole number"),
        ("u32", "a whole number"),
    ];
    let is_about_type = |message: &str| ["invalid type: ", "invalid value: "].iter().any(|is| message.starts_with(is));
    // What was found may be text of the file, and may itself hold these words: only the last ones are ours.
    let Some((found, expected)) = message.rsplit_once(", expected ").filter(|(found, _)| is_about_type(found)) else {
        return message;
    };
    let (about, found) = found.split_once(": ").unwrap_or((found, ""));
    format!("{about}: {}, expected {}", reworded(found, &FOUND), reworded(expected, &EXPECTED))
}

/// The text with the word that it begins with put into another one, if it is among these.
fn reworded(text: &str, words: &[(&str, &str)]) -> String {
    let begins = |word: &str| text.strip_prefix(word).filter(|rest| rest.is_empty() || rest.starts_with(' '));
    let found = words.iter().find_map(|&(word, better)| Some(format!("{better}{}", begins(word)?)));
    found.unwrap_or_else(|| text.to_owned())
}

/// A path as far as it is known: events read their own fields.
pub(crate) fn path(path: &serde_path_to_error::Path) -> String {
    match path.to_string().split(".?").next() {
        None | Some("?") => ".".to_owned(),
        Some(known) => known.to_owned(),
    }
}

/// What is read from an object alone. Derived readers take an array too, for the fields in the order of our code.
#[derive(Default)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

/// One of a few words.
struct Word<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(String::deserialize(deserializer)?.into_deserializer()).map(Self)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default = "version")]
    version: u32,
    horizon: usize,
    #[serde(default)]
    seed: u64,
    #[serde(default = "token_counter")]
    token_counter: String,
    prices: Option<Object<Prices>>,
    control: Option<String>,
    boundaries: Vec<BoundaryFields>,
}

fn version() -> u32 {
    VERSION
}

fn token_counter() -> String {
    "as given".to_owned()
}

impl TryFrom<Object<Fields>> for ScoreInput {
    type Error = String;

    fn try_from(Object(fields): Object<Fields>) -> Result<Self, String> {
        let Fields { version, horizon, seed, token_counter, prices, control, boundaries } = fields;
        if version != VERSION {
            return Err(format!("`version` is {version}, and the only one known is {VERSION}"));
        }
        if !(1..=MAX_HORIZON).contains(&horizon) {
            return Err(format!("`horizon` is {horizon}, and must be from 1 to {MAX_HORIZON}"));
        }
        let prices = prices.map(|Object(prices)| prices);
        if prices.is_some_and(|prices| !prices.are_amounts()) {
            return Err("`prices` must be 0 or more, in dollars for a million tokens".to_owned());
        }
        let mut strategies: Vec<String> = Vec::new();
        for name in boundaries.iter().flat_map(|boundary| boundary.strategies.keys()) {
            if !strategies.contains(name) {
                strategies.push(name.clone());
            }
        }
        let control = match control {
            Some(name) if !strategies.contains(&name) => {
                return Err(format!("`control` is `{name}`, and no boundary has a strategy of that name"));
            }
            None => strategies.iter().find(|name| *name == CONTROL).cloned(),
            given => given,
        };
        if let Some(name) = &control {
            keeps_the_raw_history(name, &boundaries)?;
        }
        Ok(Self { horizon, seed, token_counter, prices, control, strategies, boundaries })
    }
}

/// A control that compacted would pass off harm as noise.
fn keeps_the_raw_history(control: &str, boundaries: &[BoundaryFields]) -> Result<(), String> {
    let compacted = |boundary: &BoundaryFields| {
        let outcome = boundary.strategies.get(control)?;
        matches!(outcome.compaction, Compaction::Compacted { .. }).then_some(())
    };
    match boundaries.iter().position(|boundary| compacted(boundary).is_some()) {
        None => Ok(()),
        Some(index) => Err(format!(
            "`boundaries[{index}].strategies.{control}` compacted, and `{control}` is the control, which keeps the raw \
             history: say `\"unchanged\": true` where it kept that, {}",
            if control == CONTROL { "or give the strategy another name" } else { "or name another `control`" },
        )),
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "Object<BoundaryJson>")]
struct BoundaryFields {
    recording: String,
    cut: usize,
    executed: Vec<Signature>,
    pre_size: Option<Size>,
    pre: Vec<Rollout>,
    strategies: IndexMap<String, StrategyOutcome>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundaryJson {
    recording: String,
    cut: usize,
    history: Option<Vec<Object<CallJson>>>,
    events: Option<Vec<Object<Event>>>,
    pre_size: Option<Object<SizeJson>>,
    pre: Vec<RolloutJson>,
    strategies: IndexMap<String, StrategyJson>,
}

impl TryFrom<Object<BoundaryJson>> for BoundaryFields {
    type Error = &'static str;

    fn try_from(Object(json): Object<BoundaryJson>) -> Result<Self, &'static str> {
        let executed = match (json.history, json.events) {
            (Some(calls), None) => {
                calls.iter().map(|Object(call)| Signature::of(&call.name, &call.arguments.0)).collect()
            }
            (None, Some(events)) => {
                let events: Vec<_> = events.into_iter().map(|Object(event)| event).collect();
                actions_from_events(&events).iter().map(|action| action.signature().clone()).collect()
            }
            _ => return Err("needs either `history`, a list of calls, or `events`, those of a recording"),
        };
        Ok(Self {
            recording: json.recording,
            cut: json.cut,
            executed,
            pre_size: json.pre_size.map(|Object(size)| size.into()),
            pre: json.pre.into_iter().map(|rollout| rollout.0).collect(),
            strategies: json.strategies.into_iter().map(|(name, strategy)| (name, strategy.0)).collect(),
        })
    }
}

impl BoundaryFields {
    fn outcome(self) -> BoundaryOutcome {
        BoundaryOutcome {
            recording: self.recording,
            cut: self.cut,
            executed: self.executed.len(),
            executed_calls: Box::new(self.executed.into_iter().collect::<ExecutedCalls>()),
            pre_size: self.pre_size,
            unusable: None,
            pre: self.pre,
            strategies: self.strategies,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SizeJson {
    events: usize,
    tokens: u64,
}

impl From<SizeJson> for Size {
    fn from(SizeJson { events, tokens }: SizeJson) -> Self {
        Self { events, tokens: Tokens(tokens) }
    }
}

#[derive(Deserialize)]
#[serde(try_from = "Object<StrategyFields>")]
struct StrategyJson(StrategyOutcome);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrategyFields {
    error: Option<String>,
    flaw: Option<String>,
    #[serde(default)]
    unchanged: bool,
    size: Option<Object<SizeJson>>,
    cached_tokens: Option<u64>,
    spend: Option<Object<SpendJson>>,
    #[serde(default)]
    post: Vec<RolloutJson>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SpendJson {
    n_model_calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    dollars: Option<Dollars>,
}

impl TryFrom<SpendJson> for Spend {
    type Error = &'static str;

    fn try_from(spend: SpendJson) -> Result<Self, &'static str> {
        let SpendJson { n_model_calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, dollars } =
            spend;
        let cached = cache_read_tokens.unwrap_or(0).saturating_add(cache_write_tokens.unwrap_or(0));
        if cached > input_tokens {
            return Err("has more cached tokens than `input_tokens`, of which they are a part");
        }
        Ok(Spend { n_model_calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, dollars })
    }
}

impl TryFrom<Object<StrategyFields>> for StrategyJson {
    type Error = &'static str;

    fn try_from(Object(fields): Object<StrategyFields>) -> Result<Self, &'static str> {
        let StrategyFields { error, flaw, unchanged, size, cached_tokens, spend, post } = fields;
        let spend = spend.map_or(Ok(Spend::default()), |Object(spend)| spend.try_into())?;
        let size: Option<Size> = size.map(|Object(size)| size.into());
        if cached_tokens.is_some_and(|cached| size.is_none_or(|size| cached > size.tokens.0)) {
            return Err("has `cached_tokens`, and no `size` of at least so many tokens");
        }
        let ran = !post.is_empty() || size.is_some();
        let compaction = match (error, flaw, unchanged) {
            (Some(_), _, true) => return Err("has an `error` and is `unchanged`"),
            (_, Some(_), true) => return Err("has a `flaw` and is `unchanged`"),
            (Some(_), Some(_), _) => return Err("has both an `error` and a `flaw`"),
            (Some(_), ..) if ran => {
                return Err("has an `error`, so that nothing was kept, and still a `size` or `post` rollouts");
            }
            (_, Some(_), _) if ran => {
                return Err("has a `flaw`, so that nothing can run, and still a `size` or `post` rollouts");
            }
            (Some(error), ..) => Compaction::Failed { error },
            (_, Some(flaw), _) => Compaction::Flawed { flaw },
            (None, None, true) if size.is_some() => return Err("is `unchanged`, and has a `size` of its own"),
            (None, None, true) => Compaction::Unchanged,
            (None, None, false) => Compaction::Compacted { size, cached: cached_tokens.map(Tokens) },
        };
        Ok(Self(StrategyOutcome {
            compaction,
            lost_task: false,
            spend,
            post: post.into_iter().map(|rollout| rollout.0).collect(),
        }))
    }
}

#[derive(Deserialize)]
#[serde(try_from = "Object<RolloutFields>")]
struct RolloutJson(Rollout);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RolloutFields {
    actions: Option<Vec<ActionJson>>,
    end: Option<Word<EndJson>>,
    error: Option<String>,
    off_the_record: Option<String>,
    #[serde(default)]
    n_answers: u32,
    n_model_calls: Option<u64>,
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    dollars: Option<Dollars>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum EndJson {
    Budget,
    Answer,
}

impl TryFrom<Object<RolloutFields>> for RolloutJson {
    type Error = &'static str;

    fn try_from(Object(fields): Object<RolloutFields>) -> Result<Self, &'static str> {
        let RolloutFields { actions, end, error, off_the_record, n_answers, .. } = fields;
        let spend = SpendJson {
            n_model_calls: fields.n_model_calls.unwrap_or(n_answers.into()),
            input_tokens: fields.input_tokens,
            output_tokens: fields.output_tokens,
            cache_read_tokens: fields.cache_read_tokens,
            cache_write_tokens: fields.cache_write_tokens,
            dollars: fields.dollars,
        };
        let end = match (end, error, off_the_record) {
            (Some(Word(EndJson::Budget)), None, None) => EndReason::Budget,
            (Some(Word(EndJson::Answer)) | None, None, None) => EndReason::Answer,
            (None, Some(message), None) => EndReason::Failed(Failure { stage: Stage::Agent, message }),
            (None, None, Some(call)) => EndReason::OffTheRecord { call },
            _ => return Err("has more than one of `end`, `error` and `off_the_record`"),
        };
        let actions = match actions {
            Some(actions) => actions.into_iter().map(|action| action.0).collect(),
            None if end.is_failure() => Vec::new(),
            None => return Err("needs `actions`, an empty list if it did nothing, or an `error`"),
        };
        Ok(Self(Rollout { actions, end, n_answers, spend: spend.try_into()?, sent: None }))
    }
}

/// A call. How one before the boundary went does not matter, but may be said.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallJson {
    name: String,
    arguments: Arguments,
    blocked: Option<bool>,
    outcome: Option<Word<Outcome>>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(try_from = "Object<CallJson>")]
struct ActionJson(Action);

impl TryFrom<Object<CallJson>> for ActionJson {
    type Error = &'static str;

    fn try_from(Object(call): Object<CallJson>) -> Result<Self, &'static str> {
        let outcome = match (call.outcome, call.blocked) {
            (Some(Word(outcome)), None) => outcome,
            (None, Some(true)) => Outcome::Error,
            (None, Some(false)) => Outcome::Ok,
            (Some(_), Some(_)) => return Err("has both `outcome` and `blocked`"),
            (None, None) => return Err("needs `blocked`, or an `outcome` of `ok`, `error` or `not_found`"),
        };
        Ok(Self(Action::new(call.name, call.arguments.0, outcome, call.error)))
    }
}

/// Arguments: a string is the text that the model sent, anything else stands for its own JSON text.
struct Arguments(String);

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('"') {
            return serde_json::from_str(raw.get()).map(Self).map_err(serde::de::Error::custom);
        }
        Ok(Self(String::from(Box::<str>::from(raw))))
    }
}
