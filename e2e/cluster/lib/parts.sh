# shellcheck shell=bash
# The programs of the cluster, and the flags they are built with. The versions are in go/go.mod, nowhere else.
# This file is part of the cache key: what does not change the programs belongs into build.sh.

# Each with a pin of its own.
PARTS=(cni containerd coredns etcd helm kubernetes runc)
# Those that become an image in the cluster instead of a program on the node.
IMAGE_PARTS=(pause coredns)

# runc is the only one that needs C: with it a machine that lacks a library shows that early.
C_PACKAGES=(github.com/opencontainers/runc)
GO_PACKAGES=(
  ./pause ./coredns ./etcd ./kubectl ./kubernetes
  github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2,ctr}
  github.com/containernetworking/plugins/plugins/{ipam/host-local,main/bridge,main/loopback,main/ptp,meta/portmap}
)
# link:program. A program that has several names runs what it is called by.
LINKS=(helm:kubectl kube-apiserver:kubernetes kube-controller-manager:kubernetes kube-proxy:kubernetes
  kube-scheduler:kubernetes kubelet:kubernetes)

part_module() {
  case "$1" in
    cni) echo github.com/containernetworking/plugins ;;
    containerd) echo github.com/containerd/containerd/v2 ;;
    coredns) echo github.com/coredns/coredns ;;
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    helm) echo helm.sh/helm/v4 ;;
    kubernetes) echo k8s.io/kubernetes ;;
    runc) echo github.com/opencontainers/runc ;;
  esac
}

# part_version PART: the pinned version; "v1" for the program that is our own.
part_version() {
  local module
  module="$(part_module "$1")"
  [[ -n "$module" ]] || { echo v1; return; }
  awk -v module="$module" '$1 == module && $2 ~ /^v/ { print $2; exit }' "$CLUSTER_HOME/go/go.mod"
}

image_name() { echo "skillet.dev/cluster/$1:$(part_version "$1")"; }

# Programs that do not know their version call themselves v0.0.0, and version checks go wrong.
version_flags() {
  local version major minor at
  version="$(part_version kubernetes)"
  IFS=. read -r major minor _ <<<"${version#v}"
  for at in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf -- '-X %s ' "$at.gitVersion=$version" "$at.gitMajor=$major" "$at.gitMinor=$minor" "$at.gitTreeState=clean"
  done
  printf -- '-X %s ' "github.com/containerd/containerd/v2/version.Version=$(part_version containerd)" \
    "helm.sh/helm/v4/internal/version.version=$(part_version helm)" \
    "github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=$(part_version cni)"
}

# go_command CGO VERB ARGUMENT...: the same flags for each verb, or go would take the packages for others.
# Nobody debugs these programs: without DWARF the compiler has less to do, and the cache is a quarter smaller.
go_command() {
  local cgo=$1 verb=$2
  shift 2
  env GOFLAGS= GOWORK=off CGO_ENABLED="$cgo" go -C "$CLUSTER_HOME/go" "$verb" -mod=readonly -trimpath -buildvcs=false \
    -gcflags=all=-dwarf=false "$@"
}

# C code is linked statically: it starts faster than with shared libraries, and the cache does not depend on those.
C_FLAGS=(-tags "seccomp netgo osusergo" -ldflags "-s -w -linkmode external -extldflags -static")
GO_FLAGS=(-tags "no_btrfs no_devmapper no_zfs" -ldflags "-s -w $(version_flags)")

# compile_programs FOLDER: all programs into the folder.
compile_programs() {
  local out=$1 entry
  go_command 1 build -v "${C_FLAGS[@]}" -o "$out/" "${C_PACKAGES[@]}"
  go_command 0 build -v "${GO_FLAGS[@]}" -o "$out/" "${GO_PACKAGES[@]}"
  for entry in "${LINKS[@]}"; do ln -s "${entry#*:}" "$out/${entry%%:*}"; done
}
