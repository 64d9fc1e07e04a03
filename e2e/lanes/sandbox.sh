#!/usr/bin/env bash
# Lane: the runner's confinement under a restricted OCI configuration, and attacks.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/../lib/lane.sh"
# Every client that the tests try. They start those of Debian's own folder.
need /usr/bin/python3=python3 curl wget busybox dig=bind9-dnsutils git openssl nc=netcat-openbsd redis-cli=redis-tools \
  psql=postgresql-client ssh=openssh-client /usr/bin/pip3=python3-pip chromium /usr/bin/node=nodejs \
  /usr/bin/java=default-jdk-headless go=golang-go
clients=$(e2e/egress/install-clients.sh)
"$cluster" build
prepared "$@"
build_tests
SKILLET_SANDBOX_LANE=1 SKILLET_CLIENTS=$clients run_tests 'skillet-runner/*'
