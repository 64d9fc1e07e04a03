"""The server: streams that hold the whole answer, faults by script, and the log."""

import http.client
import json
import threading
import unittest
from http.server import ThreadingHTTPServer

from tests.ruling import SCHEMA

import model

MESSAGE = {"role": "user", "content": "call look-up {}; then say done"}
CHAT = {"messages": [MESSAGE], "tools": [{"type": "function", "function": {"name": "look-up", "parameters": SCHEMA}}]}


class Server(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ThreadingHTTPServer(("127.0.0.1", 0), model.Handler)
        cls.server.daemon_threads = True
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.server.server_close()

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=10)
        connection.request(method, path, json.dumps(body) if body is not None else None)
        try:
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def say(self, prompt, name, **fields):
        return self.ask("POST", "/v1/chat/completions", {"model": name, "messages": [{"role": "user", "content": prompt}], **fields})

    def test_a_stream_holds_the_whole_answer(self):
        messages = [{"role": "user", "content": "say so and force look-up {}"}]
        contents = [{"role": "user", "parts": [{"text": "say so and force look-up {}"}]}]
        for path, body in {
            "/v1/chat/completions": {"messages": messages},
            "/v1/responses": {"input": messages, "reasoning": {"summary": "auto"}},
            "/v1/messages": {"max_tokens": 4096, "messages": messages, "thinking": {"type": "adaptive"}},
            "/v1beta/models/m:streamGenerateContent?alt=sse": {"contents": contents},
        }.items():
            response, data = self.ask("POST", path, {**body, "model": "m", "stream": True})
            self.assertEqual((response.status, response.getheader("content-type")), (200, "text/event-stream"))
            self.assertIn(b"look-up", data)

    def test_a_refusal_stands_in_the_form_of_its_dialect_and_in_the_list(self):
        orphan = {"role": "tool", "tool_call_id": "x", "content": "y"}
        response, data = self.ask("POST", "/v1/chat/completions", {**CHAT, "model": "refused", "messages": [MESSAGE, orphan]})
        self.assertEqual((response.status, json.loads(data)["error"]["param"]), (400, "messages.[1].role"))
        _, data = self.ask("GET", "/refusals?model=refused")
        self.assertEqual([entry["status"] for entry in json.loads(data)], [400])
        _, data = self.ask("GET", "/log?model=refused")
        self.assertEqual(len(json.loads(data)), 1)

    def test_a_fault_passes_after_its_number(self):
        for _ in range(2):
            response, _ = self.say("fault 429 2 and say done", "limited")
            self.assertEqual((response.status, response.getheader("retry-after")), (429, "1"))
        response, data = self.say("fault 429 2 and say done", "limited")
        self.assertEqual((response.status, json.loads(data)["choices"][0]["message"]["content"]), (200, "done"))

    def test_an_overloaded_provider_says_so(self):
        response, _ = self.say("fault 529 and say done", "overloaded")
        self.assertEqual(response.status, 529)

    def test_a_broken_answer_ends_early(self):
        for fields in ({}, {"stream": True}):
            with self.assertRaises(http.client.IncompleteRead):
                self.say("fault break and say done", f"broken {fields}", **fields)

    def test_rubbish_is_no_json(self):
        _, data = self.say("fault rubbish and say done", "rubbish")
        self.assertRaises(ValueError, json.loads, data)
