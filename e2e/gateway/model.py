"""A model that does what it is told: the provider behind the gateway in the end-to-end tests.

It speaks whole and streamed answers of OpenAI's chat completions and responses, Anthropic's messages and Gemini's
generateContent, and is as strict as those are: a tool call that is not followed by its result is a 400. What it answers
is a script in the last user message. Steps stand between `;`, one for each answer:

    call word-count {"text": "a b"}; then say done      the tool whose name begins so is called, then text
    call a {} and call b {}                              two calls in one answer
    say let me see and call a {}                         text before a call
    force treasure {}                                    a call of a tool, offered or not
    loop 10 a {}                                         ten steps of one call

A script that is at its end answers `RESULT <content>` for each result since the last user message. GET /log shows what
was asked, with `?model=` of one model only; keys are left out. It holds nothing else, and is no part of Skillet.
"""

import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

LOG = []
LOCK = threading.Lock()
PRIVATE = ("authorization", "x-api-key", "x-goog-api-key", "cookie")
# Each answer counts the same, so that a sum tells how many there were.
INPUT_TOKENS, OUTPUT_TOKENS = 10, 5
LEGAL_NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$")
SIGNATURE = "c2lnbmF0dXJl"


class Refused(Exception):
    """A request that the provider would not take."""


def check(is_right, message):
    if not is_right:
        raise Refused(message)


# ---- the script


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
        steps = parse(self.prompt)
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


# ---- the dialects: each reads a request, and writes an answer whole and as events


class Chat:
    @staticmethod
    def read(body):
        messages = body["messages"]
        users = [at for at, message in enumerate(messages) if message["role"] == "user"]
        for at, message in enumerate(messages):
            wanted = [call["id"] for call in message.get("tool_calls") or []]
            following = [m.get("tool_call_id") for m in messages[at + 1:at + 1 + len(wanted)] if m["role"] == "tool"]
            check(sorted(wanted) == sorted(following), f"messages[{at}]: tool calls must be followed by their results")
            for call in message.get("tool_calls") or []:
                json.loads(call["function"]["arguments"])
        last = users[-1] if users else 0
        tail = messages[last + 1:]
        return Turn(
            texts(messages[last]["content"], ["text"]) if users else None,
            [tool["function"]["name"] for tool in body.get("tools") or []],
            sum(1 for message in tail if message.get("tool_calls")),
            [texts(message["content"], ["text"]) for message in tail if message["role"] == "tool"],
        )

    @staticmethod
    def frame(body, kind):
        return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": body["model"]}

    @staticmethod
    def usage():
        total = INPUT_TOKENS + OUTPUT_TOKENS
        return {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS, "total_tokens": total}

    @classmethod
    def whole(cls, body, text, calls):
        message = {"role": "assistant", "content": "\n".join(text) or None, "refusal": None}
        if calls:
            message["tool_calls"] = [
                {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": json.dumps(call["input"])}}
                for call in calls
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if calls else "stop"}
        return {**cls.frame(body, "chat.completion"), "choices": [choice], "usage": cls.usage()}

    @classmethod
    def events(cls, body, text, calls):
        frame = cls.frame(body, "chat.completion.chunk")

        def chunk(delta, reason=None):
            return None, {**frame, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}

        yield chunk({"role": "assistant", "content": "" if text else None})
        for piece in pieces("\n".join(text)):
            yield chunk({"content": piece})
        for index, call in enumerate(calls):
            function = {"name": call["name"], "arguments": ""}
            yield chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]})
        # The arguments of all calls come interleaved.
        streams = [pieces(json.dumps(call["input"])) for call in calls]
        for place in range(max(map(len, streams), default=0)):
            for index, stream in enumerate(streams):
                if place < len(stream):
                    yield chunk({"tool_calls": [{"index": index, "function": {"arguments": stream[place]}}]})
        yield chunk({}, "tool_calls" if calls else "stop")
        if (body.get("stream_options") or {}).get("include_usage"):
            yield None, {**frame, "choices": [], "usage": cls.usage()}
        yield None, "[DONE]"


