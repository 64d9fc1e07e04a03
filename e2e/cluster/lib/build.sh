# shellcheck shell=bash
# Builds the cluster's programs into the cache and finds them there.
# An interrupted build continues where it stopped, and raising a pin compiles what depends on it: go's own cache sees to both.

# Of everything in the repository that decides what is built.
pins_hash() { cat "$CLUSTER_HOME"/lib/{parts,image}.sh "$CLUSTER_HOME"/go/go.{mod,sum} "$CLUSTER_HOME"/go/*/*.go | hash_of; }

hash_of() { sha256sum | cut -c1-16; }

toolchain_hash() { GOWORK=off go -C "$CLUSTER_HOME/go" version | hash_of; }

# Prints the folder of the cache for these pins and this toolchain.
# Without a toolchain one that was built of the same pins is used, if there is any.
cache_dir() {
  local pins dir
  pins="$(pins_hash)"
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

is_built() { [[ -d "$(cache_dir)/bin" ]]; }

# build_all: leaves a whole cache folder, or says what could not be built.
build_all() {
  local dir fresh log
  is_built && return
  dir="$(cache_dir)"
  fresh="$dir.$$"
  log="$CACHE_ROOT/build.log"
  rm -rf "$dir".*
  mkdir -p "$fresh/bin"
  say "building the cluster's programs, once for these pins, into $CACHE_ROOT"
  # What go lists it fetches first.
  run_step "fetching the sources" "$log" list_packages "$fresh/packages"
  # The compiler is a short-lived process: collecting its garbage costs a quarter of the time. The limit keeps many from filling the memory.
  export GOGC=off GOMEMLIMIT
  GOMEMLIMIT="$(compiler_memory)MiB"
  TOTAL="$(wc -l <"$fresh/packages")" run_step compiling "$log" compile_programs "$fresh/bin"
  rm "$fresh/packages"
  pack_images "$fresh"
  mv -T "$fresh" "$dir"
  prune_cache "$dir"
  say "built in $(elapsed): $(du -sh "$dir" | cut -f1) in $dir"
}

# run_step LABEL LOG COMMAND...: shows how far it is; where it fails, the end of its log.
run_step() {
  local label=$1 log=$2
  shift 2
  "$@" >"$log" 2>&1 &
  BUILD_LOG=$log
  follow $! "cluster: $label" built_packages packages && return
  rm -rf "$(cache_dir)".*
  tail -n 20 "$log" >&2
  die "$label: failed; the whole log is $log"
}

# Packages that the compiler has named in the log, and all of them if they were counted.
built_packages() { echo "$(grep -vc '^go: ' "$BUILD_LOG") ${TOTAL:-}"; }

# Half of the memory for all compilers together, of which there is one a processor; the programs need some 300 MiB each.
compiler_memory() {
  awk -v processors="$(nproc)" '$1 == "MemTotal:" { share = $2 / 1024 / 2 / processors; print int(share < 400 ? 400 : share) }' /proc/meminfo
}

# list_packages FILE: those that go will compile; the ones that are in its cache take no time.
list_packages() {
  {
    go_command 1 list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "${C_FLAGS[@]}" "${C_PACKAGES[@]}"
    go_command 0 list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "${GO_FLAGS[@]}" "${GO_PACKAGES[@]}"
  } >"$1"
}

# What runs in the cluster becomes an image; the program does not come onto the user's PATH.
pack_images() {
  local fresh=$1 part root
  mkdir -p "$fresh/images"
  for part in "${IMAGE_PARTS[@]}"; do
    root="$(mktemp -d)"
    mv "$fresh/bin/$part" "$root/"
    make_image "$(image_name "$part")" "$root" "$fresh/images/$part.tar" "[\"/$part\"]"
    rm -rf "$root"
  done
}

# What was built of other pins and not used for a month goes.
prune_cache() {
  touch "$1"
  find "$CACHE_ROOT" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
}
