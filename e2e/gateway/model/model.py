"""A model that does what it is told: the provider behind the gateway in the end-to-end tests.

It speaks whole and streamed answers of OpenAI's chat completions and responses, Anthropic's messages and Gemini's
generateContent, and is as strict as those are: a tool call that is not followed by its result is a 400. What it answers
is a script in the last user message. Steps stand between `;`, one for each answer:

    call word-count {"text": "a b"}; then say done      the tool whose name begins so is called, then text
    call a {} and call b {}                              two calls in one answer
    say let me see and call a {}                         text before a call
    force treasure {}                                    a call of a tool, offered or not
    loop 10 a {}                                         ten steps of one call

A script that is at its end answers `RESULT <content>` for each result since the last user message.

A question that is no script is answered like one: `How many words has this: to be or not to be?` calls the tool whose
name has most words in common with it, else the first, with {"text": "to be or not to be"}, and then tells the result.

GET /log shows what was asked, with `?model=` of one model only; keys are left out. It holds nothing else, and is no part
of Skillet.
"""

import itertools
import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from openai import Chat, Responses
from anthropic_gemini import Gemini, Messages
from script import Refused

LOG = []
NUMBERS = itertools.count(1)
LOCK = threading.Lock()
PRIVATE = ("authorization", "x-api-key", "x-goog-api-key", "cookie")


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
        # Ids are of one answer, as a provider's are.
        body["number"] = next(NUMBERS)
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
