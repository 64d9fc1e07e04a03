#!/usr/bin/env bash
# Raises one pin of the cluster: go.mod and go.sum are written anew for the version.
# It builds nothing; "cluster.sh build" does, and "selftest.sh" tells whether the result is any good.
set -euo pipefail
shopt -s inherit_errexit

CLUSTER_HOME="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)"
# shellcheck source-path=SCRIPTDIR
source "$CLUSTER_HOME/lib/parts.sh"

part=${1:-}
version=${2:-}
module="$(part_module "$part")"
if [[ -z "$module" || ! "$version" =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]]; then
  echo "usage: bump.sh PART vX.Y.Z, with one of the parts: ${PARTS[*]}" >&2
  exit 2
fi
dir="$CLUSTER_HOME/go"

# Kubernetes replaces its staging modules by folders of its own tree, which those who depend on it do not inherit:
# the list is read off its go.mod, and v1.36.3 of Kubernetes is v0.36.3 of each of them.
raise_kubernetes() {
  local upstream name wanted
  upstream="$(cd / && GOFLAGS=-mod=mod go mod download -json "$module@$version" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')"
  wanted="$(replaced "$upstream")"
  for name in $wanted; do go -C "$dir" mod edit -replace "$name=$name@v0.${version#v1.}"; done
  for name in $(replaced "$dir/go.mod"); do
    grep -qx "$name" <<<"$wanted" || go -C "$dir" mod edit -dropreplace "$name"
  done
  go -C "$dir" mod edit -godebug "$(awk '$1 == "godebug" { print $2 }' "$upstream")"
}

# replaced FILE: the modules that a go.mod replaces.
replaced() { awk '/^replace \(/ { inside = 1; next } /^\)/ { inside = 0 } inside && /=>/ { print $1 }' "$1"; }

[[ "$part" != kubernetes ]] || raise_kubernetes
pins=("$module@$version")
for other in "${PARTS[@]}"; do [[ "$other" == "$part" ]] || pins+=("$(part_module "$other")@$(part_version "$other")"); done
# The other requirements of the old version would hold the new one's back or raise them: they are found anew.
go -C "$dir" mod edit -json | sed -n '/"Require"/,/^\t\]/p' | sed -n 's/.*"Path": "\([^"]*\)".*/\1/p' |
  while read -r name; do go -C "$dir" mod edit -droprequire "$name"; done
for pin in "${pins[@]}"; do go -C "$dir" mod edit -require "$pin"; done
rm -f "$dir/go.sum"
GOFLAGS='' GOWORK=off go -C "$dir" mod tidy
echo "$part is now at $(part_version "$part"); next: cluster.sh build, down, up, and selftest.sh"
