#!/usr/bin/env bash
# Tests of the chart of skills that need no cluster: test-skills.sh [--update]
#
# Renders the value sets in skillet-skills/ci and compares them with skillet-skills/tests/golden (--update writes those instead).
# operator/core/src/native_skills/ runs the skills of the golden files.
set -euo pipefail
shopt -s inherit_errexit

CHARTS="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)"
REPOSITORY="$(dirname -- "$CHARTS")"
CHART="$CHARTS/skillet-skills"
GOLDEN="$CHART/tests/golden"
UPDATE=no
SUBJECT=skills
readonly SUBJECT REPOSITORY
# shellcheck source=lib/checks.sh
source "$CHARTS/lib/checks.sh"

render() { helm template skills "$CHART" --namespace team-a "$@"; }
# Helm prints no notes of a rendering: they are taken as one more template.
notes() {
  local chart="$WORK/with-notes"
  rm -rf "$chart"
  cp -r "$CHART" "$chart"
  mv "$chart/templates/NOTES.txt" "$chart/templates/notes-as-text.yaml"
  sed -i '1i {{ define "notes" }}' "$chart/templates/notes-as-text.yaml"
  printf '{{ end }}\nnotes: |\n{{ include "notes" . | indent 2 }}\n' >>"$chart/templates/notes-as-text.yaml"
  helm template skills "$chart" --namespace team-a --show-only templates/notes-as-text.yaml "$@" | sed -n 's/^  //p'
}
names() { sed -n 's/^  name: //p'; }

