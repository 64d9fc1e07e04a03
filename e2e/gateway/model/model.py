"""A model that follows a script: the provider behind the gateway in the end-to-end tests.

It speaks whole and streamed answers of OpenAI's chat completions and responses, Anthropic's messages and Gemini's
generateContent, and is as strict as those are: docs/reference/strict-provider.md has its rules. What it answers
is a script in the last user message. Steps stand between `;`, one for each answer:

    call word-count {"text": "a b"}; then say done      the tool whose name begins so is called, then text
    call a {} and call b {}                              two calls in one answer
    say let me see and call a {}                         text before a call
    cut a {"text": "a b"}                                a call whose arguments the limit of tokens cuts
    force treasure {}                                    a call of a tool, offered or not
    loop 10 a {}                                         ten steps of one call
    recall                                               every result in the whole history, as `tool=result`
    fault 429 2 and say done                             two refusals before the step; also 500, 529
    fault break and say done                             an answer that breaks off; also rubbish and hang

A script that is at its end answers `RESULT <content>` for each result since the last user message.

A question that is no script is answered like one: `How many words has this: to be or not to be?` calls the tool whose
name has most words in common with it, else the first, with {"text": "to be or not to be"}, and then tells the result.

GET /log shows what was asked, with `?model=` of one model only; keys are left out. GET /refusals shows what was refused.
It holds nothing else, and is no part of Skillet.
"""

import itertools
import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from anthropic_messages import Messages
from faults import Faults, refuse
from gemini import Gemini
from openai_chat import Chat
from openai_responses import Responses
from refusal import Refused, Request

LOG, REFUSALS = [], []
NUMBERS = itertools.count(1)
LOCK = threading.Lock()
FAULTS = Faults()
PRIVATE = ("authorization", "x-api-key", "x-goog-api-key", "cookie")
CHAT, RESPONSES, MESSAGES, GEMINI = Chat(), Responses(), Messages(), Gemini()
HANG_SECONDS = 3600


def route(path, query, body):
    """The dialect, and whether the answer is streamed."""
    if found := re.fullmatch(r"/v1(?:beta)?/models/([^/:]+):(generateContent|streamGenerateContent)", path):
        body["model"] = found[1]
        return GEMINI, found[2].startswith("stream") and query.get("alt") == ["sse"]
    known = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES, "/v1/messages": MESSAGES}
    return known.get(path), bool(body.get("stream"))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlsplit(self.path)
        kept = {"/log": LOG, "/refusals": REFUSALS}.get(url.path)
        if kept is not None:
            wanted = parse_qs(url.query).get("model")
            with LOCK:
                found = [entry for entry in kept if wanted in (None, [entry["model"]])]
            return self.whole(200, found)
        return self.whole(200 if url.path == "/healthz" else 404, {})

    def do_POST(self):
        url = urlsplit(self.path)
        text = self.body()
        body = json.loads(text or b"{}")
        sent = json.loads(text or b"{}")
        number = next(NUMBERS)
        if url.path == "/v1/conversations":
            with LOCK:
                return self.whole(200, RESPONSES.store.create_conversation(number, body.get("items") or ()))
        dialect, is_streamed = route(url.path, parse_qs(url.query), body)
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() not in PRIVATE}
        keys = [name for name in PRIVATE if name in self.headers]
        entry = {"path": url.path, "model": body.get("model"), "headers": headers, "keys": keys, "body": sent}
        with LOCK:
            LOG.append(entry)
        if dialect is None:
            return self.whole(404, {"error": {"message": f"there is no {url.path}"}})
        betas = frozenset(part.strip() for part in headers.get("anthropic-beta", "").split(","))
        self.reply(dialect, Request(body, number, is_streamed, betas), entry)

    def body(self):
        """The whole body, which some send in chunks. What is left of one would be read as the connection's next request."""
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def reply(self, dialect, request, entry):
        try:
            with LOCK:
                turn = dialect.read(request)
                answer = turn.answer(request.number)
                key = json.dumps([request.model, turn.prompt, turn.rounds, len(turn.history)])
                fault = FAULTS.next(key, answer.fault)
                refuse(fault)
                request.is_kept = fault != "break"
                is_streamed = request.is_streamed
                made = list(dialect.events(request, answer)) if is_streamed else dialect.whole(request, answer)
        except Refused as refused:
            return self.refuse(dialect, request, refused, entry)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return self.refuse(dialect, request, Refused(f"{type(error).__name__}: {error}"), entry)
        if fault == "hang":
            time.sleep(HANG_SECONDS)
        if fault == "rubbish":
            return self.send(200, b"<html>\xff\xfe {", "text/event-stream" if is_streamed else "application/json")
        data = frames(made) if is_streamed else json.dumps(made).encode()
        if fault == "break":
            return self.break_off(data[:len(data) * 2 // 3], is_streamed)
        return self.stream(data) if is_streamed else self.send(200, data, "application/json")

    def refuse(self, dialect, request, refused, entry):
        with LOCK:
            REFUSALS.append({**entry, "status": refused.status, "message": str(refused)})
        headers = {"retry-after": "1"} if refused.status == 429 else {}
        return self.whole(refused.status, dialect.error(request, refused), headers)

    def whole(self, status, body, headers=None):
        self.send(status, json.dumps(body).encode(), "application/json", headers)

    def send(self, status, data, kind, headers=None):
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def begin_stream(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def stream(self, data):
        self.begin_stream()
        self.write_pieces(data)
        self.wfile.write(b"0\r\n\r\n")

    def write_pieces(self, data):
        # In pieces that end inside events, blank lines and characters.
        for at in range(0, len(data), 61):
            piece = data[at:at + 61]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
            if at % (61 * 16) == 0:
                time.sleep(0.001)

    def break_off(self, data, is_streamed):
        """The connection ends before the answer does."""
        if is_streamed:
            self.begin_stream()
            self.write_pieces(data)
        else:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data) * 2))
            self.end_headers()
            self.wfile.write(data)
        self.close_connection = True

    def log_message(self, *_):
        pass


def frames(events):
    """Events as the bytes of a stream."""
    lines = []
    for kind, data in events:
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        lines.append((f"event: {kind}\n" if kind else "") + f"data: {text}\n\n")
    return "".join(lines).encode()


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    server = ThreadingHTTPServer(("", port), Handler)
    server.daemon_threads = True
    print(f"listening on {server.server_port}", flush=True)
    server.serve_forever()
