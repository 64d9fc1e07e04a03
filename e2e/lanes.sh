#!/usr/bin/env bash
# Runs the test lanes, cheapest first, and ends with one line: N passed, N failed.
#
#   e2e/lanes.sh [lint|deny|unit|journeys|images|sandbox|chart|integration|e2e|advisories ...]
#
# Without arguments it runs all but advisories, whose database is not reachable everywhere.
# A lane that lacks something installs it, or says so in one line; with CI=true that is a failure. A cluster that
# was not up before is taken down at the end. A lane has SKILLET_LANE_MINUTES (60) and is ended then.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root minutes=${SKILLET_LANE_MINUTES:-60} cluster="$root/e2e/cluster/cluster.sh" logs="$root/target/lanes"
readonly tools="${SKILLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skillet}/tools"
readonly all=(lint deny unit journeys images sandbox chart integration e2e)
passed=0 failed=0
failures=()
cd "$root"
mkdir -p "$logs"

# Sums the closing lines of cargo test and of the project's own scripts, which are of one form.
count() {
  local log=$1 status=$2 lane_passed lane_failed
  read -r lane_passed lane_failed < <(grep -oE '[0-9]+ passed[;,] [0-9]+ failed' "$log" |
    awk '{ passed += $1; failed += $3 } END { print passed + 0, failed + 0 }')
  if ((status != 0 && lane_failed == 0)); then lane_failed=1; fi
  if ((status == 0 && lane_passed == 0)); then lane_passed=1; fi
  passed=$((passed + lane_passed))
  failed=$((failed + lane_failed))
  printf '==> %s: %d passed, %d failed, %ds\n' "$3" "$lane_passed" "$lane_failed" "$4"
}

run_lane() {
  local lane=$1 status=0 started=$SECONDS output copy
  printf '==> %s\n' "$lane"
  exec {output}> >(tee "$logs/$lane.log")
  copy=$!
  timeout --kill-after 60 "${minutes}m" bash -euo pipefail -c "lane_$lane" >&"$output" 2>&1 {output}>&- || status=$?
  exec {output}>&-
  if ((status == 124)); then echo "$lane: not done in $minutes minutes"; fi
  # The copy to the log is a process of its own: what is not in yet is not counted. It ends with the last process of the lane.
  if ! timeout 10 tail -s 0.1 --pid "$copy" -f /dev/null; then
    echo "$lane: has left a process behind"
    status=1
    kill "$copy"
  fi
  count "$logs/$lane.log" "$status" "$lane" $((SECONDS - started))
  if ((status != 0)); then failures+=("$lane"); fi
}

