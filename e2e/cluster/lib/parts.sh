# shellcheck shell=bash
# What is built and with which flags. The versions are in go/<part>/go.mod, nowhere else.
# This file is part of the cache key: what does not change the programs belongs into build.sh.

# The short ones first: a machine that lacks something shows it early.
PARTS=(pause cni runc etcd containerd coredns helm kubernetes)
# Those that become an image in the cluster instead of a program on the node.
IMAGE_PARTS=(pause coredns)

# part_programs PART: what stands in the folder bin when it is built.
part_programs() {
  case "$1" in
    cni) echo bridge host-local loopback portmap ptp ;;
    runc | etcd | helm | pause | coredns) echo "$1" ;;
    containerd) echo containerd containerd-shim-runc-v2 ctr ;;
    kubernetes) echo kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubectl kubelet ;;
  esac
}

part_module() {
  case "$1" in
    cni) echo github.com/containernetworking/plugins ;;
    runc) echo github.com/opencontainers/runc ;;
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    containerd) echo github.com/containerd/containerd/v2 ;;
    kubernetes) echo k8s.io/kubernetes ;;
    coredns) echo github.com/coredns/coredns ;;
    helm) echo helm.sh/helm/v4 ;;
  esac
}

# part_version PART: the pinned version; "v1" for the program that is our own.
part_version() {
  local module
  module="$(part_module "$1")"
  [[ -n "$module" ]] || { echo v1; return; }
  awk -v module="$module" '$1 == "require" { $1 = ""; $0 = $0 } $1 == module && $2 ~ /^v/ { print $2; exit }' \
    "$CLUSTER_HOME/go/$1/go.mod"
}

image_name() { echo "skillet.dev/cluster/$1:$(part_version "$1")"; }

# Programs that do not know their version call themselves v0.0.0, and version checks go wrong.
part_ldflags() {
  local version flags="-s -w" at
  version="$(part_version "$1")"
  case "$1" in
    kubernetes)
      local major minor
      IFS=. read -r major minor _ <<<"${version#v}"
      for at in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags+=" -X $at.gitVersion=$version -X $at.gitMajor=$major -X $at.gitMinor=$minor -X $at.gitTreeState=clean"
      done
      ;;
    containerd) flags+=" -X github.com/containerd/containerd/v2/version.Version=$version" ;;
    helm) flags+=" -X helm.sh/helm/v4/internal/version.version=$version" ;;
    cni) flags+=" -X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=$version" ;;
    # Static: starts faster than with shared libraries, and the cache does not depend on those.
    runc) flags+=" -linkmode external -extldflags -static" ;;
  esac
  echo "$flags"
}

# compile_part PART FOLDER: the programs of the part into the folder.
compile_part() {
  local part=$1 out=$2 cgo=0 tags="" target=tool
  case "$part" in
    runc) cgo=1 tags="seccomp netgo osusergo" ;;
    containerd) cgo=1 tags="no_btrfs no_devmapper no_zfs" ;;
    pause | coredns) target=. ;;
  esac
  mkdir -p "$out"
  env GOFLAGS= GOWORK=off CGO_ENABLED="$cgo" go -C "$CLUSTER_HOME/go/$part" build -v -mod=readonly -trimpath -buildvcs=false \
    -tags "$tags" -ldflags "$(part_ldflags "$part")" -o "$out/" "$target"
  # The module's last element is the program's name, and here that is not what it is called.
  [[ "$part" != etcd || ! -e "$out/server" ]] || mv "$out/server" "$out/etcd"
}
