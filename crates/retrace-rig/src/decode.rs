//! An answer of rig as an event.

use retrace_events::{Part, PartBody, Raw, Response, Thinking, ToolCall, Usage};
use retrace_model::ModelError;
use rig_core::completion::message::{AssistantContent, AssistantMessage, ToolCall as RigCall, ToolFunction};
use rig_core::completion::{CompletionResponse, FinishReason, Usage as RigUsage};
use serde_json::Value;

use crate::replay::{is_said, to_keep};
use crate::secrets::shown;

/// The event of an answer. `n_calls` calls came before it, so that a call without an id gets one of its own.
///
/// # Errors
/// [`ModelError::Unusable`] when there is nothing in it but a reason why.
pub(crate) fn decode(answer: CompletionResponse, n_calls: usize) -> Result<Response, ModelError> {
    let finish = answer.finish_reason();
    if !answer.choice.iter().any(AssistantContent::is_answer) {
        check_finish(&answer, finish.as_ref())?;
    }
    let message = AssistantMessage::new(answer.choice).with_origin(answer.origin);
    let provider_data = to_keep(&message);
    let mut calls = n_calls;
    let content = parts(&message, |call| {
        calls += 1;
        call.id.provider().map_or_else(|| format!("call_{calls}"), |id| id.as_str().to_owned())
    });
    let mut response =
        Response { content: content.into(), usage: usage(&answer.usage), provider_data, ..Response::default() };
    if let Some(origin) = message.origin {
        response.model = Some(origin.response_model.unwrap_or(origin.model));
    }
    if let Some(finish @ (FinishReason::Length | FinishReason::ContentFilter | FinishReason::Other(_))) = finish
        && let Ok(reason) = Raw::of(&finish)
    {
        response.extra.push("finish_reason", reason);
    }
    Ok(response)
}

/// Whether an answer that says nothing may be one: the model has stopped.
fn check_finish(answer: &CompletionResponse, finish: Option<&FinishReason>) -> Result<(), ModelError> {
    let unusable = |message: String| Err(ModelError::Unusable { message });
    match (finish, &answer.error) {
        (Some(FinishReason::Length), _) => unusable(
            "the model wrote its most tokens before it said anything: raise `max_tokens`, or lower its reasoning"
                .to_owned(),
        ),
        (Some(FinishReason::ContentFilter), _) => unusable("the provider filtered the answer".to_owned()),
        (_, Some(error)) => unusable(format!("the provider gave up the answer: {}", shown(error))),
        _ => Ok(()),
    }
}

/// The parts of a turn, with the ids that its calls are to have.
pub(crate) fn parts(message: &AssistantMessage, mut id: impl FnMut(&RigCall) -> String) -> Vec<Part> {
    message.content.iter().filter(|block| is_said(block)).filter_map(|block| part(block, &mut id)).collect()
}

fn part(block: &AssistantContent, id: &mut impl FnMut(&RigCall) -> String) -> Option<Part> {
    match block {
        AssistantContent::Text(text) => Some(Part::text(&*text.text)),
        AssistantContent::Reasoning(reasoning) => {
            let signature = block.native_item().and_then(|item| item.get("signature")).and_then(Value::as_str);
            let thinking = Thinking { text: reasoning.text.clone(), signature: signature.map(str::to_owned) };
            Some(PartBody::Thinking(thinking).into())
        }
        AssistantContent::ToolCall(rendered) => {
            let id = id(rendered);
            let (arguments, rebuilt) = arguments(rendered, block.native_item());
            Some(
                PartBody::ToolCall(ToolCall {
                    id: id.into(),
                    name: rendered.function.name.as_str().into(),
                    arguments: arguments.into(),
                    rebuilt,
                })
                .into(),
            )
        }
        _ => None,
    }
}

/// The text of a call's arguments, and whether it had to be written anew: rig reads it, and only some providers' own
/// items still have it.
fn arguments(call: &RigCall, item: Option<&Value>) -> (String, bool) {
    if let Some(text) = &call.function.invalid_arguments {
        return (text.clone(), false);
    }
    let sent = item
        .and_then(|item| item.pointer("/function/arguments").or_else(|| item.get("arguments")))
        .and_then(Value::as_str)
        .filter(|sent| ToolFunction::parse(call.function.name.clone(), sent).arguments == call.function.arguments);
    match sent {
        Some(sent) => (sent.to_owned(), false),
        None => (call.function.arguments_value().to_string(), true),
    }
}

/// The tokens, if the provider reports any.
fn usage(usage: &RigUsage) -> Option<Usage> {
    if usage.input_tokens.is_none() && usage.output_tokens.is_none() {
        return None;
    }
    Some(Usage {
        input_tokens: usage.input_tokens.unwrap_or(0),
        output_tokens: usage.output_tokens.unwrap_or(0),
        cache_read_tokens: usage.cached_input_tokens,
        cache_write_tokens: usage.cache_creation_input_tokens,
        extra: Default::default(),
    })
}