class Responses:
    @staticmethod
    def read(body):
        items = body["input"]
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
        outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
        check(sorted(calls) == sorted(outputs), f"calls {calls} and outputs {outputs} do not match")
        users = [at for at, item in enumerate(items) if item.get("role") == "user"]
        last = users[-1] if users else 0
        kinds = [item.get("type") for item in items[last + 1:]]
        # A round is a run of calls: each is ended by its results.
        starts = [at for at, kind in enumerate(kinds) if kind == "function_call" and (at == 0 or kinds[at - 1] != kind)]
        results = [item["output"] for item in items[last + 1:] if item.get("type") == "function_call_output"]
        return Turn(
            texts(items[last]["content"], ["input_text", "text"]) if users else None,
            [tool["name"] for tool in body.get("tools") or [] if tool["type"] == "function"],
            len(starts),
            [texts(result, ["output_text", "input_text"]) for result in results],
        )

    @staticmethod
    def item(at, kind, **fields):
        return {"id": f"{'msg' if kind == 'message' else 'fc'}_{at}", "type": kind, "status": "completed", **fields}

    @classmethod
    def output(cls, text, calls):
        items = []
        if text:
            part = {"type": "output_text", "text": "\n".join(text), "annotations": [], "logprobs": []}
            items.append(cls.item(0, "message", role="assistant", content=[part]))
        for call in calls:
            fields = {"call_id": call["id"], "name": call["name"], "arguments": json.dumps(call["input"])}
            items.append(cls.item(len(items), "function_call", **fields))
        return items

    @classmethod
    def whole(cls, body, text, calls, status="completed"):
        is_done = status == "completed"
        usage = {
            "input_tokens": INPUT_TOKENS, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": OUTPUT_TOKENS,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        }
        return {
            "id": f"resp_{len(calls)}_{len(text)}", "object": "response", "created_at": 1, "status": status, "error": None,
            "incomplete_details": None, "instructions": None, "metadata": {}, "model": body["model"],
            "output": cls.output(text, calls) if is_done else [], "parallel_tool_calls": True, "temperature": 1.0,
            "tool_choice": "auto", "tools": body.get("tools") or [], "top_p": 1.0, "usage": usage if is_done else None,
        }

    @classmethod
    def events(cls, body, text, calls):
        number = 0

        def event(kind, **fields):
            nonlocal number
            number += 1
            return kind, {"type": kind, "sequence_number": number - 1, **fields}

        started = cls.whole(body, text, calls, "in_progress")
        yield event("response.created", response=started)
        yield event("response.in_progress", response=started)
        for at, item in enumerate(cls.output(text, calls)):
            place = {"item_id": item["id"], "output_index": at}
            if item["type"] == "message":
                part = item["content"][0]
                yield event("response.output_item.added", output_index=at, item={**item, "status": "in_progress", "content": []})
                yield event("response.content_part.added", **place, content_index=0, part={**part, "text": ""})
                for piece in pieces(part["text"]):
                    yield event("response.output_text.delta", **place, content_index=0, delta=piece, logprobs=[])
                yield event("response.output_text.done", **place, content_index=0, text=part["text"], logprobs=[])
                yield event("response.content_part.done", **place, content_index=0, part=part)
            else:
                yield event("response.output_item.added", output_index=at, item={**item, "status": "in_progress", "arguments": ""})
                for piece in pieces(item["arguments"]):
                    yield event("response.function_call_arguments.delta", **place, delta=piece)
                done = {"arguments": item["arguments"], "name": item["name"]}
                yield event("response.function_call_arguments.done", **place, **done)
            yield event("response.output_item.done", output_index=at, item=item)
        yield event("response.completed", response=cls.whole(body, text, calls))


class Messages:
    @staticmethod
    def read(body):
        check(isinstance(body.get("max_tokens"), int), "max_tokens: field required")
        turns = [(m["role"], m["content"] if isinstance(m["content"], list) else [{"type": "text", "text": m["content"]}])
                 for m in body["messages"]]
        prompt, rounds, results = None, 0, []
        for at, (role, blocks) in enumerate(turns):
            check(blocks, f"messages.{at}: content is empty")
            wanted = [block["id"] for block in blocks if block["type"] == "tool_use"]
            following = turns[at + 1][1] if at + 1 < len(turns) else []
            given = [block["tool_use_id"] for block in following if block["type"] == "tool_result"]
            check(sorted(wanted) == sorted(given), f"messages.{at}: tool_use must be followed by tool_result")
            if role == "user" and (text := texts(blocks, ["text"])) is not None:
                prompt, rounds, results = text, 0, []
            rounds += bool(wanted)
            results += [texts(block.get("content"), ["text"]) or "" for block in blocks if block["type"] == "tool_result"]
        return Turn(prompt, [tool["name"] for tool in body.get("tools") or []], rounds, results)

    @staticmethod
    def usage():
        return {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}

    @classmethod
    def whole(cls, body, text, calls):
        content = [{"type": "text", "text": "\n".join(text)}] if text else []
        content += [{"type": "tool_use", "id": f"toolu_{call['id']}", "name": call["name"], "input": call["input"]} for call in calls]
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content,
            "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None, "usage": cls.usage(),
        }

    @classmethod
    def events(cls, body, text, calls):
        def event(kind, **fields):
            return kind, {"type": kind, **fields}

        whole = cls.whole(body, text, calls)
        started = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1}}
        yield event("message_start", message=started)
        yield event("ping")
        for index, block in enumerate(whole["content"]):
            is_text = block["type"] == "text"
            yield event("content_block_start", index=index, content_block={**block, **({"text": ""} if is_text else {"input": {}})})
            for piece in pieces(block["text"] if is_text else json.dumps(block["input"])):
                delta = {"type": "text_delta", "text": piece} if is_text else {"type": "input_json_delta", "partial_json": piece}
                yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield event("message_delta", delta=ended, usage={"output_tokens": OUTPUT_TOKENS})
        yield event("message_stop")


