#!/bin/sh
# Runs one etcd and one kube-apiserver in the folder $DIR until standard input ends, then leaves nothing.
#
# The test program holds the other end of standard input: however it ends, and be it killed, the servers end too.
set -eu

etcd --data-dir "$DIR/etcd" --unsafe-no-fsync --log-level error \
  --listen-client-urls "$ETCD" --advertise-client-urls "$ETCD" --listen-peer-urls http://127.0.0.1:0 \
  </dev/null >"$DIR/etcd.log" 2>&1 &
etcd=$!
# Without the plugin ServiceAccount, pods can be made by hand: there is no controller that would make their accounts.
kube-apiserver --bind-address 127.0.0.1 --advertise-address 127.0.0.1 --secure-port "$PORT" --cert-dir "$DIR/pki" \
  --etcd-servers "$ETCD" --service-cluster-ip-range 10.97.0.0/24 --endpoint-reconciler-type none \
  --authorization-mode RBAC --token-auth-file "$DIR/tokens.csv" --disable-admission-plugins ServiceAccount \
  --service-account-issuer https://kubernetes.default.svc --api-audiences https://kubernetes.default.svc \
  --service-account-signing-key-file "$DIR/service-account.key" \
  --service-account-key-file "$DIR/service-account.key" \
  --audit-policy-file "$DIR/audit-policy.yaml" --audit-log-path "$DIR/audit.log" \
  </dev/null >"$DIR/kube-apiserver.log" 2>&1 &
server=$!

read -r _ || true
# Their data is of no use to anyone: nothing is waited for.
kill -KILL "$server" "$etcd" 2>/dev/null || true
wait
rm -rf "$DIR"
