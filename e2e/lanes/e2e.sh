#!/usr/bin/env bash
# Lane: a whole node: journeys, limits, attacks in real pods, mistakes and their answers, the clients of agents, faults.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/../lib/lane.sh"
# An image of a user's own, without the runner, is made of busybox. One with libraries starts in no image of its own.
need busybox=busybox-static curl python3
if ldd "$(command -v busybox)" >/dev/null 2>&1; then install_packages busybox-static || skip "the package busybox-static"; fi
e2e/gateway/install-clients.sh >/dev/null
e2e/health/build.sh
"$cluster" build
prepared "$@"
build_tests
was_up=0
if "$cluster" status >/dev/null 2>&1; then was_up=1; fi
# Of a node that does not answer any more nothing is of use.
if ((was_up == 0)); then "$cluster" down >/dev/null 2>&1; fi
"$cluster" up
sandbox-images/build.sh
e2e/deploy.sh load
# It deletes the definitions in the end: only where Skillet is not installed yet, as on a cluster of the lane's own.
if ((was_up == 0)); then in_cluster charts/test-lifecycle.sh; fi
e2e/deploy.sh up
export SKILLET_E2E=1
status=0
in_cluster skillet-demo || status=1
in_cluster e2e/run-tests.sh skillet-e2e/e2e -- --test-threads 4 || status=1
# These change the policy, one test at a time. The faults come last: they replace parts of the cluster.
for program in mistakes gateway faults; do in_cluster e2e/run-tests.sh "skillet-e2e/$program" -- --nocapture || status=1; done
exit "$status"
