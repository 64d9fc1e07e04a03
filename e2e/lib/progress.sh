# shellcheck shell=bash
# Progress of a long command, with the time that is left: for builds, downloads and lanes.
# The caller says what is done and what there is to do; this file measures nothing itself.

# follow PID LABEL COUNT_COMMAND UNIT: waits for the process, and returns its status. COUNT_COMMAND prints how many units are done,
# and of how many if that is known. A terminal gets a line that changes each second, other output one every 20 s.
follow() {
  local pid=$1 label=$2 count_command=$3 unit=$4 began=$SECONDS last=0 took finished total
  # shellcheck disable=SC2064 # the process of this call
  trap "kill $pid 2>/dev/null || true" EXIT
  while kill -0 "$pid" 2>/dev/null; do
    took=$((SECONDS - began))
    if [[ -t 2 ]] || ((took - last >= 20)); then
      read -r finished total < <($count_command) || true
      last=$took
      printf "$([[ -t 2 ]] && echo '\r\033[K%s ' || echo '%s\n')" "$label: $(progress "$took" "${finished:-0}" "${total:-0}" "$unit")" >&2
    fi
    sleep 1
  done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
  trap - EXIT
  wait "$pid"
}

# progress SECONDS DONE TOTAL UNIT: the time that is left as soon as a tenth is done.
progress() {
  local took=$1 finished=$2 total=$3 unit=$4
  if ((total == 0)); then
    echo "$took s"
  elif ((finished >= total)); then
    echo "$took s, all $total $unit, linking"
  elif ((finished * 10 < total)); then
    echo "$took s, $finished of $total $unit"
  else
    echo "$took s, $finished of $total $unit, about $(((took * (total - finished) / finished + 59) / 60)) min left"
  fi
}
