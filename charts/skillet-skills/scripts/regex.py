"""Tries a regular expression on a text: its matches, and the text after a replacement."""

import json, re, signal, sys

DATA_ERROR = 65
SECONDS = 2
FLAGS = {"ignoreCase": re.I, "multiline": re.M, "dotAll": re.S, "ascii": re.A, "verbose": re.X}


def fail(message):
    print(message, file=sys.stderr)
    sys.exit(DATA_ERROR)


def too_slow(*_):
    fail(f"the pattern takes more than {SECONDS} seconds on this text: it backtracks; avoid nested repetitions such as (a+)+")


def shown(match):
    return {
        "text": match.group(),
        "start": match.start(),
        "end": match.end(),
        "groups": list(match.groups()),
        "named": match.groupdict(),
    }


def main():
    request = json.load(sys.stdin)
    text, limit = request["text"], request.get("limit", 100)
    signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(SECONDS)
    try:
        pattern = re.compile(request["pattern"], sum(FLAGS[name] for name in set(request.get("flags", []))))
        matches, count = [], 0
        for match in pattern.finditer(text):
            count += 1
            if len(matches) < limit:
                matches.append(shown(match))
        output = {"count": count, "fullMatch": bool(pattern.fullmatch(text)), "matches": matches}
        if "replacement" in request:
            output["replaced"] = pattern.sub(request["replacement"], text)[:50_000]
    except re.error as error:
        fail(f"the pattern or the replacement is wrong: {error}")
    except (RecursionError, OverflowError, IndexError) as error:
        fail(f"the pattern cannot be used: {error}")
    print(json.dumps(output))


main()
