#!/usr/bin/env bash
# A real Kubernetes cluster for development and tests.
#
# It takes, in this order: the cluster of the user's KUBECONFIG; a kind cluster, where Docker has an engine; one whole node
# built from its Go modules and started on this machine. It is not meant for anything but tests: data is not written safely,
# and pods reach the cluster and this machine but nothing beyond.
set -euo pipefail
shopt -s inherit_errexit
umask 022

CLUSTER_HOME="$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)"
# shellcheck source-path=SCRIPTDIR
source "$CLUSTER_HOME/../lib/packages.sh"
source "$CLUSTER_HOME/../lib/progress.sh"
source "$CLUSTER_HOME/lib/config.sh"
source "$CLUSTER_HOME/lib/parts.sh"
source "$CLUSTER_HOME/lib/image.sh"
source "$CLUSTER_HOME/lib/build.sh"
source "$CLUSTER_HOME/lib/requirements.sh"
source "$CLUSTER_HOME/lib/process.sh"
source "$CLUSTER_HOME/lib/cgroup.sh"
source "$CLUSTER_HOME/lib/network.sh"
source "$CLUSTER_HOME/lib/pki.sh"
source "$CLUSTER_HOME/lib/controlplane.sh"
source "$CLUSTER_HOME/lib/node.sh"
source "$CLUSTER_HOME/lib/dns.sh"
source "$CLUSTER_HOME/lib/kind.sh"
source "$CLUSTER_HOME/lib/volume.sh"
source "$CLUSTER_HOME/lib/stop.sh"

usage() {
  cat <<'TEXT'
Usage: cluster.sh COMMAND

  up                start the cluster, or find it running; builds its programs when they are not in the cache
  down              stop it, remove all it made, and look whether anything is left; the built programs stay
  status            what runs, and where things are
  build             only build the programs into the cache
  env               print shell commands that set KUBECONFIG and PATH (kubectl, helm, ctr): eval "$(cluster.sh env)"
  kubeconfig        print the path of the kubeconfig file
  load-image TAR..  bring images (OCI layouts in tars) into the cluster
  volume NS CLAIM   a volume for a claim of a namespace, where the cluster makes none by itself
  restart PART..    end parts of the node and start them again, for tests of faults
  exec-node CMD..   run a command in the node's namespaces
  logs PART         print the log of a part: etcd containerd kube-apiserver kube-controller-manager kube-scheduler
                    kubelet kube-proxy

Environment: SKILLET_CLUSTER_DIR (state, /var/lib/skillet-cluster), SKILLET_CACHE (~/.cache/skillet),
KUBECONFIG (a cluster of your own that is to be used instead).
TEXT
}

# Which cluster it is: foreign, kind or node.
cluster_kind() {
  if [[ -n "${KUBECONFIG:-}" && "$(realpath -m -- "$KUBECONFIG")" != "$OWN_KUBECONFIG" ]]; then
    echo foreign
  elif [[ -e "$STATE/bin-dir" ]]; then
    # A node that was started stays the answer, also when Docker comes later.
    echo node
  elif kind_is_usable; then
    echo kind
  else
    echo node
  fi
}

up_foreign() {
  require_clients
  local answer
  if ! answer="$(kubectl --request-timeout 10s version 2>&1)"; then
    die "the cluster of KUBECONFIG=$KUBECONFIG does not answer: ${answer##*$'\n'}"
  fi
  say "using the cluster of KUBECONFIG=$KUBECONFIG (${answer##*$'\n'})"
}

up_node() {
  if node_was_started && up_started; then return; fi
  if is_built; then require yes no; else require yes yes; fi
  build_all
  if [[ -e "$STATE" || -e "$NET_NS" ]]; then
    say "removing what is left of an earlier node"
    stop_node
  fi
  STARTED_AT=$EPOCHREALTIME
  start_node
  say "the node is up in $(elapsed): KUBECONFIG=$OWN_KUBECONFIG"
}

# A node that was started stays, with its objects; parts that have ended are started again.
up_started() {
  local ended
  mapfile -t ended < <(ended_parts)
  if ((${#ended[@]})); then
    say "starting again, for they have ended: ${ended[*]}"
    restart_parts "${ended[@]}"
  elif ! node_is_ready 2>/dev/null; then
    say "all parts of the node run, but it is not Ready; giving it 30 s"
    wait_for kubelet 30 "the node is Ready" node_is_ready
  fi
  say "the node is up already: KUBECONFIG=$OWN_KUBECONFIG"
  [[ "$BIN" == "$(cache_dir)/bin" ]] || say "its programs are of other pins than these: 'down' and 'up' renew it"
}

run_up() {
  take_lock
  case "$(cluster_kind)" in
    foreign) up_foreign ;;
    kind) up_kind ;;
    node) up_node ;;
  esac
}

