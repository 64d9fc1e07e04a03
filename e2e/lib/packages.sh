# shellcheck shell=bash
# Debian packages, for all scripts: apt wants one process at a time, and scripts run side by side.

# install_packages PACKAGE...: without packages that these only recommend. Fails where that cannot be, and says why.
install_packages() (
  ((EUID == 0)) && command -v apt-get >/dev/null || exit 1
  exec 8>"${TMPDIR:-/tmp}/skillet-packages.lock"
  flock 8
  log=$(mktemp)
  # Lists of a while ago are good enough, if they name the packages.
  apt-get update -q >"$log" 2>&1 || true
  if ! DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >>"$log" 2>&1; then
    tail -n 20 "$log" >&2
    exit 1
  fi
  rm -f "$log"
)
