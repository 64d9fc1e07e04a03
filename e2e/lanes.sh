#!/usr/bin/env bash
# Runs test lanes and ends with one line: N passed, N failed.
#
#   e2e/lanes.sh [LANE...]      lanes are the scripts of e2e/lanes; without a name all that `make test` runs
#
# `build` compiles everything in one cargo call, while `prepare` fetches what all lanes need. Then the lanes that wait for a cluster
# run beside those that compute. A lane that lacks something installs it, or says so in one line; with CI=true that is a failure.
# A cluster that was not up before is taken down at the end.
#
# A lane fails above its budget (e2e/lanes/budgets.tsv) and SKILLET_LANE_AIR (50) percent of air, times the factor by which this
# machine computes slower than the one of the budgets. After SKILLET_LANE_MINUTES (60) it is ended.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root minutes=${SKILLET_LANE_MINUTES:-60} air=${SKILLET_LANE_AIR:-50} logs="$root/target/lanes"
readonly cluster="$root/e2e/cluster/cluster.sh" budgets="$root/e2e/lanes/budgets.tsv"
readonly records="${SKILLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skillet}/lanes"
# The tracks of a whole run. Cheapest first; what compiles once more comes beside the faults, which wait.
readonly computing=(unit journeys images sandbox integration lint deny) waiting=(chart e2e)
cd "$root"
mkdir -p "$logs" "$records"

# Sums the closing lines of cargo test and of the project's own scripts, which are of one form.
count() {
  grep -oE '[0-9]+ passed[;,] [0-9]+ failed' "$1" | awk '{ passed += $1; failed += $3 } END { print passed + 0, failed + 0 }'
}

# record KIND LANE SECONDS PASSED FAILED: for e2e/times.sh.
record() { printf '%s\t%s\t%s\t%d\t%d\t%d\n' "$(git describe --always --dirty)" "$@" >>"$records/times.tsv"; }

# What a lane runs.
command_of() {
  case $1 in
    build) echo "e2e/share-target-dir.sh && e2e/build.sh tests" ;;
    # cargo-deny is compiled beside lanes that wait, not before them.
    prepare) printf 'e2e/lanes/%s.sh prepare && ' "${waiting[@]}" "${computing[@]/%deny/unit}"; echo true ;;
    *) echo "e2e/lanes/$1.sh" ;;
  esac
}

# Ends a lane's processes, which are a group of their own.
end_group() { kill -"$1" -- "-$2" 2>/dev/null; }

# run_lane LANE: its output is in target/lanes/LANE.log; LIVE=yes shows it, too. Leaves "passed failed seconds" in LANE.result.
run_lane() {
  local lane=$1 log="$logs/$1.log" status=0 began=$SECONDS pid took left lane_passed lane_failed kind=warm
  [[ -e $records/$lane ]] || kind=fresh
  rm -f "$logs/$lane.result"
  printf '==> %s\n' "$lane"
  timeout --kill-after 60 "${minutes}m" bash -euo pipefail -c "$(command_of "$lane")" >"$log" 2>&1 &
  pid=$!
  echo "$pid $SECONDS $kind" >"$logs/$lane.runs"
  if [[ $LIVE == yes ]]; then tail -f -s 0.2 -n +1 --pid "$pid" "$log"; fi
  wait "$pid" || status=$?
  took=$((SECONDS - began))
  if ((status == 124)); then echo "$lane: not done in $minutes minutes" >>"$log"; fi
  # Who has ended and is not yet reaped is not left behind.
  left=$(ps -eo pgid=,stat=,pid=,args= | awk -v group="$pid" '$1 == group && $2 !~ /^Z/' | cut -c 1-200)
  if [[ -n $left ]]; then
    printf '%s: has left a process behind: %s\n' "$lane" "$left" >>"$log"
    end_group KILL "$pid"
    status=1
  fi
  check_budget "$lane" "$kind" "$took" >>"$log" || status=1
  read -r lane_passed lane_failed < <(count "$log")
  if ((status != 0 && lane_failed == 0)); then lane_failed=1; fi
  if ((status == 0 && lane_passed == 0)); then lane_passed=1; fi
  if ((status != 0)) && [[ $LIVE != yes ]]; then { grep -E '\.\.\. FAILED|^FAILED|panicked at' "$log" | head -n 20 || true; tail -n 80 "$log"; } | sed 's/^/    /'; fi
  if ((status == 0)); then touch "$records/$lane"; fi
  record "$kind" "$lane" "$took" "$lane_passed" "$lane_failed"
  printf '==> %s: %d passed, %d failed, %ds (%s)\n' "$lane" "$lane_passed" "$lane_failed" "$took" "$kind"
  rm "$logs/$lane.runs"
  echo "$lane_passed $lane_failed $took" >"$logs/$lane.result"
}

run_track() {
  local lane
  for lane in "$@"; do run_lane "$lane"; done
}

