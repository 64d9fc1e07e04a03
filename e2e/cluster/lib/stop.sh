# shellcheck shell=bash
# Stops the local node, removes everything it made, and looks whether anything remains.
# Goes by what is there, not by what was started: it also cleans after a half-finished start or a restart of the machine.

# Every process of the node: in its cgroups, in its namespaces, started by us, or run from the state directory.
node_processes() {
  local pid net="" mnt="" part
  [[ ! -e "$NET_NS" ]] || net="$(stat -L -c %i "$NET_NS")"
  # The mount namespace's file is an empty one when nothing is bound to it.
  [[ "$(stat -f -c %T "$MOUNT_NS" 2>/dev/null)" != nsfs ]] || mnt="$(stat -L -c %i "$MOUNT_NS")"
  {
    cgroup_processes
    for part in "${NODE_PARTS[@]}"; do part_pid "$part" || true; done
    for pid in /proc/[0-9]*; do
      [[ -z "$net" || "$(readlink "$pid/ns/net" 2>/dev/null)" != "net:[$net]" ]] || echo "${pid#/proc/}"
      [[ -z "$mnt" || "$(readlink "$pid/ns/mnt" 2>/dev/null)" != "mnt:[$mnt]" ]] || echo "${pid#/proc/}"
      [[ "$(readlink "$pid/exe" 2>/dev/null)" != "$STATE"/* ]] || echo "${pid#/proc/}"
    done
  } | sort -un
}

# The kubelet first, so that it starts nothing anew; then all at once, until none is left.
# Nothing is asked to end nicely: all that it could save is removed a moment later.
stop_processes() {
  local pid pids deadline=$((SECONDS + 20))
  for pid in $(part_pid kubelet || true) $(part_pid containerd || true); do kill -KILL "$pid" 2>/dev/null || true; done
  while :; do
    mapfile -t pids < <(node_processes)
    ((${#pids[@]})) || return 0
    ((SECONDS < deadline)) || return 0
    kill -KILL "${pids[@]}" 2>/dev/null || true
    sleep 0.1
  done
}

# Mounts of this machine that lie under the state directory, deepest first.
state_mounts() { findmnt -rn -o TARGET | grep -E "^$STATE(/|$)" | sort -r; }

remove_network() {
  if [[ -e "$NET_NS" ]]; then
    ip netns delete "$NODE_NAME" || rm -f "$NET_NS"
  fi
  ! ip link show "$HOST_LINK" >/dev/null 2>&1 || ip link delete "$HOST_LINK" || true
  # The folder for named namespaces was made, and mounted upon itself, by our "ip netns add".
  if [[ -e "$STATE/made-run-netns" && -d /run/netns && -z "$(ls -A /run/netns)" ]]; then
    umount /run/netns 2>/dev/null || true
    rmdir /run/netns
  fi
}

remove_mounts() {
  local target
  while read -r target; do
    umount "$target" 2>/dev/null || umount --lazy "$target" || true
  done < <(state_mounts)
}

# The folders that had to be made so that the node could mount its own there; never one with something in it.
remove_made_paths() {
  local path
  [[ -r "$STATE/made-paths" ]] || return 0
  while read -r path; do
    [[ ! -d "$path" ]] || rmdir "$path" || true
  done <"$STATE/made-paths"
}

stop_node() {
  if [[ ! -e "$STATE" && ! -e "$NET_NS" && -z "$(node_processes)" ]]; then
    say "no node is there"
  fi
  stop_processes
  remove_network
  remove_mounts
  remove_cgroups
  restore_sysctls
  remove_made_paths
  # With a mount left, removing could reach into what is mounted.
  [[ -n "$(state_mounts)" ]] || rm -rf --one-file-system "$STATE"
}

# look WHAT FOUND: one line; what was found counts as left.
look() {
  if [[ -z "$2" ]]; then
    printf '  %-52s none left\n' "$1"
    return
  fi
  printf '  %-52s LEFT: %s\n' "$1" "$(tr '\n' ' ' <<<"$2")"
  LEFT=$((LEFT + 1))
}

existing() {
  local path
  for path in "$@"; do [[ ! -e "$path" ]] || echo "$path"; done
}

# Looks at each kind of thing that a node makes; fails when anything is left.
check_nothing_left() {
  local cgroups cni rules
  LEFT=0
  mapfile -t cgroups < <(cgroup_trees)
  cni="$(compgen -G '/var/lib/cni/*/skillet*' || true)"
  rules="$(iptables-save 2>/dev/null | grep -E '10\.99\.0\.|10\.244\.|10\.96\.|skillet' || true)"
  look "processes of the node" "$(node_processes)"
  look "mounts under $STATE" "$(state_mounts || true)"
  look "network namespace $NODE_NAME" "$(existing "$NET_NS")"
  look "links $HOST_LINK, $NODE_LINK" "$(ip -o link show 2>/dev/null | grep -oE "($HOST_LINK|$NODE_LINK)[@:]" || true)"
  look "routes to the node, its pods and services" "$(ip -4 route show 2>/dev/null | grep -E "$HOST_LINK" || true)"
  look "iptables rules of the node" "$rules"
  look "cgroups named $CGROUP" "$(existing "${cgroups[@]}")"
  look "network state under /var/lib/cni" "$cni"
  look "directory $STATE" "$(existing "$STATE")"
  ((LEFT == 0)) || die "$LEFT kinds of things are left: see above"
  say "nothing is left; the built programs stay in $CACHE_ROOT"
}
