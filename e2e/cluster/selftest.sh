#!/usr/bin/env bash
# Checks that a running cluster has what Skillet's tests rely on: one line for each check, then a summary.
# It checks the cluster, not Skillet. Everything it makes is in one namespace, which it removes.
# shellcheck disable=SC2317 # The checks are called by name, through check.
set -euo pipefail
shopt -s inherit_errexit

HERE="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)"
# shellcheck source-path=SCRIPTDIR
source "$HERE/lib/image.sh"
eval "$("$HERE/cluster.sh" env)"

NAMESPACE="cluster-selftest-$$"
IMAGE=skillet.dev/cluster/selftest:busybox
PASSED=0
FAILED=0
WORK="$(mktemp -d)"
trap 'kubectl delete namespace "$NAMESPACE" --wait=false >/dev/null 2>&1 || true; rm -rf "$WORK"' EXIT

in_namespace() { kubectl --namespace "$NAMESPACE" "$@"; }

# check WHAT COMMAND...: one line; the output of a command that failed is shown.
check() {
  local what=$1 output
  shift
  if output="$("$@" 2>&1)"; then
    PASSED=$((PASSED + 1))
    printf 'ok    %s\n' "$what"
  else
    FAILED=$((FAILED + 1))
    printf 'FAIL  %s\n' "$what"
    tail -n 8 <<<"$output" | cut -c 1-300 | sed 's/^/        /'
  fi
}

load_busybox() {
  local program
  program="$(command -v busybox)" || { echo "busybox (Debian package busybox-static) is not there"; return 1; }
  mkdir -p "$WORK/root/bin" "$WORK/root/tmp" "$WORK/root/mnt"
  cp "$program" "$WORK/root/bin/busybox"
  ln -sf busybox "$WORK/root/bin/sh"
  make_image "$IMAGE" "$WORK/root" "$WORK/busybox.tar" '["/bin/busybox"]'
  "$HERE/cluster.sh" load-image "$WORK/busybox.tar"
}

make_namespace() {
  kubectl create namespace "$NAMESPACE"
  kubectl label namespace "$NAMESPACE" pod-security.kubernetes.io/enforce=restricted
  kubectl wait --for=create --timeout=30s --namespace "$NAMESPACE" serviceaccount/default
}

# pod NAME HOST_USERS SCRIPT: a pod that the "restricted" level admits, with busybox also as an image volume.
pod() {
  in_namespace create -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  hostUsers: $2
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  volumes: [{name: tools, image: {reference: "$IMAGE", pullPolicy: IfNotPresent}}]
  containers:
  - name: main
    image: $IMAGE
    imagePullPolicy: IfNotPresent
    command: [/bin/busybox, sh, -c, $(printf '%s' "$3" | sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$/"/')]
    stdin: true
    stdinOnce: true
    volumeMounts: [{name: tools, mountPath: /mnt}]
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
YAML
}

# output_is NAME EXPECTED: what the pod printed, once it has ended well.
output_is() {
  local output
  if ! in_namespace wait --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s "pod/$1"; then
    in_namespace describe pod "$1"
    in_namespace logs "$1"
    return 1
  fi
  output="$(in_namespace logs "$1")"
  grep -qE -- "$2" <<<"$output" || { echo "expected $2 in: $output"; return 1; }
}

pod_prints() {
  pod "$1" "$2" "$3"
  output_is "$1" "$4"
}

# The pod reads what we type and answers: a stream in both directions.
attach_answers() {
  pod attach false "read line; echo got \$line"
  in_namespace wait --for=condition=Ready --timeout=60s pod/attach
  echo hello | in_namespace attach --quiet --stdin pod/attach
  output_is attach '^got hello$'
}

node_ready() { kubectl wait --for=condition=Ready --timeout=30s nodes --all; }

restricted_is_enforced() {
  local answer
  answer="$(in_namespace run refused --image=none --restart=Never 2>&1)" && return 1
  grep 'violates PodSecurity "restricted' <<<"$answer"
}

audit_counts() {
  local log
  log="$(dirname "$("$HERE/cluster.sh" kubeconfig)")/logs/audit.log"
  # Another cluster has its audit log elsewhere, if any.
  [[ -r "$log" ]] || { echo "no $log"; return 1; }
  awk -v namespace="\"namespace\":\"$NAMESPACE\"" \
    'index($0, namespace) && /"verb":"create"/ && /"userAgent":"kubectl/ { found = 1 } END { exit !found }' "$log"
}

main() {
  check "the node is Ready" node_ready
  check "an image comes in from a file" load_busybox
  check "a namespace with the level restricted" make_namespace
  check "the level restricted refuses an ordinary pod" restricted_is_enforced
  check "a restricted pod runs in the host's user namespace" \
    pod_prints host-users true 'busybox cat /proc/self/uid_map' '^ +0 +0 +4294967295'
  check "a restricted pod runs with hostUsers: false" \
    pod_prints own-users false 'busybox cat /proc/self/uid_map' '^ +0 +[1-9][0-9]+ +65536'
  check "an image is mounted as a volume, and its programs run" \
    pod_prints image-volume false '/mnt/bin/busybox echo from the volume' '^from the volume$'
  check "DNS answers for kubernetes.default.svc.cluster.local" \
    pod_prints dns false 'busybox nslookup kubernetes.default.svc.cluster.local' '10\.96\.0\.1|Address.*: [0-9]'
  check "a pod reaches the API's service address" \
    pod_prints service false "busybox nc -w 5 \$KUBERNETES_SERVICE_HOST \$KUBERNETES_SERVICE_PORT </dev/null && echo reached" '^reached$'
  check "attach carries both directions" attach_answers
  check "the audit log has our writes, with the user agent" audit_counts
  printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
  ((FAILED == 0))
}

main "$@"; exit
