# attack: read or write the runner's memory, descriptors, environment and working directory
import ctypes, os, sys

libc = ctypes.CDLL(None, use_errno=True)
PTRACE, READV, WRITEV, PIDFD_OPEN, PIDFD_GETFD, KCMP, MADVISE, MRELEASE = {
    "x86_64": (101, 310, 311, 434, 438, 312, 440, 448),
    "aarch64": (117, 270, 271, 434, 438, 272, 440, 448),
}[os.uname().machine]
runner = os.getppid()
possible = []
for name in ("mem", "maps", "smaps", "environ", "auxv", "stack", "syscall", "io", "clear_refs", "pagemap", "personality"):
    for mode in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
        try:
            # Some open for anyone and tell nothing; what counts is what they hold.
            if os.read(os.open(f"/proc/{runner}/{name}", mode), 64):
                possible.append(f"/proc/{runner}/{name}")
        except OSError:
            pass
for name in ("exe", "cwd", "root"):
    try:
        possible.append(f"/proc/{runner}/{name} is {os.readlink(f'/proc/{runner}/{name}')}")
    except OSError:
        pass
for name in ("fd", "fdinfo", "map_files", "task/1/fd"):
    try:
        possible += [f"/proc/{runner}/{name}/{entry}" for entry in os.listdir(f"/proc/{runner}/{name}")]
    except OSError:
        pass
for number in range(16):
    for mode in (os.O_RDONLY, os.O_WRONLY):
        try:
            os.open(f"/proc/{runner}/fd/{number}", mode | os.O_NONBLOCK)
            possible.append(f"descriptor {number}")
        except OSError:
            pass
buffer = ctypes.create_string_buffer(64)
vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 64)
for request in (16, 0x4206):  # ATTACH, SEIZE
    if libc.syscall(PTRACE, request, runner, 0, 0) == 0:
        possible.append(f"ptrace {request:#x}")
for name, number in (("process_vm_readv", READV), ("process_vm_writev", WRITEV)):
    if libc.syscall(number, runner, vector, 1, vector, 1, 0) >= 0 or ctypes.get_errno() != 1:
        possible.append(name)
descriptor = libc.syscall(PIDFD_OPEN, runner, 0)
if descriptor >= 0:
    for number in range(8):
        if libc.syscall(PIDFD_GETFD, descriptor, number, 0) >= 0:
            possible.append(f"pidfd_getfd {number}")
    if libc.syscall(MADVISE, descriptor, vector, 1, 20, 0) >= 0:
        possible.append("process_madvise")
    if libc.syscall(MRELEASE, descriptor, 0) >= 0:
        possible.append("process_mrelease")
if libc.syscall(KCMP, os.getpid(), runner, 0, 0, 0) >= 0:
    possible.append("kcmp")
print("\n".join(possible))
sys.exit(1 if possible else 0)
