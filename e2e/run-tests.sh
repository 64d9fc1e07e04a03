#!/usr/bin/env bash
# Runs test programs that e2e/build.sh has built: e2e/run-tests.sh PACKAGE[/NAME]... [-- ARGUMENT...]
#
# cargo is not asked, for it would wait for whoever compiles. As with cargo, a program runs in its package's folder, each is run
# whatever becomes of the others, and the closing line of each is that of the test harness. Programs run side by side,
# SKILLET_TEST_JOBS (1) of them; the output of each is printed as a whole then.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root list="$root/target/bin/tests.tsv" jobs=${SKILLET_TEST_JOBS:-1}

die() {
  printf 'run-tests: error: %s\n' "$*" >&2
  exit 2
}

# run PACKAGE NAME FOLDER PATH ARGUMENT...
run() {
  local package=$1 name=$2 folder=$3 path=$4 status=0 began=$EPOCHREALTIME output
  shift 4
  cd "$folder"
  export CARGO_MANIFEST_DIR=$folder CARGO_PKG_NAME=$package
  if [[ $SIDE_BY_SIDE == no ]]; then
    printf 'Running %s/%s\n' "$package" "$name"
    "$path" "$@" || status=$?
  else
    output=$("$path" "$@" 2>&1) || status=$?
    printf 'Running %s/%s\n%s\n' "$package" "$name" "$output"
  fi
  awk -v name="$package/$name" -v began="$began" -v ended="$EPOCHREALTIME" 'BEGIN { printf "%s took %.1f s\n", name, ended - began }'
  ((status == 0)) || printf 'FAILED %s/%s (status %d)\n' "$package" "$name" "$status"
  return "$status"
}
export -f run

[[ -r $list ]] || die "$list is not there: e2e/build.sh tests makes it"
wanted=() arguments=()
while (($# > 0)); do
  if [[ $1 == -- ]]; then
    shift
    arguments=("$@")
    break
  fi
  wanted+=("$1")
  shift
done
commands=()
for pattern in "${wanted[@]}"; do
  found=no
  while IFS=$'\t' read -r package name _ folder path; do
    # shellcheck disable=SC2053 # a pattern
    [[ $package/$name == $pattern ]] || continue
    found=yes
    commands+=("$package" "$name" "$folder" "$path")
  done <"$list"
  [[ $found == yes ]] || die "no test program $pattern in $list"
done
SIDE_BY_SIDE=$( ((jobs > 1)) && echo yes || echo no)
export SIDE_BY_SIDE
# xargs gives the arguments of the harness behind those of each program.
printf '%s\0' "${commands[@]}" | xargs -0 -n 4 -P "$jobs" bash -euo pipefail -c 'run "${@: -4}" "${@:1:$#-4}"' run "${arguments[@]}"
