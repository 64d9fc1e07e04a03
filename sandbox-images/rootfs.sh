#!/usr/bin/env bash
# Makes the root filesystem of one image from Debian packages: rootfs.sh IMAGE FOLDER
#
# The same script runs on a Debian or Ubuntu machine (build.sh) and in the first stage of the Dockerfiles, so both ways
# give the same files. It needs apt, dpkg-deb and Debian's keyring; no privilege, no network but the Debian mirror and the
# npm registry.
set -euo pipefail
shopt -s inherit_errexit nullglob

SUITE=trixie
NPM_REGISTRY="${SKILLET_NPM_REGISTRY:-https://registry.npmjs.org}"
MIRROR="${SKILLET_DEBIAN_MIRROR:-http://deb.debian.org/debian}"
SECURITY_MIRROR="${SKILLET_DEBIAN_SECURITY_MIRROR:-http://deb.debian.org/debian-security}"
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

HERE="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"

die() {
  printf 'rootfs: error: %s\n' "$*" >&2
  exit 1
}

# list FILE: its lines, without comments and blanks.
list() { sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$1"; }

# An apt of our own: neither the machine's sources nor its installed packages have a say in what goes into an image, nor do its
# hooks run. How it gets out, through a proxy or with a CA of its own, is the machine's matter.
write_apt_conf() {
  local dir=$1 arch=$2
  mkdir -p "$dir/lists/partial" "$dir/archives/partial" "$dir/debs"
  : >"$dir/status"
  {
    echo "deb [signed-by=$KEYRING] $MIRROR $SUITE main"
    echo "deb [signed-by=$KEYRING] $MIRROR $SUITE-updates main"
    echo "deb [signed-by=$KEYRING] $SECURITY_MIRROR $SUITE-security main"
  } >"$dir/sources.list"
  apt-config dump Acquire | grep -iE '^Acquire::[a-z]+::.*(proxy|cainfo)' >"$dir/apt.conf" || true
  cat >>"$dir/apt.conf" <<TEXT
Dir::Etc::Main "/dev/null";
Dir::Etc::Parts "/dev/null";
Dir::Etc::SourceList "$dir/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "$dir";
Dir::State::Lists "$dir/lists";
Dir::State::Status "$dir/status";
Dir::Cache "$dir";
APT::Architecture "$arch";
APT::Architectures "$arch";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::Retries "3";
TEXT
}

# Every package is named in the image's list: nothing comes in as a dependency without a line in a diff.
fetch_packages() {
  local dir=$1 packages=$2
  local -a names
  mapfile -t names < <(list "$packages")
  export APT_CONFIG="$dir/apt.conf"
  apt-get --quiet=2 update || die "could not read the package lists of $MIRROR"
  (cd "$dir/debs" && apt-get --quiet=2 download "${names[@]}") || die "could not fetch the packages of $packages"
}

# Debian holds /bin and its like as links into /usr; the packages still ship files under both names.
extract_packages() {
  local debs=$1 root=$2 name deb
  for name in bin sbin lib lib64; do
    mkdir -p "$root/usr/$name"
    ln -s "usr/$name" "$root/$name"
  done
  for deb in "$debs"/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" |
      tar -x -C "$root" --keep-directory-symlink --no-same-owner --exclude=./tmp --exclude=./var --exclude=./home --exclude=./root
    # The record by which scanners know packages in an image that has no package manager.
    mkdir -p "$root/var/lib/dpkg/status.d"
    dpkg-deb --field "$deb" >"$root/var/lib/dpkg/status.d/$(dpkg-deb --field "$deb" Package)"
  done
}

# Programs that Debian has only in old versions come from the npm registry. Each line of the file is for one architecture:
# ARCHITECTURE PACKAGE VERSION SHA512 FILE DESTINATION. The package's LICENSE becomes its copyright.
extract_npm() {
  local dir=$1 root=$2 file=$3 arch package version digest member destination archive
  while read -r arch package version digest member destination; do
    [[ "$arch" == "$(dpkg --print-architecture)" ]] || continue
    archive="$dir/debs/$package.tgz"
    /usr/lib/apt/apt-helper -q=2 download-file "$NPM_REGISTRY/$package/-/$package-$version.tgz" "$archive" "SHA512:$digest" >/dev/null ||
      die "could not fetch $package $version of $NPM_REGISTRY"
    mkdir -p "$root/usr/share/doc/$package" "$(dirname "$root$destination")"
    tar -xz -O -f "$archive" "package/$member" >"$root$destination"
    chmod 0755 "$root$destination"
    tar -xz -O -f "$archive" package/LICENSE >"$root/usr/share/doc/$package/copyright"
    printf 'Package: %s\nStatus: install ok installed\nVersion: %s\nArchitecture: %s\nDescription: from the npm registry\n' \
      "$package" "$version" "$arch" >"$root/var/lib/dpkg/status.d/$package"
  done < <(list "$file")
}

# prune ROOT FILE: removes what the file's patterns match; a pattern that matches nothing is a mistake.
prune() {
  local root=$1 pattern
  local -a found
  while read -r pattern; do
    # shellcheck disable=SC2206 # the pattern is to be expanded
    found=("$root"/$pattern)
    ((${#found[@]} > 0)) || die "$2: nothing matches $pattern"
    rm -rf -- "${found[@]}"
  done < <(list "$2")
}

# Licences stay; everything else that only people read goes.
prune_documents() {
  local root=$1 path
  for path in man info lintian bug locale doc-base menu systemtap gdb gcc binfmts base-files bash-completion; do
    rm -rf "${root:?}/usr/share/$path"
  done
  # Packages of one source share a licence by a link to a folder.
  find "$root/usr/share/doc" -mindepth 2 ! -type d ! -name copyright -delete
}

# Parts of the C library that no program in these images loads.
prune_libc() {
  local lib
  for lib in "$1"/usr/lib/*-linux-gnu; do
    rm -rf "$lib"/{gconv,audit,engines-3,ossl-modules} "$lib"/libnss_{compat,hesiod}.so* "$lib"/lib{BrokenLocale,anl,c_malloc_debug,memusage,mvec,nsl,pcprofile,thread_db}.so*
  done
}

# No /tmp, nor a link of that name: /dev/shm is the only scratch space, and the runner proves that by trying all others.
add_base() {
  local root=$1
  mkdir -p "$root"/{etc,dev,proc,sys,var}
  printf '%s\n' 'root:x:0:0:root:/:/sbin/nologin' 'sandbox:x:65532:65532:sandbox:/dev/shm:/sbin/nologin' >"$root/etc/passwd"
  printf '%s\n' 'root:x:0:' 'sandbox:x:65532:' >"$root/etc/group"
}

normalise() {
  local root=$1
  find "$root" -type d -empty ! -path "$root/dev" ! -path "$root/proc" ! -path "$root/sys" ! -path "$root/usr/sbin" -delete
  chmod -R u=rwX,go=rX "$root"
}

main() {
  (($# == 2)) || die "usage: rootfs.sh IMAGE FOLDER"
  local image="$HERE/$1" root=$2
  [[ -r "$image/packages" ]] || die "$image/packages is not there"
  [[ -r "$KEYRING" ]] || die "$KEYRING is missing: install debian-archive-keyring"
  mkdir -p "$root"
  root="$(cd -- "$root" && pwd)"
  [[ -z "$(ls -A "$root")" ]] || die "$root is not empty"

  WORK="$(mktemp -d)"
  trap 'rm -rf "$WORK"' EXIT
  umask 022
  write_apt_conf "$WORK" "$(dpkg --print-architecture)"
  fetch_packages "$WORK" "$image/packages"
  extract_packages "$WORK/debs" "$root"
  if [[ -r "$image/npm" ]]; then extract_npm "$WORK" "$root" "$image/npm"; fi
  prune_documents "$root"
  prune_libc "$root"
  prune "$root" "$image/prune"
  add_base "$root"
  if [[ -r "$image/finish.sh" ]]; then bash "$image/finish.sh" "$root"; fi
  normalise "$root"
}

main "$@"
