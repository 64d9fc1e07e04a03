#!/usr/bin/env bash
# Runs a command with the cluster's environment: KUBECONFIG and the programs kubectl, helm and ctr.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
environment=$("$here/cluster/cluster.sh" env)
eval "$environment"
exec "$@"
