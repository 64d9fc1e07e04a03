# shellcheck shell=bash
# What this machine has to have, looked at all at once before anything starts.
# Debian packages are installed when we may; a toolchain is the user's to choose, so it is named and refused.

# command:Debian package
NODE_COMMANDS=(ip:iproute2 iptables:iptables conntrack:conntrack nsenter:util-linux unshare:util-linux setsid:util-linux
  mount:mount openssl:openssl modprobe:kmod tar:tar awk:mawk findmnt:util-linux)
BUILD_COMMANDS=(pkg-config:pkg-config)

# require NEEDS_NODE NEEDS_BUILD (yes or no): prints one line and ends when something lacks.
require() {
  local node=$1 build=$2 problems packages line
  mapfile -t packages < <(missing_packages "$node" "$build")
  mapfile -t problems < <(
    if ((${#packages[@]})) && ! { [[ $EUID -eq 0 ]] && has apt-get; }; then
      echo "the Debian packages ${packages[*]}"
    fi
    [[ "$node" == no ]] || missing_for_node
    [[ "$build" == no ]] || missing_for_build
  )
  if ((${#problems[@]})); then
    line="$(printf '; %s' "${problems[@]}")"
    die "this machine lacks: ${line:2}"
  fi
  if ((${#packages[@]} > 0)); then
    say "installing the Debian packages ${packages[*]}"
    install_packages "${packages[@]}" || die "could not install the Debian packages ${packages[*]}"
  fi
}

missing_for_node() {
  [[ "$(uname -s)" == Linux ]] || echo "Linux"
  [[ $EUID -eq 0 ]] || echo "root (a node makes namespaces, mounts and cgroups)"
  [[ ${#STATE} -le 70 ]] || echo "a SKILLET_CLUSTER_DIR of 70 characters at most (sockets live under it)"
  missing_kernel
  taken_addresses
  missing_space "$STATE" 2000 "the node"
}

missing_for_build() {
  missing_toolchain
  # What a build leaves in Go's two caches and in ours.
  missing_space "$CACHE_ROOT" 9000 "the build"
}

missing_packages() {
  local entry wanted=()
  [[ "$1" == no ]] || wanted+=("${NODE_COMMANDS[@]}")
  [[ "$2" == no ]] || wanted+=("${BUILD_COMMANDS[@]}")
  {
    for entry in "${wanted[@]}"; do
      has "${entry%%:*}" || echo "${entry#*:}"
    done
    if [[ "$2" != no ]]; then
      compgen -G '/usr/lib*/libseccomp.a' >/dev/null || compgen -G '/usr/lib/*/libseccomp.a' >/dev/null || echo libseccomp-dev
    fi
  } | sort -u
}

missing_kernel() {
  if [[ ! -e /proc/sys/user/max_user_namespaces || "$(cat /proc/sys/user/max_user_namespaces)" == 0 ]]; then
    echo "user namespaces (user.max_user_namespaces)"
  fi
  grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || echo "the overlay file system"
  cgroup_version >/dev/null || echo "cgroups (neither version 2 nor the memory, cpu, cpuset and pids controllers of version 1)"
  [[ $EUID -ne 0 ]] || unshare --mount true 2>/dev/null || echo "the right to make mount namespaces (CAP_SYS_ADMIN)"
}

# Another network of the same addresses would lose its traffic to ours.
taken_addresses() {
  has ip || return 0
  local cidr route
  for cidr in "$HOST_IP/$LINK_CIDR_BITS" "$POD_CIDR" "$SERVICE_CIDR"; do
    # root: the range itself or a part of it.
    route="$(ip -4 route show root "${cidr/%.1\/24/.0/24}" | grep -v "dev $HOST_LINK" | head -n 1)" || true
    [[ -z "$route" ]] || echo "a free address range $cidr (taken: $route)"
  done
}

missing_toolchain() {
  local error
  has gcc || echo "gcc (runc needs it)"
  if ! has go; then
    echo "go $(awk '$1 == "go" { print $2 }' "$CLUSTER_HOME/go/go.mod") or newer"
  elif ! error="$(GOWORK=off go -C "$CLUSTER_HOME/go" version 2>&1)"; then
    echo "a newer go (${error##*$'\n'})"
  fi
}

# missing_space FOLDER MEGABYTES WHAT
missing_space() {
  local free
  free="$(free_space "$1")"
  ((free >= $2)) || echo "$2 MB of space for $3 in $1 ($free MB free)"
}

free_space() {
  local dir=$1
  while [[ ! -e "$dir" ]]; do dir="$(dirname "$dir")"; done
  df -m --output=avail "$dir" | tail -n 1 | tr -d ' '
}
