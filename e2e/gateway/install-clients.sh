#!/usr/bin/env bash
# Installs the SDKs that the gateway's tests use, at their pinned versions, and prints the folder: e2e/gateway/install-clients.sh
# With `frameworks` or `litellm` it installs clients for Python which ask for other versions of the SDKs, each in a folder of its own.
# A folder is $SKILLET_CACHE/clients/<hash of the pins>, so that it is done once; no program of a package runs while it is.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here clients="$here/clients"
# shellcheck source-path=SCRIPTDIR
source "$here/../lib/packages.sh"
requirements=python/requirements.txt compile=--compile
pins=("$requirements" node/package.json node/package-lock.json)
if [[ -n ${1:-} ]]; then
  requirements="python/$1.txt"
  pins=("$requirements")
  # Python compiles what it imports: much less than there is.
  compile=--no-compile
fi
readonly requirements pins compile

fail() {
  echo "install-clients: $1" >&2
  exit 1
}

# Installs a package of Debian's where the check fails; says what lacks where that cannot be.
need() {
  local check=$1 what=$2
  shift 2
  if eval "$check" >/dev/null 2>&1; then return; fi
  install_packages "$@" && eval "$check" >/dev/null 2>&1 || fail "needs $what (Debian: $*)"
}

install_python() {
  python3 -m venv "$1/python"
  # Wheels only: a source package would run a program of its own.
  "$1/python/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --only-binary=:all: \
    "$compile" --requirement "$clients/$requirements"
}

# A Node of the SDKs' own choice comes as one of the packages: they want a newer one than many machines have.
install_node() {
  need 'command -v npm && node -e "process.exit(process.versions.node.split(\".\")[0] < 18 ? 1 : 0)"' "node >= 18 with npm" nodejs npm
  mkdir "$1/node"
  cp "$clients/node/package.json" "$clients/node/package-lock.json" "$1/node/"
  (cd "$1/node" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null)
  local programs=("$1"/node/node_modules/node-linux-*/bin)
  [[ -x ${programs[0]}/node ]] || fail "npm has no node for $(uname -m)"
  ln -s "${programs[0]}/node" "$1/node/node"
}

cd "$clients"
hash=$(sha256sum "${pins[@]}" | sha256sum | cut -c1-16)
folder="${SKILLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skillet}/clients/$hash"
mkdir -p "${folder%/*}"
exec 9>"$folder.lock"
flock 9
if [[ ! -f $folder/.complete ]]; then
  need 'python3 -c "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))"' "python3 >= 3.10 with venv" python3 python3-venv
  echo "install-clients: installing the SDKs of the model providers (once; about a minute)" >&2
  rm -rf "$folder"
  mkdir "$folder"
  install_python "$folder"
  if ((${#pins[@]} > 1)); then install_node "$folder"; fi
  touch "$folder/.complete"
fi
# Where the scripts are, Node looks for their packages.
if ((${#pins[@]} > 1)); then ln -sfn "$folder/node/node_modules" "$clients/node/node_modules"; fi
echo "$folder"
