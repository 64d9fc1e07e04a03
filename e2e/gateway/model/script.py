"""What the scripted model is told in the last user message, and how far a conversation is in it. Form: model.py."""

import json
import re

# Each answer counts the same, so that a sum tells how many there were.
INPUT_TOKENS, OUTPUT_TOKENS = 10, 5
LEGAL_NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$")
SIGNATURE = "c2lnbmF0dXJl"


class Refused(Exception):
    """A request that the provider would not take."""


def check(is_right, message):
    if not is_right:
        raise Refused(message)


def parse(prompt):
    """Steps, each a list of (verb, name, value)."""
    steps, rest = [[]], prompt.strip()
    while rest:
        found = re.match(r"(?:(;)\s*(?:then\s+)?|and\s+)?(call|force|loop \d+)\s+([^\s;]+)\s*", rest)
        if found:
            if found[1]:
                steps.append([])
            rest, value = rest[found.end():], {}
            if rest.startswith("{"):
                value, end = json.JSONDecoder().raw_decode(rest)
                rest = rest[end:].lstrip()
            if found[2].startswith("loop"):
                steps[-1:] = [[("call", found[3], value)] for _ in range(int(found[2][5:]))]
            else:
                steps[-1].append((found[2], found[3], value))
            continue
        found = re.match(r"(?:(;)\s*(?:then\s+)?|and\s+)?say\s+(.*?)\s*(?=;|\band (?:call|force)\b|$)", rest, re.DOTALL)
        check(found, f"the script cannot be read from here: {rest!r}")
        if found[1]:
            steps.append([])
        steps[-1].append(("say", None, found[2]))
        rest = rest[found.end():]
    return [step for step in steps if step]


class Turn:
    """What is read of a request: the prompt, the tools, and the rounds since the prompt with their results."""

    def __init__(self, prompt, tools, rounds, results):
        for name in tools:
            check(isinstance(name, str) and LEGAL_NAME.match(name), f"{name!r} is no name of a tool")
        check(len(set(tools)) == len(tools), f"tool names must be unique: {tools}")
        check(prompt is not None, "there is no user message")
        self.prompt, self.tools, self.rounds, self.results = prompt, tools, rounds, results

    def answer(self):
        """Text and calls of the next answer."""
        try:
            steps = parse(self.prompt)
        except Refused:
            if not self.prompt.rstrip().endswith("?"):
                raise
            return self.reply()
        text, calls = [], []
        if self.rounds >= len(steps):
            return [f"RESULT {result}" for result in self.results], []
        for verb, name, value in steps[self.rounds]:
            if verb == "say":
                text.append(value)
                continue
            offered = [tool for tool in self.tools if tool.startswith(name)]
            if verb == "force":
                offered = [name]
            if offered:
                number = len(calls)
                calls.append({"id": f"call_{self.rounds}_{number}", "name": min(offered, key=len), "input": value})
            else:
                text.append(f"NOT OFFERED {name}")
        # With the last step the results are told too: tests see what the model was given.
        if not calls and self.rounds + 1 == len(steps):
            text += [f"RESULT {result}" for result in self.results]
        return text, calls

    def reply(self):
        """The same for a question: a call of the tool that it is most about, then words with the result."""
        question = self.prompt.strip().removesuffix("?")
        words = set(re.findall(r"\w+", question.lower()))
        tool = max(self.tools, key=lambda name: len(words.intersection(re.split("[-_]", name.lower()))), default=None)
        if tool is None:
            return ["I have nothing to find that out with."], []
        if self.results:
            return [f"I asked {tool}, and it says: {'; '.join(map(told, self.results))}."], []
        return [], [{"id": "call_0_0", "name": tool, "input": {"text": question.partition(": ")[2] or question}}]


def told(result):
    """A result as people would say it: fields with their values, without the brackets around them."""

    def said(value):
        if isinstance(value, dict):
            return ", ".join(f"{name} {said(part)}" for name, part in value.items())
        if isinstance(value, list):
            return ", ".join(map(said, value))
        return json.dumps(value, ensure_ascii=False)

    try:
        return said(json.loads(result))
    except ValueError:
        return result


def texts(content, kinds):
    """Text of a content that is a string or a list of parts; None where it has none."""
    if isinstance(content, str):
        return content
    found = [part["text"] for part in content or [] if part.get("type", "text") in kinds and "text" in part]
    return "\n".join(found) if found else None


def pieces(text):
    """Cut where it hurts: after a backslash, inside an escape, and else every few characters."""
    cuts, at = [], 0
    while at < len(text):
        escape = text.find("\\", at)
        end = escape + 1 if at <= escape < at + 7 else at + 7
        cuts.append(text[at:end])
        at = end
    return cuts
