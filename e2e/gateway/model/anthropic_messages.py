"""Anthropic's messages: reads a request with the thread that it names, and writes an answer whole and as events."""

import json
from dataclasses import replace

import anthropic_rules as rules
import anthropic_thinking_rules as thinking_rules
import anthropic_tools_rules as tools_rules
from script import INPUT_TOKENS, OUTPUT_TOKENS, Turn, arguments, pieces, texts
from signatures import sign

THOUGHT = "The user wants something."
ERRORS = {404: "not_found_error", 409: "conflict_error", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}


class Messages:
    def __init__(self):
        self.threads = tools_rules.Threads()

    def read(self, request):
        rules.check_fields(request)
        request = replace(request, body=self.threads.resolve(request.body))
        body = request.body
        rules.check_messages(body["messages"])
        rules.check_cache_marks(body, body["messages"])
        turns = rules.merge(body["messages"])
        rules.check_pairs(turns)
        tools_rules.check_tools(body)
        thinking_rules.check_thinking(request, turns)
        return self.turn(body, turns)

    def turn(self, body, turns):
        prompt, rounds, results, names, history = None, 0, [], {}, []
        for turn in turns:
            content = turn["content"]
            if turn["role"] == "user" and (text := texts(content, ["text"])) is not None:
                prompt, rounds, results = text, 0, []
            names |= {block["id"]: block["name"] for block in content if block["type"] == "tool_use"}
            rounds += any(block["type"] == "tool_use" for block in content)
            for block in content:
                if block["type"] == "tool_result":
                    results.append(texts(block.get("content"), ["text"]) or "")
                    history.append((names[block["tool_use_id"]], results[-1]))
        choice = body.get("tool_choice") or {}
        tools = [tool["name"] for tool in body.get("tools") or []]
        is_parallel = not choice.get("disable_parallel_tool_use")
        return Turn(prompt, tools, rounds, results, history, choice.get("type") != "none", is_parallel)

    def thinking(self, request):
        """Blocks of thinking: before each answer if it is interleaved, else at the start of a turn only."""
        mode = thinking_rules.mode(request.body)
        last = rules.blocks(request.body["messages"][-1]["content"])
        is_in_loop = bool(last) and last[0]["type"] == "tool_result"
        is_interleaved = mode == "adaptive" or thinking_rules.INTERLEAVED in request.betas
        if mode == "disabled" or is_in_loop and not is_interleaved:
            return []
        is_redacted = "redacted" in request.model
        origin = {"number": request.number, "count": 1 + is_redacted}
        blocks = [{"type": "thinking", "thinking": THOUGHT, "signature": sign("thinking", THOUGHT, index=0, **origin)}]
        return blocks + ([{"type": "redacted_thinking", "data": sign("redacted", "", index=1, **origin)}] if is_redacted else [])

    def content(self, request, answer):
        content = self.thinking(request) + ([{"type": "text", "text": "\n".join(answer.text)}] if answer.text else [])
        for call in answer.calls:
            is_whole = arguments(answer, call) == json.dumps(call["input"])
            given = call["input"] if is_whole else complete_part(call["input"])
            content.append({"type": "tool_use", "id": f"toolu_{call['id']}", "name": call["name"], "input": given})
        return content

    def frame(self, request, content, reason):
        return {
            "id": f"msg_{request.number}", "type": "message", "role": "assistant", "model": request.model, "content": content,
            "stop_reason": reason, "stop_sequence": None, "usage": self.usage(),
        }

    def usage(self):
        cached = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        return {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS, **cached}

    def whole(self, request, answer):
        reason = "max_tokens" if answer.is_cut else "tool_use" if answer.calls else "end_turn"
        message = self.frame(request, self.content(request, answer), reason)
        resolved = self.threads.resolve(request.body)
        self.threads.record(request.body, resolved, message)
        return message

    def events(self, request, answer):
        def event(kind, **fields):
            return kind, {"type": kind, **fields}

        whole = self.whole(request, answer)
        started = {**whole, "content": [], "stop_reason": None, "usage": {**self.usage(), "output_tokens": 1}}
        yield event("message_start", message=started)
        yield event("ping")
        calls = {f"toolu_{call['id']}": arguments(answer, call) for call in answer.calls}
        empty = {"text": {"text": ""}, "tool_use": {"input": {}}, "thinking": {"thinking": "", "signature": ""}}
        for index, block in enumerate(whole["content"]):
            begun = {**block, **empty.get(block["type"], {})}
            yield event("content_block_start", index=index, content_block=begun)
            for delta in self.deltas(block, calls):
                yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield event("message_delta", delta=ended, usage={"output_tokens": OUTPUT_TOKENS})
        yield event("message_stop")

    def deltas(self, block, calls):
        if block["type"] == "text":
            yield from ({"type": "text_delta", "text": piece} for piece in pieces(block["text"]))
        elif block["type"] == "tool_use":
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces(calls[block["id"]]))
        elif block["type"] == "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"]))
            yield {"type": "signature_delta", "signature": block["signature"]}

    def error(self, request, refused):
        kind = ERRORS.get(refused.status, "invalid_request_error")
        error = {"type": kind, "message": str(refused), **refused.fields}
        return {"type": "error", "error": error, "request_id": f"req_{request.number}"}


def complete_part(given):
    """A cut call's input as the API gives it whole: the parameters that were complete."""
    return dict(list(given.items())[:-1])
