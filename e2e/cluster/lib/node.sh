# shellcheck shell=bash
# containerd, the kubelet and kube-proxy of the local node, and the node as a whole.

write_containerd_config() {
  local restrict=false
  # Without this right nobody may lower a process's OOM score, and containers would not start.
  has_capability 24 || restrict=true
  mkdir -p "$STATE/containerd" "$STATE/cni"
  cat >"$STATE/containerd/config.toml" <<TOML
version = 3
root = "$STATE/containerd/root"
state = "$STATE/containerd/state"
[grpc]
  address = "$CONTAINERD_SOCKET"
[plugins."io.containerd.internal.v1.opt"]
  path = "$STATE/containerd/opt"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "$(image_name pause)"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = $restrict
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["$BIN"]
    conf_dir = "$STATE/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "$BIN/runc"
      SystemdCgroup = false
TOML
  cat >"$STATE/cni/10-skillet.conflist" <<JSON
{
  "cniVersion": "1.0.0",
  "name": "skillet",
  "plugins": [
    {
      "type": "ptp",
      "ipMasq": false,
      "ipam": {
        "type": "host-local",
        "dataDir": "/var/lib/cni/networks",
        "ranges": [[{"subnet": "$POD_CIDR"}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
JSON
}

# has_capability NUMBER: whether this process has it.
has_capability() {
  local effective
  effective="$(awk '$1 == "CapEff:" { print $2 }' /proc/self/status)"
  ((16#$effective >> $1 & 1))
}

start_containerd() {
  write_containerd_config
  start_part containerd "$BIN/containerd" --config "$STATE/containerd/config.toml" --log-level warn
}

containerd_answers() { "$BIN/ctr" --address "$CONTAINERD_SOCKET" --connect-timeout 1s version; }

# ctr tells its progress and its deprecations on both outputs: shown only when it fails.
import_images() {
  local output
  if ! output="$("$BIN/ctr" --address "$CONTAINERD_SOCKET" --namespace k8s.io images import "$1" 2>&1)"; then
    die "could not import $1: ${output##*$'\n'}"
  fi
}

write_kubelet_config() {
  local version1=""
  [[ "$(cgroup_version)" == 2 ]] || version1="failCgroupV1: false"
  mkdir -p "$STATE/kubelet"
  cat >"$STATE/kubelet/config.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 0.0.0.0
authentication:
  x509: {clientCAFile: $STATE/pki/ca.crt}
  webhook: {enabled: true}
  anonymous: {enabled: false}
authorization: {mode: Webhook}
tlsCertFile: $STATE/pki/kubelet.crt
tlsPrivateKeyFile: $STATE/pki/kubelet.key
containerRuntimeEndpoint: unix://$CONTAINERD_SOCKET
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
$version1
clusterDomain: cluster.local
clusterDNS: [$DNS_SERVICE_IP]
podLogsDir: $STATE/logs/pods
volumePluginDir: $STATE/kubelet/volume-plugins
maxPods: 250
# Images come from files, not from a registry: one that was collected could not be pulled again.
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 1%, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
containerLogMaxSize: 64Mi
containerLogMaxFiles: 2
serializeImagePulls: false
kubeAPIQPS: 500
kubeAPIBurst: 1000
eventRecordQPS: 0
failSwapOn: false
oomScoreAdj: 0
logging: {verbosity: 1}
YAML
}

start_kubelet() {
  write_kubelet_config
  start_part kubelet "$BIN/kubelet" --config "$STATE/kubelet/config.yaml" --kubeconfig "$STATE/pki/kubelet.kubeconfig" \
    --hostname-override "$NODE_NAME" --node-ip "$NODE_IP"
}

start_kube_proxy() {
  mkdir -p "$STATE/kube-proxy"
  cat >"$STATE/kube-proxy/config.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: $STATE/pki/kube-proxy.kubeconfig}
hostnameOverride: $NODE_NAME
clusterCIDR: $POD_CIDR
oomScoreAdj: 0
# Zero leaves the limits of the whole machine alone.
conntrack: {maxPerCore: 0, min: 0}
iptables: {minSyncPeriod: 100ms}
YAML
  start_part kube-proxy "$BIN/kube-proxy" --config "$STATE/kube-proxy/config.yaml"
}

# port_answers PORT: of a part that listens within the node only.
port_answers() { in_node bash -c "exec 3<>/dev/tcp/127.0.0.1/$1"; }
node_is_ready() {
  [[ "$(admin_kubectl get node "$NODE_NAME" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" == True ]]
}
default_account_exists() { admin_kubectl get serviceaccount --namespace default default; }
dns_is_ready() {
  [[ "$(admin_kubectl get deployment --namespace kube-system coredns -o 'jsonpath={.status.readyReplicas}')" == 1 ]]
}

# Prints the parts that were started and have ended since.
ended_parts() {
  local part
  for part in "${NODE_PARTS[@]}"; do
    part_pid "$part" >/dev/null || echo "$part"
  done
}

# Whether a node was started to the end since this machine booted; its parts may have ended meanwhile.
node_was_started() {
  [[ -e "$STATE/started" && -e "$NET_NS" ]] || return 1
  [[ "$(cat "$STATE/started")" == "$(cat /proc/sys/kernel/random/boot_id)" ]] || return 1
  BIN="$(cat "$STATE/bin-dir")"
  [[ -x "$BIN/kubelet" ]]
}

start_named() {
  case "$1" in
    etcd) start_etcd ;;
    containerd) start_containerd ;;
    kube-apiserver) start_apiserver ;;
    kube-controller-manager) start_controller_manager ;;
    kube-scheduler) start_scheduler ;;
    kubelet) start_kubelet ;;
    kube-proxy) start_kube_proxy ;;
    *) die "no part $1: they are ${NODE_PARTS[*]}" ;;
  esac
}

