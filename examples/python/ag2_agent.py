"""An agent: an Agent of ag2, resumed with Agent.resume, with its own model and its own tool loop.

Its model is the script of scripted.py; put the ModelConfig of yours in its place, such as
`ag2.config.OpenAIConfig(model="gpt-4.1-mini")`, whose key is then to be in `pass_env`.
"""

import asyncio
import json

import retrace_program
from ag2 import Agent, Context
from ag2.config import LLMClient, ModelConfig
from ag2.events import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextInput,
    ToolCallEvent,
    ToolCallsEvent,
    ToolNotFoundEvent,
    ToolResultsEvent,
    Usage,
)
from ag2.tools import tool
from ag2_events import parts, to_ag2
from scripted import script


async def resume(run):
    calls = Calls(run)
    agent = Agent(
        "agent",
        prompt=run.instructions or "",
        config=Reporting(Scripted(), run, calls),
        tools=[environment_tool(spec, calls) for spec in run.tools],
    )
    await agent.resume(*map(to_ag2, run.events))


class Calls:
    """The calls of the newest response, until they are made.

    ag2 starts them all at once, and which goes first depends on the tools. Where they may not run side by side, each waits
    here for the one that was issued before it.
    """

    def __init__(self, run):
        self._run, self._waiting = run, {}

    def issue(self, calls):
        self._waiting, before = {}, None
        for call in calls:
            done = asyncio.Event()
            self._waiting[call.id] = (call.arguments, before, done)
            if not self._run.independent and self._is_made(call):
                before = done

    async def make(self, call_id, name):
        arguments, before, done = self._waiting.pop(call_id)
        if before is not None:
            await before.wait()
        try:
            return await self._run.call(call_id, name, arguments)
        finally:
            done.set()

    def is_left(self, call_id):
        return call_id in self._waiting

    def _is_made(self, call):
        """Whether ag2 hands it to the tool: there is one, and the arguments are JSON."""
        try:
            json.loads(call.arguments or "{}")
        except ValueError:
            return False
        return any(tool["name"] == call.name for tool in self._run.tools)


class Reporting(ModelConfig):
    """A model whose responses are reported."""

    def __init__(self, config, run, calls):
        self.config, self.run, self.calls = config, run, calls

    def copy(self):
        return self

    def create(self):
        return ReportingClient(self.config.create(), self.run, self.calls)


class ReportingClient(LLMClient):
    def __init__(self, client, run, calls):
        self.client, self.run, self.calls = client, run, calls

    async def __call__(self, messages, context, **settings):
        for result in last_results(messages):
            if self.calls.is_left(result.parent_id):
                self.run.own_result(refused(result))
        sent = retrace_program.Sent()
        add_sent(messages, sent)
        response = await self.client(messages, context, **settings)
        self.calls.issue(response.tool_calls.calls)
        self.run.report(event(response), sent)
        return response


def environment_tool(spec, calls):
    """A tool of the environment."""

    async def call(context: Context, **_):
        result = await calls.make(context.tool_call_id, spec["name"])
        text = "".join(part["text"] for part in parts(result["content"]) if part["type"] == "text")
        if result["outcome"] != "ok":
            raise RuntimeError(text)
        return text

    return tool(call, name=spec["name"], description=spec.get("description") or "", schema=spec["parameters"])


def last_results(messages):
    rounds = [message for message in messages if isinstance(message, ToolResultsEvent)]
    return rounds[-1].results if rounds else []


def refused(result):
    """The result of a call that ag2 did not make: there is no such tool, or the arguments are no JSON."""
    outcome = "not_found" if isinstance(result, ToolNotFoundEvent) else "error"
    return {"call_id": result.parent_id, "name": result.name, "content": text_of(result), "outcome": outcome}


def add_sent(messages, sent):
    """Adds what a model is sent with these events to its hash. Calls and results stand in their containers."""
    for message in messages:
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, TextInput):
                    sent.user(part.content)
        elif isinstance(message, ModelResponse):
            sent.assistant(message.content or "")
            for call in message.tool_calls.calls:
                sent.call(call.name, call.arguments)
        elif isinstance(message, ToolResultsEvent):
            for result in message.results:
                sent.result(result.name, text_of(result))


def text_of(result):
    return "".join(part.content for part in result.result.parts if isinstance(part, TextInput))


def event(response):
    content = [{"type": "text", "text": response.content}] if response.content else []
    for call in response.tool_calls.calls:
        content.append({"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments})
    made = {"type": "response", "content": content}
    if response.model:
        made["model"] = response.model
    if response.usage:
        tokens = response.usage
        made["usage"] = {
            "input_tokens": int(tokens.prompt_tokens or 0),
            "output_tokens": int(tokens.completion_tokens or 0),
        }
    return made


class Scripted(ModelConfig):
    def copy(self):
        return self

    def create(self):
        return ScriptedClient()


class ScriptedClient(LLMClient):
    def __init__(self):
        self.steps = script()

    async def __call__(self, messages, context, **settings):
        step = next(self.steps)
        if isinstance(step, str):
            return ModelResponse(ModelMessage(step), usage=Usage(prompt_tokens=100, completion_tokens=10))
        calls = ToolCallsEvent([ToolCallEvent(name, arguments=text) for name, text in step])
        return ModelResponse(tool_calls=calls, usage=Usage(prompt_tokens=100, completion_tokens=10))


retrace_program.agent("ag2", resume)
