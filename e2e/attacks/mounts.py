# attack: mount, move, or open what lies beneath mounts
import ctypes, os, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
MOUNT, UMOUNT, PIVOT, CHROOT, NAME_TO_HANDLE, OPEN_BY_HANDLE = {
    "x86_64": (165, 166, 155, 161, 303, 304),
    "aarch64": (40, 39, 41, 51, 264, 265),
}[os.uname().machine]
OPEN_TREE, MOVE_MOUNT, FSOPEN, FSPICK, SETATTR, OPEN_TREE_ATTR = 428, 429, 430, 433, 442, 467
scratch = os.environ["TMPDIR"].encode()
AT_FDCWD = -100
handle = struct.pack("Ii", 128, 0) + bytes(128)
possible = []
for name, arguments in {
    "mount tmpfs": (MOUNT, b"none", scratch, b"tmpfs", 0, None),
    "bind mount": (MOUNT, b"/", scratch, None, 4096, None),
    "remount scratch with exec": (MOUNT, None, b"/dev/shm", None, 4096 | 32, None),
    "mount proc": (MOUNT, b"proc", scratch, b"proc", 0, None),
    "umount": (UMOUNT, b"/dev/termination-log", 2),
    "pivot_root": (PIVOT, scratch, scratch),
    "chroot": (CHROOT, scratch),
    "open_tree": (OPEN_TREE, AT_FDCWD, b"/", 1),
    "open_tree_attr": (OPEN_TREE_ATTR, AT_FDCWD, b"/", 1, None, 0),
    "move_mount": (MOVE_MOUNT, AT_FDCWD, b"/usr", AT_FDCWD, scratch, 0),
    "fsopen": (FSOPEN, b"tmpfs", 0),
    "fspick": (FSPICK, AT_FDCWD, b"/", 0),
    "mount_setattr": (SETATTR, AT_FDCWD, b"/dev/shm", 0, struct.pack("4Q", 0, 8, 0, 0), 32),
    "name_to_handle_at": (NAME_TO_HANDLE, AT_FDCWD, b"/", ctypes.create_string_buffer(handle), ctypes.byref(ctypes.c_int()), 0),
    "open_by_handle_at": (OPEN_BY_HANDLE, AT_FDCWD, ctypes.create_string_buffer(handle), 0),
}.items():
    if libc.syscall(*arguments) >= 0:
        possible.append(name)
for name in ("null2", "sda"):
    for kind, device in ((0o20666, os.makedev(1, 1)), (0o60666, os.makedev(254, 0))):
        try:
            os.mknod(os.path.join(os.environ["TMPDIR"], name), kind, device)
            possible.append(f"mknod {kind:o}")
        except OSError:
            pass
print("\n".join(possible))
sys.exit(1 if possible else 0)
