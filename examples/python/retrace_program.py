"""What a Python program needs to be a strategy, an agent or an environment of retrace: its side of docs/protocol.md.

    import retrace_program

    async def compact(use):
        return use.events[-8:]

    retrace_program.strategy("last-eight", compact)

Nothing is converted: events, results and tools are dicts and lists, as the recording format has them (docs/formats.md).
Only the standard library is used.
"""

import asyncio
import hashlib
import inspect
import json
import os
import sys
import threading

VERSION = 1

ONE, ONE_BY_ONE, MANY = "one", "one_by_one", "many"


class Failed(Exception):
    """Raise it to fail a use with a message and no traceback."""


class NoAnswer(Exception):
    """retrace's model gave no answer."""


def strategy(name, compact, serves=MANY, asks=False):
    """Serves a strategy; `asks` says whether it may ask retrace's model.

    `compact(use)` gets a Compaction. It returns the list of events to keep, or None where there is nothing to do.
    """

    async def run(use):
        kept = await _done(compact(use))
        if kept is None:
            use.tell("unchanged")
            return
        # An event that came in is named by its place, so that it is kept to the letter.
        places = {id(event): place for place, event in enumerate(use.events)}
        use.tell("compacted", events=[places.get(id(event), event) for event in kept])

    _serve("strategy", name, serves, {"compact": (Compaction, run)}, **({"asks": True} if asks else {}))


def agent(name, resume, tools=(), serves=MANY):
    """Serves an agent. `resume(use)` gets a Run, and returns when the agent's turn has ended.

    `tools` are the names of the tools that the agent brings itself, beside those of the environment.
    """

    async def run(use):
        await _done(resume(use))
        use.tell("ended")

    _serve("agent", name, serves, {"resume": (Run, run)}, tools=list(tools))


def environment(name, open, serves=MANY):
    """Serves an environment.

    `open(use)` returns a fresh world: an object with `tools`, a list of tools as a recording's header has them, and
    `call(name, arguments)`, which returns `ok(…)`, `error(…)` or `not_found(…)`. It may have `close()`, and
    `independent = True` if calls may run side by side.
    """

    async def run(use):
        world = await _done(open(use))
        use.tell("opened", tools=world.tools, independent=getattr(world, "independent", False))
        independent = getattr(world, "independent", False)
        try:
            async with asyncio.TaskGroup() as calls:
                while True:
                    call = calls.create_task(_answer(use, world, await use.calls.get()))
                    if not independent:
                        await asyncio.wait([call])
        except* Exception as failures:  # the world is broken; a call that failed is a result
            raise failures.exceptions[0] from None
        finally:
            if hasattr(world, "close"):
                await _done(world.close())

    _serve("environment", name, serves, {"open": (World, run)})


def ok(content):
    """The result of a call that worked."""
    return {"content": content, "outcome": "ok"}


def error(content, kind=None):
    """The result of a call that failed, with the kind of the failure."""
    return {"content": content, "outcome": "error", **({"error": kind} if kind else {})}


def not_found(name):
    """The result of a call of a tool that does not exist."""
    return {"content": f"there is no tool `{name}`", "outcome": "not_found"}


class Use:
    """One use of the program. `config` is what the configuration has for it."""

    def __init__(self, program, message):
        self._program, self._message = program, message
        self._questions, self._n_asked = {}, 0
        self.number, self.config = message["use"], program.config

    def tell(self, kind, **fields):
        self._program.write({"type": kind, "use": self.number, **fields})

    async def _ask(self, kind, **fields):
        """Writes a question and waits for the message that answers it."""
        self._n_asked += 1
        number = self._n_asked
        answer = self._questions[number] = asyncio.get_running_loop().create_future()
        try:
            self.tell(kind, id=number, **fields)
            return await answer
        finally:
            del self._questions[number]

    def receive(self, message):
        question = self._questions.get(message.get("id"))
        if question is not None and not question.done():
            question.set_result(message)


class Compaction(Use):
    """A history to compact: `events`; `window` and `focus` are None where retrace says nothing of them."""

    def __init__(self, program, message):
        super().__init__(program, message)
        self.events = message["events"]
        self.window, self.focus = message.get("window"), message.get("focus")

    async def ask(self, instructions, question, model=None):
        """What retrace's model answers: its `response` event. Raises NoAnswer."""
        fields = {"instructions": instructions, "question": question, **({"model": model} if model else {})}
        answer = await self._ask("ask", **fields)
        if answer["type"] == "no_answer":
            raise NoAnswer(answer["message"])
        return answer["response"]

    def spent(self, input_tokens, output_tokens, model_calls=1):
        """Reports what a model call of the strategy's own cost."""
        usage = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        self.tell("spent", model_calls=model_calls, usage=usage)


