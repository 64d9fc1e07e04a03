#!/usr/bin/env bash
# Lane: the rendered charts against golden files, and values that their schemas refuse.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/../lib/lane.sh"
"$cluster" build
e2e/install-debian-program.sh prometheus promtool "$tools"
prepared "$@"
PATH="$tools/bin:$PATH" in_cluster charts/test.sh
in_cluster charts/test-skills.sh
