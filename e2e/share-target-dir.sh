#!/usr/bin/env bash
# Lets clones of this repository share one target folder, and compiles again only what differs between them.
#
# Cargo knows a file that changed by its time, and a fresh clone's files are all new. Those that are the same as in the
# clone that built last get the times they have there; all others are new, and so are those that hold their own path.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root target="${CARGO_TARGET_DIR:-$root/target}" most_mb=${SKILLET_TARGET_MB:-12000}
readonly mark="$target/.checkout"
cd "$root"

builder=
if [[ -f $mark ]]; then builder=$(<"$mark"); fi
if [[ $builder == "$root" ]]; then exit 0; fi

# Cargo never deletes what it built: the folder grows with each change until the disk is full. What a link makes again in
# seconds is deleted first, and compiled crates only if that is not enough.
megabytes() { du -sm "$target" | cut -f1; }
if [[ -d $target ]] && (($(megabytes) > most_mb)); then
  rm -rf "$target"/*/incremental "$target/doc"
  find "$target" -path '*/deps/*' -type f -executable ! -name '*.so' -delete
  if (($(megabytes) > most_mb)); then find "$target" -mindepth 1 -delete; fi
fi

# What is not there, and the link to a folder, has no sum.
sums() { (cd "$1" && xargs -0 sha256sum 2>/dev/null) || true; }
with_own_path() { git grep -lF CARGO_MANIFEST_DIR -- '*.rs' || true; }

git ls-files -z | xargs -0 touch --no-create
if [[ -n $builder && -d $builder ]]; then
  comm -12 <(git ls-files -z | sums "$root" | sort) <(git ls-files -z | sums "$builder" | sort) | cut -c 67- |
    { grep -vxFf <(with_own_path) || true; } |
    (cd "$builder" && xargs -r -d '\n' cp --attributes-only --preserve=timestamps --parents --target-directory "$root")
fi
mkdir -p "$target"
printf '%s' "$root" >"$mark"
