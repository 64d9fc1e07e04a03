#!/usr/bin/env bash
# Brings Prometheus' promtool into FOLDER/bin, out of Debian's package and without its server: charts/install-promtool.sh FOLDER
set -euo pipefail
readonly folder=$1 package=prometheus
if [[ -x $folder/bin/promtool ]]; then exit 0; fi
if ! command -v apt-get >/dev/null; then
  echo "promtool is not there, and there is no apt-get to fetch it; see https://prometheus.io/download" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -qq -o APT::Sandbox::User=root download "$package" || { apt-get -qq update && apt-get -qq -o APT::Sandbox::User=root download "$package"; }
dpkg-deb --fsys-tarfile "$package"_*.deb | tar -xO ./usr/bin/promtool >promtool
mkdir -p "$folder/bin"
install -m 755 promtool "$folder/bin/promtool"
