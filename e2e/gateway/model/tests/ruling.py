"""Base of the tests of the rules: a request passes, or is refused with a message."""

import copy
import itertools
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from refusal import Refused, Request  # noqa: E402

NUMBERS = itertools.count(1)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


class Ruling(unittest.TestCase):
    """`dialect` is set anew for each test: what it keeps is the test's own."""

    dialect_class = None

    def setUp(self):
        self.dialect = self.dialect_class()

    def request(self, body, betas=()):
        return Request(copy.deepcopy(body), next(NUMBERS), bool(body.get("stream")), frozenset(betas))

    def passes(self, body, betas=()):
        """Asks, and gives the whole answer back."""
        request = self.request(body, betas)
        turn = self.dialect.read(request)
        return self.dialect.whole(request, turn.answer(request.number))

    def refused(self, body, message, betas=(), status=400, **fields):
        """Asks, and compares the refusal."""
        with self.assertRaises(Refused) as raised:
            self.passes(body, betas)
        self.assertIn(message, str(raised.exception))
        self.assertEqual(raised.exception.status, status)
        for name, value in fields.items():
            self.assertEqual(raised.exception.fields.get(name), value)
        return self.dialect.error(self.request(body), raised.exception)
