#!/usr/bin/env bash
# Brings one program of a Debian package into FOLDER/bin, without the rest: e2e/install-debian-program.sh PACKAGE PROGRAM FOLDER
set -euo pipefail
readonly package=$1 program=$2 folder=$3
if [[ -x $folder/bin/$program ]]; then exit 0; fi
if ! command -v apt-get >/dev/null; then
  echo "$program is not there, and there is no apt-get to fetch it; put it on PATH" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
download() { apt-get -qq -o APT::Sandbox::User=root download "$package"; }
download || { apt-get -qq update && download; }
dpkg-deb --fsys-tarfile "$package"_*.deb | tar -xO "./usr/bin/$program" >"$program"
mkdir -p "$folder/bin"
install -m 755 "$program" "$folder/bin/$program"
