# What the tests of both charts share. SUBJECT names the chart in messages; REPOSITORY is the checkout.
FAILED=0

fail() {
  printf '%s: FAILED %s\n' "$SUBJECT" "$*" >&2
  FAILED=$((FAILED + 1))
}
die() {
  printf '%s: error: %s\n' "$SUBJECT" "$*" >&2
  exit 1
}

# The user's own helm, or the one that the local cluster is built with.
find_helm() {
  command -v helm >/dev/null && return
  local environment
  environment="$("$REPOSITORY/e2e/cluster/cluster.sh" env 2>/dev/null | grep '^export PATH=' || true)"
  eval "$environment"
  command -v helm >/dev/null || die "helm is missing: install it, or build it with 'e2e/cluster/cluster.sh build'"
}
