"""Plays the journeys, each through the SDK of its name, and ends with one line: N passed, N failed.

    python3 e2e/gateway/journeys --gateway target/bin/skillet        the gateway, without a cluster
    python3 e2e/gateway/journeys --provider                          the strict provider alone: journeys without skills
    python3 e2e/gateway/journeys --url URL --token TOKEN             any gateway that offers the skills

`--only PATTERN` plays those of a name, `--json` prints an outcome a line.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster import TOKEN
from stack import Stack
from tasks import CLIENTS, LANGUAGES, all_tasks

# For all tasks of one script, longer than any takes beside other lanes.
SECONDS = 300
# Of a script, if it hangs.
STARTS = 2


def installed(place):
    """The folder of a place's clients, which are installed if they are not yet."""
    command = [CLIENTS.parent / "install-clients.sh", *([] if place in LANGUAGES else [place])]
    return Path(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


def play(place, script, tasks, url, token):
    """Outcomes of the tasks of one script; a task that the script did not reach has failed."""
    folder, is_node = installed(place), place == "node"
    program = folder / ("node/node" if is_node else "python/bin/python")
    file = f"node/{script}.mjs" if is_node else f"python/{script}.py"
    environment = {
        "SKILLET_URL": url, "SKILLET_TOKEN": token, "HOME": str(folder), "PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PATH": "/usr/bin:/bin",
    }
    outcomes, complaint = {}, ""
    # Threads of a client may wait for each other for ever. A request that is not answered has a limit of its own, and an outcome.
    for _ in range(STARTS):
        lines = "".join(json.dumps(task) + "\n" for task in tasks if task["name"] not in outcomes)
        try:
            command = [program, CLIENTS / file]
            done = subprocess.run(command, input=lines, env=environment, timeout=SECONDS, capture_output=True, text=True)
            printed, complaint, is_late = done.stdout, done.stderr, False
        except subprocess.TimeoutExpired as late:
            printed, complaint, is_late = (late.stdout or b"").decode().rpartition("\n")[0], f"{script}: not done in {SECONDS} s", True
        outcomes |= {outcome["name"]: outcome for outcome in map(json.loads, printed.splitlines())}
        if not is_late:
            break
        print(f"{complaint}; {len(outcomes)} of {len(tasks)} tasks have an outcome")
    lost = {"ok": False, "error": f"no outcome: {complaint[-300:]}", "turns": []}
    return [outcomes.get(task["name"], {"name": task["name"], **lost}) for task in tasks]


def play_all(found, url, token):
    scripts = {}
    for place, script, task in found:
        scripts.setdefault((place, script), []).append(task)
    with ThreadPoolExecutor(len(scripts) or 1) as pool:
        played = [pool.submit(play, *of, tasks, url, token) for of, tasks in scripts.items()]
        return [outcome for future in played for outcome in future.result()]


def check_runs(outcomes, found, cluster):
    """A skill whose result is known is not run again."""
    tasks = {task["name"]: task for _, _, task in found}
    for outcome in outcomes:
        runs, wanted = cluster.runs(outcome["name"]), tasks[outcome["name"]]["runs"]
        if outcome["ok"] and runs != wanted:
            outcome |= {"ok": False, "error": f"{runs} executions, not {wanted}"}


def report(outcomes, is_json):
    """Prints the failures, and how many there are."""
    for outcome in outcomes if is_json else []:
        print(json.dumps(outcome, ensure_ascii=False))
    wrong = [f"{outcome['name']}: {outcome['error']}" for outcome in outcomes if not outcome["ok"]]
    print("\n".join(wrong), end="\n" if wrong else "")
    print(f"{len(outcomes) - len(wrong)} passed, {len(wrong)} failed")
    return not wrong


def arguments():
    parser = argparse.ArgumentParser()
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--gateway")
    where.add_argument("--provider", action="store_true")
    where.add_argument("--url")
    parser.add_argument("--token", default=TOKEN)
    parser.add_argument("--only", default="*")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main():
    given = arguments()
    # A lane that is ended takes the gateway and the provider with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found = all_tasks(given.only)
    if given.provider:
        found = [one for one in found if not uses_skills(one[2])]
    with tempfile.TemporaryDirectory() as folder:
        stack = None if given.url else Stack(given.gateway, Path(folder))
        try:
            outcomes = play_all(found, given.url or stack.url, given.token)
            if stack and stack.cluster:
                check_runs(outcomes, found, stack.cluster)
        finally:
            if stack:
                stack.stop()
    sys.exit(not report(outcomes, given.json))


def uses_skills(task):
    """A journey that needs more than the provider: a skill that it runs, or what the gateway does with refusals."""
    script = " ".join(task["turns"])
    return task.get("errors") or any(word in script for word in ("word-count", "upside-down", "skill", "fault"))


if __name__ == "__main__":
    main()
