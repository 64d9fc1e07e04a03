"""Conversations of several turns: a JSON task a line on standard input, an outcome a line on standard output.

A task is one of journeys/tasks.py. An outcome: {"name", "ok", "error", "turns": [{"text", "calls"}]}; `calls` are those
that reached the client. SKILLET_URL and SKILLET_TOKEN say where the gateway is and who asks.
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

URL = os.environ["SKILLET_URL"].rstrip("/")
TOKEN = os.environ["SKILLET_TOKEN"]
OWN, RESULT = "look-up", "sunny"
DESCRIPTION = "The client's own."
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
# More than any turn needs: a conversation that does not end is wrong.
MOST_REQUESTS = 12
# Conversations at a time: most of their time they wait, for a refusal that passes or for a skill.
AT_A_TIME = 6


def own_names(task):
    """Names of the client's own tools."""
    if not task.get("own"):
        return []
    return [OWN] + [f"tool-{number}" for number in range(1, task.get("tools", 1))]


class OwnLoop:
    """A conversation whose client runs the own tool by itself: its calls are counted, and answered already."""

    def __init__(self, task):
        self.task, self.called = task, []

    def look_up(self, city: str = "") -> str:
        """The client's own."""
        self.called.append(city)
        return RESULT

    def counted(self):
        calls = [("", OWN) for _ in self.called]
        self.called.clear()
        return calls

    def answer(self, results):
        return "", []


class OpenaiItems:
    """A conversation of OpenAI's responses: its items, the request's fields, and how prompts and results are added.

    A class made of it has `ask(**fields)`, which sends the items.
    """

    def __init__(self, task, **fields):
        self.task, self.items, self.is_first = task, [], True
        tool = {"type": "function", "description": DESCRIPTION, "parameters": SCHEMA, "strict": False}
        self.fields = {"model": task["model"], **fields}
        if names := own_names(task):
            self.fields["tools"] = [{**tool, "name": name} for name in names]
        if task.get("reasoning"):
            self.fields["reasoning"] = {"effort": "low", "summary": "auto"}
        if task.get("store") is False:
            self.fields |= {"store": False, "include": ["reasoning.encrypted_content"]}

    def say(self, prompt):
        self.items.append({"role": "user", "content": prompt})
        is_demanded, self.is_first = self.task.get("demanded") and self.is_first, False
        return self.ask(**({"tool_choice": "required"} if is_demanded else {}))

    def answer(self, results):
        self.items += [{"type": "function_call_output", "call_id": id, "output": result} for id, _, result in results]
        return self.ask()

    def take(self, answer, output):
        """Keeps the items of an answer, unless the provider keeps them."""
        if not self.task.get("state"):
            self.items += output
            return
        self.items = []
        if self.task["state"] == "response":
            self.fields["previous_response_id"] = answer.id


def last_response(events):
    """The response that a stream of OpenAI's responses ended with."""
    return [event.response for event in events if event.type in ("response.completed", "response.incomplete")][0]


def play(task, conversation, turns):
    """Says every prompt, and answers each call of the own tool; what comes is kept in `turns`."""
    for prompt, expected, number in zip(task["turns"], task["expect"], task["calls"]):
        turn = {"text": "", "calls": []}
        turns.append(turn)
        text, calls = conversation.say(prompt)
        turn["text"] = text or ""
        for _ in range(MOST_REQUESTS):
            if not calls:
                break
            turn["calls"] += [name for _, name in calls]
            foreign = [name for _, name in calls if name != OWN]
            assert not foreign, f"calls of {foreign} reached the client"
            text, calls = conversation.answer([(id, name, RESULT) for id, name in calls])
            turn["text"] += "\n" + (text or "")
        absent = [part for part in expected if part not in turn["text"]]
        assert not absent, f"{prompt!r} brought {turn['text']!r} without {absent}"
        assert len(turn["calls"]) == number, f"{prompt!r} brought the calls {turn['calls']}, not {number}"


def outcome(begin, line):
    """The outcome of a task, as a line; an error of it is no error of the others."""
    task, turns = json.loads(line), []
    try:
        play(task, begin(task), turns)
        error = None
    except Exception as raised:  # noqa: BLE001
        error = f"{type(raised).__name__}: {raised}"[:600]
    return json.dumps({"name": task["name"], "ok": error is None, "error": error, "turns": turns})


def run(begin):
    """Plays every task with the conversation that `begin` makes of it."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for line in pool.map(lambda line: outcome(begin, line), sys.stdin):
            print(line, flush=True)
