"""Runs scripts, each in a process of its own that is forked from this one, so that no run waits for the start of Python.

Standard input: a JSON list of {"script", "input"}. Standard output: a list of {"code", "stdout", "stderr"} in the same order.
"""

import json, os, sys, tempfile, traceback

# The scripts have these before they import them.
import ast, base64, calendar, datetime, decimal, difflib, fractions, hashlib, hmac, html, re, statistics, uuid, zoneinfo  # noqa: F401


def become(script, streams):
    """Runs the script in the place of this process."""
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
    code = 0
    try:
        exec(compile(script, "main.py", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run(case):
    streams = [tempfile.TemporaryFile() for _ in range(3)]
    streams[0].write(json.dumps(case["input"]).encode())
    streams[0].seek(0)
    child = os.fork()
    if child == 0:
        become(case["script"], streams)
    _, status = os.waitpid(child, 0)
    texts = []
    for stream in streams[1:]:
        stream.seek(0)
        texts.append(stream.read().decode("utf-8", "replace"))
    return {"code": os.waitstatus_to_exitcode(status), "stdout": texts[0], "stderr": texts[1]}


def main():
    # The children read their own standard input.
    cases = json.loads(os.fdopen(os.dup(0), "rb").read())
    results = [run(case) for case in cases]
    print(json.dumps(results))


main()
