#!/usr/bin/env bash
# Builds the container images of this repository without a registry or a container engine.
#
# Each image is defined by the Dockerfile and the package list in its folder; see README.md. This script makes of them what
# `docker build` would, as OCI layouts in tars. What is up to date is left alone.
set -euo pipefail
shopt -s inherit_errexit

IMAGES_HOME="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)"
REPOSITORY="$(dirname -- "$IMAGES_HOME")"
# shellcheck source-path=SCRIPTDIR
source "$IMAGES_HOME/lib/oci.sh"
# shellcheck source-path=SCRIPTDIR
source "$IMAGES_HOME/lib/dockerfile.sh"
# shellcheck source-path=SCRIPTDIR
source "$REPOSITORY/e2e/lib/packages.sh"

ALL_IMAGES=(operator runner shell python node browser)
OUT="$REPOSITORY/target/images"
CACHE="${SKILLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skillet}/images"
REFRESH=no
LAYERS_ONLY=no
PROFILE="${SKILLET_PROFILE:-dev}"

usage() {
  cat <<TEXT
Usage: build.sh [--refresh] [--layers] [IMAGE...]     images: ${ALL_IMAGES[*]} (default all)

Writes target/images/IMAGE.tar, to be imported by 'ctr -n k8s.io images import', and target/images/images.json.

  --refresh   fetch the packages again; without it they are taken from the cache while the lists are unchanged
  --layers    only fetch the packages, into the cache

Environment: SKILLET_PROFILE of the programs, dev or release (dev), which the label dev.skillet.profile of an image tells;
SKILLET_CACHE (~/.cache/skillet), SKILLET_DEBIAN_MIRROR, SKILLET_DEBIAN_SECURITY_MIRROR, SKILLET_NPM_REGISTRY, CARGO_TARGET_DIR.
TEXT
}

say() { printf 'images: %s\n' "$*" >&2; }
die() {
  printf 'images: error: %s\n' "$*" >&2
  exit 1
}

# The image's folder has the name of what is in it.
folder_of() { if [[ "$1" == operator ]]; then echo skillet; else echo "$1"; fi; }

# One version for crates, chart and images.
workspace_version() {
  sed -n '/^\[workspace.package\]/,/^\[/s/^version *= *"\(.*\)"$/\1/p' "$REPOSITORY/Cargo.toml"
}

megabytes() { awk -v bytes="$1" 'BEGIN { printf "%.1f MB", bytes / 1e6 }'; }

