# shellcheck shell=bash
# A volume for a claim: the local node has nothing that makes volumes. Its folder is in the node's state, and goes with that.

# User and group of the images, which write to the volume.
readonly VOLUME_USER=65532

# run_volume NAMESPACE CLAIM: kind and clusters of users make volumes themselves.
run_volume() {
  (($# == 2)) || die "volume needs a namespace and the name of a claim"
  local namespace=$1 claim=$2 folder
  [[ "$(cluster_kind)" == node ]] || return 0
  [[ -r "$STATE/bin-dir" ]] || die "no node is there: 'cluster.sh up' starts one"
  BIN="$(cat "$STATE/bin-dir")"
  folder="$STATE/volumes/$namespace-$claim"
  mkdir -p "$STATE/volumes"
  install -d -m 0700 -o "$VOLUME_USER" -g "$VOLUME_USER" "$folder"
  "$BIN/kubectl" --kubeconfig "$OWN_KUBECONFIG" apply -f - <<YAML >/dev/null
apiVersion: v1
kind: PersistentVolume
metadata:
  name: $namespace-$claim
spec:
  capacity:
    storage: 100Gi
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  claimRef:
    namespace: $namespace
    name: $claim
  hostPath:
    path: $folder
    type: Directory
YAML
}
