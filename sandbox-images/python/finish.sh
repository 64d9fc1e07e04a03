#!/usr/bin/env bash
# Compiles the standard library: a read-only root cannot keep bytecode that a run makes.
set -euo pipefail
root=$1
ln -s python3.13 "$root/usr/bin/python3"
ln -s python3 "$root/usr/bin/python"

# The image's own interpreter, through its own loader: nothing of this machine's Python takes part.
# unchecked-hash: bytecode is taken without a look at its source, and does not hold a time of change.
libraries=("$root"/usr/lib/*-linux-gnu)
cd "$root/usr/lib/python3.13"
env -i PYTHONHOME="$root/usr" PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 \
  "${libraries[0]}"/ld-linux-*.so.* --library-path "${libraries[0]}" "$root/usr/bin/python3.13" -S -m compileall \
  -q -j 1 --invalidation-mode unchecked-hash -s "$root" -p / "$root/usr/lib/python3.13"
