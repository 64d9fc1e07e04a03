# shellcheck shell=bash
# Starts the node's programs, knows whether they run, and waits for states.

# start_part NAME COMMAND...: inside the node's namespaces and cgroups, with a log of its own, outliving this script.
start_part() {
  local name=$1
  shift
  no_lock launch "$@" </dev/null >>"$STATE/logs/$name.log" 2>&1 &
  echo "$! $(process_birth $!)" >"$STATE/pids/$name"
}

launch() {
  join_cgroups
  ulimit -n "$(ulimit -H -n)"
  cd /
  # A fixed environment: proxies and the like of the user's shell are none of the node's business.
  exec setsid nsenter --net="$NET_NS" --mount="$MOUNT_NS" -- env -i \
    PATH="$BIN:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME=/root \
    XTABLES_LOCKFILE="$STATE/xtables.lock" GOGC=400 "$@"
}

# in_node COMMAND...: runs it in the node's namespaces.
in_node() { nsenter --net="$NET_NS" --mount="$MOUNT_NS" -- "$@"; }

# When the process began, in ticks since boot: a pid alone may be given anew.
process_birth() {
  local stat
  stat="$(cat "/proc/$1/stat" 2>/dev/null)" || return 0
  awk '{ print $20 }' <<<"${stat##*) }"
}

# part_pid NAME: prints the pid if the process that was started is still there.
part_pid() {
  local pid birth
  [[ -r "$STATE/pids/$1" ]] || return 1
  read -r pid birth <"$STATE/pids/$1" || return 1
  [[ -n "$birth" && "$(process_birth "$pid")" == "$birth" ]] || return 1
  [[ "$(awk '$1 == "State:" { print $2 }' "/proc/$pid/status" 2>/dev/null)" != Z ]] || return 1
  echo "$pid"
}

# end_part NAME: asks it to end, and makes it end when it has not after five seconds.
end_part() {
  local pid tries
  pid="$(part_pid "$1")" || return 0
  kill -TERM "$pid" 2>/dev/null || return 0
  for ((tries = 0; tries < 50; tries++)); do
    part_pid "$1" >/dev/null || return 0
    sleep 0.1
  done
  kill -KILL "$pid" 2>/dev/null || true
}

# wait_for PART SECONDS WHAT COMMAND...: until the command succeeds; the part's log is shown when it does not. SECONDS are
# for a machine that has its processors to itself; three times as many may pass.
wait_for() {
  local part=$1 limit=$((3 * $2)) what=$3 deadline
  shift 3
  deadline=$((SECONDS + limit))
  until "$@" >/dev/null 2>&1; do
    part_pid "$part" >/dev/null || fail_part "$part" "$part has ended while waiting for: $what"
    ((SECONDS < deadline)) || fail_part "$part" "not reached in $limit s: $what"
    sleep 0.1
  done
}

fail_part() {
  say "the last lines of $STATE/logs/$1.log:"
  tail -n 20 "$STATE/logs/$1.log" >&2 || true
  die "$2 (see $STATE/logs; 'cluster.sh down' cleans up)"
}

admin_kubectl() { "$BIN/kubectl" --kubeconfig "$OWN_KUBECONFIG" --request-timeout 10s "$@"; }
