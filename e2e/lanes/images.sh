#!/usr/bin/env bash
# Lane: what is in the images, and that nothing else is.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/../lib/lane.sh"
need jq zstd openssl readelf=binutils ip=iproute2
if [[ ${1:-} == prepare ]]; then sandbox-images/build.sh --layers; fi
prepared "$@"
sandbox-images/build.sh
sandbox-images/test.sh
