#!/usr/bin/env bash
# Installs a Rust tool at its pinned version into a folder, once: e2e/install-tool.sh NAME FOLDER
set -euo pipefail
readonly name=$1 folder=$2
case $name in
  cargo-deny) version=0.20.2 ;;
  *)
    echo "no pin for $name" >&2
    exit 2
    ;;
esac
if [[ -x $folder/bin/$name && $("$folder/bin/$name" --version) == *" $version" ]]; then exit 0; fi
echo "installing $name $version (once; some minutes)"
cargo install --quiet --locked --debug --root "$folder" "$name@$version"
