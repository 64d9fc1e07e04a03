"""Sorts subjects of commits, such as `fix(parser): read empty lines`, by their kind."""

import json
import re
import sys

KINDS = {"feat": "added", "fix": "fixed", "perf": "faster"}
SUBJECT = re.compile(r"(?P<kind>\w+)(?:\([^)]*\))?(?P<breaks>!)?:\s*(?P<text>.+)")

changes = {}
for line in sys.stdin:
    found = SUBJECT.fullmatch(line.strip())
    if not found:
        continue
    kind = "breaking" if found["breaks"] else KINDS.get(found["kind"], "other")
    changes.setdefault(kind, []).append(found["text"])
json.dump(changes, sys.stdout)
