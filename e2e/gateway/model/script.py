"""The script in the last user message, and how far a conversation is in it. Form: model.py."""

import json
import re
from dataclasses import dataclass, field

from refusal import Refused, check

# Each answer counts the same, so that a sum tells how many there were.
INPUT_TOKENS, OUTPUT_TOKENS = 10, 5
# A step that is a call, a cut call, or a fault. The last word of the name is looked up among the tools.
STEP = re.compile(r"(?:(;)\s*(?:then\s+)?|and\s+)?(call|cut|force|fault|loop \d+)\s+([^\s;]+)\s*")
SAY = re.compile(r"(?:(;)\s*(?:then\s+)?|and\s+)?say\s+(.*?)\s*(?=;|\band (?:call|cut|force|fault)\b|$)", re.DOTALL)
RECALL = re.compile(r"(?:(;)\s*(?:then\s+)?|and\s+)?recall\s*(?=;|\band |$)")
FAULTS = ("429", "500", "529", "break", "rubbish", "hang")


@dataclass
class Answer:
    """One answer of the model. A cut one ends in the middle of its last call's arguments."""

    text: list
    calls: list = field(default_factory=list)
    is_cut: bool = False
    fault: tuple = None


def parse(prompt):
    """Steps, each a list of (verb, name, value)."""
    steps, rest = [[]], prompt.strip()
    while rest:
        found = STEP.match(rest)
        if found:
            if found[1]:
                steps.append([])
            rest = rest[found.end():]
            verb, name, value = found[2], found[3], {}
            if verb == "fault":
                check(name in FAULTS, f"there is no fault {name!r}")
                times = re.match(r"(\d+)\s*", rest)
                rest = rest[times.end():] if times else rest
                steps[-1].append((verb, name, int(times[1]) if times else 1))
                continue
            if rest.startswith("{"):
                value, end = json.JSONDecoder().raw_decode(rest)
                rest = rest[end:].lstrip()
            if verb.startswith("loop"):
                steps[-1:] = [[("call", name, value)] for _ in range(int(verb[5:]))]
            else:
                steps[-1].append((verb, name, value))
            continue
        found = SAY.match(rest) or RECALL.match(rest)
        check(found, f"the script cannot be read from here: {rest!r}")
        if found[1]:
            steps.append([])
        steps[-1].append(("say", None, found[2]) if found.re is SAY else ("recall", None, None))
        rest = rest[found.end():]
    return [step for step in steps if step]


@dataclass
class Turn:
    """The part of a request that the script needs.

    `rounds` and `results` are those since the prompt, `history` all calls with their results, by name of the tool.
    """

    prompt: str
    tools: list
    rounds: int = 0
    results: list = field(default_factory=list)
    history: list = field(default_factory=list)
    may_call: bool = True
    is_parallel: bool = True

    def answer(self, number):
        """The next answer, as the answer of this number."""
        check(self.prompt is not None, "there is no user message")
        try:
            steps = parse(self.prompt)
        except Refused:
            if not self.prompt.rstrip().endswith("?"):
                raise
            return self.reply(number)
        if not self.is_parallel:
            steps = [part for step in steps for part in apart(step)]
        if self.rounds >= len(steps):
            return Answer([f"RESULT {result}" for result in self.results])
        answer = Answer([])
        for verb, name, value in steps[self.rounds]:
            if verb == "fault":
                answer.fault = (name, value)
            elif verb == "say":
                answer.text.append(value)
            elif verb == "recall":
                answer.text.append(f"RECALL {' '.join(f'{tool}={result}' for tool, result in self.history)}")
            else:
                self.call(answer, verb, name, value, number)
        # With the last step the results are said too: tests see what the model was given.
        if not answer.calls and self.rounds + 1 == len(steps) or not self.may_call:
            answer.text += [f"RESULT {result}" for result in self.results]
        return answer

    def call(self, answer, verb, name, value, number):
        offered = [name] if verb == "force" else [tool for tool in self.tools if tool.startswith(name)]
        if not self.may_call:
            answer.text.append(f"NOT ALLOWED {name}")
        elif offered:
            # Ids are of one answer, as a provider's are.
            id = f"call_{number}_{len(answer.calls)}"
            answer.calls.append({"id": id, "name": min(offered, key=len), "input": value})
            answer.is_cut |= verb == "cut"
        else:
            answer.text.append(f"NOT OFFERED {name}")

    def reply(self, number):
        """The same for a question: a call of the tool that it is most about, then words with the result."""
        question = self.prompt.strip().removesuffix("?")
        words = set(re.findall(r"\w+", question.lower()))
        tool = max(self.tools, key=lambda name: len(words.intersection(re.split("[-_]", name.lower()))), default=None)
        if tool is None:
            return Answer(["I have nothing to find that out with."])
        if self.results:
            return Answer([f"I asked {tool}, and it says: {'; '.join(map(phrase, self.results))}."])
        return Answer([], [{"id": f"call_{number}_0", "name": tool, "input": {"text": question.partition(": ")[2] or question}}])


def apart(step):
    """A step with one call at most in each part, for a request that wants no parallel calls."""
    parts = [[]]
    for act in step:
        if act[0] in ("call", "cut", "force") and any(other[0] != "say" for other in parts[-1]):
            parts.append([])
        parts[-1].append(act)
    return parts


def phrase(result):
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


def arguments(answer, call):
    """A call's arguments as text; the last call of a cut answer has half of them."""
    text = json.dumps(call["input"])
    return text[:len(text) // 2] if answer.is_cut and call is answer.calls[-1] else text
