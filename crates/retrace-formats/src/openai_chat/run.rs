//! Runs: where a value has lists of messages, and what else it says of each.

use retrace_events::{Event, Extra, Header};
use serde_json::value::RawValue;

use super::conversation::Conversation;
use super::message::{self, Message};
use super::request::{tools, usage};
use crate::error::ImportError;
use crate::finding::{Finding, FindingKind};
use crate::json::{Kind, Object, compact, list, read, text, under_source, unexpected};
use crate::place::Place;
use crate::run_ids::label;

/// One run, read.
pub(super) struct Run {
    /// Where it stands.
    pub(super) place: Place,
    /// What it calls itself.
    pub(super) label: Option<String>,
    /// The header, its id excepted.
    pub(super) header: Header,
    /// The events.
    pub(super) events: Vec<Event>,
    /// Whether it is a logged request with its response, which may go on in a later one.
    pub(super) is_exchange: bool,
    /// What was noticed in it.
    pub(super) findings: Vec<Finding>,
}

/// The runs of a source.
pub(super) struct Runs<'k> {
    messages_key: Option<&'k str>,
    /// Those read so far.
    pub(super) runs: Vec<Run>,
    /// What is no run and was passed over.
    pub(super) left_out: Vec<Finding>,
}

impl<'k> Runs<'k> {
    /// None yet. With a key, messages are looked for under it alone.
    pub(super) fn new(messages_key: Option<&'k str>) -> Self {
        Self { messages_key, runs: Vec::new(), left_out: Vec::new() }
    }

    /// Reads the runs of one value of the source: a list of them, or one.
    pub(super) fn read(&mut self, value: &RawValue, place: Place) -> Result<(), ImportError> {
        if Kind::of(value) != Kind::List {
            return self.read_run(value, place);
        }
        let items = list(value, || place.clone())?;
        if items.first().is_none_or(|first| is_message(first)) {
            return self.add(&items, place.clone(), Logged::nothing(place));
        }
        items.into_iter().enumerate().try_for_each(|(index, item)| self.read_run(item, place.index(index)))
    }

    fn read_run(&mut self, value: &RawValue, place: Place) -> Result<(), ImportError> {
        match Kind::of(value) {
            Kind::List => {
                let messages = list(value, || place.clone())?;
                self.add(&messages, place.clone(), Logged::nothing(place))
            }
            Kind::Object => self.read_object(Object::read(value, place)?),
            _ => Err(unexpected(value, place, "a list of messages or an object that has one")),
        }
    }

    /// Reads an object that has messages itself, or in the `request` that it logs.
    fn read_object(&mut self, mut run: Object<'_>) -> Result<(), ImportError> {
        let response = match run.take_if("response", Kind::Object) {
            Some(response) => Some(Object::read(response, run.at("response"))?),
            None => None,
        };
        if let Some((messages, place)) = self.messages(&mut run)? {
            return self.add(&messages, place, Logged { run, request: None, response });
        }
        let request = match run.take_if("request", Kind::Object) {
            Some(request) => Some(Object::read(request, run.at("request"))?),
            None if response.is_some() => None,
            None => return Err(self.no_messages(run)),
        };
        if let Some(mut request) = request
            && let Some((messages, place)) = self.messages(&mut request)?
        {
            return self.add(&messages, place, Logged { run, request: Some(request), response });
        }
        self.left_out.push(Finding::new(run.place, FindingKind::OtherRequest));
        Ok(())
    }

    /// Takes the messages out of an object: those under the key that was asked for; else under `messages`; else under
    /// the first key that has a list of messages.
    fn messages<'a>(&self, run: &mut Object<'a>) -> Result<Option<(Vec<&'a RawValue>, Place)>, ImportError> {
        let key = match self.messages_key {
            Some(key) => key.to_owned(),
            None if run.get("messages").is_some_and(|value| Kind::of(value) == Kind::List) => "messages".to_owned(),
            None => {
                let key = run.iter().find(|(_, value)| is_message_list(value)).map(|(key, _)| key.to_owned());
                let Some(key) = key else { return Ok(None) };
                key
            }
        };
        let Some(value) = run.take_if(&key, Kind::List) else { return Ok(None) };
        let place = run.at(&key);
        Ok(Some((list(value, || place.clone())?, place)))
    }

    fn no_messages(&self, run: Object<'_>) -> ImportError {
        let keys = run.shown_keys();
        match self.messages_key {
            Some(key) => ImportError::NoSuchKey { place: run.place, key: key.to_owned(), keys },
            None if looks_like_a_message(&run) => ImportError::SingleMessage { place: run.place },
            None => ImportError::NoMessages { place: run.place, keys },
        }
    }

    /// Adds the run of these messages, which stand at `messages_place`.
    fn add(&mut self, messages: &[&RawValue], messages_place: Place, logged: Logged<'_>) -> Result<(), ImportError> {
        let Logged { mut run, mut request, response } = logged;
        if messages.is_empty() {
            self.left_out.push(Finding::new(run.place, FindingKind::EmptyRun));
            return Ok(());
        }
        let mut conversation = Conversation::default();
        for (index, message) in messages.iter().enumerate() {
            let place = messages_place.index(index);
            let message = message::read(message, place.clone(), &mut conversation.findings)?;
            conversation.push(message, place);
        }
        let settings = request.as_mut().unwrap_or(&mut run);
        let mut model = settings.take_text("model")?;
        let tools = tools(settings, &mut conversation.findings)?;
        let mut is_exchange = false;
        if let Some(mut response) = response {
            let answered_by = response.take_text("model")?;
            model = model.or_else(|| answered_by.clone());
            is_exchange = add_response(&mut conversation, response, answered_by)?;
        }
        let (label, task, extra) = (run_label(&run)?, task(&run)?, kept_fields(&run));
        let (instructions, events, findings) = conversation.finish();
        let header = Header { id: String::new(), task, instructions, model, tools, extra };
        self.runs.push(Run { place: run.place, label, header, events, is_exchange, findings });
        Ok(())
    }
}

