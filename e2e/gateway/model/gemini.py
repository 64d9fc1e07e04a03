"""Gemini's generateContent: reads a request, and writes an answer whole and as events."""

import json
import re

import gemini_rules as rules
import gemini_tools_rules as tools_rules
from script import INPUT_TOKENS, OUTPUT_TOKENS, Turn, arguments, pieces, texts
from signatures import sign

THOUGHT = "The user wants something."
STATUSES = {404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 529: "UNAVAILABLE"}
# Values that are the user's, whatever their names are.
OPAQUE = ("args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema", "labels")


def camel(value):
    """The API takes its names in either case."""
    if isinstance(value, list):
        return [camel(part) for part in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name): part for name, part in value.items()}
    return {name: part if name in OPAQUE else camel(part) for name, part in named.items()}


class Gemini:
    def read(self, request):
        body = camel(request.body)
        contents = body.get("contents") or []
        rules.check_contents(contents, request.model)
        tools_rules.check_tools(body, request.model)
        prompt, rounds, results, history = None, 0, [], []
        for turn in rules.merge(contents):
            responses = rules.of(turn, "functionResponse")
            text = texts(turn["parts"], ["text"])
            if turn["role"] == "user" and text is not None:
                prompt, rounds, results = text, 0, []
            rounds += bool(rules.of(turn, "functionCall"))
            given = [(it["name"], json.dumps(it["response"], ensure_ascii=False)) for it in responses]
            results += [result for _, result in given]
            history += given
        calling = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
        names = [function["name"] for function in tools_rules.declared(body)]
        return Turn(prompt, names, rounds, results, history, calling.get("mode") != "NONE")

    def is_thinking(self, request):
        config = (camel(request.body).get("generationConfig") or {}).get("thinkingConfig") or {}
        return bool(config.get("includeThoughts"))

    def frame(self, request, parts, reason=None):
        candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
        answer = {"candidates": [candidate], "modelVersion": request.model, "responseId": f"r{request.number}"}
        if reason:
            candidate["finishReason"] = reason
            total = INPUT_TOKENS + OUTPUT_TOKENS
            counts = {"promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS, "totalTokenCount": total}
            answer["usageMetadata"] = {**counts, **({"thoughtsTokenCount": 0} if self.is_thinking(request) else {})}
        return answer

    def calls(self, request, answer):
        parts = []
        for call in answer.calls:
            is_whole = arguments(answer, call) == json.dumps(call["input"])
            given = call["input"] if is_whole else dict(list(call["input"].items())[:-1])
            parts.append({"functionCall": {"name": call["name"], "args": given}})
            if "gemini-3" in request.model:
                parts[-1]["functionCall"]["id"] = call["id"]
        if parts:
            parts[0]["thoughtSignature"] = self.signature(request, parts[0])
        return parts

    def thoughts(self, request):
        return [{"text": THOUGHT, "thought": True}] if self.is_thinking(request) else []

    def signed(self, request, answer, text):
        """The last part of words, which is signed if the model has thought and calls nothing."""
        part = {"text": text}
        is_signed = self.is_thinking(request) and not answer.calls
        return {**part, **({"thoughtSignature": self.signature(request, part)} if is_signed else {})}

    def signature(self, request, part):
        return sign("gemini", "", number=request.number, part=rules.part_of(part))

    def reason(self, answer):
        return "MAX_TOKENS" if answer.is_cut else "STOP"

    def whole(self, request, answer):
        text = [self.signed(request, answer, "\n".join(answer.text))] if answer.text else []
        parts = self.thoughts(request) + text + self.calls(request, answer)
        return self.frame(request, parts, self.reason(answer))

    def events(self, request, answer):
        for part in self.thoughts(request):
            yield None, self.frame(request, [part])
        for piece in pieces("\n".join(answer.text)):
            yield None, self.frame(request, [{"text": piece}])
        for part in self.calls(request, answer):
            yield None, self.frame(request, [part])
        yield None, self.frame(request, [self.signed(request, answer, "")], self.reason(answer))

    def error(self, request, refused):
        status = STATUSES.get(refused.status, "INVALID_ARGUMENT")
        return {"error": {"code": refused.status, "message": str(refused), "status": status, **refused.fields}}