budget() { awk -v lane="$1" -v column="$([[ $2 == warm ]] && echo 2 || echo 3)" '$1 == lane { print $column }' "$budgets"; }

# check_budget LANE KIND SECONDS
check_budget() {
  local budget factor
  budget=$(budget "$1" "$2")
  if [[ -z $budget ]] || (($3 * 100 <= budget * (100 + air))); then return 0; fi
  factor=$(slowness)
  if (($3 * 10000 <= budget * (100 + air) * factor)); then return 0; fi
  echo "$1: took $3 s; its $2 budget is $budget s, with $air % of air on a machine at $factor % of the reference's time (e2e/lanes/budgets.tsv)"
  return 1
}

# Time of a fixed computation on every processor, in percent of the reference machine's, and never less than 100.
slowness() {
  local began=$EPOCHREALTIME processor
  for processor in $(seq "$(nproc)"); do
    awk -v seed="$processor" 'BEGIN { for (i = 0; i < 50000000; i++) sum += i * seed }' &
  done
  wait
  awk -v began="$began" -v ended="$EPOCHREALTIME" -v reference="$(budget reference warm)" \
    'BEGIN { percent = (ended - began) * 100000 / reference; printf "%d\n", percent < 100 ? 100 : percent }'
}

# One line each half minute: the lanes that run, and the time that they have left by their budgets.
show_running() {
  local file lane pid began kind line
  while sleep 30; do
    line=""
    for file in "$logs"/*.runs; do
      [[ -r $file ]] || continue
      lane=$(basename "$file" .runs)
      read -r pid began kind <"$file" || continue
      line+="${line:+, }$lane $((SECONDS - began)) s of about $(budget "$lane" "$kind") s"
    done
    [[ -z $line ]] || printf '    %s\n' "$line"
  done
}

finish() {
  local file pid
  # First who would start the next lane.
  jobs -p | xargs -r kill 2>/dev/null || true
  for file in "$logs"/*.runs; do
    [[ -r $file ]] || continue
    read -r pid _ <"$file" && end_group TERM "$pid" || true
    rm -f "$file"
  done
  if ((was_up == 0)); then "$cluster" down >"$logs/down.log" 2>&1 || echo "the cluster could not be taken down; see target/lanes/down.log"; fi
}

# Everything at once, then the two tracks side by side.
run_all() {
  local prepare tracks
  show_running &
  run_lane prepare &
  prepare=$!
  run_lane build
  wait "$prepare"
  # Of a workspace that does not compile there is nothing to run.
  if grep -q '^[0-9]* [1-9]' "$logs/build.result"; then return; fi
  export SKILLET_BUILT=yes
  run_track "${computing[@]}" &
  tracks=("$!")
  run_track "${waiting[@]}" &
  tracks+=("$!")
  wait "${tracks[@]}"
}

# run_some LANE...: one after the other. Fetching and compiling are not of a lane's time.
run_some() {
  local lane
  LIVE=yes
  e2e/share-target-dir.sh
  for lane in "$@"; do "e2e/lanes/$lane.sh" prepare; done
  if [[ " $* " =~ \ (unit|journeys|sandbox|integration|e2e)\  ]]; then
    e2e/build.sh tests
    export SKILLET_BUILT=yes
  fi
  run_track "$@"
}

# summarize LANE...: the closing lines. A lane without a result did not end.
summarize() {
  local lane passed=0 failed=0 lane_passed lane_failed failures=()
  for lane in "$@"; do
    read -r lane_passed lane_failed _ < <(cat "$logs/$lane.result" 2>/dev/null || echo 0 1 0)
    if ((lane_failed > 0)); then failures+=("$lane"); fi
    if [[ $lane == build || $lane == prepare ]]; then lane_passed=0; fi
    passed=$((passed + lane_passed)) failed=$((failed + lane_failed))
  done
  if (($# > ${#computing[@]} + ${#waiting[@]})); then record "$whole" all "$SECONDS" "$passed" "$failed"; fi
  if ((${#failures[@]} > 0)); then echo "failed: ${failures[*]}; see target/lanes"; fi
  echo "$passed passed, $failed failed"
  ((failed == 0))
}

main() {
  local lane lanes=("$@")
  for lane in "$@"; do
    [[ -x e2e/lanes/$lane.sh ]] || { echo "no such lane: $lane ($(basename -s .sh -a e2e/lanes/*.sh | xargs))" >&2; exit 2; }
  done
  was_up=0 whole=warm LIVE=no
  if "$cluster" status >/dev/null 2>&1; then was_up=1; fi
  [[ -e $records/build ]] || whole=fresh
  rm -f "$logs"/*.runs "$logs"/*.result
  trap finish EXIT
  trap 'exit 130' INT TERM
  if (($# == 0)); then
    lanes=(build prepare "${computing[@]}" "${waiting[@]}")
    run_all
  else
    run_some "$@"
  fi
  trap - EXIT
  finish
  summarize "${lanes[@]}"
}

main "$@"; exit
