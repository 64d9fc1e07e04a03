"""The conversations of clients/journeys.json, each for one SDK, form and variant."""

import fnmatch
import itertools
import json
from pathlib import Path

CLIENTS = Path(__file__).resolve().parent.parent / "clients"
# A script of a language, by the API that it speaks.
SCRIPTS = {"chat": "journey_openai", "responses": "journey_openai", "messages": "journey_anthropic", "generate": "journey_google"}
LANGUAGES = ("python", "node")


def fill(text, name):
    """A prompt or an expectation with the inputs that belong to a conversation's name."""
    inputs = {"text": {"text": name}, "again": {"text": f"{name} again"}, "both": {"text": name, "unit": "words"}, "city": {"city": "Bern"}}
    inputs = {"{name}": name, **{f"{{{word}}}": json.dumps(value) for word, value in inputs.items()}}
    for placeholder, value in inputs.items():
        text = text.replace(placeholder, value)
    return text


def all_tasks(pattern="*"):
    """Every conversation whose name fits the pattern, with the folder of its clients and its script."""
    table = json.loads((CLIENTS / "journeys.json").read_text())
    found = [*of_sdks(table), *of_frameworks(table)]
    return [one for one in found if fnmatch.fnmatch(one[2]["name"], pattern)]


def of_sdks(table):
    for api, variants in table["variants"].items():
        for (variant, fields), (scenario, given) in itertools.product(variants.items(), table["scenarios"].items()):
            of = f"{api}-{variant}"
            if of not in table["only"].get(scenario, [of]) or of in table["except"].get(scenario, []):
                continue
            forgets = scenario in table["forgets"].get(of, [])
            for language, stream in itertools.product(LANGUAGES, (False, True)):
                name = f"{language}-{of}-{form(stream)}-{scenario}"
                yield language, SCRIPTS[api], task(name, api, stream, {**fields, **given}, forgets)


def of_frameworks(table):
    for framework, apis in table["frameworks"].items():
        script = f"journey_{framework.replace('-', '_')}"
        for (api, fields), scenario in itertools.product(apis.items(), table["of-frameworks"]):
            forgets = scenario in table["forgets"].get(f"{framework}-{api}", [])
            for stream in (False, True):
                name = f"{framework}-{api}-{form(stream)}-{scenario}"
                yield "frameworks", script, task(name, api, stream, {**fields, **table["scenarios"][scenario]}, forgets)


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
