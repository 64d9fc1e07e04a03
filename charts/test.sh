#!/usr/bin/env bash
# Tests of the chart that need no cluster: test.sh [--update]
#
# Renders the value sets in skillet/ci and compares them with skillet/tests/golden (--update writes those instead), and checks
# what golden files cannot: the schema's refusals, the versions, the custom resource definitions, the packaged chart.
set -euo pipefail
shopt -s inherit_errexit

CHARTS="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)"
REPOSITORY="$(dirname -- "$CHARTS")"
CHART="$CHARTS/skillet"
GOLDEN="$CHART/tests/golden"
UPDATE=no
SUBJECT=chart
readonly SUBJECT REPOSITORY
# shellcheck source=lib/checks.sh
source "$CHARTS/lib/checks.sh"

# The one value that is required; a later flag overwrites it.
readonly REGISTRY=(--set imageRegistry=skillet.dev)
render() { helm template skillet "$CHART" --namespace skillet-system "${REGISTRY[@]}" "$@" | without_key; }
# Without a cluster to look into, each rendering has a key of its own.
without_key() { sed -E 's/^(  (key|ca\.crt|tls\.crt|tls\.key): )"[a-zA-Z0-9+\/]{80,}=*"$/\1"<random>"/'; }

test_lint() {
  local values
  for values in "$CHART"/ci/*-values.yaml; do
    helm lint --strict --quiet "$CHART" --values "$values" || fail "helm lint --strict with $(basename "$values")"
  done
}

test_golden() {
  local values name
  for values in "$CHART"/ci/*-values.yaml; do
    name="$(basename "$values" -values.yaml)"
    helm template skillet "$CHART" --namespace skillet-system --values "$values" | without_key >"$WORK/$name.yaml" || { fail "helm template with $name"; continue; }
    if [[ "$UPDATE" == yes ]]; then
      mkdir -p "$GOLDEN"
      cp "$WORK/$name.yaml" "$GOLDEN/$name.yaml"
    elif ! diff -u "$GOLDEN/$name.yaml" "$WORK/$name.yaml"; then
      fail "$name differs from its golden file; 'charts/test.sh --update' takes it over"
    fi
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
  refused "an unknown value" "additional properties 'sandboxes' not allowed" --set sandboxes.namespace=x
  refused "an unknown value below another" "additional properties 'name' not allowed" --set sandbox.name=x
  refused "an unknown runner delivery" "/runnerDelivery" --set runnerDelivery=magic
  refused "an unknown log format" "/logFormat" --set logFormat=xml
  refused "an image without tag" "/shellImage" --set shellImage=registry.example/shell
  refused "a namespace with capitals" "/sandbox/namespace" --set sandbox.namespace=Runs
  refused "a port for root" "/httpAddress" --set httpAddress=0.0.0.0:80
  refused "an address without port" "/httpAddress" --set httpAddress=0.0.0.0
  refused "a fraction of a gateway" "/gateway/replicas" --set gateway.replicas=1.5
  refused "no gateway at all" "/gateway/autoscaling/minReplicas" --set gateway.autoscaling.minReplicas=0
  refused "no time for conversations" "/gateway/shutdownSeconds" --set gateway.shutdownSeconds=1
  refused "a word for a boolean" "/crds/install" --set-string crds.install=no
  refused "memory in words" "/resources/limits/memory" --set resources.limits.memory=much
  refused "the release's namespace for sandboxes" "sandboxes need a namespace of theirs" --set sandbox.namespace=skillet-system
  refused "a monitor without a service" "needs metrics.service.enabled" --set metrics.service.enabled=false --set metrics.serviceMonitor.enabled=true
  refused "a registry that nobody named" "imageRegistry is required" --set imageRegistry=
  refused "a volume of two kinds" "/gateway/embeddings/volume" --set gateway.embeddings.volume.configMap.name=a --set gateway.embeddings.volume.emptyDir=
  refused "a folder outside of the volume" "/gateway/embeddings/path" --set gateway.embeddings.path=../x
  refused "an Ingress without a host" "needs gateway.ingress.host" --set gateway.ingress.enabled=true
  refused "a route without a gateway" "needs gateway.httpRoute.parentRefs" --set gateway.httpRoute.enabled=true
  refused "a claim beside a bucket" "two places for the files" --set workspaces.enabled=true --set workspaces.s3.bucket=a --set workspaces.volume.existingClaim=b
  refused "a bucket's service without a scheme" "/workspaces/s3/endpoint" --set workspaces.s3.endpoint=minio:9000
  refused "a time of expiry without a unit" "/workspaces/expireAfter" --set-string workspaces.expireAfter=30
  refused "an old cluster" "incompatible with Kubernetes" --kube-version 1.32.0
}

# The chart makes a key of enough bytes, or takes the user's own, or has none.
test_confirmation_key() {
  local rendered key
  key="$(helm template skillet "$CHART" --namespace skillet-system "${REGISTRY[@]}" --show-only templates/confirmation-key.yaml |
    sed -n 's/^  key: "\(.*\)"$/\1/p' | base64 -d)"
  [[ "$key" =~ ^[a-zA-Z0-9]{64}$ ]] || fail "the confirmation key is not 64 letters and digits"
  rendered="$(render --set gateway.confirmationKey.secret=own --set broker.enabled=false)"
  grep -q 'secretName: own$' <<<"$rendered" || fail "the user's own Secret is not mounted"
  ! grep -q 'kind: Secret$' <<<"$rendered" || fail "a Secret is made beside the user's own"
  rendered="$(render --set gateway.confirmationKey.secret=own --set gateway.confirmationKey.key=mine)"
  grep -q -- '- key: mine$' <<<"$rendered" || fail "the key in the user's own Secret is not mounted"
  rendered="$(render --set gateway.confirmationKey.key=mine)"
  grep -q -- '- key: key$' <<<"$rendered" || fail "a key is mounted that the chart's own Secret has not"
  rendered="$(render --set gateway.confirmationKey.enabled=false --set broker.enabled=false)"
  ! grep -qE 'confirmation-key|CONFIRMATION_KEY|kind: Secret$' <<<"$rendered" || fail "a key is there that nobody wants"
}

# certificate COMPONENT MOUNTS: the chart makes a certificate that is of its own authority, or takes the user's own in all pods.
certificate() {
  local component=$1 mounts=$2 rendered folder="$WORK/$1-tls" file
  mkdir -p "$folder"
  rendered="$(helm template skillet "$CHART" --namespace skillet-system "${REGISTRY[@]}" --set workspaces.enabled=true --show-only "templates/$component.yaml")"
  for file in ca.crt tls.crt tls.key; do
    sed -n "s/^  $file: \"\(.*\)\"\$/\1/p" <<<"$rendered" | base64 -d >"$folder/$file"
  done
  openssl verify -CAfile "$folder/ca.crt" -verify_hostname "skillet-$component" "$folder/tls.crt" >/dev/null || fail "the certificate of $component is not of its authority"
  [[ "$(openssl x509 -in "$folder/tls.crt" -noout -pubkey)" == "$(openssl pkey -in "$folder/tls.key" -pubout)" ]] || fail "the key of $component is not of its certificate"
  rendered="$(render --set workspaces.enabled=true --set "$component.tlsSecret=own" --show-only "templates/$component.yaml" --show-only templates/deployment.yaml --show-only templates/deployment-gateway.yaml)"
  [[ "$(grep -c 'secretName: own$' <<<"$rendered")" == "$mounts" ]] || fail "the user's own certificate of $component is not mounted in $mounts pods"
  ! grep -q "name: skillet-$component-tls\$" <<<"$rendered" || fail "a Secret is made beside the user's own"
}

test_certificates() {
  certificate broker 2
  certificate workspaces 3
}

# The files have one place, and a bucket needs no volume.
test_workspaces() {
  local rendered
  rendered="$(render)"
  ! grep -q workspaces <<<"$rendered" || fail "a store of workspaces is installed that nobody wants"
  rendered="$(render --set workspaces.enabled=true)"
  grep -A1 -e '- name: FOLDER$' <<<"$rendered" | grep -qF 'value: "/workspaces"' || fail "the store has no folder"
  grep -q '^kind: PersistentVolumeClaim$' <<<"$rendered" || fail "the chart makes no claim"
  rendered="$(render --set workspaces.enabled=true --set workspaces.volume.existingClaim=mine)"
  grep -q 'claimName: mine$' <<<"$rendered" || fail "the user's own claim is not mounted"
  ! grep -q '^kind: PersistentVolumeClaim$' <<<"$rendered" || fail "a claim is made beside the user's own"
  rendered="$(render --set workspaces.enabled=true --set workspaces.s3.bucket=files)"
  ! grep -qE '^kind: PersistentVolumeClaim$|name: FOLDER$|fsGroup' <<<"$rendered" || fail "a volume is used beside a bucket"
}

test_versions() {
  local workspace field
  workspace="$(sed -n '/^\[workspace.package\]/,/^\[/s/^version *= *"\(.*\)"$/\1/p' "$REPOSITORY/Cargo.toml")"
  for field in version appVersion; do
    grep -qx "$field: $workspace" "$CHART/Chart.yaml" || fail "$field of Chart.yaml is not the workspace's $workspace"
  done
}

# Every flag has a variable, and every variable a value: with all values set, each of them stands in the Deployment.
test_flags() {
  local flag value rendered
  rendered="$(render --values "$CHART/ci/all-values.yaml" --show-only templates/deployment.yaml --show-only templates/deployment-gateway.yaml --show-only templates/broker.yaml --show-only templates/workspaces.yaml)"
  while read -r flag value; do
    grep -A1 -e "- name: $flag\$" <<<"$rendered" | grep -qF "value: \"$value\"" || fail "$flag is not $value"
  done <<'TEXT'
SANDBOX_NAMESPACE runs
SHELL_IMAGE registry.example/shell:1
PYTHON_IMAGE registry.example/python:2
NODE_IMAGE registry.example/node:3
RUNNER_IMAGE registry.example/runner:4
RUNNER_DELIVERY init-container
IMAGE_PULL_POLICY Always
RUNTIME_CLASS gvisor
HTTP_ADDRESS [::]:9090
GATEWAY_ADDRESS [::]:9443
GATEWAY_PROBES_ADDRESS [::]:9091
TLS_CERTIFICATE_FILE /tls/tls.crt
EMBEDDINGS_FOLDER /embeddings/models/small
BROKER_TLS_FOLDER /broker-tls
TLS_FOLDER /broker-tls
LISTEN_ADDRESS [::]:9444
MAX_CONNECTIONS 99
TENANT_CONNECTIONS 9
TENANT_RATE 8
BODY_MEMORY_MIB 64
DRAIN_SECONDS 60
CA_BUNDLE /ca-bundle/bundle.crt
TLS_KEY_FILE /tls/tls.key
WORKSPACES_TLS_FOLDER /workspaces-tls
WORKSPACES_ADDRESS skills-workspaces.skillet-system.svc:9445
TLS_FOLDER /workspaces-tls
LISTEN_ADDRESS [::]:9445
S3_BUCKET files
S3_PREFIX skillet/workspaces
S3_ENDPOINT https://s3.storage.example:9000
S3_REGION eu-central-1
S3_PATH_STYLE true
QUOTA_MIB 10
QUOTA_FILES 50
MAX_WRITE_KIB 512
MAX_FILE_MIB 4
MEMORY_MIB 32
EXPIRE_AFTER 48h
LOG_FORMAT text
LOG_FILTER info,kube=debug
OTEL_EXPORTER_OTLP_ENDPOINT http://collector.monitoring:4318
TEXT
  grep -qF 'image: "registry.example/operator@sha256:' <<<"$rendered" || fail "operatorImage is not the image of the operator"
}

# as_json FILE: its YAML documents, one line of JSON each, without the metadata that the chart adds.
as_json() {
  local chart="$1.chart"
  mkdir -p "$chart/templates"
  printf 'apiVersion: v2\nname: as-json\nversion: 1.0.0\n' >"$chart/Chart.yaml"
  cp "$1" "$chart/input.yaml"
  cat >"$chart/templates/out.yaml" <<'TEXT'
{{- range splitList "\n---" (printf "\n%s" (.Files.Get "input.yaml")) }}
{{- with fromYaml . }}
{{ .metadata.name }}: {{ omit . "metadata" | toJson }}
{{- end }}
{{- end }}
TEXT
  helm template "$chart" | grep '^[a-z]*\.skillet\.dev: ' | sort
}

test_crds() {
  local rendered count file ours theirs
  rendered="$(render --show-only templates/crds.yaml)"
  count="$(find "$REPOSITORY/crds" -name '*.yaml' | wc -l)"
  [[ "$(grep -c 'helm.sh/resource-policy: keep' <<<"$rendered")" == "$count" ]] || fail "not all definitions are kept"
  [[ "$(grep -c '^kind: CustomResourceDefinition' <<<"$rendered")" == "$count" ]] || fail "not all definitions are rendered"
  # The API server does not take a whole number in this form.
  ! grep -nE ': [0-9.]+e\+[0-9]+' <<<"$rendered" || fail "a number has lost its form"
  echo "$rendered" >"$WORK/ours.yaml"
  for file in "$REPOSITORY"/crds/*.yaml; do
    echo "---"
    cat "$file"
  done >"$WORK/theirs.yaml"
  ours="$(as_json "$WORK/ours.yaml")"
  theirs="$(as_json "$WORK/theirs.yaml")"
  [[ "$(wc -l <<<"$ours")" == "$count" && "$ours" == "$theirs" ]] || fail "the chart's definitions are not those of crds/"
  ! render --show-only templates/crds.yaml --set crds.keep=false | grep -q resource-policy || fail "crds.keep=false keeps them"
}

# An archive has no links: what they lead to is in it, and renders the same.
test_package() {
  local archive="$WORK/package"
  mkdir -p "$archive"
  helm package "$CHART" --destination "$archive" >/dev/null || { fail "helm package"; return; }
  render >"$WORK/from-folder.yaml"
  helm template skillet "$archive"/skillet-*.tgz --namespace skillet-system "${REGISTRY[@]}" | without_key >"$WORK/from-archive.yaml"
  cmp "$WORK/from-folder.yaml" "$WORK/from-archive.yaml" || fail "the packaged chart renders differently"
  ! tar -tf "$archive"/skillet-*.tgz | grep -E '/(ci|golden)/' || fail "the packaged chart holds its tests"
}

# The rules that the chart installs are those of the file, and Prometheus' own tool finds that each fires when it should.
test_monitoring() {
  local rules="$CHART/files/alerts.yaml" tests="$CHART/tests/alerts.yaml" rendered name
  rendered="$(render --set metrics.prometheusRule.enabled=true --set metrics.dashboard.enabled=true --show-only templates/monitoring.yaml)"
  while read -r name; do
    grep -q "alert: $name\$" <<<"$rendered" || fail "the PrometheusRule lacks $name"
    grep -q "alertname=\"$name\"" "$tests" || fail "$tests has no test of $name"
  done < <(sed -n 's/^ *- alert: //p' "$rules")
  grep -q 'grafana_dashboard: "1"' <<<"$rendered" || fail "Grafana's sidecar does not find the dashboard"
  ! render --show-only templates/monitoring.yaml 2>/dev/null | grep -q kind || fail "rules are installed that nobody wants"
  if ! command -v promtool >/dev/null; then
    fail "promtool is missing: e2e/install-debian-program.sh prometheus promtool FOLDER brings it"
    return
  fi
  promtool check rules "$rules" >/dev/null || fail "promtool refuses $rules"
  promtool test rules "$tests" || fail "promtool test rules $tests"
}

test_readme() {
  local value
  while read -r value; do
    grep -qE "^\|.* \`${value}[.\`]" "$CHART/README.md" || fail "README.md does not tell of the value $value"
  done < <(sed -n 's/^\([a-zA-Z]*\):.*/\1/p' "$CHART/values.yaml")
}

main() {
  case "${1:-}" in
    "") ;;
    --update) UPDATE=yes ;;
    *) die "usage: charts/test.sh [--update]" ;;
  esac
  find_helm
  WORK="$(mktemp -d)"
  trap 'rm -rf "$WORK"' EXIT
  local test before passed=0
  for test in test_lint test_golden test_refusals test_confirmation_key test_certificates test_workspaces test_versions test_flags test_crds test_package test_monitoring test_readme; do
    before=$FAILED
    "$test"
    ((FAILED > before)) || passed=$((passed + 1))
  done
  echo "$passed passed, $FAILED failed"
  ((FAILED == 0))
}

main "$@"
