# shellcheck shell=bash
# Makes an image (an OCI layout in a tar) of a folder, without a registry or an engine.
# Only what the cluster itself needs: images of one layer.

image_architecture() {
  case "$(uname -m)" in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
  esac
}

# add_blob LAYOUT FILE: moves the file into the layout; prints "digest size".
add_blob() {
  local digest size
  digest="$(sha256sum "$2" | cut -d' ' -f1)"
  size="$(stat -c %s "$2")"
  mv "$2" "$1/blobs/sha256/$digest"
  echo "sha256:$digest $size"
}

# make_image NAME FOLDER TAR ENTRYPOINT_JSON
# The same folder gives the same image: times and owners are set.
make_image() {
  local name=$1 rootfs=$2 tar=$3 entrypoint=$4 layout layer config manifest
  layout="$(mktemp -d)"
  mkdir -p "$layout/blobs/sha256"
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$rootfs" -cf "$layout/layer" .
  layer="$(add_blob "$layout" "$layout/layer")"

  printf '{"architecture":"%s","os":"linux","config":{"Entrypoint":%s,"WorkingDir":"/"},"rootfs":{"type":"layers","diff_ids":["%s"]}}' \
    "$(image_architecture)" "$entrypoint" "${layer% *}" >"$layout/config"
  config="$(add_blob "$layout" "$layout/config")"

  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"%s","size":%s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"%s","size":%s}]}' \
    "${config% *}" "${config#* }" "${layer% *}" "${layer#* }" >"$layout/manifest"
  manifest="$(add_blob "$layout" "$layout/manifest")"

  printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"%s","size":%s,"annotations":{"io.containerd.image.name":"%s","org.opencontainers.image.ref.name":"%s"}}]}' \
    "${manifest% *}" "${manifest#* }" "$name" "${name##*:}" >"$layout/index.json"
  printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$layout" -cf "$tar" oci-layout index.json blobs
  rm -rf "$layout"
}
