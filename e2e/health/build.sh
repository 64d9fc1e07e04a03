#!/usr/bin/env bash
# Builds the program that reads objects as Flux and Argo CD do, into a folder: e2e/health/build.sh [FOLDER], by default target/bin.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here folder=${1:-$here/../../target/bin}
mkdir -p "$folder"
GOFLAGS='' GOWORK=off CGO_ENABLED=0 go -C "$here" build -mod=readonly -trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags "-s -w" \
  -o "$(realpath "$folder")/gitops-health" .
