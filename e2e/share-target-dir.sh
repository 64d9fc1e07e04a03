#!/usr/bin/env bash
# Lets clones of this repository share one target folder, and compiles again only what differs between them.
#
# Cargo knows a file that changed by its time, and a fresh clone's files are all new. The target folder has a list of the files that
# were compiled last, with their digests and times. A file with the same digest gets that time; all others are new.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root target="${CARGO_TARGET_DIR:-$root/target}" most_mb=${SKILLET_TARGET_MB:-16000}
readonly list="$target/.sources"
export LC_ALL=C
cd "$root"

# Cargo never deletes what it built: the folder grows with each change until the disk is full. What a link makes again in
# seconds is deleted first, and compiled crates only if that is not enough.
megabytes() { du -sm "$target" | cut -f1; }
shrink() {
  if (($(megabytes) <= most_mb)); then return; fi
  find "$target" -name incremental -type d -prune -exec rm -rf {} +
  rm -rf "$target/doc" "$target"/*/doc
  find "$target" -path '*/deps/*' -type f -executable ! -name '*.so' -delete
  if (($(megabytes) > most_mb)); then find "$target" -mindepth 1 -delete; fi
}

# DIGEST PATH of each file that is there, by path.
digests() { git ls-files -z | xargs -0 sha256sum 2>/dev/null | sed 's/  / /' | sort -k 2 || true; }

# The times of the list, where a file is the same; the time of now where it is another one than was compiled.
mkdir -p "$target"
exec 9>"$target/.sources.lock"
flock 9
if [[ ! -f $list || $(head -n 1 "$list") != "$root" ]]; then
  shrink
  mkdir -p "$target"
  touch "$list"
  digests | join -j 2 -a 1 -o 0,1.1,2.1,2.3 - <(tail -n +2 "$list" | sort -k 2) |
    while read -r path digest known time; do
      if [[ $digest == "$known" ]]; then touch -d "@$time" "$path"; else touch "$path"; fi
    done
fi
{
  echo "$root"
  git ls-files -z | xargs -0 stat -c '%n %.9Y' 2>/dev/null | sort | join -1 2 -2 1 -o 1.1,0,2.2 <(digests) -
} >"$list.new"
mv "$list.new" "$list"
