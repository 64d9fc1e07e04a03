"""Reads the input as JSON from standard input, and prints the output as JSON."""

import json
import sys

request = json.load(sys.stdin)
print(json.dumps({"words": len(request["text"].split())}))
