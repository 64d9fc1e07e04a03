# attack: execute a copied program, a script, a link and a renamed file from scratch
program=$(command -v true)
[ -x /bin/busybox ] && program=/bin/busybox
for folder in . "$TMPDIR" "$HOME" /dev/shm /tmp /var/tmp /run; do
    copy=$folder/true
    cp "$program" "$copy" 2>/dev/null || continue
    chmod 755 "$copy"
    ln -s "$copy" "$folder/link" && mv "$copy" "$folder/renamed-$$" 2>/dev/null && cp "$program" "$copy"
    chmod 755 "$copy"
    for file in "$copy" "$folder/link" "$folder/renamed-$$"; do
        if "$file" 2>/dev/null; then echo "executed $file"; exit 1; fi
    done
    printf '#!/bin/sh\nexit 0\n' >"$folder/script"
    chmod 755 "$folder/script"
    # A shell runs a script itself when the kernel refuses; env does not.
    if env "$folder/script" 2>/dev/null; then echo "executed $folder/script"; exit 1; fi
done
exit 0