class Gemini:
    @staticmethod
    def read(body):
        prompt, rounds, results = None, 0, []
        contents = body["contents"]
        for at, content in enumerate(contents):
            parts = content["parts"]
            check(parts, f"contents[{at}].parts is empty")
            wanted = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
            following = contents[at + 1]["parts"] if at + 1 < len(contents) else []
            given = [part["functionResponse"]["name"] for part in following if "functionResponse" in part]
            check(sorted(wanted) == sorted(given), f"contents[{at}]: calls {wanted} need as many responses, not {given}")
            signed = [part.get("thoughtSignature") for part in parts if "functionCall" in part][:1]
            check(signed in ([], [SIGNATURE]), f"contents[{at}]: the first function call lacks its thought_signature")
            text = texts(parts, ["text"])
            if content.get("role", "user") == "user" and text is not None:
                prompt, rounds, results = text, 0, []
            rounds += bool(wanted)
            results += [json.dumps(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]
        tools = [one["name"] for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]
        return Turn(prompt, tools, rounds, results)

    @staticmethod
    def frame(body, parts, reason=None):
        candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
        answer = {"candidates": [candidate], "modelVersion": body["model"], "responseId": "r1"}
        if reason:
            candidate["finishReason"] = reason
            total = INPUT_TOKENS + OUTPUT_TOKENS
            counts = {"promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS, "totalTokenCount": total}
            answer["usageMetadata"] = counts
        return answer

    @staticmethod
    def calls(calls):
        parts = [{"functionCall": {"name": call["name"], "args": call["input"]}} for call in calls]
        if parts:
            parts[0]["thoughtSignature"] = SIGNATURE
        return parts

    @classmethod
    def whole(cls, body, text, calls):
        return cls.frame(body, ([{"text": "\n".join(text)}] if text else []) + cls.calls(calls), "STOP")

    @classmethod
    def events(cls, body, text, calls):
        for piece in pieces("\n".join(text)):
            yield None, cls.frame(body, [{"text": piece}])
        for part in cls.calls(calls):
            yield None, cls.frame(body, [part])
        yield None, cls.frame(body, [{"text": ""}], "STOP")


# ---- HTTP


def route(path, query, body):
    """The dialect, and whether the answer is streamed."""
    if found := re.fullmatch(r"/v1(?:beta)?/models/([^/:]+):(generateContent|streamGenerateContent)", path):
        body["model"] = found[1]
        return Gemini, found[2].startswith("stream") and query.get("alt") == ["sse"]
    known = {"/v1/chat/completions": Chat, "/v1/responses": Responses, "/v1/messages": Messages}
    return known.get(path), bool(body.get("stream"))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path == "/log":
            wanted = parse_qs(url.query).get("model")
            with LOCK:
                found = [entry for entry in LOG if wanted in (None, [entry["model"]])]
            return self.whole(200, found)
        return self.whole(200 if url.path == "/healthz" else 404, {})

    def do_POST(self):
        url = urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        sent = json.loads(json.dumps(body))
        dialect, is_streamed = route(url.path, parse_qs(url.query), body)
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() not in PRIVATE}
        keys = [name for name in PRIVATE if name in self.headers]
        with LOCK:
            LOG.append({"path": url.path, "model": body.get("model"), "headers": headers, "keys": keys, "body": sent})
        if dialect is None:
            return self.whole(404, {"error": {"message": f"there is no {url.path}"}})
        try:
            text, calls = dialect.read(body).answer()
        except (Refused, KeyError, TypeError, ValueError) as error:
            why = {"type": "invalid_request_error", "message": f"{type(error).__name__}: {error}", "code": 400, "status": "INVALID_ARGUMENT"}
            return self.whole(400, {"type": "error", "error": why})
        if is_streamed:
            return self.stream(dialect.events(body, text, calls))
        return self.whole(200, dialect.whole(body, text, calls))

    def whole(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        lines = []
        for kind, data in events:
            text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            lines.append((f"event: {kind}\n" if kind else "") + f"data: {text}\n\n")
        data = "".join(lines).encode()
        # In pieces that end inside events, blank lines and characters.
        for at in range(0, len(data), 61):
            piece = data[at:at + 61]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
            if at % (61 * 16) == 0:
                time.sleep(0.001)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    server = ThreadingHTTPServer(("", port), Handler)
    server.daemon_threads = True
    print(f"listening on {server.server_port}", flush=True)
    server.serve_forever()
