# attack: change the address while the runner reads it, thousands of times
import ctypes, os, platform, socket, struct, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)
CONNECT = 42 if platform.machine() == "x86_64" else 203
allowed = socket.gethostbyname("allowed.example")
good = struct.pack("=H", 2) + struct.pack("!H", 80) + socket.inet_aton(allowed) + bytes(8)
variants = [
    struct.pack("=H", 2) + struct.pack("!H", 443) + socket.inet_aton(allowed) + bytes(8),
    struct.pack("=H", 2) + struct.pack("!H", 80) + socket.inet_aton("10.0.0.1") + bytes(8),
    struct.pack("=H", 1) + b"\0abstract" + bytes(5),
]
buffer = ctypes.create_string_buffer(good, 16)
stop, connections, refused = False, 0, 0


def flip():
    at = 0
    while not stop:
        ctypes.memmove(buffer, variants[at % len(variants)], 16)
        ctypes.memmove(buffer, good, 16)
        at += 1


threading.Thread(target=flip, daemon=True).start()
until, tries = time.monotonic() + 6, 0
while tries < 3000 and time.monotonic() < until:
    tries += 1
    with socket.socket() as made:
        if libc.syscall(CONNECT, made.fileno(), buffer, 16) == 0:
            connections += 1
            if made.getpeername() != (allowed, 80):
                sys.exit(f"connected to {made.getpeername()}")
        else:
            refused += 1
stop = True
# The test compares what the broker was asked for.
print(f"{connections} connections, {refused} refused")
print(f"{tries} attempts")
sys.exit(0 if connections else 1)
