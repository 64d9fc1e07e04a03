# shellcheck shell=bash
# Layers and images as files: an OCI layout in a tar, with nothing but tar, zstd and sha256sum.
# The same files give the same bytes: entries are sorted, owners and times are set.

DETERMINISTIC=(--sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=posix "--pax-option=delete=atime,delete=ctime")

sha256_of() { sha256sum "$1" | cut -d' ' -f1; }

image_architecture() {
  case "$(uname -m)" in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
  esac
}

# layer_level BYTES: how hard zstd tries. A release is small; what goes into a local cluster is ready soon.
layer_level() {
  if [[ "${SKILLET_PROFILE:-dev}" != release ]]; then
    echo 3
  elif (($1 < 200000000)); then
    echo 19
  else
    # A browser is three times as large as the next image: 66 seconds would make it 10 % smaller than 5 do.
    echo 9
  fi
}

# make_layer ROOT OUT: writes OUT/layer.tar.zst, and OUT/layer with "digest size diff_id unpacked_size".
make_layer() {
  local root=$1 out=$2 tar
  tar="$out/layer.tar"
  tar "${DETERMINISTIC[@]}" -C "$root" -cf "$tar" .
  # The number of threads does not change what zstd writes, as long as it is not asked for a single one.
  zstd -q "-$(layer_level "$(stat -c %s "$tar")")" -T0 -f "$tar" -o "$tar.zst"
  printf 'sha256:%s %s sha256:%s %s\n' "$(sha256_of "$tar.zst")" "$(stat -c %s "$tar.zst")" \
    "$(sha256_of "$tar")" "$(stat -c %s "$tar")" >"$out/layer"
  rm "$tar"
}

# add_blob LAYOUT FILE: copies the file into the layout; prints "digest size".
add_blob() {
  local digest
  digest="$(sha256_of "$2")"
  # A hard link where it can be: a base layer is large and its cache is often on the same disk.
  ln "$2" "$1/blobs/sha256/$digest" 2>/dev/null || cp "$2" "$1/blobs/sha256/$digest"
  echo "sha256:$digest $(stat -c %s "$2")"
}

# join_json ITEM...: the items with commas between them.
join_json() {
  local IFS=,
  echo "$*"
}

# write_image REF TAR CONFIG_JSON LAYER_FOLDER...: the image as a tar. Prints "manifest_digest bytes unpacked_bytes".
write_image() {
  local ref=$1 tar=$2 config_json=$3 layout folder digest size diff unpacked bytes=0 unpacked_bytes=0 config manifest
  local -a layers=() diffs=()
  shift 3
  layout="$(mktemp -d "$(dirname "$tar")/.layout.XXXXXX")"
  mkdir -p "$layout/blobs/sha256"

  for folder in "$@"; do
    read -r digest size diff unpacked <"$folder/layer"
    add_blob "$layout" "$folder/layer.tar.zst" >/dev/null
    layers+=("{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+zstd\",\"digest\":\"$digest\",\"size\":$size}")
    diffs+=("\"$diff\"")
    bytes=$((bytes + size))
    unpacked_bytes=$((unpacked_bytes + unpacked))
  done

  printf '{"created":"1970-01-01T00:00:00Z","architecture":"%s","os":"linux","config":%s,"rootfs":{"type":"layers","diff_ids":[%s]}}' \
    "$(image_architecture)" "$config_json" "$(join_json "${diffs[@]}")" >"$layout/config"
  config="$(add_blob "$layout" "$layout/config")"

  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"%s","size":%s},"layers":[%s]}' \
    "${config% *}" "${config#* }" "$(join_json "${layers[@]}")" >"$layout/manifest"
  manifest="$(add_blob "$layout" "$layout/manifest")"

  # containerd takes the image's name from its own annotation, other tools from the standard one.
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"%s","size":%s,"annotations":{"io.containerd.image.name":"%s","org.opencontainers.image.ref.name":"%s"}}]}' \
    "${manifest% *}" "${manifest#* }" "$ref" "${ref##*:}" >"$layout/index.json"
  printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
  chmod -R u=rwX,go=rX "$layout"
  tar "${DETERMINISTIC[@]}" --hard-dereference -C "$layout" -cf "$tar.new" oci-layout index.json blobs
  rm -rf "$layout"
  mv "$tar.new" "$tar"
  echo "${manifest% *} $bytes $unpacked_bytes"
}
