#!/usr/bin/env bash
# Lane: a real API server decides: definitions, immutability, ownership, the chart's rights, no second write.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/../lib/lane.sh"
"$cluster" build
e2e/install-debian-program.sh docker-registry docker-registry "$tools"
prepared "$@"
build_tests
export PATH="$tools/bin:$PATH" SKILLET_INTEGRATION=1
status=0
# Tests that wait for the API server leave the processors to others: more of them run at a time than there are processors.
in_cluster e2e/run-tests.sh skillet-controller/integration -- --test-threads 8 --skip a_thousand_skills || status=1
# A thousand Skills keep the operator busy for a minute, for which other tests would wait.
in_cluster e2e/run-tests.sh skillet-controller/integration -- a_thousand_skills || status=1
exit "$status"
