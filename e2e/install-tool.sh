#!/usr/bin/env bash
# Installs a Rust tool at its pinned version into a folder, once: e2e/install-tool.sh NAME FOLDER
set -euo pipefail
name=$1 folder=$(realpath -m "$2")
readonly name folder
case $name in
  cargo-deny) version=0.20.2 ;;
  *)
    echo "no pin for $name" >&2
    exit 2
    ;;
esac
if [[ -x $folder/bin/$name && $("$folder/bin/$name" --version) == *" $version" ]]; then exit 0; fi
echo "installing $name $version (once; some minutes)"
# In a folder of its own: ours is locked by who compiles, and its flags are not for tools.
cd /
env -u CARGO_TARGET_DIR CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug --root "$folder" "$name@$version"
