# attack: make or enter a namespace of any kind
import ctypes, os, signal, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
CLONE, SETNS, UNSHARE = {"x86_64": (56, 308, 272), "aarch64": (220, 268, 97)}[os.uname().machine]
CLONE3 = 435
KINDS = {"mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000,
         "pid": 0x20000000, "net": 0x40000000, "time": 0x80}
possible = []


def in_child(what, attempt):
    child = os.fork()
    if child == 0:
        os._exit(1 if attempt() else 0)
    if os.waitpid(child, 0)[1] != 0:
        possible.append(what)


for name, flag in KINDS.items():
    for flags in (flag, flag | 0x10000000):
        in_child(f"unshare {name}", lambda: libc.syscall(UNSHARE, flags) == 0)
        if flag == 0x80:
            continue
        made = libc.syscall(CLONE, flags | signal.SIGCHLD, 0, 0, 0, 0)
        if made == 0:
            os._exit(0)
        if made > 0:
            possible.append(f"clone {name}")
            os.waitpid(made, 0)
    made = libc.syscall(CLONE3, struct.pack("11Q", flag, *[0] * 3, signal.SIGCHLD, *[0] * 6), 88)
    if made == 0:
        os._exit(0)
    if made > 0:
        possible.append(f"clone3 {name}")
for process in ("self", "1"):
    try:
        entries = os.listdir(f"/proc/{process}/ns")
    except OSError:
        continue
    for entry in entries:
        try:
            file = os.open(f"/proc/{process}/ns/{entry}", os.O_RDONLY)
        except OSError:
            continue
        in_child(f"setns {process} {entry}", lambda: libc.syscall(SETNS, file, 0) == 0)
print("\n".join(possible))
sys.exit(1 if possible else 0)