class Run(Use):
    """A history to go on from: `events`, `instructions`, `tools`, `independent`, `budget` and `seed`.

    When the budget is spent retrace ends the use: whatever is awaited then is cancelled.
    """

    def __init__(self, program, message):
        super().__init__(program, message)
        self.instructions, self.events = message.get("instructions"), message["events"]
        self.tools, self.independent = message["tools"], message["independent"]
        self.budget, self.seed = message["budget"], message["seed"]

    async def call(self, call_id, name, arguments):
        """Calls a tool of the environment; `arguments` is their JSON text. Returns a dict such as that of `ok`."""
        result = await self._ask("call", call_id=call_id, name=name, arguments=arguments)
        return {key: result[key] for key in ("content", "outcome", "error") if key in result}

    async def respond(self, events=None):
        """The `response` event of retrace's model to the history so far, or to `events` in place of it."""
        answer = await self._ask("respond", **({} if events is None else {"events": events}))
        return answer["response"]

    def report(self, response, sent=None):
        """Reports a `response` event that the agent's own model gave; `sent` is a Sent of what it was sent."""
        self.tell("report", response=response, **({"sent": sent.hash()} if sent else {}))

    def own_result(self, result):
        """Reports the result of a call that the agent answered itself: of one of its own tools, or one it refused."""
        self.tell("own_result", result=result)

    def note(self, event):
        """Reports an event that the agent put into its history and that is neither a response nor results."""
        self.tell("note", event=event)


class World(Use):
    """A world that is wanted."""

    def __init__(self, program, message):
        super().__init__(program, message)
        self.calls = asyncio.Queue()

    def receive(self, message):
        self.calls.put_nowait(message)


class Sent:
    """The hash of what a model was sent: add its pieces in the order in which they are sent."""

    def __init__(self):
        self._state, self._system = bytes(32), bytes(32)

    def system(self, text):
        if text:
            self._system = _next(self._system, "system", text)

    def user(self, text):
        if text:
            self._state = _next(self._state, "user", text)

    def assistant(self, text):
        if text:
            self._state = _next(self._state, "assistant", text)

    def media(self, media_type, source):
        self._state = _next(self._state, "media", media_type, source)

    def call(self, name, arguments):
        """`arguments` is their JSON text."""
        self._state = _next(self._state, "call", name, _canonical(arguments))

    def result(self, name, text):
        self._state = _next(self._state, "result", name, text)

    def hash(self):
        return hashlib.sha256(self._state + self._system).hexdigest()[:32]


def _next(state, *fields):
    for field in fields:
        # Half of a surrogate pair has no UTF-8: it is spelt as an escape.
        field = field.encode("utf-8", "backslashreplace")
        state += b"%d\n%s" % (len(field), field)
    return hashlib.sha256(state).digest()


def _canonical(arguments):
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        return arguments.strip(" \t\n\r")
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


async def _done(value):
    return await value if inspect.isawaitable(value) else value


async def _answer(use, world, call):
    result = await _done(world.call(call["name"], call["arguments"]))
    use.tell("result", id=call["id"], **result)


class _Program:
    def __init__(self, uses):
        self._uses, self._tasks, self.config = uses, {}, {}
        # Nothing else may write to where the messages go: print() goes to standard error from here on.
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        os.dup2(2, 1)

    def write(self, message):
        self._out.write(json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")
        self._out.flush()

    async def run(self, messages):
        while (message := await messages.get()) is not None:
            kind, number = message["type"], message.get("use")
            if kind == "hello":
                self.config = message["config"]
            elif kind in self._uses:
                make, run = self._uses[kind]
                use = make(self, message)
                task = asyncio.ensure_future(self._run(use, run))
                self._tasks[number] = (use, task)
                task.add_done_callback(lambda _, number=number: self._tasks.pop(number, None))
            elif number in self._tasks:
                use, task = self._tasks[number]
                if kind == "over":
                    task.cancel()
                else:
                    use.receive(message)
        open_tasks = [task for _, task in self._tasks.values()]
        for task in open_tasks:
            task.cancel()
        await asyncio.gather(*open_tasks, return_exceptions=True)

    async def _run(self, use, run):
        try:
            await run(use)
        except Exception as failure:
            use.tell("failed", message=_told(failure))


def _told(failure):
    return str(failure) if isinstance(failure, Failed) else f"{type(failure).__name__}: {failure}"


def _serve(role, name, serves, uses, **greeting):
    program = _Program(uses)

    async def main():
        messages, loop = asyncio.Queue(), asyncio.get_running_loop()

        def read():
            for line in sys.stdin.buffer:
                loop.call_soon_threadsafe(messages.put_nowait, json.loads(line))
            loop.call_soon_threadsafe(messages.put_nowait, None)

        threading.Thread(target=read, daemon=True).start()
        program.write({"type": "greeting", "retrace": VERSION, "role": role, "name": name, "serves": serves, **greeting})
        await program.run(messages)

    asyncio.run(main())
