# shellcheck shell=bash
# What every lane has: where things are, and how it gets what it needs. A lane is a script of e2e/lanes; `LANE.sh prepare` installs
# its needs and ends, so that e2e/lanes.sh fetches those of all lanes while crates compile.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools="${SKILLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skillet}/tools"
export root tools
# shellcheck source-path=SCRIPTDIR
source "$root/e2e/lib/packages.sh"
export cluster="$root/e2e/cluster/cluster.sh" PATH="$root/target/bin:$PATH"
# An error says by itself what was tried; where it was made would push that out of sight.
export RUST_LIB_BACKTRACE=0
cd "$root"

# Ends a lane that was asked to prepare itself only.
prepared() { [[ ${1:-} != prepare ]] || exit 0; }

# Installs what the lane needs from Debian's packages, PROGRAM or PROGRAM=PACKAGE; says what lacks where that cannot be.
need() {
  local lacking=() program package
  for program in "$@"; do
    package=${program#*=}
    command -v "${program%%=*}" >/dev/null || lacking+=("$package")
  done
  ((${#lacking[@]} == 0)) || install_packages "${lacking[@]}" || skip "the packages ${lacking[*]}"
}

# A lane whose need is missing fails in CI, and says so elsewhere.
skip() {
  echo "skipped: this lane needs $1"
  if [[ ${CI:-} == true ]]; then exit 1; else exit 0; fi
}

# Builds tests, unless e2e/lanes.sh has built those of all lanes before.
build_tests() { [[ -n ${SKILLET_BUILT:-} ]] || "$root/e2e/build.sh" tests; }

run_tests() { "$root/e2e/run-tests.sh" "$@"; }

# The local cluster's programs are found on PATH: kubectl, helm, ctr.
in_cluster() { "$root/e2e/in-cluster.sh" "$@"; }
