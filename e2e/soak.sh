#!/usr/bin/env bash
# Runs the long forms of tests, or one of them, and writes docs/soak.md: e2e/soak.sh [PROGRAM]
#
# `make test` has a short form of each, with the same assertions. A program that fails does not stop the others. A row of
# docs/soak.md is of the last run of its program. A cluster that was not up before is taken down at the end.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/lib/lane.sh"
readonly page="$root/docs/soak.md" logs="$root/target/soak"

# PROGRAM|VARIABLES|TEST PROGRAM|TESTS|WHAT
readonly programs=(
  "kills|SKILLET_KILLS=30|skillet-e2e/faults|kills::|the operator is killed 30 times under load"
  "burst|SKILLET_BURST=1000|skillet-e2e/faults|burst::|1 000 executions at once, of three namespaces"
  "swarm|SKILLET_SWARM=2000|skillet-e2e/faults|swarm::|2 000 executions that wait or fail, beside another tenant"
  "rounds|SKILLET_ROUNDS=200|skillet-e2e/faults|frozen::a_frozen_leader|the leader is frozen and thawed 200 times"
  "silence|SKILLET_SILENCE=120|skillet-e2e/faults|silent|API server and kubelet are silent for 120 s"
  "packets|SKILLET_SILENCE=120|skillet-e2e/faults|black_hole::|packets to API server and kubelet are lost for 120 s"
  "hostile|SKILLET_LONG_INPUTS=40|skillet-e2e/faults|hostile::|valid objects that are as hard to read as objects can be, beside another tenant"
  "download|SKILLET_DOWNLOAD_MB=10000|skillet-e2e/faults|broker::a_large_download|10 GB through the broker beside a reader that reads nothing"
  "upgrade|SKILLET_RATE=8|skillet-e2e/gateway|rollout::|a rolling upgrade under 8 runs a second"
  "unparsable|SKILLET_SWARM=5000|skillet-controller/integration|unparsable|5 000 stored objects that do not parse"
  "fuzz|SKILLET_CASES=1000000|skillet-llm/skillet_llm||a million random cases for every reader of what clients and models send"
)

# run NAME VARIABLES PROGRAM TESTS: leaves its closing line in RESULT.
run() {
  local name=$1 variables=$2 program=$3 tests=$4 log="$logs/$1.log" status=0 began=$SECONDS seed=$((RANDOM * 32768 + RANDOM))
  local command=(env "$variables" "SKILLET_SEED=$seed")
  case $program in
    skillet-e2e/*) command+=(SKILLET_E2E=1 e2e/in-cluster.sh) ;;
    skillet-controller/*) command+=(SKILLET_INTEGRATION=1 "PATH=$tools/bin:$PATH" e2e/in-cluster.sh) ;;
    *) ;;
  esac
  printf '==> %s: %s\n' "$name" "$variables SKILLET_SEED=$seed"
  "${command[@]}" e2e/run-tests.sh "$program" -- "$tests" --nocapture 2>&1 | tee "$log" || status=$?
  RESULT=$(grep -oE '[0-9]+ passed; [0-9]+ failed' "$log" | tail -n 1)
  if ((status != 0)); then failed=$((failed + 1)); else passed=$((passed + 1)); fi
  ROW="$(git describe --always --dirty) | $(date -u +%F) | $(nproc) × $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1) | $seed | $((SECONDS - began)) s | ${RESULT:-did not end}"
}

# write_row NAME WHAT ROW: the page has one row for each program.
write_row() {
  grep -v "^| $1 |" "$page" >"$page.new" || true
  printf '| %s | %s | %s |\n' "$1" "$2" "$3" >>"$page.new"
  mv "$page.new" "$page"
}

mkdir -p "$logs"
passed=0 failed=0
e2e/build.sh tests
was_up=0
if "$cluster" status >/dev/null 2>&1; then was_up=1; fi
if [[ ${1:-} != fuzz ]]; then e2e/deploy.sh build && e2e/deploy.sh up; fi
for entry in "${programs[@]}"; do
  IFS='|' read -r name variables program tests what <<<"$entry"
  if [[ -n ${1:-} && $name != "$1" ]]; then continue; fi
  run "$name" "$variables" "$program" "$tests"
  write_row "$name" "$what" "$ROW"
done
if ((was_up == 0)); then "$cluster" down >"$logs/down.log" 2>&1; fi
((passed + failed > 0)) || { echo "no such program: $1" >&2; exit 2; }
echo "$passed passed, $failed failed"
((failed == 0))
