"""A strategy: the TailWindowCompact of ag2.

    config = { target = 8 }
"""

import retrace_program
from ag2.compact import TailWindowCompact
from ag2.context import ConversationContext
from ag2.stream import MemoryStream
from ag2_events import to_ag2


async def compact(use):
    events = [to_ag2(event) for event in use.events]
    places = {id(event): place for place, event in enumerate(events)}
    window = TailWindowCompact(use.config["target"])
    kept = await window.compact(events, ConversationContext(MemoryStream()), None)
    return None if len(kept) == len(events) else [use.events[places[id(event)]] for event in kept]


retrace_program.strategy("ag2-tail-window", compact)