# Succeeds if the kubelet has renewed its lease since the moment $1: the node object may still show one that has ended.
node_answers_since() {
  local renewed
  renewed="$(admin_kubectl get lease --namespace kube-node-lease "$NODE_NAME" -o 'jsonpath={.spec.renewTime}')"
  (($(date --date "$renewed" +%s%N) > $1)) && node_is_ready
}

# wait_for_part NAME SINCE: until it answers; SINCE is a moment before it was started, in nanoseconds.
wait_for_part() {
  case "$1" in
    etcd) wait_for etcd 20 "etcd answers" port_answers 2379 ;;
    containerd) wait_for containerd 20 "containerd answers" containerd_answers ;;
    kube-apiserver) wait_for kube-apiserver 60 "the API server is ready" apiserver_ready ;;
    kube-controller-manager) wait_for kube-controller-manager 30 "the controller manager answers" port_answers 10257 ;;
    kube-scheduler) wait_for kube-scheduler 30 "the scheduler answers" port_answers 10259 ;;
    kubelet) wait_for kubelet 60 "the node is Ready" node_answers_since "$2" ;;
    kube-proxy) wait_for kube-proxy 30 "kube-proxy answers" port_answers 10256 ;;
  esac
}

# What is there and its objects stay. Only the parts named are started again, each after those it needs: the kubelet and the
# controller manager end at once where they find nobody.
restart_parts() {
  local part since
  since="$(date +%s%N)"
  for part in "${NODE_PARTS[@]}"; do
    [[ " $* " == *" $part "* ]] || continue
    start_named "$part"
    wait_for_part "$part" "$since"
  done
  wait_for kubelet 60 "the node is Ready" node_is_ready
}

prepare_state() {
  mkdir -p "$STATE"/{logs/pods,pids,etcd,pki}
  # Open to be passed: the first process of a pod with users of its own is nobody here. What is secret is closed below.
  chmod 711 "$STATE"
  chmod 700 "$STATE/etcd" "$STATE/pki"
  echo "$BIN" >"$STATE/bin-dir"
  save_sysctls
}

start_node() {
  local image
  BIN="$(cache_dir)/bin"
  prepare_state
  make_cgroups
  make_namespaces
  make_link
  start_etcd
  start_containerd
  make_pki
  wait_for_part etcd
  start_apiserver
  wait_for_part containerd
  for image in "$BIN/../images/"*.tar; do import_images "$image"; done
  wait_for_part kube-apiserver
  start_controller_manager
  start_scheduler
  start_kubelet
  start_kube_proxy
  dns_manifest | admin_kubectl apply --server-side --validate=false -f - >/dev/null
  wait_for kubelet 60 "the node is Ready" node_is_ready
  wait_for kube-controller-manager 30 "the default service account exists" default_account_exists
  wait_for_part kube-scheduler
  wait_for_part kube-proxy
  wait_for kubelet 60 "CoreDNS is ready" dns_is_ready
  cat /proc/sys/kernel/random/boot_id >"$STATE/started"
}
