#!/usr/bin/env bash
# Tests the images that build.sh has written: test.sh [IMAGE...]
#
# Each tar is checked as a reader would (every digest, the config), unpacked, looked through for what has no place in it,
# and run as its user with a read-only root, a noexec /dev/shm and no network. Running needs root.
set -euo pipefail
shopt -s inherit_errexit

IMAGES_HOME="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)"
# shellcheck source-path=SCRIPTDIR
source "$IMAGES_HOME/../e2e/lib/packages.sh"
BROWSE="$IMAGES_HOME/../operator/core/src/builtin/browser/browse.py"
OUT="$(dirname -- "$IMAGES_HOME")/target/images"
ALL_IMAGES=(operator runner shell python node browser)
PASSED=0
FAILED=0

fail() {
  printf 'images: FAILED %s: %s\n' "$NAME" "$*" >&2
  FAILED=$((FAILED + 1))
}
die() {
  printf 'images: error: %s\n' "$*" >&2
  exit 1
}
# check WHAT ACTUAL EXPECTED
check() { if [[ "$2" == "$3" ]]; then PASSED=$((PASSED + 1)); else fail "$1: expected $3, got $2"; fi; }

blob() { echo "$LAYOUT/blobs/sha256/${1#sha256:}"; }

check_layout() {
  local file digest size
  for file in "$LAYOUT"/blobs/sha256/*; do
    check "digest of a blob" "$(sha256sum "$file" | cut -d' ' -f1)" "$(basename "$file")"
  done
  read -r digest size < <(jq -r '.manifests[0] | "\(.digest) \(.size)"' "$LAYOUT/index.json")
  MANIFEST="$(blob "$digest")"
  check "size of the manifest" "$(stat -c %s "$MANIFEST")" "$size"
  while read -r digest size; do
    check "size of $digest" "$(stat -c %s "$(blob "$digest")")" "$size"
  done < <(jq -r '(.config, .layers[]) | "\(.digest) \(.size)"' "$MANIFEST")
  check "name for containerd" "$(jq -r '.manifests[0].annotations["io.containerd.image.name"]' "$LAYOUT/index.json")" \
    "$(jq -r ".$NAME.ref" "$OUT/images.json")"
  check "digest in images.json" "$(jq -r ".$NAME.digest" "$OUT/images.json")" "$(jq -r '.manifests[0].digest' "$LAYOUT/index.json")"
  check "bytes in images.json" "$(jq -r ".$NAME.bytes" "$OUT/images.json")" "$(jq '[.layers[].size] | add' "$MANIFEST")"
}

check_config() {
  local entrypoint
  case "$NAME" in
    operator) entrypoint='["/usr/bin/skillet"]' ;;
    runner) entrypoint='["/skillet-runner"]' ;;
    *) entrypoint='["/skillet/skillet-runner"]' ;;
  esac
  CONFIG="$(blob "$(jq -r .config.digest "$MANIFEST")")"
  check user "$(jq -r .config.User "$CONFIG")" 65532:65532
  check entrypoint "$(jq -c .config.Entrypoint "$CONFIG")" "$entrypoint"
  check os "$(jq -r .os "$CONFIG")" linux
  check "number of layers" "$(jq '.rootfs.diff_ids | length' "$CONFIG")" "$(jq '.layers | length' "$MANIFEST")"
}

# Unpacks every layer, and checks what is lost by unpacking: owners and the digests of the plain tars.
unpack_layers() {
  local number=0 layer
  mkdir -p "$ROOT"
  while read -r layer; do
    zstd -q -d -c "$(blob "$layer")" >"$WORK/layer.tar"
    check "diff_id of layer $number" "sha256:$(sha256sum "$WORK/layer.tar" | cut -d' ' -f1)" "$(jq -r ".rootfs.diff_ids[$number]" "$CONFIG")"
    check "owners in layer $number" "$(tar --numeric-owner -tvf "$WORK/layer.tar" | awk '{ print $2 }' | sort -u)" 0/0
    tar -x -C "$ROOT" --keep-directory-symlink -f "$WORK/layer.tar"
    number=$((number + 1))
  done < <(jq -r '.layers[].digest' "$MANIFEST")
}

check_licences() {
  local package
  for package in "$ROOT"/var/lib/dpkg/status.d/*; do
    package="$(basename "$package")"
    [[ -s "$ROOT/usr/share/doc/$package/copyright" ]] || fail "the licence of $package is missing"
  done
}

is_static() { [[ -x "$1" ]] && ! readelf -d "$1" 2>/dev/null | grep -q NEEDED && ! readelf -lW "$1" | grep -q INTERP; }

check_files() {
  local program=/skillet/skillet-runner
  case "$NAME" in
    operator) program=/usr/bin/skillet ;;
    runner) program=/skillet-runner ;;
  esac
  is_static "$ROOT$program" || fail "$program is not a static program"
  check "setuid and setgid files" "$(find "$ROOT" -perm /6000)" ""
  check "what the world can write" "$(find "$ROOT" ! -type l -perm /0002)" ""
  check "devices and sockets" "$(find "$ROOT" ! -type f ! -type d ! -type l)" ""
  case "$NAME" in
    operator | runner) check "number of files" "$(find "$ROOT" -type f | wc -l)" 1 ;;
    *)
      check users "$(cut -d: -f1,3,7 "$ROOT/etc/passwd" | tr '\n' ' ')" "root:0:/sbin/nologin sandbox:65532:/sbin/nologin "
      check "package managers and interpreters of no use here" \
        "$(cd "$ROOT/usr/bin" && find . -name 'apt*' -o -name 'dpkg*' -o -name 'pip*' -o -name 'perl*' -o -name 'npm*')" ""
      check_licences
      ;;
  esac
}

# in_sandbox COMMAND...: as the sandbox's user, in namespaces of its own, with what the pod would give and no more. BESIDE is run
# as root in its network before, and ends with it.
in_sandbox() {
  # shellcheck disable=SC2016 # the inner shell expands it
  unshare --mount --pid --fork --net --ipc --uts bash -euc '
    root=$1; shift
    mkdir -p "$root/dev" "$root/proc"
    mount --bind "$root" "$root"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    for device in null zero urandom; do : >"$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
    mkdir -m 1777 "$root/dev/shm"
    mount -t tmpfs -o nosuid,nodev,noexec,mode=1777,size=256m tmpfs "$root/dev/shm"
    mount -t proc proc "$root/proc"
    mount -o remount,bind,ro "$root"
    eval "${BESIDE:-}"
    exec env -i PATH=/usr/bin:/bin TMPDIR=/dev/shm timeout "${LIMIT:-60}" /usr/bin/setpriv --no-new-privs --bounding-set=-all,+setuid,+setgid,+sys_chroot \
      /usr/sbin/chroot --userspec=65532:65532 --groups=65532 "$root" "$@"
  ' in_sandbox "$ROOT" "$@"
}

check_run() {
  local result=""
  case "$NAME" in
    shell) result="$(in_sandbox /bin/sh -s <"$IMAGES_HOME/shell/smoke.sh" 2>&1)" || fail "$result" ;;
    python) result="$(in_sandbox /usr/bin/python3 - <"$IMAGES_HOME/python/smoke.py" 2>&1)" || fail "$result" ;;
    node) result="$(in_sandbox /usr/bin/node --no-warnings - <"$IMAGES_HOME/node/smoke.cjs" 2>&1)" || fail "$result" ;;
    # The program of the built-in is what runs in it. A host with TLS shows that Chromium finds its libraries.
    browser)
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout "$WORK/key" -out "$WORK/certificate" 2>/dev/null
      export BESIDE="ip link set lo up; openssl s_server -accept 8443 -key '$WORK/key' -cert '$WORK/certificate' -www </dev/null >/dev/null 2>&1 &"
      result="$(in_sandbox /usr/bin/python3 -c "$(<"$IMAGES_HOME/browser/smoke.py")" "$(<"$BROWSE")" 2>&1)" || fail "$result"
      result="$(LIMIT=150 in_sandbox /usr/bin/python3 -c "$(<"$IMAGES_HOME/browser/pages.py")" "$(<"$BROWSE")" 2>&1)" || fail "$result"
      unset BESIDE
      ;;
    operator) result="$(in_sandbox /usr/bin/skillet --version 2>&1)" || fail "$result" ;;
    # The copy of the init container. Its target is a volume; a noexec one will do for the copy alone.
    runner)
      in_sandbox /skillet-runner install /dev/shm/skillet-runner || fail "install did not end well"
      ;;
  esac
  SUMMARY="$result"
}

check_image() {
  NAME=$1 SUMMARY=""
  [[ -r "$OUT/$NAME.tar" ]] || die "$OUT/$NAME.tar is not there: run build.sh $NAME"
  WORK="$(mktemp -d)"
  LAYOUT="$WORK/layout" ROOT="$WORK/root"
  mkdir "$LAYOUT"
  tar -x -C "$LAYOUT" -f "$OUT/$NAME.tar"
  local before=$FAILED
  check_layout
  check_config
  unpack_layers
  check_files
  check_run
  rm -rf "$WORK"
  ((FAILED > before)) || printf 'images: %s ok  %s\n' "$NAME" "$SUMMARY"
}

# What the test itself needs, from Debian's packages.
install_tools() {
  local tool
  local -a packages=()
  for tool in jq zstd openssl readelf=binutils ip=iproute2; do
    command -v "${tool%=*}" >/dev/null || packages+=("${tool#*=}")
  done
  ((${#packages[@]} > 0)) || return 0
  install_packages "${packages[@]}" ||
    die "this machine lacks the Debian packages ${packages[*]}"
}

main() {
  local name
  [[ $EUID -eq 0 ]] || die "running the images needs root"
  install_tools
  trap '[[ -z "${WORK:-}" ]] || rm -rf "$WORK"' EXIT
  (($# > 0)) || set -- "${ALL_IMAGES[@]}"
  for name in "$@"; do check_image "$name"; done
  echo "$PASSED passed, $FAILED failed"
  ((FAILED == 0))
}

main "$@"
