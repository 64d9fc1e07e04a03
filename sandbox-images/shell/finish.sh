#!/usr/bin/env bash
# Links the applets of the list to busybox.
set -euo pipefail
root=$1
here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"

mapfile -t known < <("$root/usr/bin/busybox" --list)
read -r -d '' -a wanted < <(sed 's/#.*//' "$here/applets"; printf '\0')
for applet in "${wanted[@]}"; do
  if [[ " ${known[*]} " != *" $applet "* ]]; then
    echo "shell: error: busybox has no applet $applet" >&2
    exit 1
  fi
  ln -s busybox "$root/usr/bin/$applet"
done
