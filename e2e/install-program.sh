#!/usr/bin/env bash
# Builds kubectl-skill or skillet-demo, static, and puts it into a folder: e2e/install-program.sh PROGRAM [FOLDER], by default target/bin.
# With that folder in PATH, `kubectl skill` works.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=$(uname -m)-unknown-linux-gnu
readonly root target program=$1 folder=${2:-$root/target/bin}
cd "$root"
# Flags and features are those of the operator's image, so that their crates are compiled once: cargo chooses features by the
# packages that are named, and neither program wants one that the operator does not.
RUSTFLAGS="-C target-feature=+crt-static" cargo build --quiet --locked --release --target "$target" \
  -p skillet -p kubectl-skill -p skillet-e2e --bin "$program"
mkdir -p "$folder"
install -m 0755 "${CARGO_TARGET_DIR:-target}/$target/release/$program" "$folder/$program"
