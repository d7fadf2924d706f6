"""Events of retrace as events of ag2, and back: one for one, so that windows count alike."""

import base64

from ag2.events import (
    BinaryInput,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextInput,
    ToolCallEvent,
    ToolCallsEvent,
    ToolErrorEvent,
    ToolNotFoundEvent,
    ToolResult,
    ToolResultEvent,
    ToolResultsEvent,
    UrlInput,
    Usage,
    UsageEvent,
)


def to_ag2(event):
    kind = event["type"]
    if kind in ("request", "summary"):
        return ModelRequest([to_input(part) for part in parts(event["content"])])
    if kind == "response":
        texts = [part["text"] for part in parts(event["content"]) if part["type"] == "text"]
        calls = [
            ToolCallEvent(part["name"], id=part["id"], arguments=part["arguments"])
            for part in parts(event["content"])
            if part["type"] == "tool_call"
        ]
        message = ModelMessage("".join(texts)) if texts else None
        return ModelResponse(message, tool_calls=ToolCallsEvent(calls), model=event.get("model"))
    if kind == "tool_results":
        return ToolResultsEvent([to_result(result) for result in event["results"]])
    usage = event["usage"]
    tokens = Usage(prompt_tokens=usage["input_tokens"], completion_tokens=usage["output_tokens"])
    return UsageEvent(tokens, kind=event["kind"])


def to_result(result):
    fields = {
        "parent_id": result["call_id"],
        "name": result["name"],
        "result": ToolResult(parts=[to_input(part) for part in parts(result["content"])]),
    }
    if result["outcome"] == "ok":
        return ToolResultEvent(**fields)
    made = ToolNotFoundEvent if result["outcome"] == "not_found" else ToolErrorEvent
    return made(**fields, error=RuntimeError(result.get("error", result["outcome"])))


def to_input(part):
    if part["type"] in ("text", "system"):
        return TextInput(part["text"])
    if "url" in part:
        return UrlInput(part["url"], kind=part["type"])
    return BinaryInput(base64.b64decode(part["data"]), media_type=part["media_type"], kind=part["type"])


def parts(content):
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
