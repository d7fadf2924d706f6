//! Messages of rig as events, and a history as messages of rig, for a loop that keeps its conversation in rig's form.

use retrace_events::{Event, History, MediaKind, Outcome, Part, PartBody, Request, Response, ToolResult, ToolResults};
use retrace_model::{ModelError, Prompt};
use rig_core::completion::message::{
    AssistantMessage, Document, Image, Message, StopReason, ToolResult as RigResult, ToolResultContent, UserContent,
};

use crate::decode::parts;
use crate::media::held;
use crate::render::render;
use crate::replay::stored;
use crate::target::Target;

/// Why a message cannot be made events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// It holds what no event can.
    #[error("an event cannot hold {what} of a message")]
    Unheld {
        /// What that is.
        what: &'static str,
    },
}

/// The events of a message: its results are one, what the user says besides is another. A turn that failed is never sent
/// again, and makes none.
///
/// The texts of a result come back from [`messages_of`] as one, and what is structured in it as the text of its JSON. A
/// turn of the model comes back as it was, with all that its provider wants back, unless a strategy has changed it.
///
/// ```
/// use retrace_events::History;
/// use retrace_rig::{events_of, messages_of};
/// use rig_core::completion::Message;
///
/// let messages = [Message::user("Which tea?"), Message::assistant("Green."), Message::user("And now?")];
/// let mut history = History::from(Vec::new());
/// for message in &messages {
///     events_of(message)?.into_iter().for_each(|event| history.push(event));
/// }
/// assert_eq!(messages_of(&history)?, messages);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// For a video, for a medium of no known type or whose bytes are elsewhere than at an address, and for one with settings of a
/// provider, all of which an event would lose.
pub fn events_of(message: &Message) -> Result<Vec<Event>, MessageError> {
    match message {
        Message::System { content } => Ok(vec![request(vec![Part::system(content)])]),
        Message::User { content } => said(content),
        Message::Assistant(turn) if turn.stop.as_ref().is_some_and(StopReason::is_failure) => Ok(Vec::new()),
        Message::Assistant(turn) => Ok(vec![Event::Response(response(turn))]),
    }
}

/// A history as messages, for whichever model rig sends them to. They are put in order as for a
/// [`RigModel`](crate::RigModel): each result stands right after the turn whose call it answers, and the user speaks first
/// and last.
///
/// # Errors
/// [`ModelError::Refused`] for what rig has no form for: a medium of a type that it does not know, a call of no name.
pub fn messages_of(history: &History) -> Result<Vec<Message>, ModelError> {
    let prompt = Prompt { instructions: None, history, tools: &[], seed: 0 };
    Ok(render(&prompt, &Target::Any)?.messages)
}

fn request(content: Vec<Part>) -> Event {
    Event::Request(Request { content: content.into(), ..Request::default() })
}

fn response(turn: &AssistantMessage) -> Response {
    Response {
        content: parts(turn, |call| call.id.to_string()).into(),
        model: turn.origin.clone().map(|origin| origin.response_model.unwrap_or(origin.model)),
        provider_data: stored(turn),
        ..Response::default()
    }
}

fn said(content: &[UserContent]) -> Result<Vec<Event>, MessageError> {
    let (mut results, mut parts) = (Vec::new(), Vec::new());
    for block in content {
        match block {
            UserContent::ToolResult(answer) => results.push(result(answer)?),
            UserContent::Text(text) => parts.push(Part::text(&*text.text)),
            UserContent::Image(image) => parts.push(picture(image)?),
            UserContent::Audio(audio) => {
                let sound = held(MediaKind::Audio, audio.media_type.as_ref(), &audio.data);
                parts.push(PartBody::Media(sound.ok_or(MessageError::Unheld { what: "a sound" })?).into());
            }
            UserContent::Document(document) => parts.push(paper(document)?),
            UserContent::Video(_) => return Err(MessageError::Unheld { what: "a video" }),
        }
    }
    let results = (!results.is_empty())
        .then(|| Event::ToolResults(ToolResults { results: results.into(), ..ToolResults::default() }));
    let request = (!parts.is_empty()).then(|| request(parts));
    Ok(results.into_iter().chain(request).collect())
}

fn result(answer: &RigResult) -> Result<ToolResult, MessageError> {
    let part = |block: &ToolResultContent| match block {
        ToolResultContent::Text(text) => Ok(Part::text(&*text.text)),
        ToolResultContent::Json { value } => Ok(Part::text(value.to_string())),
        ToolResultContent::Image(image) => picture(image),
    };
    Ok(ToolResult {
        call_id: answer.call.to_string().into(),
        name: answer.name.to_string().into(),
        content: answer.content.iter().map(part).collect::<Result<_, _>>()?,
        outcome: if answer.is_error { Outcome::Error } else { Outcome::Ok },
        error: None,
        outcome_from: None,
        own: false,
        extra: Default::default(),
    })
}

fn picture(image: &Image) -> Result<Part, MessageError> {
    let held = held(MediaKind::Image, image.media_type.as_ref(), &image.data).filter(|_| image.detail.is_none());
    held.map(|image| PartBody::Media(image).into()).ok_or(MessageError::Unheld { what: "a picture" })
}

