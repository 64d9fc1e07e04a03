# shellcheck shell=bash
# The cgroups of the node: one tree named "skillet" in every hierarchy, for the node's programs and its pods.
# Version 2 has one hierarchy; version 1, also beside an empty version 2, has one for each controller.

cgroup_version() {
  local controller
  if [[ "$(findmnt -n -o FSTYPE /sys/fs/cgroup)" == cgroup2 ]]; then
    echo 2
    return
  fi
  for controller in memory cpu cpuset pids; do
    cgroup_v1_mounts | grep -qE "(^|[/,])$controller(,|$)" || return 1
  done
  echo 1
}

cgroup_v1_mounts() { findmnt -n -l -o TARGET -t cgroup; }

# The folders that are the node's tree, whether they exist or not.
cgroup_trees() {
  local mount
  findmnt -n -l -o TARGET -t cgroup,cgroup2 | while read -r mount; do echo "$mount/$CGROUP"; done
}

make_cgroups() {
  local tree
  if [[ "$(cgroup_version)" == 2 ]]; then
    make_cgroups_v2
    return
  fi
  while read -r tree; do
    tree="$tree/$CGROUP"
    mkdir -p "$tree"
    copy_cpuset "$tree"
    mkdir -p "$tree/system"
    copy_cpuset "$tree/system"
  done < <(cgroup_v1_mounts)
}

# A new group of version 1 has no processors and no memory: nothing can be put into it.
copy_cpuset() {
  local file
  for file in cpuset.cpus cpuset.mems; do
    [[ ! -e "$1/$file" ]] || cat "$(dirname "$1")/$file" >"$1/$file"
  done
}

make_cgroups_v2() {
  local tree="/sys/fs/cgroup/$CGROUP" controller
  mkdir -p "$tree/system"
  for controller in cpu cpuset memory io pids hugetlb; do
    # One that the kernel does not have is not missed here; the kubelet names those that it needs.
    echo "+$controller" 2>/dev/null >/sys/fs/cgroup/cgroup.subtree_control || true
    echo "+$controller" 2>/dev/null >"$tree/cgroup.subtree_control" || true
  done
}

# Puts the calling process into the node's tree.
join_cgroups() {
  local tree
  while read -r tree; do
    [[ ! -d "$tree/system" ]] || echo "$BASHPID" >"$tree/system/cgroup.procs"
  done < <(cgroup_trees)
}

# Prints the processes in the node's tree, pods included.
cgroup_processes() {
  local tree
  while read -r tree; do
    [[ ! -d "$tree" ]] || find "$tree" -name cgroup.procs -exec cat {} + 2>/dev/null
  done < <(cgroup_trees) | sort -un
}

remove_cgroups() {
  local tree tries
  while read -r tree; do
    # A group stays busy for a moment after its last process is gone.
    for ((tries = 0; tries < 50; tries++)); do
      [[ -d "$tree" ]] || break
      find "$tree" -depth -type d -exec rmdir {} + 2>/dev/null && break
      sleep 0.1
    done
  done < <(cgroup_trees)
}
