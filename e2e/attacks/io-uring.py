# attack: make system calls where no filter sees them
import ctypes, sys

libc = ctypes.CDLL(None, use_errno=True)
parameters = ctypes.create_string_buffer(120)
for entries in (1, 8, 4096):
    if libc.syscall(425, entries, parameters) >= 0:
        sys.exit("io_uring_setup")
for number in (426, 427):
    libc.syscall(number, 0, 0, 0, 0, 0, 0)
    if ctypes.get_errno() != 1:
        sys.exit(f"call {number} is not refused")
