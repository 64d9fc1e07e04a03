#!/usr/bin/env bash
# Lane: format, clippy, links of doc comments, scripts, commit subjects.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/../lib/lane.sh"
need shellcheck
prepared "$@"
e2e/commit-subject.sh
cargo fmt --all --check
cargo clippy -q --locked --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D rustdoc::broken_intra_doc_links -A rustdoc::private_intra_doc_links" cargo doc -q --locked --workspace --no-deps --document-private-items
# Libraries are read where they are sourced. Attacks are programs of a sandbox's shell, without a first line of their own.
git ls-files '*.sh' .ci/run ':!*/lib/*' ':!e2e/attacks' |
  xargs shellcheck --external-sources --source-path=SCRIPTDIR --severity=warning
