#!/usr/bin/env bash
# Installs Skillet by its chart in the cluster, from the images in target/images, and waits until it answers.
# `build` makes cluster and images, side by side; `load` brings the images into the cluster, `up` does that and installs or upgrades,
# `down` uninstalls. It is not how a user installs: that is charts/skillet/README.md.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root
readonly release=skillet namespace=skillet-system

# A number that changes with any image, so that the Deployment is rolled when only an image's content is new.
images_digest() {
  sha256sum "$root/target/images/images.json" | cut -c1-16
}

# The cluster's programs and ours have nothing in common: while one is fetched or linked, the other is compiled.
build() {
  local images
  "$root/sandbox-images/build.sh" &
  images=$!
  # The images' script says by itself what is wrong.
  "$root/e2e/cluster/cluster.sh" up || { wait "$images"; exit 1; }
  wait "$images"
}

images_profile() {
  sed -n 's/.*"operator": .*"profile": "\([a-z]*\)".*/\1/p' "$root/target/images/images.json"
}

load_images() {
  local mark="$root/target/images/.loaded" cluster
  cluster=$(kubectl get namespace kube-system -o 'jsonpath={.metadata.uid}')
  if [[ -f $mark && $(<"$mark") == "$cluster $(images_digest)" ]]; then
    return
  fi
  "$root/e2e/cluster/cluster.sh" load-image "$root"/target/images/*.tar
  printf '%s' "$cluster $(images_digest)" >"$mark"
}

# Workspaces need a volume, which a cluster without a class of volumes has for this claim alone.
has_volume() {
  "$root/e2e/cluster/cluster.sh" volume "$namespace" "$release-workspaces"
  kubectl get persistentvolume "$namespace-$release-workspaces" >/dev/null 2>&1 ||
    kubectl get storageclass -o yaml | grep -q 'is-default-class: "true"'
}

up() {
  local workspaces=false
  load_images
  if has_volume; then workspaces=true; fi
  helm upgrade --install "$release" "$root/charts/skillet" --namespace "$namespace" --create-namespace \
    --set imageRegistry=skillet.dev --set "workspaces.enabled=$workspaces" --set-string "podAnnotations.skillet\.dev/images=$(images_digest)" --wait --timeout 300s >/dev/null
  kubectl --namespace "$namespace" rollout status "deployment/$release" --timeout 240s >/dev/null
  kubectl --namespace "$namespace" rollout status "deployment/$release-gateway" --timeout 240s >/dev/null
  if [[ $workspaces == true ]]; then kubectl --namespace "$namespace" rollout status "deployment/$release-workspaces" --timeout 240s >/dev/null; fi
  echo "deploy: Skillet $(helm list --namespace "$namespace" --filter "^$release\$" --output json |
    sed 's/.*"app_version":"\([^"]*\)".*/\1/') answers in namespace $namespace; its images have the profile $(images_profile)"
}

down() {
  helm uninstall "$release" --namespace "$namespace" --ignore-not-found --wait
}

if [[ ${1:-} == build ]]; then
  build
  exit
fi
environment=$("$root/e2e/cluster/cluster.sh" env)
eval "$environment"
case ${1:-} in
  load) load_images ;;
  up) up ;;
  down) down ;;
  *)
    echo "usage: e2e/deploy.sh build|load|up|down" >&2
    exit 2
    ;;
esac