# Only what we made is taken down: a cluster of the user's own is not touched.
run_down() {
  take_lock
  down_kind
  if [[ $EUID -ne 0 ]]; then
    [[ ! -e "$NET_NS" ]] || die "the node was started by root: only root can stop it"
    return
  fi
  stop_node
  check_nothing_left
}

run_status() {
  local kind part pid
  kind="$(cluster_kind)"
  echo "cluster: $kind"
  case "$kind" in
    foreign) kubectl get nodes ;;
    kind) kind_exists && kubectl --kubeconfig "$OWN_KUBECONFIG" get nodes ;;
    node)
      echo "state: $STATE"
      [[ -r "$STATE/bin-dir" ]] || { echo "node: not started"; return 1; }
      BIN="$(cat "$STATE/bin-dir")"
      echo "programs: $BIN"
      for part in "${NODE_PARTS[@]}"; do
        pid="$(part_pid "$part")" && echo "$part: runs (pid $pid)" || echo "$part: does not run"
      done
      admin_kubectl get nodes --output wide
      ;;
  esac
}

run_env() {
  case "$(cluster_kind)" in
    foreign) printf 'export KUBECONFIG=%q\n' "$KUBECONFIG" ;;
    kind) printf 'export KUBECONFIG=%q\n' "$OWN_KUBECONFIG" ;;
    node)
      BIN="$(cat "$STATE/bin-dir" 2>/dev/null || echo "$(cache_dir)/bin")"
      # shellcheck disable=SC2016 # The PATH of the one who evaluates it, not ours.
      printf 'export KUBECONFIG=%q\nexport PATH=%q:"%s"\n' "$OWN_KUBECONFIG" "$BIN" '$PATH'
      printf 'export CONTAINERD_ADDRESS=%q CONTAINERD_NAMESPACE=k8s.io\n' "$CONTAINERD_SOCKET"
      printf 'export SKILLET_NODE_LOGS=%q\n' "$STATE/logs/pods"
      ;;
  esac
}

run_load_image() {
  (($# > 0)) || die "load-image needs a tar"
  local tar
  case "$(cluster_kind)" in
    foreign) die "images come into a cluster of your own through a registry that it can reach: push $* there" ;;
    kind) for tar in "$@"; do kind load image-archive --name "$KIND_NAME" "$tar"; done ;;
    node)
      [[ -r "$STATE/bin-dir" ]] || die "no node is there: 'cluster.sh up' starts one"
      BIN="$(cat "$STATE/bin-dir")"
      for tar in "$@"; do import_images "$tar"; done
      ;;
  esac
}

run_restart() {
  (($# > 0)) || die "restart needs a part: ${NODE_PARTS[*]}"
  [[ "$(cluster_kind)" == node ]] || die "only the parts of our own node can be restarted"
  take_lock
  node_was_started || die "no node is there: 'cluster.sh up' starts one"
  local part
  for part in "$@"; do end_part "$part"; done
  restart_parts "$@"
}

run_exec_node() {
  (($# > 0)) || die "exec-node needs a command"
  case "$(cluster_kind)" in
    foreign) die "the nodes of your own cluster are not ours to enter" ;;
    kind) exec docker exec -it "$KIND_NAME-control-plane" "$@" ;;
    node)
      [[ -e "$NET_NS" ]] || die "no node is there: 'cluster.sh up' starts one"
      exec nsenter --net="$NET_NS" --mount="$MOUNT_NS" -- "$@"
      ;;
  esac
}

main() {
  local command=${1:-help}
  shift || true
  case "$command" in
    up) run_up ;;
    down) run_down ;;
    status) run_status ;;
    build)
      take_lock
      is_built || require no yes
      build_all
      cache_dir
      ;;
    env) run_env ;;
    kubeconfig) if [[ "$(cluster_kind)" == foreign ]]; then echo "$KUBECONFIG"; else echo "$OWN_KUBECONFIG"; fi ;;
    load-image) run_load_image "$@" ;;
    volume) run_volume "$@" ;;
    restart) run_restart "$@" ;;
    exec-node) run_exec_node "$@" ;;
    logs) cat "$STATE/logs/${1:?a part}.log" ;;
    help | -h | --help) usage ;;
    *)
      usage >&2
      die "no command $command"
      ;;
  esac
}

main "$@"; exit
