#!/usr/bin/env bash
# Lane: every test that needs nothing but this machine. Programs in a folder of their own belong to the other lanes.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/../lib/lane.sh"
need python3 node=nodejs
prepared "$@"
build_tests
status=0
# Two at a time: many wait for a clock or a file.
SKILLET_TEST_JOBS=2 run_tests '!(skillet-runner)/!(integration|e2e|mistakes|faults|gateway)' || status=1
(cd e2e/gateway/model && python3 -B -m tests) || status=1
exit "$status"
