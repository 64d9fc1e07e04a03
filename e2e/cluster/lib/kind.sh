# shellcheck shell=bash
# The cluster when Docker has an engine and kind is there: made, used and removed through kind.
# The node of e2e/cluster has what the tests need set already; here kind's own is brought to the same.

# The docker program alone is no engine; a dead one must not keep us waiting.
docker_answers() { has docker && timeout 5 docker info >/dev/null 2>&1; }
kind_is_usable() { has kind && docker_answers; }
kind_exists() { kind get clusters 2>/dev/null | grep -qx "$KIND_NAME"; }

# kind takes the patch whose version fits the kubeadm of its node image.
kind_config() {
  cat <<YAML
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
  extraMounts:
  - {hostPath: $STATE/kind, containerPath: /etc/skillet}
  - {hostPath: $STATE/logs, containerPath: /var/log/skillet}
kubeadmConfigPatches:
- |
  apiVersion: kubeadm.k8s.io/v1beta3
  kind: ClusterConfiguration
  apiServer:
    extraArgs:
      audit-policy-file: /etc/skillet/audit-policy.yaml
      audit-log-path: /var/log/skillet/audit.log
      audit-log-maxsize: "256"
      audit-log-maxbackup: "2"
    extraVolumes:
    - {name: audit-policy, hostPath: /etc/skillet, mountPath: /etc/skillet, readOnly: true, pathType: Directory}
    - {name: audit-log, hostPath: /var/log/skillet, mountPath: /var/log/skillet, readOnly: false, pathType: Directory}
- |
  apiVersion: kubeadm.k8s.io/v1beta4
  kind: ClusterConfiguration
  apiServer:
    extraArgs:
    - {name: audit-policy-file, value: /etc/skillet/audit-policy.yaml}
    - {name: audit-log-path, value: /var/log/skillet/audit.log}
    - {name: audit-log-maxsize, value: "256"}
    - {name: audit-log-maxbackup, value: "2"}
    extraVolumes:
    - {name: audit-policy, hostPath: /etc/skillet, mountPath: /etc/skillet, readOnly: true, pathType: Directory}
    - {name: audit-log, hostPath: /var/log/skillet, mountPath: /var/log/skillet, readOnly: false, pathType: Directory}
- |
  kind: KubeletConfiguration
  containerLogMaxSize: 64Mi
  maxPods: 250
  serializeImagePulls: false
YAML
}

up_kind() {
  require_clients
  if kind_exists && kubectl --kubeconfig "$OWN_KUBECONFIG" --request-timeout 10s get --raw /readyz >/dev/null 2>&1; then
    say "the kind cluster $KIND_NAME is up already"
    return
  fi
  mkdir -p "$STATE/kind" "$STATE/logs"
  write_audit_policy
  mv "$STATE/audit-policy.yaml" "$STATE/kind/"
  kind_config >"$STATE/kind/config.yaml"
  ! kind_exists || kind delete cluster --name "$KIND_NAME"
  kind create cluster --name "$KIND_NAME" --config "$STATE/kind/config.yaml" --kubeconfig "$OWN_KUBECONFIG" --wait 180s
  say "the kind cluster $KIND_NAME is up: KUBECONFIG=$OWN_KUBECONFIG"
}

down_kind() {
  kind_is_usable && kind_exists || return 0
  kind delete cluster --name "$KIND_NAME" --kubeconfig "$OWN_KUBECONFIG"
  rm -rf "$STATE/kind" "$STATE/logs" "$OWN_KUBECONFIG"
  rmdir "$STATE" 2>/dev/null || true
  ! kind_exists || die "the kind cluster $KIND_NAME is still there"
  say "the kind cluster $KIND_NAME is gone"
}

require_clients() {
  if has kubectl && has helm; then return; fi
  die "kubectl and helm have to be on PATH for this cluster ('cluster.sh build' makes both, 'cluster.sh env' names them)"
}
