# shellcheck shell=bash
# Reads the Dockerfiles of this folder, so that they are the one definition of an image whether an engine builds it or we do.
# Only the form that these files have is understood; anything else is an error, never a guess.

# read_dockerfile FILE IMAGE LABEL=VALUE...: sets
#   DOCKER_BASE      yes where the image has a root filesystem of packages
#   DOCKER_FILES     "source destination" of every file that is copied in
#   DOCKER_CONFIG    the image's config as JSON, with the labels given beside its own
# shellcheck disable=SC2034 # they are used by the caller
read_dockerfile() {
  local file=$1 image=$2 stage="" line number=0 instruction rest label
  local -a env=() labels=() fields=()
  shift 2
  for label in "$@"; do labels+=("\"${label%%=*}\":\"${label#*=}\""); done
  DOCKER_BASE=no
  DOCKER_FILES=()
  while IFS= read -r line || [[ -n "$line" ]]; do
    number=$((number + 1))
    [[ -n "$line" && "$line" != '#'* ]] || continue
    instruction=${line%% *} rest=${line#* }
    case "$stage:$line" in
      ":FROM debian:trixie-slim AS rootfs") stage=rootfs ;;
      ":FROM scratch" | "made:FROM scratch") stage=image ;;
      "rootfs:COPY sandbox-images /build") stage=copied ;;
      "copied:RUN /build/rootfs.sh $image /rootfs") stage=made ;;
      "copied:RUN apt-get update && apt-get install --yes ca-certificates && /build/rootfs.sh $image /rootfs") stage=made ;;
      "image:COPY --from=rootfs /rootfs /") DOCKER_BASE=yes ;;
      "image:COPY --chmod=0755 "*) DOCKER_FILES+=("${rest#* }") ;;
      "image:ENV "*) env+=("\"${rest//\"/}\"") ;;
      "image:LABEL "*=*) labels+=("\"${rest%%=*}\":${rest#*=}") ;;
      "image:USER "*) fields+=("\"User\":\"$rest\"") ;;
      "image:WORKDIR "*) fields+=("\"WorkingDir\":\"$rest\"") ;;
      "image:ENTRYPOINT ["*"]") fields+=("\"Entrypoint\":$rest") ;;
      "image:CMD ["*"]") fields+=("\"Cmd\":$rest") ;;
      *) die "$file:$number: $instruction in this place or form is not understood: $line" ;;
    esac
  done <"$file"
  [[ "$stage" == image ]] || die "$file: there is no 'FROM scratch'"
  ((${#env[@]} == 0)) || fields+=("\"Env\":[$(join_json "${env[@]}")]")
  ((${#labels[@]} == 0)) || fields+=("\"Labels\":{$(join_json "${labels[@]}")}")
  DOCKER_CONFIG="{$(join_json "${fields[@]}")}"
}
