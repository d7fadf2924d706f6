"""Events of retrace as messages of pydantic-ai, and back."""

import base64

from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage
from pydantic_ai_harness.compaction import pin

URLS = {"image": ImageUrl, "audio": AudioUrl, "document": DocumentUrl}


class Messages:
    """The messages of a history, one for each event that a model may see, and what each of them was made from."""

    def __init__(self, events):
        self.messages, self._places, self._made = [], {}, {}
        self._ids = CallIds()
        self.events = events
        for place, event in enumerate(events):
            message = self._message(event)
            if message is not None:
                self.messages.append(message)
                self._places[id(message)] = place

    def kept(self, messages):
        """The events that these messages stand for; those of the history are the very same dicts."""
        return [self._event(message) for message in messages]

    def _message(self, event):
        kind = event["type"]
        if kind in ("request", "summary"):
            return ModelRequest(parts=[self._note(self._request_part(part), part) for part in parts(event["content"])])
        if kind == "response":
            usage = event.get("usage", {})
            usage = RequestUsage(input_tokens=usage.get("input_tokens", 0), output_tokens=usage.get("output_tokens", 0))
            made = [self._note(self._response_part(part), part) for part in parts(event["content"])]
            return ModelResponse(parts=made, usage=usage, model_name=event.get("model"))
        if kind == "tool_results":
            return ModelRequest(parts=[self._note(self._return_part(result), result) for result in event["results"]])
        return None  # tokens that were spent: no model sees them

    def _request_part(self, part):
        if part.get("pinned") and part["type"] == "text":
            return pin(part["text"])
        if part["type"] == "system":
            return SystemPromptPart(part["text"])
        return UserPromptPart(part["text"] if part["type"] == "text" else [media(part)])

    def _response_part(self, part):
        if part["type"] == "text":
            return TextPart(part["text"])
        if part["type"] == "thinking":
            return ThinkingPart(part["text"], signature=part.get("signature"))
        return ToolCallPart(part["name"], part["arguments"], tool_call_id=self._ids.issue(part["id"]))

    def _return_part(self, result):
        outcome = {"ok": "success", "error": "failed", "not_found": "retried"}[result["outcome"]]
        call_id = self._ids.answer(result["call_id"])
        return ToolReturnPart(result["name"], content(result["content"]), tool_call_id=call_id, outcome=outcome)

    def _note(self, made, source):
        self._made[id(made)] = (made, source)
        return made

    def _event(self, message):
        if id(message) in self._places:
            return self.events[self._places[id(message)]]
        if isinstance(message, ModelResponse):
            return {"type": "response", "content": [self._source(part) for part in message.parts]}
        if any(isinstance(part, ToolReturnPart) for part in message.parts):
            return {"type": "tool_results", "results": [self._source(part) for part in message.parts]}
        return {"type": "request", "content": [self._source(part) for part in message.parts]}

    def _source(self, part):
        """What a part was made from; one that a strategy made is written anew."""
        if id(part) in self._made:
            return self._made[id(part)][1]
        if isinstance(part, ToolReturnPart):
            before = next(source for made, source in self._made.values() if answers_same_call(made, part))
            return {**before, "content": part.model_response_str(wrap_if_error=False)}
        if isinstance(part, ToolCallPart):
            before = next(source for made, source in self._made.values() if is_same_call(made, part))
            return {**before, "arguments": arguments(part)}
        if isinstance(part, SystemPromptPart):
            return {"type": "system", "text": part.content}
        if isinstance(part, UserPromptPart) and isinstance(part.content, str):
            return {"type": "text", "text": part.content}
        raise TypeError(f"a strategy made a {type(part).__name__}, which has no event")


class CallIds:
    """Ids that are unique: those of a history need not be. A result answers the newest response with a waiting call."""

    def __init__(self):
        self._waiting, self._n_issued = {}, 0

    def issue(self, call_id):
        self._n_issued += 1
        unique = f"{call_id}#{self._n_issued}"
        self._waiting.setdefault(call_id, []).append(unique)
        return unique

    def answer(self, call_id):
        waiting = self._waiting.get(call_id)
        return waiting.pop(0) if waiting else f"{call_id}#none"


def is_same_call(made, part):
    return isinstance(made, ToolCallPart) and made.tool_call_id == part.tool_call_id


def answers_same_call(made, part):
    return isinstance(made, ToolReturnPart) and made.tool_call_id == part.tool_call_id


def arguments(call):
    """The JSON text of a call's arguments, to the letter where the model sent a text."""
    return call.args if isinstance(call.args, str) else call.args_as_json_str()


def parts(content):
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def content(content):
    """The content of a result: one text, followed by media if there are any."""
    text = "".join(part["text"] for part in parts(content) if part["type"] == "text")
    others = [media(part) for part in parts(content) if part["type"] != "text"]
    return [text, *others] if others else text


def media(part):
    if "url" in part:
        return URLS[part["type"]](part["url"], media_type=part["media_type"])
    return BinaryContent(base64.b64decode(part["data"]), media_type=part["media_type"])


def add_sent(messages, sent):
    """Adds what a model is sent with these messages to its hash."""
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, SystemPromptPart):
            sent.system(part.content)
        elif isinstance(part, UserPromptPart):
            for item in [part.content] if isinstance(part.content, str) else part.content:
                _add_item(item, sent, sent.user)
        elif isinstance(part, TextPart):
            sent.assistant(part.content)
        elif isinstance(part, ToolCallPart):
            sent.call(part.tool_name, arguments(part))
        elif isinstance(part, ToolReturnPart):
            items = [part.content] if isinstance(part.content, str) else part.content
            sent.result(part.tool_name, "".join(item for item in items if isinstance(item, str)))
            for item in items:
                _add_item(item, sent, lambda text: None)


def _add_item(item, sent, text):
    if isinstance(item, str):
        text(item)
    elif isinstance(item, TextContent):
        text(item.content)
    elif isinstance(item, BinaryContent):
        sent.media(item.media_type, base64.b64encode(item.data).decode())
    else:
        sent.media(item.media_type, item.url)
