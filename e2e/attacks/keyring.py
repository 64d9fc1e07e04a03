# attack: use the kernel's keys, which are not of this sandbox alone
import ctypes, os, sys

libc = ctypes.CDLL(None, use_errno=True)
ADD, REQUEST, CONTROL = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[os.uname().machine]
possible = []
for keyring in (-1, -2, -3, -4, -5):
    if libc.syscall(ADD, b"user", b"attack", b"x", 1, keyring) >= 0:
        possible.append(f"add_key {keyring}")
    for command in range(32):
        if libc.syscall(CONTROL, command, keyring, 0, 0, 0) >= 0:
            possible.append(f"keyctl {command} {keyring}")
if libc.syscall(REQUEST, b"user", b"attack", None, -2) >= 0:
    possible.append("request_key")
print("\n".join(possible))
sys.exit(1 if possible else 0)
