#!/usr/bin/env bash
# Writes the table of lanes into CONTRIBUTING.md: the newest warm and the newest fresh run of each lane on this machine, beside its
# budget. e2e/lanes.sh records the runs. Fresh is the first successful run of a lane with a SKILLET_CACHE.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root page="$root/CONTRIBUTING.md"
readonly times="${SKILLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skillet}/lanes/times.tsv"
[[ -r $times ]] || { echo "times: no lane has run on this machine yet: make test" >&2; exit 1; }

table() {
  echo "| lane | warm | budget | fresh | budget | tests |"
  echo "|---|---|---|---|---|---|"
  awk -F '\t' '
    NR == FNR { if (!/^#/ && $1 != "reference") { order[++lanes] = $1; warm[$1] = $2 " s"; fresh[$1] = $3 " s" } next }
    { took[$3, $2] = $4 " s"; if ($6 == 0) tests[$3] = $5 }
    END {
      order[++lanes] = "all"
      for (i = 1; i <= lanes; i++) {
        lane = order[i]
        printf "| %s | %s | %s | %s | %s | %s |\n", lane, took[lane, "warm"], warm[lane], took[lane, "fresh"], fresh[lane], tests[lane]
      }
    }' "$root/e2e/lanes/budgets.tsv" "$times"
  printf '\nMachine: %s × %s, commit %s.\n' "$(nproc)" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(tail -n 1 "$times" | cut -f 1)"
}

table >"$page.table"
awk -v file="$page.table" '
  /<!-- times -->/ { print; while ((getline line < file) > 0) print line; inside = 1; next }
  /<!-- \/times -->/ { inside = 0 }
  !inside' "$page" >"$page.new"
rm "$page.table"
mv "$page.new" "$page"
