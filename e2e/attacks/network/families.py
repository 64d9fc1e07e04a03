# attack: make a real socket, of any family, type and protocol, with odd bits in the arguments
import ctypes, errno, os, platform, socket, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
SOCKET, SOCKETPAIR = (41, 53) if platform.machine() == "x86_64" else (198, 199)
possible, count = [], 0


def is_local(descriptor):
    # The peer of a local pair is the runner; an inet socket has none.
    with socket.socket(fileno=os.dup(descriptor), family=socket.AF_UNIX, type=socket.SOCK_STREAM) as made:
        return struct.unpack("3i", made.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0] == os.getppid()


def attempt(family, kind, protocol):
    global count
    count += 1
    made = libc.syscall(SOCKET, ctypes.c_ulong(family), ctypes.c_ulong(kind), ctypes.c_ulong(protocol))
    if made < 0:
        if ctypes.get_errno() not in (errno.EPERM, errno.EINVAL, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT, errno.ESOCKTNOSUPPORT):
            possible.append(f"socket({family:#x}, {kind:#x}, {protocol}): error {ctypes.get_errno()}")
        return
    is_inet = family & 0xFFFFFFFF in (socket.AF_INET, socket.AF_INET6)
    is_usual = is_inet and (kind & 0xF, protocol & 0xFFFFFFFF) in ((1, 0), (1, 6), (2, 0), (2, 17))
    if not is_usual or not is_local(made):
        possible.append(f"socket({family:#x}, {kind:#x}, {protocol})")
    os.close(made)


FLAGS = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
for family in range(64):
    if family == socket.AF_UNIX:
        continue
    for kind in (0, 1, 2, 3, 4, 5, 6, 10, 15):
        for protocol in (0, 1, 6, 17, 33, 58, 132, 136, 255, 262):
            attempt(family, kind, protocol)
for high in (1 << 32, 1 << 63, 0xDEADBEEF << 32):
    for family in (2, 10, 16, 17, 40):
        for kind in (1, 2, 3):
            attempt(family | high, kind, 0)
            attempt(family, kind | high, 0)
            attempt(family, kind, high)
            attempt(family | high, kind | FLAGS | high, 6 | high)
for kind in (0x11, 0x21, 0x101, 0x1001, 0x10001, 0x100001, 0x40000001, 0xFFFFFFF1):
    attempt(2, kind, 0)
for family in (2, 10, 16, 17, 1 << 32 | 2):
    count += 1
    pair = (ctypes.c_int * 2)()
    if libc.syscall(SOCKETPAIR, ctypes.c_ulong(family), 1, 0, pair) == 0:
        possible.append(f"socketpair({family:#x})")
print("\n".join(possible))
print(f"{count} attempts")
sys.exit(1 if possible else 0)
