# attack: reach the parts of the kernel that no skill needs
import ctypes, fcntl, os, socket, sys

libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
CALLS = {
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "fanotify_init": (300, 262),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "acct": (163, 89), "syslog": (103, 116), "swapon": (167, 224),
    "swapoff": (168, 225), "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "quotactl": (179, 60), "vhangup": (153, 58), "lookup_dcookie": (212, 18),
    "quotactl_fd": (443, 443), "process_madvise": (440, 440), "process_mrelease": (448, 448),
}
if x86:
    CALLS |= {"iopl": (172, 0), "ioperm": (173, 0), "modify_ldt": (154, 0), "uselib": (134, 0), "ustat": (136, 0),
              "sysfs": (139, 0), "_sysctl": (156, 0), "nfsservctl": (180, 0)}
possible = []
for name, numbers in CALLS.items():
    # Without sensible arguments, so that a call that gets through does no harm: it then fails for another reason.
    value = libc.syscall(numbers[0 if x86 else 1], 0, 0, 0, 0, 0, 0)
    if value >= 0 or ctypes.get_errno() not in (1, 38):
        possible.append(f"{name}: {os.strerror(ctypes.get_errno())}")
for persona in (0x0040000, 0x0400000, 0x0100000, 0x4):  # no randomisation, readable means executable, mmap page zero, ...
    if libc.personality(persona) != -1:
        possible.append(f"personality {persona:#x}")
pair = socket.socketpair()[0]
for name, request in {"SIOCGIFCONF": 0x8912, "SIOCGIFADDR": 0x8915, "SIOCSIFADDR": 0x8916, "TIOCSTI": 0x5412,
                      "TIOCLINUX": 0x541C}.items():
    try:
        fcntl.ioctl(pair, request, bytes(64))
        possible.append(name)
    except OSError as error:
        if error.errno != 1:
            possible.append(f"{name}: {error.strerror}")
print("\n".join(possible))
sys.exit(1 if possible else 0)
