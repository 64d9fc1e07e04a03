# attack: gain privileges from programs of the image that have them
before=$(id -u)
for program in su sudo mount passwd newgrp chsh gpasswd ping unshare nsenter; do
    path=$(command -v "$program" 2>/dev/null) || continue
    [ -u "$path" ] || continue
    "$path" --help >/dev/null 2>&1 </dev/null
done
[ "$(id -u)" = "$before" ] || exit 1
[ "$before" != 0 ] || exit 1
grep -q '^NoNewPrivs:[[:space:]]*1' /proc/self/status || { echo "new privileges are possible"; exit 1; }
for set in CapInh CapPrm CapEff CapBnd CapAmb; do
    grep -q "^$set:[[:space:]]*0000000000000000" /proc/self/status || { grep "^$set" /proc/self/status; exit 1; }
done
exit 0
