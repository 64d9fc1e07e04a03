# shellcheck shell=bash
# Names, addresses and paths of the local cluster, and how it speaks.
# Nothing here changes the machine.

CACHE_ROOT="${SKILLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skillet}/cluster"
if [[ -n "${SKILLET_CLUSTER_DIR:-}" ]]; then
  STATE="$SKILLET_CLUSTER_DIR"
elif [[ $EUID -eq 0 ]]; then
  STATE=/var/lib/skillet-cluster
else
  STATE="${XDG_STATE_HOME:-$HOME/.local/state}/skillet-cluster"
fi
STATE="$(realpath -m -- "$STATE")"

NODE_NAME=skillet-node
KIND_NAME=skillet
CGROUP=skillet
# A link's name has at most 15 characters.
HOST_LINK=skillet0
NODE_LINK=skillet1

HOST_IP=10.99.0.1
NODE_IP=10.99.0.2
LINK_CIDR_BITS=24
POD_CIDR=10.244.0.0/16
SERVICE_CIDR=10.96.0.0/16
API_SERVICE_IP=10.96.0.1
DNS_SERVICE_IP=10.96.0.10
API_URL="https://$NODE_IP:6443"

NET_NS="/run/netns/$NODE_NAME"
MOUNT_NS="$STATE/ns/mnt"
OWN_KUBECONFIG="$STATE/kubeconfig"
CONTAINERD_SOCKET="$STATE/containerd/containerd.sock"
# The parts of a node, in the order in which they start.
NODE_PARTS=(etcd containerd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy)

say() { printf 'cluster: %s\n' "$*" >&2; }
die() {
  printf 'cluster: error: %s\n' "$*" >&2
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

# Seconds since the script started, with one digit.
elapsed() {
  local now=${EPOCHREALTIME/[.,]/} then=${STARTED_AT/[.,]/}
  local tenths=$(((now - then) / 100000))
  printf '%d.%d s' $((tenths / 10)) $((tenths % 10))
}
STARTED_AT=$EPOCHREALTIME

# One run at a time changes the cache or the node. The lock is let go when this process ends.
take_lock() {
  mkdir -p "$CACHE_ROOT"
  exec {LOCK_FD}>"$CACHE_ROOT/lock"
  flock -n "$LOCK_FD" && return
  say "another run is at work; waiting for it (30 minutes at most)"
  flock -w 1800 "$LOCK_FD" || die "the other run did not end: $CACHE_ROOT/lock is still held"
}

# no_lock COMMAND...: runs it without the lock's descriptor, for what outlives this process.
no_lock() {
  if [[ -n "${LOCK_FD:-}" ]]; then
    "$@" {LOCK_FD}>&-
  else
    "$@"
  fi
}
