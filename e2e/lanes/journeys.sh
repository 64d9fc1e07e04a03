#!/usr/bin/env bash
# Lane: the gateway before a fake API server and the strict provider, without a cluster: through SDKs, and in a browser.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/../lib/lane.sh"
need python3 chromium
e2e/gateway/install-clients.sh >/dev/null
e2e/gateway/install-clients.sh frameworks >/dev/null
e2e/gateway/install-clients.sh litellm >/dev/null
prepared "$@"
build_tests
status=0
python3 -B e2e/gateway/journeys --gateway target/bin/skillet || status=1
python3 -B e2e/gateway/browser --gateway target/bin/skillet || status=1
# The program of the built-in browser, on pages that load in unusual ways, without its image.
python3 -B sandbox-images/browser/pages.py "$(<operator/core/src/builtin/browser/browse.py)" /usr/lib/chromium/chromium || status=1
exit "$status"
