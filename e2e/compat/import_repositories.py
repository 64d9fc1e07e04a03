#!/usr/bin/env python3
"""Imports folders of SKILL.md files into a cluster, and gives a verdict for each file: none may get lost.

    e2e/in-cluster.sh python3 -B e2e/compat/import_repositories.py FOLDER... [--each]

Needs a cluster with Skillet, and kubectl-skill in the PATH. Each folder gets a namespace of its own, which is deleted at the end. A file is imported as
it is, repaired, or refused with a reason; an imported one must be sealed. Prints a table; `--each` prints every verdict too. Fails if a file is lost.
"""

import argparse
import collections
import json
import os
import subprocess
import sys

WORDS = ("imported", "repaired", "refused")
# Parts of the reasons, and the words of the table.
REASONS = {
    "shadowed": "name taken", "another name": "name taken", "bytes together": "bundle too large", "files": "too many files",
    "link": "link out of the folder",
}
LIMIT = "180s"


def kubectl(*arguments, check=True):
    return subprocess.run(["kubectl", *arguments], check=check, capture_output=True, text=True)


def found_in(folder):
    """Every SKILL.md, once, however many links lead to it."""
    found = set()
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        found.update(os.path.realpath(os.path.join(place, name)) for name in files if name == "SKILL.md")
    return found


def verdicts_of(folder, namespace):
    """Verdicts, names and notes of each file: one for each path that leads to it."""
    done = kubectl("skill", "import", folder, "--namespace", namespace, check=False)
    verdicts = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word in WORDS:
            name, _, rest = rest.partition(" ")
            path, _, notes = rest.partition(": ")
            # The paths of a folder that is a skill itself begin with its own name.
            inside = os.path.join(folder, path)
            path = os.path.realpath(inside if os.path.exists(inside) else os.path.join(os.path.dirname(folder), path))
            verdicts[path].append((word, name, notes))
    if not verdicts:
        raise SystemExit(f"{folder}: {done.stdout}{done.stderr}")
    return verdicts


def sealed_in(namespace):
    """The names of the skills that are sealed, after all have had their time."""
    kubectl("wait", "skills", "--all", "--namespace", namespace, "--for=condition=Sealed", f"--timeout={LIMIT}", check=False)
    listed = json.loads(kubectl("get", "skills", "--namespace", namespace, "--output", "json").stdout)["items"]
    conditions = {one["metadata"]["name"]: one.get("status", {}).get("conditions", []) for one in listed}
    return {name for name, all in conditions.items() if any(one["type"] == "Sealed" and one["status"] == "True" for one in all)}


def reason_of(notes):
    return next((word for part, word in REASONS.items() if part in notes), "not a skill")


def check(number, folder, is_each):
    """A line of the table, and the files that were lost."""
    namespace = f"import-{number}"
    kubectl("create", "namespace", namespace)
    try:
        verdicts, sealed = verdicts_of(folder, namespace), sealed_in(namespace)
    finally:
        kubectl("delete", "namespace", namespace, "--wait=false")
    files = found_in(folder)
    # A file that is taken by one of its paths is taken.
    best = {path: min(verdicts[path], key=lambda verdict: WORDS.index(verdict[0])) for path in files & verdicts.keys()}
    taken = {os.path.dirname(path) + os.sep for path, (word, _, _) in best.items() if word != "refused"}
    # A file below a skill is a file of that skill's bundle.
    parts = {path for path in files - best.keys() if any(path.startswith(one) for one in taken)}
    lost = [f"{path}: no verdict" for path in files - best.keys() - parts]
    lost += [f"{path}: Skill {name} is not sealed" for path, (word, name, _) in best.items() if word != "refused" and name not in sealed]
    for path, (word, name, notes) in sorted(best.items()) if is_each else ():
        print(f"{word}\t{name}\t{path}\t{notes}")
    words = collections.Counter(word for word, _, _ in best.values())
    reasons = collections.Counter(reason_of(notes) for word, _, notes in best.values() if word == "refused")
    said = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    return [os.path.basename(folder), len(files), words["imported"], words["repaired"], words["refused"], said, len(parts), len(lost)], lost


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--each", action="store_true")
    given = parser.parse_args()
    checked = [check(number, os.path.abspath(folder), given.each) for number, folder in enumerate(given.folders)]
    rows = [row for row, _ in checked]
    rows.append(["all", *(sum(row[at] for row in rows) for at in range(1, 5)), "", *(sum(row[at] for row in rows) for at in (6, 7))])
    print("| repository | SKILL.md | imported | repaired | refused | reasons | in a bundle | lost |\n|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    lost = [one for _, of_folder in checked for one in of_folder]
    print("\n".join(lost), end="\n" if lost else "")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
