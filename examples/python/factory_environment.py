"""An environment made from a Python factory of `{name: function}`, as ag2's ReplayEnvironment takes it.

    config = { factory = "shop:fresh_world" }

The functions become tools of ag2, so arguments are checked and converted as ag2 does it.
"""

import importlib
import json

import retrace_program
from ag2.context import ConversationContext
from ag2.events import TextInput, ToolCallEvent, ToolErrorEvent
from ag2.stream import MemoryStream
from ag2.tools import tool


class World:
    def __init__(self, functions):
        self._tools = {name: tool(function, name=name) for name, function in functions.items()}
        self._context = ConversationContext(MemoryStream())
        self.tools = [spec(made) for made in self._tools.values()]

    async def call(self, name, arguments):
        if name not in self._tools:
            return retrace_program.not_found(name)
        try:
            answer = await self._tools[name](ToolCallEvent(name, arguments=arguments), self._context)
        except ValueError as failure:  # the arguments are no JSON
            return retrace_program.error(str(failure), type(failure).__name__)
        if isinstance(answer, ToolErrorEvent):
            return retrace_program.error(str(answer.error), type(answer.error).__name__)
        return retrace_program.ok("".join(map(text, answer.result.parts)))


def spec(made):
    function = made.schema.function
    return {"name": function.name, "description": function.description, "parameters": function.parameters}


def text(part):
    return part.content if isinstance(part, TextInput) else json.dumps(part.data, ensure_ascii=False, default=str)


def open_world(use):
    module, factory = use.config["factory"].split(":")
    return World(getattr(importlib.import_module(module), factory)())


retrace_program.environment("ag2-factory", open_world)
