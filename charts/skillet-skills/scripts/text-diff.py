"""Compares two texts line by line."""

import difflib, json, sys

DATA_ERROR = 65
MAX_LINES = 2_000


def main():
    request = json.load(sys.stdin)
    before, after = (request[name].splitlines() for name in ("before", "after"))
    if max(len(before), len(after)) > MAX_LINES:
        print(f"a text has more than {MAX_LINES} lines; compare parts of it", file=sys.stderr)
        sys.exit(DATA_ERROR)
    diff = list(difflib.unified_diff(before, after, "before", "after", n=request.get("context", 3), lineterm=""))
    body = diff[2:]
    kept = 2 * len(before) - sum(line.startswith("-") for line in body) * 2
    print(json.dumps({
        "equal": request["before"] == request["after"],
        "added": sum(line.startswith("+") for line in body),
        "removed": sum(line.startswith("-") for line in body),
        # The part of all lines that both texts have.
        "similarity": round(kept / (len(before) + len(after)), 4) if before or after else 1,
        "diff": "\n".join(diff),
    }))


main()