fn paper(document: &Document) -> Result<Part, MessageError> {
    let held = held(MediaKind::Document, document.media_type.as_ref(), &document.data);
    let held = held.filter(|_| document.additional_params.is_none());
    held.map(|document| PartBody::Media(document).into()).ok_or(MessageError::Unheld { what: "a document" })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rig_core::completion::message::{
        Api, AssistantContent, AudioMediaType, CallId, DocumentSourceKind, ImageDetail, ImageMediaType, LocalCallId,
        Origin, Reasoning, ToolCall, ToolFunction, ToolName, Video,
    };
    use serde_json::json;

    use super::*;

    fn history(messages: &[Message]) -> History {
        History::from(messages.iter().flat_map(|message| events_of(message).unwrap()).collect::<Vec<_>>())
    }

    fn call(id: CallId, arguments: &str) -> ToolCall {
        ToolCall::new(id, ToolFunction::parse(ToolName::new("brew").unwrap(), arguments))
    }

    fn turn(content: Vec<AssistantContent>) -> AssistantMessage {
        AssistantMessage::new(content).with_origin(Origin::new(Api::from_static("chat"), "some provider", "some model"))
    }

    fn image(detail: Option<ImageDetail>) -> Image {
        let data = DocumentSourceKind::base64("iVBORw0KGgo=");
        Image { data, media_type: Some(ImageMediaType::PNG), detail, native: None }
    }

    /// A user, a turn with two calls that no provider gave an id, and their results.
    fn conversation() -> Vec<Message> {
        let calls = ["{\"tea\":\"green\"}", "not json"].map(|arguments| call(LocalCallId::new().into(), arguments));
        let mut results = calls.clone().map(|call| call.result(vec![ToolResultContent::text("done")]));
        results[1].is_error = true;
        results[1].content.push(ToolResultContent::Image(image(None)));
        let thinking =
            AssistantContent::Reasoning(Reasoning::new("Hm.")).with_native(json!({"signature": "s", "id": 7}));
        let calls = calls.map(AssistantContent::ToolCall);
        vec![
            Message::system("Be brief."),
            Message::User { content: vec![UserContent::text("Brew."), UserContent::Image(image(None))] },
            Message::Assistant(turn([thinking, AssistantContent::text("Yes.")].into_iter().chain(calls).collect())),
            Message::User { content: results.map(UserContent::ToolResult).to_vec() },
            Message::Assistant(turn(vec![AssistantContent::text("There.")])),
            Message::user("Thanks."),
        ]
    }

    #[test]
    fn a_conversation_comes_back_as_it_was() {
        let messages = conversation();
        let history = history(&messages);
        let kinds: Vec<_> = history.events().map(Event::kind).collect();
        assert_eq!(kinds, ["request", "request", "response", "tool_results", "response", "request"]);
        assert_eq!(messages_of(&history).unwrap(), messages);
    }

    #[test]
    fn a_turn_that_a_program_wrote_comes_back_whole() {
        let content = vec![
            AssistantContent::text("See."),
            AssistantContent::Image(image(None)),
            AssistantContent::Reasoning(Reasoning::new("Hm.")),
        ];
        let messages =
            [Message::user("Show me."), Message::Assistant(AssistantMessage::new(content)), Message::user("Thanks.")];
        assert_eq!(messages_of(&history(&messages)).unwrap(), messages);
    }

    #[test]
    fn what_is_changed_is_made_anew_and_the_rest_is_as_it_was() {
        let messages = conversation();
        let mut events: Vec<_> = history(&messages).iter().cloned().collect();
        let Event::ToolResults(round) = Arc::make_mut(&mut events[3]) else { panic!("{events:?}") };
        round.results[0].content = [Part::text("gone")].into();
        let Event::Response(answer) = Arc::make_mut(&mut events[4]) else { panic!("{events:?}") };
        answer.content = [Part::text("T.")].into();
        let made = messages_of(&History::new(events)).unwrap();
        let mut wanted = messages;
        let Message::User { content } = &mut wanted[3] else { panic!("{wanted:?}") };
        let UserContent::ToolResult(result) = &mut content[0] else { panic!("{content:?}") };
        result.content = vec![ToolResultContent::text("gone")];
        wanted[4] = Message::assistant("T.");
        assert_eq!(made, wanted);
    }

    #[test]
    fn results_are_an_event_of_their_own_and_their_json_is_text() {
        let call = call(CallId::from_wire("c1"), "{}");
        let answer = call.result(vec![ToolResultContent::Json { value: json!({"cups": 2}) }]);
        let content = vec![UserContent::text("So?"), UserContent::ToolResult(answer)];
        let events = events_of(&Message::User { content }).unwrap();
        let [Event::ToolResults(round), Event::Request(request)] = &events[..] else { panic!("{events:?}") };
        assert_eq!((round.results[0].call_id.as_str(), &*round.results[0].text()), ("c1", "{\"cups\":2}"));
        assert_eq!(request.content, [Part::text("So?")].into());
    }

    #[test]
    fn a_turn_that_failed_is_no_event_and_what_would_be_lost_is_an_error() {
        let failed = AssistantMessage::aborted(None, vec![AssistantContent::text("I was")], "cancelled");
        assert_eq!(events_of(&Message::Assistant(failed)).unwrap(), []);
        let uploaded = Document { data: DocumentSourceKind::file_id("f1"), ..Document::default() };
        let untyped = Image { data: DocumentSourceKind::url("http://localhost/tea.png"), ..Image::default() };
        let sound = rig_core::completion::message::Audio {
            data: DocumentSourceKind::Raw(vec![1]),
            media_type: Some(AudioMediaType::WAV),
        };
        for (content, what) in [
            (UserContent::Video(Video::default()), "a video"),
            (UserContent::Image(image(Some(ImageDetail::High))), "a picture"),
            (UserContent::Image(untyped), "a picture"),
            (UserContent::Document(uploaded), "a document"),
            (UserContent::Audio(sound), "a sound"),
        ] {
            let error = events_of(&Message::User { content: vec![content] }).unwrap_err();
            assert_eq!(error, MessageError::Unheld { what });
        }
    }
}