# Installs what the lane needs from Debian's packages; says what lacks where that cannot be.
need() {
  local lacking=() program package
  for program in "$@"; do
    package=${program#*=}
    command -v "${program%%=*}" >/dev/null || lacking+=("$package")
  done
  if ((${#lacking[@]} == 0)); then return 0; fi
  if ((EUID == 0)) && command -v apt-get >/dev/null; then
    apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${lacking[@]}" >/dev/null
  else
    skip "the packages ${lacking[*]}"
  fi
}

skip() {
  echo "skipped: this lane needs $1"
  if [[ ${CI:-} == true ]]; then exit 1; else exit 0; fi
}

# The same crates for each lane: cargo compiles a dependency again for every other set of its features, and the set depends
# on the crates that are named. The runner is tested as it is built, with its own few features.
test_workspace() {
  cargo test -q --locked --no-fail-fast --workspace --exclude skillet-runner "$@"
}

lane_lint() {
  need shellcheck
  e2e/commit-subject.sh
  cargo fmt --all --check
  cargo clippy -q --locked --workspace --all-targets -- -D warnings
  RUSTDOCFLAGS="-D rustdoc::broken_intra_doc_links" cargo doc -q --locked --workspace --no-deps --document-private-items
  # Libraries are read where they are sourced. Attacks are programs of a sandbox's shell, without a first line of their own.
  git ls-files '*.sh' .ci/run ':!*/lib/*' ':!e2e/attacks' |
    xargs shellcheck --external-sources --source-path=SCRIPTDIR --severity=warning
}

cargo_deny() {
  e2e/install-tool.sh cargo-deny "$tools"
  "$tools/bin/cargo-deny" check "$@"
}

lane_deny() {
  cargo_deny licenses bans sources
}

lane_advisories() {
  cargo_deny advisories
}

# Every test that needs nothing but this machine: programs in a folder of their own belong to the other lanes.
lane_unit() {
  local file tests=()
  for file in operator/*/tests/*.rs; do
    if [[ $file != operator/runner/* ]]; then tests+=(--test "$(basename "$file" .rs)"); fi
  done
  test_workspace --lib --bins "${tests[@]}"
  need python3
  (cd e2e/gateway/model && python3 -B -m tests)
}

# The gateway before a fake API server and the strict provider, without a cluster: through SDKs, and in a browser.
lane_journeys() {
  need python3 chromium
  cargo build -q --locked --workspace --exclude skillet-runner --bin skillet
  python3 -B e2e/gateway/journeys --gateway "${CARGO_TARGET_DIR:-target}/debug/skillet"
  python3 -B e2e/gateway/browser --gateway "${CARGO_TARGET_DIR:-target}/debug/skillet"
  # The program of the built-in browser, on pages that load in unusual ways, without its image.
  python3 -B sandbox-images/browser/pages.py "$(<operator/core/src/builtin/browser/browse.py)" /usr/lib/chromium/chromium
}

lane_images() {
  sandbox-images/build.sh
  sandbox-images/test.sh
}

lane_sandbox() {
  local clients
  # Every client that the tests try.
  # The tests start those of Debian's own folder.
  need /usr/bin/python3=python3 curl wget busybox dig=bind9-dnsutils git openssl nc=netcat-openbsd redis-cli=redis-tools \
    psql=postgresql-client ssh=openssh-client /usr/bin/pip3=python3-pip chromium /usr/bin/node=nodejs \
    /usr/bin/java=default-jdk-headless go=golang-go
  clients=$(e2e/egress/install-clients.sh)
  "$cluster" build
  SKILLET_SANDBOX_LANE=1 SKILLET_CLIENTS=$clients cargo test -q --locked -p skillet-runner
}

lane_chart() {
  "$cluster" build
  e2e/install-debian-program.sh prometheus promtool "$tools"
  PATH="$tools/bin:$PATH" e2e/in-cluster.sh charts/test.sh
  e2e/in-cluster.sh charts/test-skills.sh
}

# Tests that wait for the API server leave the processors to others: more of them run at a time than there are processors.
lane_integration() {
  "$cluster" build
  e2e/install-debian-program.sh docker-registry docker-registry "$tools"
  PATH="$tools/bin:$PATH" SKILLET_INTEGRATION=1 e2e/in-cluster.sh bash -c 'test_workspace --test integration -- --test-threads 8'
}

lane_e2e() {
  # An image of a user's own, without the runner, is made of it. One with libraries starts in no image of its own.
  need busybox=busybox-static curl
  if ldd "$(command -v busybox)" >/dev/null 2>&1; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends busybox-static >/dev/null ||
      skip "the package busybox-static"
  fi
  # Of a node that does not answer any more nothing is of use.
  if ((was_up == 0)); then "$cluster" down >/dev/null 2>&1; fi
  "$cluster" up
  sandbox-images/build.sh
  e2e/install-program.sh kubectl-skill target/bin
  e2e/install-program.sh skillet-demo target/bin
  e2e/health/build.sh
  e2e/deploy.sh load
  # It deletes the definitions in the end: only where Skillet is not installed yet, as on a cluster of the lane's own.
  if ((was_up == 0)); then e2e/in-cluster.sh charts/test-lifecycle.sh; fi
  e2e/deploy.sh up
  e2e/gateway/install-clients.sh >/dev/null
  SKILLET_E2E=1 PATH="$root/target/bin:$PATH" e2e/in-cluster.sh bash -uc '
    status=0
    skillet-demo || status=1
    test_workspace --test e2e -- --test-threads 4 || status=1
    test_workspace --test mistakes --test faults --test gateway -- --nocapture || status=1
    exit $status'
}

finish() {
  if ((was_up == 0)); then "$cluster" down >"$logs/down.log" 2>&1 || failures+=(cluster-down); fi
}

e2e/share-target-dir.sh
was_up=0
if "$cluster" status >/dev/null 2>&1; then was_up=1; fi
lanes=("$@")
if ((${#lanes[@]} == 0)); then lanes=("${all[@]}"); fi
for lane in "${lanes[@]}"; do
  declare -F "lane_$lane" >/dev/null || { echo "no such lane: $lane (${all[*]})" >&2; exit 2; }
done
trap finish EXIT
# An error says by itself what was tried; where it was made would push that out of sight.
export RUST_LIB_BACKTRACE=0
# A lane is a program of its own, so that it can be ended with all that it has started.
export root cluster tools was_up
export -f need skip test_workspace cargo_deny "${lanes[@]/#/lane_}"
for lane in "${lanes[@]}"; do run_lane "$lane"; done
trap - EXIT
finish
if ((${#failures[@]} > 0)); then
  echo "failed: ${failures[*]}; see target/lanes"
  if ((failed == 0)); then failed=1; fi
fi
echo "$passed passed, $failed failed"
((failed == 0))
