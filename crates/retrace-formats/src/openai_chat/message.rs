//! One message.

use retrace_events::{Outcome, OutcomeSource, Part, PartBody, Request, Response, Thinking, ToolCall, ToolResult};
use serde_json::value::RawValue;

use super::part::{Writer, content};
use super::request::usage;
use crate::error::ImportError;
use crate::finding::{Finding, FindingKind};
use crate::json::{Kind, Object, compact, text};
use crate::place::{Place, shown};

/// A message, read.
pub(super) enum Message {
    /// A system prompt.
    System(Request),
    /// What the user said.
    Request(Request),
    /// What the model answered; the id of a call is empty where it has none.
    Response(Response),
    /// What a tool gave back; its `call_id` and `name` are empty where it has none.
    Result(ToolResult),
}

const ROLES: &str = "`system`, `developer`, `user`, `assistant`, `tool` or `function`";

/// Reads a message.
pub(super) fn read(value: &RawValue, place: Place, findings: &mut Vec<Finding>) -> Result<Message, ImportError> {
    let mut message = Object::read(value, place)?;
    let role = message.need_text("role")?;
    let writer = match &*role {
        "system" | "developer" => Writer::System,
        "user" => Writer::User,
        "assistant" => Writer::Assistant,
        "tool" | "function" => Writer::Tool,
        _ => {
            let place = message.at("role");
            return Err(ImportError::UnknownRole { place, role: shown(&role), expected: ROLES });
        }
    };
    let content = content(message.take("content"), message.at("content"), writer, findings)?;
    if content.is_empty() && matches!(writer, Writer::System | Writer::User) {
        findings.push(Finding::new(message.place.clone(), FindingKind::EmptyMessage));
    }
    Ok(match writer {
        Writer::System => Message::System(Request { content: content.into(), extra: message.rest() }),
        Writer::User => Message::Request(Request { content: content.into(), extra: message.rest() }),
        Writer::Assistant => Message::Response(response(message, content, findings)?),
        Writer::Tool => Message::Result(ToolResult {
            call_id: message.take_text("tool_call_id")?.unwrap_or_default().into(),
            name: message.take_text("name")?.unwrap_or_default().into(),
            content: content.into(),
            outcome: Outcome::Ok,
            error: None,
            outcome_from: Some(OutcomeSource::Unknown),
            own: false,
            extra: message.rest(),
        }),
    })
}

/// Reads the rest of the model's message: what it thought comes first, its calls last.
fn response(
    mut message: Object<'_>,
    mut content: Vec<Part>,
    findings: &mut Vec<Finding>,
) -> Result<Response, ImportError> {
    content.retain(|part| part.as_text() != Some(""));
    let reasoning = ["reasoning_content", "reasoning"].into_iter().find_map(|key| {
        let value = message.take_if(key, Kind::String)?;
        Some(text(value, || message.at(key)))
    });
    if let Some(text) = reasoning.transpose()?.filter(|text| !text.is_empty()) {
        content.insert(0, PartBody::Thinking(Thinking { text, signature: None }).into());
    }
    if let Some(refusal) = message.take_text("refusal")?.filter(|refusal| !refusal.is_empty()) {
        findings.push(Finding::new(message.at("refusal"), FindingKind::Refusal));
        content.push(Part::text(refusal));
    }
    if let Some(calls) = message.take_list("tool_calls")? {
        let place = message.at("tool_calls");
        for (index, call) in calls.into_iter().enumerate() {
            content.push(tool_call(Object::read(call, place.index(index))?)?);
        }
    }
    // The one call of a message, as it was written before there were `tool_calls`.
    if let Some(call) = message.take("function_call") {
        content.push(function(Object::read(call, message.at("function_call"))?, String::new())?);
    }
    if content.is_empty() {
        findings.push(Finding::new(message.place.clone(), FindingKind::EmptyMessage));
    }
    let model = message.take_if("model", Kind::String).map(|model| text(model, || message.at("model"))).transpose()?;
    let usage = message.get("usage").and_then(usage);
    if usage.is_some() {
        message.take("usage");
    }
    Ok(Response { content: content.into(), model, usage, provider_data: None, extra: message.rest() })
}

/// Reads an element of `tool_calls`: a call of a function, or of a tool that takes any text.
fn tool_call(mut call: Object<'_>) -> Result<Part, ImportError> {
    let id = call.take_text("id")?.unwrap_or_default();
    call.take("type");
    call.take("index");
    let mut part = if let Some(custom) = call.take("custom") {
        let mut custom = Object::read(custom, call.at("custom"))?;
        let (name, input) = (custom.need_text("name")?, custom.need_text("input")?);
        Part::from(PartBody::ToolCall(ToolCall::new(id, name, input)))
    } else {
        let value = call.take("function").ok_or_else(|| call.missing("function"))?;
        function(Object::read(value, call.at("function"))?, id)?
    };
    part.extra = call.rest();
    Ok(part)
}

/// Reads name and arguments of a call.
fn function(mut function: Object<'_>, id: String) -> Result<Part, ImportError> {
    let name = function.need_text("name")?;
    let (arguments, rebuilt) = match function.take("arguments") {
        Some(arguments) if Kind::of(arguments) == Kind::String => {
            (text(arguments, || function.at("arguments"))?, false)
        }
        Some(parsed) => (compact(parsed.get()), true),
        None => ("{}".to_owned(), true),
    };
    Ok(PartBody::ToolCall(ToolCall { rebuilt, ..ToolCall::new(id, name, arguments) }).into())
}
