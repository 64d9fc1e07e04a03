#!/usr/bin/env bash
# Checks subjects of commits: `area: imperative`, at most 72 characters. CONTRIBUTING.md says why.
#
#   e2e/commit-subject.sh          those that origin/main does not have, or all where there is no such branch
#   e2e/commit-subject.sh FILE     the message in FILE: ln -s ../../e2e/commit-subject.sh .git/hooks/commit-msg
#
# Older ones than the rule are left alone, by their date: a shallow clone has no other mark of where it began.
set -euo pipefail
readonly since=2026-11-22T14:30:00Z longest=72

# Reads subjects; says what is wrong with them.
check() {
  awk -v longest=$longest '
    /^(Merge|Revert|fixup!|squash!) / { next }
    length > longest { print "more than " longest " characters: " $0; wrong = 1 }
    !/^[a-z][a-z0-9_.,\/ -]*: [a-zA-Z`.-]/ { print "not `area: imperative`: " $0; wrong = 1 }
    END { exit wrong }'
}

if (($# > 0)); then
  head -n 1 "$1" | check >&2
  exit
fi
range=HEAD
if git rev-parse --quiet --verify origin/main >/dev/null; then range=origin/main..HEAD; fi
git log --no-merges --since="$since" --format=%s "$range" | check
