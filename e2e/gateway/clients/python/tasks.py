"""What every script here does: a JSON task a line on standard input, an answer a line on standard output.

A task: {"prompt", "model", "api", "stream", "own": {"name", "result"}, "confirm"}. An answer: {"text", "toolCalls",
"streamed", "usage", "then"}; `toolCalls` are those that reached the client, `then` is the text after it has answered
its own one, or has confirmed that of a skill.
SKILLET_URL and SKILLET_TOKEN say where the gateway is and who asks.
"""

import json
import os
import sys

URL = os.environ["SKILLET_URL"].rstrip("/")
TOKEN = os.environ["SKILLET_TOKEN"]


def own_schema():
    """Parameters of the client's own tool."""
    return {"type": "object", "properties": {"city": {"type": "string"}}}


def answered(task):
    """Whether a call that reaches the client is answered."""
    return bool(task.get("own") or task.get("confirm"))


def result(task, text):
    """What the client answers a call with: yes, by the token in the text beside the call, or its own tool's result."""
    if not task.get("confirm"):
        return (task.get("own") or {}).get("result", "")
    starts = [at for at, letter in enumerate(text) if letter == "{"]
    for start in starts:
        try:
            word, _ = json.JSONDecoder().raw_decode(text[start:])
        except ValueError:
            continue
        if "token" in word:
            return json.dumps(word)
    raise ValueError(f"no token in {text!r}")


def run(converse):
    """Gives every task to `converse`, in order; an error of one is its answer."""
    for line in sys.stdin:
        try:
            answer = converse(json.loads(line))
        except Exception as error:  # noqa: BLE001
            answer = {"error": f"{type(error).__name__}: {error}", "status": getattr(error, "status_code", None)}
        print(json.dumps(answer), flush=True)
