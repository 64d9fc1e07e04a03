#!/usr/bin/env bash
# Builds the project's own programs, each crate once: e2e/build.sh [programs|tests]
#
# `programs` are skillet, skillet-runner, kubectl-skill and skillet-demo, static, in target/bin. `tests` are those and every test
# program, which target/bin/tests.tsv lists for e2e/run-tests.sh. Both name the same packages, because cargo chooses features by
# the packages that are named, and compiles a crate again for every other set of features.
#
# SKILLET_PROFILE is `dev` for tests and the local cluster, or `release`, which has skillet, its runner and kubectl-skill alone.
set -euo pipefail
shopt -s inherit_errexit
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root bin="$root/target/bin" profile=${SKILLET_PROFILE:-dev}
programs=(skillet kubectl-skill skillet-demo)
# The runner is tested as it is built, with its own few features.
readonly workspace=(--workspace --exclude skillet-runner)
# shellcheck source-path=SCRIPTDIR
source "$root/e2e/lib/progress.sh"
cd "$root"
mkdir -p "$bin"

die() {
  printf 'build: error: %s\n' "$*" >&2
  exit 1
}

# compile LABEL ARGUMENT...: one cargo call with progress. Its messages are in target/bin/LABEL.json.
compile() {
  local label=$1 log="$bin/$1.log"
  shift
  MESSAGES="$bin/$label.json"
  CRATES=$(cargo tree --quiet --locked --prefix none --edges normal,build "${workspace[@]}" | sort -u | wc -l)
  : >"$MESSAGES"
  cargo build --locked "$@" --message-format json-render-diagnostics >"$MESSAGES" 2>"$log" &
  follow $! "build: compiling $label" built_crates crates && return
  cat "$log" >&2
  die "could not compile $label; the whole log is $log"
}

# Crates that this call has compiled, and how many there will be. One of ours takes as long as ten others.
built_crates() {
  awk -v crates="$CRATES" -F '"' '
    /"reason":"compiler-artifact"/ {
      weight = /"package_id":"path/ ? 10 : 1
      if (!($8 in seen)) { seen[$8]; known++ }
      if (/"fresh":false/ && !($8 in compiled)) { compiled[$8]; finished += weight }
    }
    END { left = crates - known; print finished + 0, finished + (left > 0 ? left : 0) }' "$MESSAGES"
}

# executables LABEL: "name path" of every program of a call.
executables() {
  sed -n 's/.*"kind":\["bin"\].*"name":"\([^"]*\)","src_path.*"overflow_checks":[a-z]*,"test":false.*"executable":"\([^"]*\)".*/\1 \2/p' "$bin/$1.json"
}

install_programs() {
  local name path
  # A program of the other profile may be newer than this one.
  if [[ "$(cat "$bin/profile" 2>/dev/null)" != "$profile" ]]; then rm -f "${@/#/$bin/}"; fi
  while read -r name path; do
    # Names of functions are three quarters of a program, and every image would carry them.
    [[ " $* " != *" $name "* || "$bin/$name" -nt "$path" ]] || strip --strip-all -o "$bin/$name" "$path"
  done
}

# build [ARGUMENT...]: the programs, and what the arguments of cargo add.
build() {
  local arguments=("${workspace[@]}") runner=()
  # A release has the features of its programs and no others. The demo is a test, with what tests add.
  if [[ $profile == release ]]; then
    programs=(skillet kubectl-skill)
    arguments=(--release -p skillet -p kubectl-skill) runner=(--profile release-runner)
  fi
  compile workspace "${arguments[@]}" "${programs[@]/#/--bin=}" "$@"
  compile runner -p skillet-runner --bin skillet-runner "${runner[@]}" "$@"
  { executables workspace && executables runner; } | install_programs "${programs[@]}" skillet-runner
  echo "$profile" >"$bin/profile"
}

# A line for each test program: package, name, kind, its folder and its path.
list_tests() {
  local folder name kind path
  sed -n 's/.*"manifest_path":"\([^"]*\)\/Cargo.toml","target":{"kind":\["\([^"]*\)".*"name":"\([^"]*\)","src_path.*"overflow_checks":[a-z]*,"test":true},.*"executable":"\([^"]*\)".*/\1 \3 \2 \4/p' \
    "$bin/workspace.json" "$bin/runner.json" |
    while read -r folder name kind path; do
      printf '%s\t%s\t%s\t%s\t%s\n' "$(sed -n '0,/^name/s/^name = "\(.*\)"$/\1/p' "$folder/Cargo.toml")" "$name" "$kind" "$folder" "$path"
    done >"$bin/tests.tsv.new"
  mv "$bin/tests.tsv.new" "$bin/tests.tsv"
}

case ${1:-programs} in
  programs) build ;;
  tests)
    [[ $profile == dev ]] || die "tests are built by the profile dev"
    build --tests
    list_tests
    ;;
  *) die "usage: e2e/build.sh [programs|tests]" ;;
esac
