# attack: starve the runner of files, processor time or priority
import ctypes, os, resource, sys

libc = ctypes.CDLL(None, use_errno=True)
IOPRIO_SET, SETSCHEDULER, SETATTR, SETPARAM = {
    "x86_64": (251, 144, 314, 142),
    "aarch64": (30, 119, 274, 118),
}[os.uname().machine]
runner = os.getppid()
possible = []


def tries(what, attempt):
    try:
        attempt()
        possible.append(what)
    except OSError:
        pass


for name in ("RLIMIT_NOFILE", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_AS", "RLIMIT_NPROC", "RLIMIT_CORE"):
    number = getattr(resource, name)
    tries(name, lambda: resource.prlimit(runner, number, resource.getrlimit(number)))
    tries(f"reading {name}", lambda: resource.prlimit(runner, number))
tries("setpriority", lambda: os.setpriority(os.PRIO_PROCESS, runner, 19))
tries("setpriority of the group", lambda: os.setpriority(os.PRIO_PGRP, runner, 19))
tries("setpriority of the user", lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))
tries("setpriority of the user, by 0", lambda: os.setpriority(os.PRIO_USER, 0, 19))
tries("affinity", lambda: os.sched_setaffinity(runner, {0}))
buffer = ctypes.create_string_buffer(64)
if libc.syscall(SETSCHEDULER, runner, 5, buffer) == 0:
    possible.append("idle scheduling")
if libc.syscall(SETPARAM, runner, buffer) == 0:
    possible.append("scheduling parameters")
if libc.syscall(SETATTR, runner, buffer, 0) == 0:
    possible.append("scheduling attributes")
for which, who in ((1, runner), (2, runner), (3, os.getuid()), (3, 0)):
    if libc.syscall(IOPRIO_SET, which, who, 3 << 13) == 0:
        possible.append(f"io priority {which}")
# What every program does with itself still works.
os.setpriority(os.PRIO_PROCESS, 0, 19)
os.sched_setaffinity(0, os.sched_getaffinity(0))
print("\n".join(possible))
sys.exit(1 if possible else 0)
