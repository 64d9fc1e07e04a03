"""The conversations of clients/journeys.json, each for one client, form and variant."""

import fnmatch
import itertools
import json
from pathlib import Path

CLIENTS = Path(__file__).resolve().parent.parent / "clients"
# A script of a language, by the API that it speaks.
SCRIPTS = {"chat": "journey_openai", "responses": "journey_openai", "messages": "journey_anthropic", "generate": "journey_google"}
LANGUAGES = ("python", "node")
# Where a client is installed, if not with the frameworks for Python.
PLACES = {"python": "python", "node": "node", "vercel-ai": "node", "litellm": "litellm"}
# Errors of the gateway by turn, and what each SDK's exception says of them.
ERRORS = {
    "token": ("AuthenticationError", "ClientError", "Unauthorized"),
    "header": ("BadRequestError", "ClientError", "x-skillet-skills"),
    "path": ("NotFoundError", None, "there is no path"),
    "broken": ("API", "ServerError", "the provider broke off its stream"),
}


def fill(text, name):
    """A prompt or an expectation with the inputs that belong to a conversation's name."""
    inputs = {"text": {"text": name}, "again": {"text": f"{name} again"}, "both": {"text": name, "unit": "words"}, "city": {"city": "Bern"}}
    guide = {"name": "release-notes"}
    inputs |= {"guide": guide, "file": {**guide, "path": "references/style.md"}, "script": {**guide, "path": "scripts/count.py", "args": [name]}}
    inputs = {"{name}": name, **{f"{{{word}}}": json.dumps(value) for word, value in inputs.items()}}
    for placeholder, value in inputs.items():
        text = text.replace(placeholder, value)
    return text


def all_tasks(pattern="*"):
    """Every conversation whose name fits the pattern, with the place of its client and its script."""
    table = json.loads((CLIENTS / "journeys.json").read_text())
    clients = {**{language: table["variants"] for language in LANGUAGES}, **table["frameworks"]}
    of_clients = (of_client(table, client, apis) for client, apis in clients.items())
    found = [*itertools.chain(*of_clients), *of_errors()]
    return [one for one in found if fnmatch.fnmatch(one[2]["name"], pattern)]


def of_client(table, client, apis):
    for api, variants in apis.items():
        script = SCRIPTS[api] if client in LANGUAGES else f"journey_{client.replace('-', '_')}"
        for (variant, fields), (scenario, given) in itertools.product(variants.items(), table["scenarios"].items()):
            for stream in (False, True):
                name = f"{client}-{api}-{variant}-{form(stream)}-{scenario}"
                if not fits(name, table["only"].get(scenario, ["*"])) or fits(name, table["except"].get(scenario, [])):
                    continue
                forgets = scenario in table["forgettable"] and fits(name, table["forgets"])
                yield PLACES.get(client, "frameworks"), script, task(name, api, stream, {**fields, **given}, forgets)


def fits(name, patterns):
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def of_errors():
    """A conversation of errors for each SDK: a turn names one, and expects the exception's class and words."""
    for api, language in itertools.product(SCRIPTS, LANGUAGES):
        kind = {"generate": "ApiError" if language == "node" else None}.get(api)
        at = 1 if api == "generate" else 0
        turns = [turn for turn, words in ERRORS.items() if words[at]]
        expect = [[kind or ERRORS[turn][at], ERRORS[turn][2]] for turn in turns]
        name = f"{language}-{api}-errors"
        yield language, "journey_errors", task(name, api, True, {"turns": turns, "expect": expect, "runs": 0, "errors": True}, False)


def form(stream):
    return "streamed" if stream else "whole"


def task(name, api, stream, fields, forgets):
    turns = [fill(turn, name) for turn in fields["turns"]]
    expected = [["RECALL"] if forgets and turn == "recall" else parts for turn, parts in zip(turns, fields["expect"])]
    model = f"{fields['model']}-{name}" if "model" in fields else name
    return {
        "calls": [0] * len(turns), **fields, "name": name, "api": api, "stream": stream, "model": model, "turns": turns,
        "expect": [[fill(part, name) for part in parts] for parts in expected],
    }