# Everything that lacks is said at once, before anything starts. What is a Debian package is installed where we may.
check_requirements() {
  local -a missing=() packages=()
  command -v cargo >/dev/null || missing+=("cargo (https://rustup.rs)")
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    missing+=("apt and dpkg (a Debian or Ubuntu machine; elsewhere use the Dockerfiles with an engine)")
  command -v zstd >/dev/null || packages+=(zstd)
  [[ -r /usr/share/keyrings/debian-archive-keyring.gpg ]] || packages+=(debian-archive-keyring)
  [[ -r /etc/ssl/certs/ca-certificates.crt ]] || packages+=(ca-certificates)
  if ((${#packages[@]} > 0 && ${#missing[@]} == 0)) && [[ $EUID -eq 0 ]]; then
    say "installing ${packages[*]}"
    install_packages "${packages[@]}" || die "could not install ${packages[*]}"
    packages=()
  fi
  missing+=("${packages[@]/#/Debian package }")
  ((${#missing[@]} == 0)) || die "this machine lacks: $(IFS=';' && echo "${missing[*]}")"
}

# The programs of this profile, static, into target/images/bin.
build_programs() {
  local program
  SKILLET_PROFILE=$PROFILE "$REPOSITORY/e2e/build.sh" programs || die "could not build the programs"
  mkdir -p "$OUT/bin"
  for program in skillet skillet-runner; do
    cmp -s "$REPOSITORY/target/bin/$program" "$OUT/bin/$program" || install -m 0755 "$REPOSITORY/target/bin/$program" "$OUT/bin/$program"
  done
}

# base_key FOLDER: of everything that decides what the packages' layer holds.
base_key() {
  local file
  {
    uname -m
    layer_level 0
    for file in "$IMAGES_HOME/rootfs.sh" "$IMAGES_HOME/lib/oci.sh" "$IMAGES_HOME/$1"/*; do
      # Neither what is put on top nor the test is in that layer.
      [[ "$file" == */Dockerfile || "$file" == */smoke.* ]] || cat "$file"
    done
  } | sha256sum | cut -c1-16
}

# base_layer FOLDER: prints the folder of its layer, made at need.
base_layer() {
  local folder=$1 dir work began=$SECONDS
  dir="$CACHE/$folder-$(base_key "$folder")"
  if [[ -r "$dir/layer" && "$REFRESH" == no ]]; then
    echo "$dir"
    return
  fi
  say "$folder: fetching Debian packages"
  mkdir -p "$CACHE"
  work="$(mktemp -d "$CACHE/.$folder.XXXXXX")"
  # shellcheck disable=SC2064 # the folder of this call
  trap "rm -rf '$work'" EXIT
  "$IMAGES_HOME/rootfs.sh" "$folder" "$work/rootfs" >&2 || die "$folder: could not make the root filesystem"
  make_layer "$work/rootfs" "$work"
  rm -rf "$work/rootfs" "$dir"
  mv "$work" "$dir"
  prune_cache "$folder"
  say "$folder: layer of packages made in $((SECONDS - began)) s"
  echo "$dir"
}

# Other checkouts may use older layers: three of each image are kept.
prune_cache() {
  local -a old
  mapfile -t old < <(find "$CACHE" -maxdepth 1 -name "$1-*" -printf '%T@ %p\n' | sort -rn | tail -n +4 | cut -d' ' -f2-)
  ((${#old[@]} == 0)) || rm -rf "${old[@]}"
}

# files_layer WORK "SOURCE DESTINATION"...: a layer of single files.
files_layer() {
  local work=$1 pair root
  shift
  root="$work/root"
  mkdir -p "$root"
  for pair in "$@"; do
    install -D -m 0755 "$REPOSITORY/${pair% *}" "$root/${pair#* }"
  done
  chmod -R u=rwX,go=rX "$root"
  make_layer "$root" "$work"
  rm -rf "$root"
}

# image_key REF: of everything that decides the image. Needs what read_dockerfile set.
image_key() {
  local pair
  {
    echo "$1 $DOCKER_CONFIG $2"
    cat "$IMAGES_HOME/lib/oci.sh"
    for pair in "${DOCKER_FILES[@]}"; do
      echo "$pair $(sha256_of "$REPOSITORY/${pair% *}")"
    done
  } | sha256sum | cut -d' ' -f1
}

build_image() {
  local name=$1 folder ref key base="" work digest bytes unpacked
  local -a layers=()
  folder="$(folder_of "$name")"
  ref="skillet.dev/$name:$(workspace_version)"
  read_dockerfile "$IMAGES_HOME/$folder/Dockerfile" "$folder" "dev.skillet.profile=$PROFILE"
  if [[ "$DOCKER_BASE" == yes ]]; then
    base="$(base_layer "$folder")"
    layers+=("$base")
  fi
  key="$(image_key "$ref" "$([[ -z "$base" ]] || cat "$base/layer")")"
  if [[ -r "$OUT/$name.tar" && "$(cat "$OUT/.state/$name.key" 2>/dev/null)" == "$key" ]]; then
    return
  fi
  work="$(mktemp -d "$OUT/.$name.XXXXXX")"
  files_layer "$work" "${DOCKER_FILES[@]}"
  layers+=("$work")
  read -r digest bytes unpacked < <(write_image "$ref" "$OUT/$name.tar" "$DOCKER_CONFIG" "${layers[@]}")
  rm -rf "$work"
  mkdir -p "$OUT/.state"
  printf '  "%s": {"ref": "%s", "digest": "%s", "bytes": %s, "unpackedBytes": %s, "profile": "%s"}' \
    "$name" "$ref" "$digest" "$bytes" "$unpacked" "$PROFILE" >"$OUT/.state/$name.json"
  echo "$key" >"$OUT/.state/$name.key"
  say "$name: $ref, $(megabytes "$bytes") compressed, $(megabytes "$unpacked") unpacked"
}

write_summary() {
  local name entries=""
  for name in "${ALL_IMAGES[@]}"; do
    [[ ! -r "$OUT/.state/$name.json" ]] || entries+="${entries:+,$'\n'}$(cat "$OUT/.state/$name.json")"
  done
  printf '{\n%s\n}\n' "$entries" >"$OUT/images.json.new"
  mv "$OUT/images.json.new" "$OUT/images.json"
}

main() {
  local name
  local -a names=()
  for name in "$@"; do
    case "$name" in
      --refresh) REFRESH=yes ;;
      --layers) LAYERS_ONLY=yes ;;
      -h | --help)
        usage
        return
        ;;
      *)
        [[ " ${ALL_IMAGES[*]} " == *" $name "* ]] || die "no image $name; there are: ${ALL_IMAGES[*]}"
        names+=("$name")
        ;;
    esac
  done
  ((${#names[@]} > 0)) || names=("${ALL_IMAGES[@]}")
  check_requirements
  # A relative CARGO_TARGET_DIR is meant from here.
  cd "$REPOSITORY"
  mkdir -p "$OUT"
  exec {LOCK}>"$OUT/.lock"
  flock -n "$LOCK" || { say "another run is at work; waiting for it" && flock "$LOCK"; }
  if [[ "$LAYERS_ONLY" == yes ]]; then
    for name in "${names[@]}"; do
      if [[ -r "$IMAGES_HOME/$(folder_of "$name")/packages" ]]; then (base_layer "$(folder_of "$name")" >/dev/null); fi
    done
    return
  fi
  build_programs
  for name in "${names[@]}"; do build_image "$name"; done
  write_summary
}

main "$@"
