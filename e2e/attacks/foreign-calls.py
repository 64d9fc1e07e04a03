# attack: call the kernel by the numbers of another architecture
import ctypes, mmap, os, platform, signal, sys

if platform.machine() != "x86_64":
    sys.exit(0)
libc = ctypes.CDLL(None, use_errno=True)
X32 = 0x40000000
for number, arguments in ((41, (2, 1, 0)), (272, (0x10000000,)), (319, (b"x", 0)), (39, ())):
    if libc.syscall(X32 | number, *arguments) >= 0 or ctypes.get_errno() != 38:
        sys.exit(f"x32 call {number}")
# socketcall by the 32-bit door: mov eax, 102; mov ebx, 1; xor ecx, ecx; int 0x80; ret
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\xb8\x66\0\0\0\xbb\x01\0\0\0\x31\xc9\xcd\x80\xc3")
child = os.fork()
if child == 0:
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if status not in (-signal.SIGSYS, -signal.SIGSEGV):
    sys.exit(f"int 0x80 ended with {status}")
