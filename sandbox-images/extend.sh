#!/usr/bin/env bash
# Makes an image of a runtime and a folder of packages, without an engine: extend.sh RUNTIME REF TAR FOLDER
#
# RUNTIME is shell, python or node, as build.sh wrote it. FOLDER is laid over the root of that image, as one more layer.
# REF is the new image's name, and TAR the OCI archive that is written. docs/reference/runtimes.md shows how it is used.
set -euo pipefail
shopt -s inherit_errexit

HERE="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)"
# shellcheck source=lib/oci.sh
source "$HERE/lib/oci.sh"

die() {
  printf 'extend: error: %s\n' "$*" >&2
  exit 1
}

# base_layers LAYOUT OUT: writes a folder of each layer, as write_image reads it. Prints their paths, lowest first.
base_layers() {
  local layout=$1 out=$2 manifest config digest size diff number=0 folder
  manifest="$layout/blobs/sha256/$(jq -r '.manifests[0].digest | ltrimstr("sha256:")' "$layout/index.json")"
  config="$layout/blobs/sha256/$(jq -r '.config.digest | ltrimstr("sha256:")' "$manifest")"
  jq -c .config "$config" >"$out/config"
  while read -r digest size diff; do
    folder="$out/layer-$number"
    mkdir -p "$folder"
    mv "$layout/blobs/sha256/${digest#sha256:}" "$folder/layer.tar.zst"
    echo "$digest $size $diff $(zstd -q -d -c "$folder/layer.tar.zst" | wc -c)" >"$folder/layer"
    echo "$folder"
    number=$((number + 1))
  done < <(jq -r --slurpfile config "$config" '[.layers, $config[0].rootfs.diff_ids] | transpose[] | "\(.[0].digest) \(.[0].size) \(.[1])"' "$manifest")
}

main() {
  (($# == 4)) || die "usage: extend.sh RUNTIME REF TAR FOLDER"
  local runtime=$1 ref=$2 tar=$3 added=$4 base work
  local -a layers
  base="$(dirname -- "$HERE")/target/images/$runtime.tar"
  [[ -r "$base" ]] || die "$base is not there; run sandbox-images/build.sh $runtime"
  [[ -d "$added" ]] || die "$added is not a folder"
  command -v jq >/dev/null || die "jq is missing"
  work="$(mktemp -d)"
  # shellcheck disable=SC2064 # the folder of this call
  trap "rm -rf '$work'" EXIT
  mkdir -p "$work/base" "$work/top/root"
  tar -x -C "$work/base" -f "$base"
  mapfile -t layers < <(base_layers "$work/base" "$work")
  cp -R "$added/." "$work/top/root"
  chmod -R u=rwX,go=rX "$work/top/root"
  make_layer "$work/top/root" "$work/top"
  write_image "$ref" "$tar" "$(<"$work/config")" "${layers[@]}" "$work/top" >/dev/null
}

main "$@"
