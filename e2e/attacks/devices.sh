# attack: open every device there is
for device in /dev/* /dev/*/*; do
    case $device in
        /dev/shm* | /dev/fd* | /dev/std* | /dev/null | /dev/zero | /dev/full | /dev/random | /dev/urandom) continue ;;
    esac
    [ -d "$device" ] && continue
    if (: <"$device") 2>/dev/null; then echo "read $device"; exit 1; fi
    if (: >"$device") 2>/dev/null; then echo "wrote $device"; exit 1; fi
done
exit 0
