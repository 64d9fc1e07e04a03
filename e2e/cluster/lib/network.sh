# shellcheck shell=bash
# The node's own network and mount namespaces, and the link to this machine.
# Rules and routes of the node live and die with its namespace; this machine gets one link with three routes.

# Programs of a node have these paths built in. Inside the node they are folders of our own.
FIXED_PATHS=(/run/containerd /var/lib/cni /var/lib/kubelet /var/log/containers)

make_namespaces() {
  local path
  [[ -d /run/netns ]] || touch "$STATE/made-run-netns"
  ip netns add "$NODE_NAME"
  for path in "${FIXED_PATHS[@]}"; do
    if [[ ! -d "$path" ]]; then
      mkdir -p "$path"
      echo "$path" >>"$STATE/made-paths"
    fi
  done
  # The kernel binds a mount namespace to a file only where mounts are private.
  mkdir -p "$STATE/ns"
  mount --bind "$STATE/ns" "$STATE/ns"
  mount --make-private "$STATE/ns"
  touch "$MOUNT_NS"
  # Mounts of the node do not come out to this machine; they vanish with its last process.
  unshare --mount="$MOUNT_NS" --propagation private true
  for path in "${FIXED_PATHS[@]}"; do
    mkdir -p "$STATE/node$path"
    nsenter --mount="$MOUNT_NS" mount --bind "$STATE/node$path" "$path"
  done
  # Pods may ask for mount propagation, which needs a shared root.
  nsenter --mount="$MOUNT_NS" mount --make-rshared /
}

make_link() {
  ip link add "$HOST_LINK" type veth peer name "$NODE_LINK" netns "$NODE_NAME"
  ip addr add "$HOST_IP/$LINK_CIDR_BITS" dev "$HOST_LINK"
  ip link set "$HOST_LINK" up
  nsenter --net="$NET_NS" bash -euc "
    ip link set lo up
    ip addr add $NODE_IP/$LINK_CIDR_BITS dev $NODE_LINK
    ip link set $NODE_LINK up
    ip route add default via $HOST_IP
    echo 1 >/proc/sys/net/ipv4/ip_forward
  "
  ip route add "$POD_CIDR" via "$NODE_IP" dev "$HOST_LINK"
  ip route add "$SERVICE_CIDR" via "$NODE_IP" dev "$HOST_LINK"
}

# The kubelet sets these for the whole machine; "down" puts them back.
KUBELET_SYSCTLS=(vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys
  kernel/keys/root_maxbytes)

save_sysctls() {
  local name
  cat /proc/sys/kernel/random/boot_id >"$STATE/sysctls"
  for name in "${KUBELET_SYSCTLS[@]}"; do
    echo "$name $(cat "/proc/sys/$name")" >>"$STATE/sysctls"
  done
}

restore_sysctls() {
  local boot name value
  [[ -r "$STATE/sysctls" ]] || return 0
  {
    # After a restart of the machine the values are its own again.
    read -r boot
    [[ "$boot" == "$(cat /proc/sys/kernel/random/boot_id)" ]] || return 0
    while read -r name value; do
      [[ "$(cat "/proc/sys/$name")" == "$value" ]] || echo "$value" >"/proc/sys/$name"
    done
  } <"$STATE/sysctls"
}