/// What stands around the messages of a run.
struct Logged<'a> {
    /// The fields beside the messages, or beside the request.
    run: Object<'a>,
    /// The fields of the request, if it is an object of its own.
    request: Option<Object<'a>>,
    /// What the model answered.
    response: Option<Object<'a>>,
}

impl Logged<'_> {
    /// Nothing, as around a bare list.
    fn nothing(place: Place) -> Self {
        Self { run: Object::empty(place), request: None, response: None }
    }
}

/// Adds the answer of a response, unless the messages have it already. Returns whether there is one.
fn add_response(
    conversation: &mut Conversation,
    mut response: Object<'_>,
    model: Option<String>,
) -> Result<bool, ImportError> {
    let Some(choices) = response.take_if("choices", Kind::List) else { return Ok(false) };
    let place = response.at("choices");
    let choices = list(choices, || place.clone())?;
    let Some(first) = choices.first() else { return Ok(false) };
    if choices.len() > 1 {
        conversation.findings.push(Finding::new(place.clone(), FindingKind::SeveralChoices { n: choices.len() }));
    }
    let mut choice = Object::read(first, place.index(0))?;
    let place = choice.at("message");
    let message = choice.take("message").ok_or_else(|| choice.missing("message"))?;
    let message = message::read(message, place.clone(), &mut conversation.findings)?;
    let Message::Response(mut answer) = message else {
        let message = "the answer of a response is not of the role `assistant`".to_owned();
        return Err(ImportError::Unreadable { place, message });
    };
    answer.model = answer.model.or(model);
    if let Some(value) = response.take("usage") {
        answer.usage = usage(value);
        if answer.usage.is_none() {
            conversation.findings.push(Finding::new(response.at("usage"), FindingKind::UnreadUsage));
        }
    }
    conversation.push_answer(answer, place);
    Ok(true)
}

/// Whether a value is a list that starts with a message.
fn is_message_list(value: &RawValue) -> bool {
    Kind::of(value) == Kind::List
        && read::<Vec<&RawValue>>(value, Place::default).is_ok_and(|items| items.first().is_some_and(|v| is_message(v)))
}

/// Whether a value is a message.
fn is_message(value: &RawValue) -> bool {
    Kind::of(value) == Kind::Object
        && Object::read(value, Place::default()).is_ok_and(|object| looks_like_a_message(&object))
}

/// Whether an object has a role and says something in a field of this format; other formats have roles too.
fn looks_like_a_message(object: &Object<'_>) -> bool {
    object.get("role").is_some_and(|role| Kind::of(role) == Kind::String)
        && object.iter().any(|(key, _)| matches!(key, "content" | "tool_calls" | "function_call" | "refusal"))
}

/// The fields that name a run, the better first.
const NAMES: [&str; 7] = ["id", "run_id", "session_id", "conversation_id", "instance_id", "custom_id", "sample_id"];

/// The field that names what a run was at.
const TASK: (&str, &str) = ("task_id", "task");

/// The fields that name a run only together, each with what stands before its number.
const NUMBERS: [(&str, &str); 3] = [TASK, ("trial", "trial"), ("epoch", "epoch")];

/// What a run calls itself: its name, and its numbers, such as `task2-trial1`.
fn run_label(run: &Object<'_>) -> Result<Option<String>, ImportError> {
    let mut labels = Vec::new();
    for key in NAMES {
        if let Some(own) = name(run, key, "")? {
            labels.push(own);
            break;
        }
    }
    for (key, before) in NUMBERS {
        labels.extend(name(run, key, before)?);
    }
    Ok((!labels.is_empty()).then(|| labels.join("-")))
}

/// What a run says that it was at, word for word: different tasks stay different.
fn task(run: &Object<'_>) -> Result<Option<String>, ImportError> {
    Ok(named(run, TASK.0, TASK.1)?.filter(|task| !task.is_empty()))
}

/// What a field holds, as a part of an id.
fn name(run: &Object<'_>, key: &str, before: &str) -> Result<Option<String>, ImportError> {
    Ok(named(run, key, before)?.as_deref().and_then(label))
}

/// The text of a field, or its number behind a word.
fn named(run: &Object<'_>, key: &str, before: &str) -> Result<Option<String>, ImportError> {
    let Some(value) = run.get(key) else { return Ok(None) };
    match Kind::of(value) {
        Kind::String => text(value, || run.at(key)).map(Some),
        Kind::Number => Ok(Some(format!("{before}{}", value.get()))),
        _ => Ok(None),
    }
}

/// What is kept of a run's other fields: its names, and numbers and yes-or-no of any name, such as `reward`. Other text
/// is not, since logs of requests have keys and addresses there.
fn kept_fields(run: &Object<'_>) -> Extra {
    let is_kept = |key: &str, value: &RawValue| match Kind::of(value) {
        Kind::Number | Kind::Bool => true,
        Kind::String => NAMES.contains(&key) || NUMBERS.iter().any(|&(number, _)| number == key),
        _ => false,
    };
    under_source(run.iter().filter(|(key, value)| is_kept(key, value)).map(|(key, value)| (key, compact(value.get()))))
}
