# shellcheck shell=bash
# The keys, certificates and kubeconfig files of one node. Made anew for every node, never kept.

# issue NAME SUBJECT EXTENSIONS: a key and a certificate of the cluster's authority.
issue() {
  local name=$1 subject=$2 extensions=$3
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$STATE/pki/$name.key" -subj "$subject" 2>/dev/null |
    openssl x509 -req -CA "$STATE/pki/ca.crt" -CAkey "$STATE/pki/ca.key" -days 3650 -out "$STATE/pki/$name.crt" \
      -extfile <(printf 'basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\n%s\n' "$extensions") 2>/dev/null
}

issue_client() { issue "$1" "$2" "extendedKeyUsage=clientAuth"; }
issue_server() { issue "$1" "$2" "extendedKeyUsage=serverAuth"$'\n'"subjectAltName=$3"; }

make_authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=$1" \
    -addext "keyUsage=critical,keyCertSign,cRLSign,digitalSignature" -keyout "$STATE/pki/$2.key" -out "$STATE/pki/$2.crt" 2>/dev/null
}

make_pki() {
  local part
  make_authority skillet-cluster ca
  openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$STATE/pki/service-account.key" 2>/dev/null
  openssl pkey -in "$STATE/pki/service-account.key" -pubout -out "$STATE/pki/service-account.pub"
  issue_server kube-apiserver /CN=kube-apiserver "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,\
DNS:kubernetes.default.svc.cluster.local,DNS:localhost,IP:$NODE_IP,IP:$API_SERVICE_IP,IP:127.0.0.1"
  issue_server kubelet "/O=system:nodes/CN=system:node:$NODE_NAME" "DNS:$NODE_NAME,IP:$NODE_IP"
  issue_client kubelet-client "/O=system:nodes/CN=system:node:$NODE_NAME"
  issue_client kube-apiserver-kubelet /O=system:masters/CN=kube-apiserver-kubelet-client
  issue_client front-proxy /CN=front-proxy-client
  issue_client admin /O=system:masters/CN=kubernetes-admin
  for part in kube-controller-manager kube-scheduler kube-proxy; do
    issue_client "$part" "/CN=system:$part"
    write_kubeconfig "$part" "$STATE/pki/$part.kubeconfig"
  done
  write_kubeconfig kubelet-client "$STATE/pki/kubelet.kubeconfig"
  write_kubeconfig admin "$OWN_KUBECONFIG"
}

# write_kubeconfig CERTIFICATE FILE: all in one file, so that it can be copied elsewhere.
write_kubeconfig() {
  local name=$1 file=$2
  install -m 600 /dev/null "$file"
  cat >"$file" <<YAML
apiVersion: v1
kind: Config
clusters:
- name: skillet
  cluster:
    server: $API_URL
    certificate-authority-data: $(base64 -w0 "$STATE/pki/ca.crt")
users:
- name: $name
  user:
    client-certificate-data: $(base64 -w0 "$STATE/pki/$name.crt")
    client-key-data: $(base64 -w0 "$STATE/pki/$name.key")
contexts:
- name: skillet
  context: {cluster: skillet, user: $name}
current-context: skillet
YAML
}
