# shellcheck shell=sh
# Runs a program and prints how it ended. Arguments: time limit in ms, most bytes of the printed JSON, program, its arguments.
limit_ms=$1 most=$2
shift 2
# A date without nanoseconds writes a letter for them, and a sandbox has no /proc/uptime.
now() {
    nanoseconds=$(date +%s%N)
    case $nanoseconds in
        *[!0-9]*) echo "$(date +%s)000" ;;
        *) echo $((nanoseconds / 1000000)) ;;
    esac
}
start=$(now)
touch .running
"$@" >.stdout 2>.stderr </dev/null &
pid=$!
(
    sleep "$(awk -v ms="$limit_ms" 'BEGIN { printf "%.3f", ms / 1000 }')"
    [ -e .running ] && : >.killed && kill -9 "$pid"
) >/dev/null 2>&1 &
watch=$!
wait "$pid"
code=$?
rm -f .running
kill "$watch" 2>/dev/null
killed=false
[ -e .killed ] && killed=true
head -c 1000000 .stdout >.out
head -c 1000000 .stderr >.err
cut=false
[ "$(wc -c <.stdout)" -le 1000000 ] && [ "$(wc -c <.stderr)" -le 1000000 ] || cut=true
jq -cn --arg command "$1" --argjson code "$code" --argjson killed "$killed" --argjson cut "$cut" --argjson most "$most" \
    --argjson ms "$(($(now) - start))" --rawfile out .out --rawfile err .err '
    def cut($n): {
        success: ($code == 0 and ($killed | not)), command: $command, args: $ARGS.positional[1:], image: "shell",
        exitCode: (if $killed then null else $code end),
        stdout: $out[:$n], stderr: $err[:$n], output: $out[:$n],
        truncated: ($cut or ($out | length) > $n or ($err | length) > $n), durationMs: $ms, killed: $killed };
    def fit($n): cut($n) | if $n == 0 or (tojson | utf8bytelength) <= $most then . else fit($n / 2 | floor) end;
    fit(100000)' --args -- "$@"
