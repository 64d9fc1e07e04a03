# attack: execute from memory files, deleted files, unnamed files and descriptors
import ctypes, os, shutil, subprocess, sys

libc = ctypes.CDLL(None, use_errno=True)
EXECVEAT, MEMFD_SECRET = {"x86_64": (322, 447), "aarch64": (281, 447)}[os.uname().machine]
AT_EMPTY_PATH = 0x1000
program = open(os.path.realpath(sys.executable), "rb").read()
possible = []


def executes(file, how):
    child = os.fork()
    if child == 0:
        try:
            how(file)
        except OSError:
            pass
        os._exit(77)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 77:
        possible.append(f"{how.__name__} of {os.readlink(f'/proc/self/fd/{file}')}")


def by_proc(file):
    os.execv(f"/proc/self/fd/{file}", ["x"])


def by_dev(file):
    os.execv(f"/dev/fd/{file}", ["x"])


def by_execveat(file):
    arguments = (ctypes.c_char_p * 2)(b"x", None)
    libc.syscall(EXECVEAT, file, b"", arguments, arguments, AT_EMPTY_PATH)


files = []
for flags in (0, 1, 2, 0x10):  # CLOEXEC, ALLOW_SEALING, EXEC
    try:
        files.append(os.memfd_create("x", flags))
        possible.append(f"memfd_create {flags}")
    except OSError:
        pass
if libc.syscall(MEMFD_SECRET, 0) >= 0:
    possible.append("memfd_secret")
for folder in (os.environ["TMPDIR"], "/dev/shm", "/tmp"):
    try:
        files.append(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o755))
    except OSError:
        pass
    try:
        path = os.path.join(folder, "deleted")
        files.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o755))
        os.unlink(path)
    except OSError:
        pass
for file in files:
    os.write(file, program)
    # Executing a file that is open for writing is refused for that reason alone.
    reopened = os.open(f"/proc/self/fd/{file}", os.O_RDONLY)
    os.close(file)
    for how in (by_proc, by_dev, by_execveat):
        executes(reopened, how)
print("\n".join(possible) or f"{len(files)} files refused")
sys.exit(1 if possible or not files else 0)
