# attack: stop the runner with every signal, from a process, a thread, a forged sender and a child's end
import ctypes, os, signal, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
SIGQUEUEINFO, TGSIGQUEUEINFO, PIDFD_OPEN, PIDFD_SEND = {
    "x86_64": (129, 297, 434, 424),
    "aarch64": (138, 240, 434, 424),
}[os.uname().machine]
runner = os.getppid()
SI_QUEUE, SI_USER = -1, 0
for number in range(1, 65):
    try:
        os.kill(runner, number)
    except OSError:
        pass
    for code in (SI_QUEUE, SI_USER, 1, -60):
        # signal, error, code, padding, sender's pid and uid: as if sent from outside.
        information = struct.pack("iiiiii", number, 0, code, 0, 0, 0) + bytes(104)
        libc.syscall(SIGQUEUEINFO, runner, number, information)
        libc.syscall(TGSIGQUEUEINFO, runner, runner, number, information)
    descriptor = libc.syscall(PIDFD_OPEN, runner, 0)
    if descriptor >= 0:
        libc.syscall(PIDFD_SEND, descriptor, number, None, 0)
        os.close(descriptor)
for group in (0, -runner):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        os.kill(group, signal.SIGTERM)
    except OSError:
        pass
# Still here, and the runner with us: it has neither ended nor begun to end the program.
os.stat(f"/proc/{runner}")
print("the runner is deaf")
