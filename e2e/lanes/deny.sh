#!/usr/bin/env bash
# Lane: licences, sources and bans of dependencies; with arguments, other checks of cargo-deny.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/../lib/lane.sh"
if [[ ${1:-} == prepare ]]; then set --; prepare=prepare; fi
e2e/install-tool.sh cargo-deny "$tools"
prepared "${prepare:-}"
if (($# == 0)); then set -- licenses bans sources; fi
"$tools/bin/cargo-deny" check "$@"
