#!/usr/bin/env bash
# Builds kubectl-skill, static, and puts it into a folder: e2e/install-cli.sh [FOLDER], by default target/bin.
# With that folder in PATH, `kubectl skill` works. The flags are the images', so that crates are compiled once for both.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root folder=${1:-$root/target/bin} target=x86_64-unknown-linux-gnu
cd "$root"
RUSTFLAGS="-C target-feature=+crt-static" cargo build --quiet --locked --release --target "$target" -p kubectl-skill
mkdir -p "$folder"
install -m 0755 "${CARGO_TARGET_DIR:-target}/$target/release/kubectl-skill" "$folder/kubectl-skill"
