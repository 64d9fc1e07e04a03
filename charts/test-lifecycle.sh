#!/usr/bin/env bash
# Takes the chart through its life on a real cluster: install, upgrade, a gateway under TLS and beside the operator, uninstall, reinstall, another release's name.
#
# It needs the cluster to itself: where Skillet's definitions are there already it stops, for in the end it deletes them.
# On a cluster with nodes it waits for the operator and runs `helm test`; a bare API server does for the rest.
set -euo pipefail
shopt -s inherit_errexit

CHARTS="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)"
REPOSITORY="$(dirname -- "$CHARTS")"
RELEASE_NAMESPACE=skillet-lifecycle
USER_NAMESPACE=skillet-lifecycle-user
SANDBOXES=skillet-lifecycle-sandboxes
# A pair that the tests of TLS have too.
CERTIFICATE="$REPOSITORY/operator/gateway/src/tls/tests/first"
FAILED=0
OURS=no
WAIT=()

say() { printf 'lifecycle: %s\n' "$*"; }
fail() {
  printf 'lifecycle: FAILED %s\n' "$*" >&2
  FAILED=$((FAILED + 1))
}
die() {
  printf 'lifecycle: error: %s\n' "$*" >&2
  exit 1
}
check() { [[ "$2" == "$3" ]] || fail "$1: expected $3, got $2"; }

release_helm() { helm "$@" --namespace "$RELEASE_NAMESPACE"; }
install() {
  local name=$1 chart=$2
  shift 2
  release_helm install "$name" "$chart" --create-namespace --set imageRegistry=skillet.dev --set sandbox.namespace="$SANDBOXES" "${WAIT[@]}" "$@"
}
uninstall() { release_helm uninstall "$1" --wait --timeout 2m >/dev/null; }

skill_uid() { kubectl -n "$USER_NAMESPACE" get skill kept -o jsonpath='{.metadata.uid}'; }
execution() { kubectl -n "$USER_NAMESPACE" "$@"; }

# refused WHAT "PART OF THE MESSAGE" COMMAND...
refused() {
  local what=$1 part=$2 output
  shift 2
  if output="$("$@" 2>&1)"; then
    fail "$what is allowed"
  elif [[ "$output" != *"$part"* ]]; then
    fail "$what is refused without \"$part\": $output"
  fi
}

