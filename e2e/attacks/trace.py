# attack: trace, or be traced, to change what a process does after the rules were checked
import ctypes, os, sys

libc = ctypes.CDLL(None, use_errno=True)
PTRACE = {"x86_64": 101, "aarch64": 117}[os.uname().machine]
possible = []
child = os.fork()
if child == 0:
    os._exit(1 if libc.syscall(PTRACE, 0, 0, 0, 0) == 0 else 0)
if os.waitpid(child, 0)[1] != 0:
    possible.append("PTRACE_TRACEME")
child = os.fork()
if child == 0:
    import signal
    signal.pause()
for request in (16, 0x4206):
    if libc.syscall(PTRACE, request, child, 0, 0) == 0:
        possible.append(f"ptrace {request:#x}")
os.kill(child, 9)
for entry in os.listdir("/proc"):
    if entry.isdigit() and int(entry) not in (os.getpid(), child):
        if libc.syscall(PTRACE, 0x4206, int(entry), 0, 0) == 0:
            possible.append(f"ptrace of {entry}")
print("\n".join(possible))
sys.exit(1 if possible else 0)
