# shellcheck shell=bash
# Builds the cluster's programs into the cache and finds them there.
# Each part is kept by itself, so an interrupted build goes on where it was and raising one pin builds one part.

hash_of() { sha256sum | cut -c1-16; }

# pins_hash PART...: of everything in the repository that decides what is built.
pins_hash() {
  local part
  {
    cat "$CLUSTER_HOME/lib/parts.sh" "$CLUSTER_HOME/lib/image.sh"
    for part in "$@"; do
      cat "$CLUSTER_HOME/go/$part/"go.mod
      cat "$CLUSTER_HOME/go/$part/"go.sum "$CLUSTER_HOME/go/$part/"*.go 2>/dev/null || true
    done
  } | hash_of
}

toolchain_hash() { GOWORK=off go -C "$CLUSTER_HOME/go/containerd" version | hash_of; }

# Prints the folder of the cache for these pins and this toolchain.
# Without a toolchain one that was built of the same pins is used, if there is any.
cache_dir() {
  local pins dir
  pins="$(pins_hash "${PARTS[@]}")"
  if has go; then
    echo "$CACHE_ROOT/$pins-$(toolchain_hash)"
    return
  fi
  for dir in "$CACHE_ROOT/$pins"-*; do
    if [[ -d "$dir/bin" ]]; then
      echo "$dir"
      return
    fi
  done
  echo "$CACHE_ROOT/$pins-none"
}

part_dir() { echo "$CACHE_ROOT/parts/$1-$(pins_hash "$1")-$(toolchain_hash)"; }

is_built() { [[ -d "$(cache_dir)/bin" ]]; }

# build_all: leaves a whole cache folder, or says what could not be built.
build_all() {
  local part number=0 dir
  is_built && return
  say "building the cluster's programs, once for these pins (about 12 minutes on two cores when none is there) into $CACHE_ROOT"
  for part in "${PARTS[@]}"; do
    number=$((number + 1))
    build_part "$part" "$number/${#PARTS[@]}"
  done
  dir="$(cache_dir)"
  assemble "$dir"
  prune_cache "$dir"
  say "built in $(elapsed): $(du -sh "$dir" | cut -f1) in $dir"
}

# build_part PART "3/8": into a folder of its own, renamed when it is whole.
build_part() {
  local part=$1 count=$2 dir fresh log began=$SECONDS
  dir="$(part_dir "$part")"
  if [[ -d "$dir" ]]; then
    say "[$count] $part $(part_version "$part"): in the cache"
    return
  fi
  rm -rf "$dir".*
  fresh="$dir.$$"
  log="$fresh/build.log"
  mkdir -p "$fresh/bin"
  compile_part "$part" "$fresh/bin" >"$log" 2>&1 &
  if ! show_build $! "[$count] $part $(part_version "$part")" "$log"; then
    tail -n 20 "$log" >&2
    mv "$log" "$CACHE_ROOT/failed-$part.log"
    rm -rf "$fresh"
    die "could not build $part: the whole log is in $CACHE_ROOT/failed-$part.log"
  fi
  pack_image "$part" "$fresh"
  rm -f "$log"
  mv -T "$fresh" "$dir"
  say "[$count] $part $(part_version "$part"): built in $((SECONDS - began)) s"
}

# show_build PID LABEL LOG: waits for the build; each second on a terminal, else every 30 s, tells how far it is.
show_build() {
  local pid=$1 label=$2 log=$3 began=$SECONDS last=0 took packages
  # shellcheck disable=SC2064
  trap "kill $pid 2>/dev/null || true" EXIT
  while kill -0 "$pid" 2>/dev/null; do
    took=$((SECONDS - began))
    packages="$(grep -vc '^go: ' "$log" || true)"
    if [[ -t 2 ]]; then
      printf '\rcluster: %s: %d s, %d packages compiled ' "$label" "$took" "$packages" >&2
    elif ((took - last >= 30)); then
      last=$took
      say "$label: $took s, $packages packages compiled"
    fi
    sleep 1
  done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
  trap - EXIT
  wait "$pid"
}

# A part that runs in the cluster becomes an image; the program does not come onto the user's PATH.
pack_image() {
  local part=$1 fresh=$2
  [[ " ${IMAGE_PARTS[*]} " == *" $part "* ]] || return 0
  mkdir -p "$fresh/images"
  make_image "$(image_name "$part")" "$fresh/bin" "$fresh/images/$part.tar" "[\"/$part\"]"
  rm -rf "${fresh:?}/bin"
}

# assemble FOLDER: all parts in one, as hard links, so that it costs nothing.
assemble() {
  local dir=$1 fresh="$1.$$" part
  [[ ! -d "$dir/bin" ]] || return 0
  rm -rf "$dir"
  mkdir -p "$fresh/bin" "$fresh/images"
  for part in "${PARTS[@]}"; do
    cp -al "$(part_dir "$part")/." "$fresh/"
  done
  mv -T "$fresh" "$dir"
}

# What was built of other pins and not used for a month goes.
prune_cache() {
  touch "$1"
  find "$CACHE_ROOT" "$CACHE_ROOT/parts" -mindepth 1 -maxdepth 1 -type d ! -name parts -mtime +30 -exec rm -rf {} +
}