# may WHO yes|no VERB RESOURCE NAMESPACE
may() {
  local answer
  local -a what=("${4%%/*}")
  [[ "$4" != */* ]] || what+=(--subresource "${4#*/}")
  answer="$(kubectl auth can-i "$3" "${what[@]}" --as "$1" --as-group system:authenticated --namespace "$5" 2>/dev/null || true)"
  check "$1 may $3 $4 in $5" "$answer" "$2"
}

make_user_objects() {
  kubectl create namespace "$USER_NAMESPACE" >/dev/null
  # Off, so that an operator which is there leaves the execution's fate to its phase and nothing runs.
  execution apply -f - >/dev/null <<'TEXT'
apiVersion: skillet.dev/v1alpha1
kind: Skill
metadata:
  name: kept
spec:
  version: 1.0.0
  mode: "off"
  run: { sandbox: { runtime: shell, script: cat } }
---
apiVersion: skillet.dev/v1alpha1
kind: SkillExecution
metadata:
  name: kept
spec:
  skill: kept
  input: { a: [1, 2] }
TEXT
  SKILL_UID="$(skill_uid)"
}

# A policy takes a moment until the API server enforces it.
wait_for_admission() {
  local tries
  for tries in {1..50}; do
    execution patch skillexecution kept --type merge --patch '{"spec":{"input":3}}' --dry-run=server >/dev/null 2>&1 || return 0
    sleep 0.2
  done
  fail "after $tries tries the admission policies are not in force"
}

test_admission() {
  wait_for_admission
  local part="spec.input is immutable" pod='{"containers":[{"name":"c","image":"none","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}],"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}}'
  refused "changing the input" "$part" execution patch skillexecution kept --type merge --patch '{"spec":{"input":{"a":[1,3]}}}'
  refused "removing the input" "$part" execution patch skillexecution kept --type json --patch '[{"op":"remove","path":"/spec/input"}]'
  execution patch skillexecution kept --type merge --patch '{"spec":{"cancel":true}}' >/dev/null || fail "cancelling is refused"
  execution label skillexecution kept example.com/label=x >/dev/null || fail "labelling is refused"

  refused "a pod with a token in the sandbox namespace" "no service account token" \
    kubectl -n "$SANDBOXES" run token --image none --overrides "{\"spec\":$pod}" --dry-run=server
  refused "a privileged pod in the sandbox namespace" "violates PodSecurity" \
    kubectl -n "$SANDBOXES" run root --image none --overrides '{"spec":{"automountServiceAccountToken":false}}' --dry-run=server
}

test_rights() {
  local operator="system:serviceaccount:$RELEASE_NAMESPACE:skillet" user
  may "$operator" yes watch skills.skillet.dev "$USER_NAMESPACE"
  may "$operator" yes patch skillexecutions.skillet.dev/status "$USER_NAMESPACE"
  may "$operator" no update skills.skillet.dev "$USER_NAMESPACE"
  may "$operator" no list secrets "$USER_NAMESPACE"
  may "$operator" no create secrets "$USER_NAMESPACE"
  may "$operator" yes create jobs.batch "$SANDBOXES"
  may "$operator" yes create pods/attach "$SANDBOXES"
  may "$operator" no create pods/exec "$SANDBOXES"
  may "$operator" no create jobs.batch "$USER_NAMESPACE"
  may "$operator" no get pods/attach "$USER_NAMESPACE"
  for user in view edit admin; do
    kubectl -n "$USER_NAMESPACE" create rolebinding "$user" --clusterrole "$user" --user "$user" >/dev/null
  done
  may view yes get skills.skillet.dev "$USER_NAMESPACE"
  may view no create skillexecutions.skillet.dev "$USER_NAMESPACE"
  may edit yes create skillexecutions.skillet.dev "$USER_NAMESPACE"
  may edit no create skillversions.skillet.dev "$USER_NAMESPACE"
  may edit yes create apikeys.skillet.dev "$USER_NAMESPACE"
  may edit yes create serviceaccounts/token "$USER_NAMESPACE"
  may edit no patch skillexecutions.skillet.dev/status "$USER_NAMESPACE"
  may admin yes delete skillversions.skillet.dev "$USER_NAMESPACE"
  refused "a namespace's admin reading the policy" forbidden kubectl get skillpolicies --as admin
}

# An earlier chart: its definition of Skill lacks a column, which an upgrade has to bring.
make_earlier_chart() {
  cp -rL "$CHARTS/skillet" "$WORK/earlier"
  sed -i '/additionalPrinterColumns:/,/    schema:/{/jsonPath: .spec.mode/d;s/name: Mode/name: Earlier\n      jsonPath: .spec.version/}' \
    "$WORK/earlier/files/crds/skills.skillet.dev.yaml"
}
columns() { kubectl get crd skills.skillet.dev -o jsonpath='{.spec.versions[0].additionalPrinterColumns[*].name}'; }

test_install_and_upgrade() {
  install skillet "$WORK/earlier" >"$WORK/notes" || die "could not install"
  say "installed"
  grep -q "kubectl skill run" "$WORK/notes" || fail "the notes do not tell what comes next"
  [[ " $(columns) " == *" Earlier "* ]] || die "the earlier chart is not an earlier one: $(columns)"
  make_user_objects
  test_admission
  test_rights
  release_helm upgrade skillet "$CHARTS/skillet" --reset-then-reuse-values --set logFilter=debug "${WAIT[@]}" >/dev/null || die "could not upgrade"
  [[ " $(columns) " == *" Mode "* && " $(columns) " != *" Earlier "* ]] || fail "the upgrade left the definitions as they were: $(columns)"
  check "the Skill after the upgrade" "$(skill_uid)" "$SKILL_UID"
  if ((${#WAIT[@]} > 0)); then release_helm test skillet --logs || fail "helm test"; fi
  say "upgraded"
}

# ready_over_tls: asks a gateway under its certificate for its readiness.
ready_over_tls() {
  local forward port tries
  kubectl -n "$RELEASE_NAMESPACE" port-forward service/skillet-gateway :443 >"$WORK/forward" 2>&1 &
  forward=$!
  for tries in {1..50}; do
    port="$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\) .*/\1/p' "$WORK/forward")"
    [[ -z "$port" ]] || break
    sleep 0.2
  done
  curl --silent --max-time 10 --cacert "$CERTIFICATE.crt" --resolve "localhost:$port:127.0.0.1" "https://localhost:$port/readyz" || true
  kill "$forward"
  wait "$forward" 2>/dev/null || true
}

test_gateway() {
  local operator="system:serviceaccount:$RELEASE_NAMESPACE:skillet" deployment=deployment/skillet-gateway
  kubectl -n "$RELEASE_NAMESPACE" create secret tls gateway --cert "$CERTIFICATE.crt" --key "$CERTIFICATE.key" >/dev/null
  may "$operator-gateway" no create jobs.batch "$SANDBOXES"
  release_helm upgrade skillet "$CHARTS/skillet" --reset-then-reuse-values --set gateway.tlsSecret=gateway --set gateway.servicePort=443 \
    "${WAIT[@]}" >/dev/null || die "could not give the gateway a certificate"
  if ((${#WAIT[@]} > 0)); then
    check "pods of the gateway" "$(kubectl -n "$RELEASE_NAMESPACE" get "$deployment" -o jsonpath='{.status.availableReplicas}')" 2
    check "the gateway under TLS" "$(ready_over_tls)" ok
  fi
  release_helm upgrade skillet "$CHARTS/skillet" --reset-then-reuse-values --set gateway.replicas=0 --set gateway.tlsSecret= \
    "${WAIT[@]}" >/dev/null || die "could not put the gateway beside the operator"
  check "what is left of the gateway's Deployment" "$(kubectl -n "$RELEASE_NAMESPACE" get "$deployment" --ignore-not-found -o name)" ""
  may "$operator" yes create tokenreviews.authentication.k8s.io "$USER_NAMESPACE"
  say "gateway under TLS, and beside the operator"
}

test_uninstall_and_reinstall() {
  uninstall skillet || die "could not uninstall"
  check "the Skill after uninstalling" "$(skill_uid)" "$SKILL_UID"
  check "the sandbox namespace after uninstalling" "$(kubectl get namespace "$SANDBOXES" --ignore-not-found -o name)" ""
  check "what is left for the whole cluster" "$(kubectl get clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding \
    -l app.kubernetes.io/part-of=skillet -o name)" ""
  say "uninstalled"
  install skillet "$CHARTS/skillet" >/dev/null || die "could not reinstall"
  check "the Skill after reinstalling" "$(skill_uid)" "$SKILL_UID"
  uninstall skillet
  say "reinstalled"
}

test_other_release() {
  refused "a release of another name" "invalid ownership metadata" install other "$CHARTS/skillet"
  release_helm uninstall other --ignore-not-found --wait >/dev/null 2>&1 || true
  install other "$CHARTS/skillet" --take-ownership >/dev/null || fail "another release does not take the definitions over"
  check "the Skill under another release" "$(skill_uid)" "$SKILL_UID"
  uninstall other
  install other "$CHARTS/skillet" --set crds.install=false --set gateway.enabled=false >/dev/null ||
    fail "another release does not do without the definitions"
  may "system:serviceaccount:$RELEASE_NAMESPACE:other-skillet" yes get secrets "$USER_NAMESPACE"
  may "system:serviceaccount:$RELEASE_NAMESPACE:other-skillet" no list secrets "$USER_NAMESPACE"
  uninstall other
  check "the Skill after all" "$(skill_uid)" "$SKILL_UID"
  say "installed under another name"
}

clean_up() {
  rm -rf "$WORK"
  [[ "$OURS" == yes ]] || return 0
  release_helm uninstall skillet other --ignore-not-found --wait >/dev/null 2>&1 || true
  kubectl delete namespace "$USER_NAMESPACE" "$RELEASE_NAMESPACE" "$SANDBOXES" --ignore-not-found --timeout 2m >/dev/null || true
  kubectl delete --filename "$REPOSITORY/crds" --ignore-not-found --timeout 2m >/dev/null
}

main() {
  local tool
  for tool in helm kubectl curl; do
    command -v "$tool" >/dev/null || die "$tool is missing; for the local cluster: eval \"\$(e2e/cluster/cluster.sh env)\""
  done
  kubectl version --request-timeout 10s >/dev/null || die "the cluster does not answer"
  [[ -z "$(kubectl get crd skills.skillet.dev --ignore-not-found -o name)" ]] || die "Skillet's definitions are in the cluster already, and this test would delete them"
  if [[ -n "$(kubectl get nodes -o name)" ]]; then WAIT=(--wait --timeout 3m); fi
  WORK="$(mktemp -d)"
  trap clean_up EXIT
  OURS=yes
  make_earlier_chart
  test_install_and_upgrade
  test_gateway
  test_uninstall_and_reinstall
  test_other_release
  ((FAILED == 0)) || die "$FAILED checks failed"
  # Install and upgrade, the gateway's forms, uninstall and reinstall, another release's name.
  echo "4 passed, 0 failed"
}

main "$@"
