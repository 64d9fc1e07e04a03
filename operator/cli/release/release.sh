#!/usr/bin/env bash
# Makes what a release of the plugin has: an archive for each platform, the checksums, and the manifest for krew.
#
#   operator/cli/release/release.sh pack PROGRAM OS ARCH DIR   packs a built kubectl-skill into DIR
#   operator/cli/release/release.sh krew DIR                   writes DIR/skill.yaml for the archives in DIR
#
# OS and ARCH are krew's words: linux or darwin, amd64 or arm64. An archive holds the plugin, the program of its shell
# completion, and the licence, without a folder.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
readonly root
version=v$(sed -n '/^\[workspace.package\]/,/^\[/s/^version *= *"\(.*\)"$/\1/p' "$root/Cargo.toml")
readonly version url="https://skillet.dev/releases/$version"

die() {
  echo "release: $*" >&2
  exit 2
}

pack() {
  local program=$1 os=$2 arch=$3 directory=$4 work
  [[ -f $program ]] || die "there is no program $program; 'SKILLET_PROFILE=release make cli' builds one"
  [[ $os =~ ^(linux|darwin)$ && $arch =~ ^(amd64|arm64)$ ]] || die "no platform: $os $arch"
  mkdir -p "$directory"
  work=$(mktemp -d)
  install -m 755 "$program" "$work/kubectl-skill"
  install -m 755 "$root/operator/cli/kubectl_complete-skill" "$root/LICENSE" "$work"
  chmod 644 "$work/LICENSE"
  # The same files give the same archive.
  tar --create --gzip --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 \
    --file "$directory/kubectl-skill-$version-$os-$arch.tar.gz" --directory "$work" \
    LICENSE kubectl-skill kubectl_complete-skill
  rm -rf "$work"
  (cd "$directory" && sha256sum kubectl-skill-*.tar.gz >SHA256SUMS)
}

krew() {
  local directory=$1 archive platform found=no
  sed "s/@VERSION@/$version/" "$root/operator/cli/release/krew.yaml" >"$directory/skill.yaml"
  for archive in "$directory"/kubectl-skill-"$version"-*.tar.gz; do
    [[ -f $archive ]] || continue
    found=yes
    platform=${archive##*"kubectl-skill-$version-"}
    platform=${platform%.tar.gz}
    cat >>"$directory/skill.yaml" <<TEXT
    - selector:
        matchLabels:
          os: ${platform%-*}
          arch: ${platform#*-}
      uri: $url/$(basename "$archive")
      sha256: $(sha256sum "$archive" | cut -d ' ' -f 1)
      bin: kubectl-skill
TEXT
  done
  [[ $found == yes ]] || die "$directory holds no archive of $version"
}

case ${1:-} in
  pack) (($# == 5)) && pack "${@:2}" ;;
  krew) (($# == 2)) && krew "$2" ;;
  *) die "usage: operator/cli/release/release.sh pack PROGRAM OS ARCH DIR | krew DIR" ;;
esac
