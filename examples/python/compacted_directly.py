"""What pydantic-ai-harness makes of the history of the adapters' test when it is called with no adapter in between.

Prints, for each strategy, the messages that are left, each as the list of its parts; the test holds the adapter's events
against them. The messages are made here by hand, on purpose not with pydantic_messages.py.
"""

import asyncio
import json

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel
from pydantic_ai_harness.compaction import ClearToolResults, SlidingWindowCompaction, compact_now, pin

STRATEGIES = [
    SlidingWindowCompaction(max_messages=1, keep_messages=3),
    SlidingWindowCompaction(max_messages=1, keep_messages=6),
    SlidingWindowCompaction(max_messages=1, keep_messages=6, preserve_first_user_message=False),
    ClearToolResults(max_messages=1, keep_pairs=2),
    ClearToolResults(max_messages=1, keep_pairs=2, clear_tool_inputs=True),
]


def history():
    """As `history` of crates/retrace-command/examples/adapters.rs."""
    messages = [
        ModelRequest(parts=[SystemPromptPart("be brief"), UserPromptPart("Keep every item in stock.")]),
        ModelRequest(parts=[pin("never order salt")]),
    ]
    for round in range(6):
        calls = [(f"r{round}c{call}", json.dumps({"item": f"item {round}"})) for call in range(1 + round % 2)]
        messages.append(
            ModelResponse(
                parts=[
                    TextPart(f"round {round}"),
                    *(ToolCallPart("check", arguments, tool_call_id=call) for call, arguments in calls),
                ]
            )
        )
        outcome = "failed" if round == 2 else "success"
        messages.append(
            ModelRequest(parts=[ToolReturnPart("check", f"{round} packs", call, outcome=outcome) for call, _ in calls])
        )
    return messages


def shown(part):
    if isinstance(part, SystemPromptPart):
        return f"system: {part.content}"
    if isinstance(part, UserPromptPart):
        return "user: " + (part.content if isinstance(part.content, str) else part.content[0].content)
    if isinstance(part, TextPart):
        return f"text: {part.content}"
    if isinstance(part, ToolCallPart):
        return f"call: {part.args_as_json_str()}"
    return f"result: {part.content}, {'ok' if part.outcome == 'success' else 'error'}"


async def main():
    for strategy in STRATEGIES:
        kept = await compact_now(strategy, history(), model=TestModel())
        print(json.dumps([[shown(part) for part in message.parts] for message in kept]))


asyncio.run(main())
