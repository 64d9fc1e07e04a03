# shellcheck shell=bash
# etcd, the API server, the controller manager and the scheduler of the local node.

start_etcd() {
  # The data lives as long as the node; waiting for the disk would only slow the tests down.
  start_part etcd "$BIN/etcd" --name "$NODE_NAME" --data-dir "$STATE/etcd" --unsafe-no-fsync \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
    --initial-cluster "$NODE_NAME=http://127.0.0.1:2380" \
    --quota-backend-bytes 4294967296 --auto-compaction-retention 5m --snapshot-count 10000 --log-level warn
}

# One line for each request, with user and user agent, when its answer is complete: a stream, such as an attach, is one too.
# What the cluster's own parts only read is left out: it is most of the traffic and changes nothing.
write_audit_policy() {
  cat >"$STATE/audit-policy.yaml" <<'YAML'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  users: [system:apiserver, system:kube-controller-manager, system:kube-scheduler, system:kube-proxy]
  verbs: [get, list, watch]
- level: None
  userGroups: [system:nodes, system:serviceaccounts:kube-system]
  verbs: [get, list, watch]
- level: None
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*", "/version", "/openapi*"]
- level: Metadata
YAML
}

start_apiserver() {
  write_audit_policy
  start_part kube-apiserver "$BIN/kube-apiserver" --advertise-address "$NODE_IP" --secure-port 6443 \
    --etcd-servers http://127.0.0.1:2379 --service-cluster-ip-range "$SERVICE_CIDR" \
    --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
    --client-ca-file "$STATE/pki/ca.crt" \
    --tls-cert-file "$STATE/pki/kube-apiserver.crt" --tls-private-key-file "$STATE/pki/kube-apiserver.key" \
    --kubelet-certificate-authority "$STATE/pki/ca.crt" --kubelet-preferred-address-types InternalIP,Hostname \
    --kubelet-client-certificate "$STATE/pki/kube-apiserver-kubelet.crt" \
    --kubelet-client-key "$STATE/pki/kube-apiserver-kubelet.key" \
    --proxy-client-cert-file "$STATE/pki/front-proxy.crt" --proxy-client-key-file "$STATE/pki/front-proxy.key" \
    --requestheader-client-ca-file "$STATE/pki/ca.crt" --requestheader-allowed-names front-proxy-client \
    --requestheader-extra-headers-prefix X-Remote-Extra- --requestheader-group-headers X-Remote-Group \
    --requestheader-username-headers X-Remote-User \
    --service-account-issuer https://kubernetes.default.svc.cluster.local \
    --service-account-key-file "$STATE/pki/service-account.pub" \
    --service-account-signing-key-file "$STATE/pki/service-account.key" \
    --audit-policy-file "$STATE/audit-policy.yaml" --audit-log-path "$STATE/logs/audit.log" \
    --audit-log-maxsize 256 --audit-log-maxbackup 2 \
    --max-requests-inflight 1600 --max-mutating-requests-inflight 800
}

# admin_kubectl fails while the certificates or the rules that allow it are not there yet.
apiserver_ready() { admin_kubectl get --raw /readyz; }

start_controller_manager() {
  start_part kube-controller-manager "$BIN/kube-controller-manager" \
    --kubeconfig "$STATE/pki/kube-controller-manager.kubeconfig" --leader-elect=false --bind-address 127.0.0.1 \
    --authentication-kubeconfig "$STATE/pki/kube-controller-manager.kubeconfig" \
    --authorization-kubeconfig "$STATE/pki/kube-controller-manager.kubeconfig" \
    --service-account-private-key-file "$STATE/pki/service-account.key" --use-service-account-credentials \
    --root-ca-file "$STATE/pki/ca.crt" --client-ca-file "$STATE/pki/ca.crt" \
    --cluster-signing-cert-file "$STATE/pki/ca.crt" --cluster-signing-key-file "$STATE/pki/ca.key" \
    --service-cluster-ip-range "$SERVICE_CIDR" --kube-api-qps 500 --kube-api-burst 1000 \
    --flex-volume-plugin-dir "$STATE/kubelet/volume-plugins"
}

start_scheduler() {
  start_part kube-scheduler "$BIN/kube-scheduler" --kubeconfig "$STATE/pki/kube-scheduler.kubeconfig" \
    --authentication-kubeconfig "$STATE/pki/kube-scheduler.kubeconfig" \
    --authorization-kubeconfig "$STATE/pki/kube-scheduler.kubeconfig" \
    --leader-elect=false --bind-address 127.0.0.1 --kube-api-qps 500 --kube-api-burst 1000
}
