"""A strategy: one of those of pydantic-ai-harness, as it runs there.

    config = { strategy = "SlidingWindowCompaction", max_messages = 1, keep_messages = 20 }
    config = { strategy = "ClearToolResults", max_messages = 1, keep_pairs = 3 }

All but `strategy` are parameters of the class. A strategy applies unconditionally here, whatever its trigger.
"""

import retrace_program
from pydantic_ai.models.test import TestModel
from pydantic_ai_harness.compaction import ClearToolResults, SlidingWindowCompaction, compact_now
from pydantic_messages import Messages

STRATEGIES = {strategy.__name__: strategy for strategy in (SlidingWindowCompaction, ClearToolResults)}


async def compact(use):
    parameters = dict(use.config)
    strategy = STRATEGIES[parameters.pop("strategy")](**parameters)
    history = Messages(use.events)
    kept = await compact_now(strategy, history.messages, model=TestModel())  # neither of them asks a model
    return None if kept == history.messages else history.kept(kept)


retrace_program.strategy("pydantic-ai-harness", compact)
