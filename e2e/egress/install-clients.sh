#!/usr/bin/env bash
# Installs the clients of the sandbox lane that are no packages of Debian's, and prints their folder: e2e/egress/install-clients.sh
# It has python/bin/python with the packages of requirements.txt, and the program of client, built without the C library. The folder
# is $SKILLET_CACHE/clients/egress-<hash of the pins>, so that it is done once. It needs python3 with venv, and go.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR
source "$here/../lib/packages.sh"
cd "$here"
hash=$({ sha256sum requirements.txt client/*; python3 --version; } | sha256sum | cut -c1-16)
folder="${SKILLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skillet}/clients/egress-$hash"
mkdir -p "${folder%/*}"
exec 9>"$folder.lock"
flock 9
if [[ ! -f $folder/.complete ]]; then
  echo "install-clients: installing clients of egress (once; about a minute)" >&2
  rm -rf "$folder"
  mkdir "$folder"
  python3 -c 'import venv, ensurepip' 2>/dev/null || install_packages python3-venv
  python3 -m venv "$folder/python"
  # Wheels only: a source package would run a program of its own.
  "$folder/python/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --only-binary=:all: --no-deps \
    --requirement requirements.txt
  (cd client && CGO_ENABLED=0 GOTOOLCHAIN=local go build -buildvcs=false -trimpath -o "$folder/client" .)
  touch "$folder/.complete"
fi
echo "$folder"
