# attack: map a file of scratch executable, at once, in two steps, shared or through /proc/self/map_files
# level: strict
import mmap, os, sys, ctypes

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
FAILED = ctypes.c_void_p(-1).value
file = os.open(os.path.join(os.environ["TMPDIR"], "code"), os.O_RDWR | os.O_CREAT, 0o755)
os.write(file, b"\xc3" * 4096)
READ, WRITE, EXEC = 1, 2, 4
possible = []
for sharing in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
    for protection in (READ | EXEC, READ | WRITE | EXEC, EXEC):
        if libc.mmap(None, 4096, protection, sharing, file, 0) != FAILED:
            possible.append(f"mmap {protection} {sharing}")
    address = libc.mmap(None, 4096, READ | WRITE, sharing, file, 0)
    assert address != FAILED, "scratch can be mapped at all"
    if libc.mprotect(address, 4096, READ | EXEC) == 0:
        possible.append(f"mprotect {sharing}")
print("\n".join(possible))
sys.exit(1 if possible else 0)