test_lint() {
  local values
  for values in "$CHART"/ci/*-values.yaml; do
    helm lint --strict --quiet "$CHART" --values "$values" || fail "helm lint --strict with $(basename "$values")"
  done
}

# compare FILE: the rendering in WORK is that of the golden file.
compare() {
  if [[ "$UPDATE" == yes ]]; then
    cp "$WORK/$1" "$GOLDEN/$1"
  elif ! diff -u "$GOLDEN/$1" "$WORK/$1"; then
    fail "$1 differs from its golden file; 'charts/test-skills.sh --update' takes it over"
  fi
}

test_golden() {
  local values name
  mkdir -p "$GOLDEN"
  for values in "$CHART"/ci/*-values.yaml; do
    name="$(basename "$values" -values.yaml)"
    render --values "$values" >"$WORK/$name.yaml" || { fail "helm template with $name"; continue; }
    compare "$name.yaml"
    notes --values "$values" >"$WORK/$name.notes.txt" || { fail "the notes with $name"; continue; }
    compare "$name.notes.txt"
  done
}

# refused WHAT "PART OF THE MESSAGE" --set ...: no such value gets as far as the cluster.
refused() {
  local what=$1 part=$2 output
  shift 2
  if output="$(render "$@" 2>&1)"; then
    fail "$what is accepted"
  elif [[ "$output" != *"$part"* ]]; then
    fail "$what is refused without \"$part\": $output"
  fi
}

test_refusals() {
  refused "an unknown value" "additional properties 'skill' not allowed" --set skill.weather=x
  refused "an unknown handler" "additional properties 'wasm' not allowed" --set handlers.wasm=true
  refused "an unknown skill" "skills.wether: the chart has no such skill; it has chart, " --set skills.wether.enabled=true
  refused "an unknown setting of a skill" "additional properties 'on' not allowed" --set skills.weather.on=true
  refused "an unknown limit" "additional properties 'time' not allowed" --set limits.time=3s
  refused "a word for a boolean" "/skills/weather/enabled" --set-string skills.weather.enabled=no
  refused "an unknown mode" "/skills/weather/mode" --set skills.weather.mode=sometimes
  refused "a time in words" "/limits/timeout" --set limits.timeout=long
  refused "a namespace with capitals" "/namespace" --set namespace=Tools
  refused "a Secret's name with capitals" "/github/tokenSecret/name" --set github.tokenSecret.name=Token
  refused "a version as a whole" "/versionPatch" --set-string versionPatch=1.2.3
  refused "an old cluster" "incompatible with Kubernetes" --kube-version 1.32.0
}

# Each skill is installed by its own value and by that of its handler, and left out by its own.
test_choice() {
  local all file name
  all="$(render --set handlers.sandbox=true,handlers.http=true,handlers.builtin=true | names | sort)"
  [[ "$all" == "$(cd "$CHART/skills" && basename -s .yaml -- *.yaml | sort)" ]] || fail "all handlers do not have all skills"
  for file in "$CHART"/skills/*.yaml; do
    name="$(basename "$file" .yaml)"
    grep -qx "  name: $name" "$file" || fail "$file holds another skill than $name"
    [[ "$(render --set handlers.sandbox=false,"skills.$name.enabled=true" | names)" == "$name" ]] || fail "skills.$name.enabled=true does not install it alone"
  done
  ! render --set skills.math.enabled=false | names | grep -qx math || fail "skills.math.enabled=false installs it"
  [[ -z "$(render --set handlers.sandbox=false)" ]] || fail "something is installed that nobody wants"
}

# Limits and the token change the content, so their user raises the version.
test_settings() {
  local rendered
  rendered="$(render --set handlers.http=true,limits.timeout=7s,skills.math.limits.timeout=3s,skills.math.limits.memory=32Mi,versionPatch=9)"
  [[ "$(grep -c '  version: 1.0.9$' <<<"$rendered")" == "$(names <<<"$rendered" | wc -l)" ]] || fail "versionPatch is not the last number of every version"
  [[ "$(grep -c '    timeout: 3s$' <<<"$rendered")" == 1 && "$(grep -c '    memory: 32Mi$' <<<"$rendered")" == 1 ]] || fail "a skill's own limits do not come first"
  ! grep -q '    timeout: 10s$' <<<"$rendered" || fail "limits do not replace those of a manifest"
  ! grep -q 'SECRETS' <<<"$rendered" || fail "a token is sent that nobody named"
  rendered="$(render --set handlers.http=true,github.tokenSecret.name=github)"
  [[ "$(grep -c 'Authorization: Bearer {{SECRETS.TOKEN}}' <<<"$rendered")" == "$(grep -c 'url: https://api.github.com/' <<<"$rendered")" ]] || fail "not every skill of GitHub sends the token"
}

# Each program has its file and each file its program, and every skill has cases.
test_files() {
  local file name
  for file in "$CHART"/skills/*.yaml; do
    name="$(basename "$file" .yaml)"
    [[ -f "$CHART/tests/$name.json" ]] || fail "$name has no tests/$name.json"
    if grep -q '^    sandbox:' "$file"; then
      [[ -f "$CHART/scripts/$name.py" ]] || fail "$name has no scripts/$name.py"
    fi
  done
  for file in "$CHART"/scripts/* "$CHART"/tests/*.json; do
    name="$(basename "${file%.*}")"
    [[ -f "$CHART/skills/$name.yaml" ]] || fail "$file is of no skill"
  done
}

# An archive renders the same, and has no tests.
test_package() {
  local archive="$WORK/package"
  mkdir -p "$archive"
  helm package "$CHART" --destination "$archive" >/dev/null || { fail "helm package"; return; }
  render --values "$CHART/ci/all-values.yaml" >"$WORK/from-folder.yaml"
  helm template skills "$archive"/skillet-skills-*.tgz --namespace team-a --values "$CHART/ci/all-values.yaml" >"$WORK/from-archive.yaml"
  cmp "$WORK/from-folder.yaml" "$WORK/from-archive.yaml" || fail "the packaged chart renders differently"
  ! tar -tf "$archive"/skillet-skills-*.tgz | grep -E '/(ci|golden|tests)/' || fail "the packaged chart holds its tests"
}

test_versions() {
  local field
  for field in version appVersion; do
    [[ "$(grep "^$field: " "$CHART/Chart.yaml")" == "$(grep "^$field: " "$CHARTS/skillet/Chart.yaml")" ]] || fail "$field is not that of Skillet's chart"
  done
}

# README.md tells of every value, and of every skill with its host.
test_readme() {
  local value file name host
  while read -r value; do
    grep -qE "^\|.* \`${value}[.\`]" "$CHART/README.md" || fail "README.md does not tell of the value $value"
  done < <(sed -n 's/^\([a-zA-Z]*\):.*/\1/p' "$CHART/values.yaml")
  for file in "$CHART"/skills/*.yaml; do
    name="$(basename "$file" .yaml)"
    host="$(sed -nE 's|^ *url: https://([^/]*)/.*|\1|p' "$file")"
    grep -qE "^\| \`$name\` \|.*${host//./[.]}" "$CHART/README.md" || fail "README.md does not tell of the skill $name and its host $host"
  done
}

main() {
  case "${1:-}" in
    "") ;;
    --update) UPDATE=yes ;;
    *) die "usage: charts/test-skills.sh [--update]" ;;
  esac
  find_helm
  WORK="$(mktemp -d)"
  trap 'rm -rf "$WORK"' EXIT
  local test before passed=0
  for test in test_lint test_golden test_refusals test_choice test_settings test_files test_package test_versions test_readme; do
    before=$FAILED
    "$test"
    ((FAILED > before)) || passed=$((passed + 1))
  done
  echo "$passed passed, $FAILED failed"
  ((FAILED == 0))
}

main "$@"
