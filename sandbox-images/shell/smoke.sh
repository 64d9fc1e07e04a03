# shellcheck shell=sh
# Runs inside the shell image: the commands that the README promises, with their results.
set -eu
expect() { [ "$2" = "$3" ] || { echo "$1: expected $3, got $2" >&2; exit 1; }; }

expect sh "$((6 * 7))" 42
expect awk "$(printf 'a 1\nb 2\n' | awk '{ n += $2 } END { print n }')" 3
expect sed "$(echo abc | sed 's/b/x/')" axc
expect grep "$(printf 'one\ntwo\n' | grep -c two)" 1
expect tr "$(echo abc | tr '[:lower:]' '[:upper:]')" ABC
expect sort "$(printf 'b\na\nb\n' | sort -u | tr -d '\n')" ab
expect sha256sum "$(printf '' | sha256sum | cut -c1-8)" e3b0c442
expect base64 "$(printf skillet | base64 | base64 -d)" skillet
expect gzip "$(echo deflated | gzip | gunzip)" deflated
expect jq "$(echo '{"items":[1,2,3]}' | jq '.items | add')" 6
expect "jq with a regular expression" "$(echo '"a-b"' | jq -r 'gsub("-"; "+")')" a+b
expect id "$(id -u):$(id -g)" 65532:65532
expect whoami "$(whoami)" sandbox

expect mktemp "$(dirname "$(mktemp)")" /dev/shm
for folder in / /etc /tmp /var/tmp /run; do
  if touch "$folder/x" 2>/dev/null; then echo "$folder can be written" >&2; exit 1; fi
done
echo "busybox: $(busybox | head -n 1 | cut -d' ' -f2), $(jq --version)"
