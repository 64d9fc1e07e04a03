# attack: make a file, folder, link, socket or pipe anywhere but in scratch, or change one that is there
import os, socket, stat, sys

possible = []
HARMLESS = {os.makedev(1, minor) for minor in (3, 5, 7, 8, 9)}


def tries(what, attempt):
    try:
        attempt()
        possible.append(what)
    except OSError:
        pass


def bind(path):
    socket.socket(socket.AF_UNIX).bind(path)


mounts = [line.split()[4] for line in open("/proc/self/mountinfo")]
folders = set(mounts) | {"/"}
for top in os.listdir("/"):
    folders.add("/" + top)
    if top not in ("proc", "sys") and os.path.isdir("/" + top):
        try:
            folders |= {f"/{top}/{name}" for name in os.listdir("/" + top)}
        except OSError:
            pass
folders |= {"/proc/self", "/proc/sys/kernel", "/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/kernel"}
for place in sorted(folders):
    # Scratch is for writing, and the outputs are the program's own pipes.
    if place.startswith("/dev/shm") or place in ("/dev/stdin", "/dev/stdout", "/dev/stderr"):
        continue
    try:
        status = os.stat(place)
    except OSError:
        continue
    if not stat.S_ISDIR(status.st_mode):
        if not (stat.S_ISCHR(status.st_mode) and status.st_rdev in HARMLESS):
            tries(f"write {place}", lambda: os.open(place, os.O_WRONLY))
        continue
    path = os.path.join(place, ".attack")
    tries(f"file {path}", lambda: os.open(path, os.O_WRONLY | os.O_CREAT))
    tries(f"folder {path}", lambda: os.mkdir(path))
    tries(f"link {path}", lambda: os.symlink("/", path))
    tries(f"pipe {path}", lambda: os.mkfifo(path))
    tries(f"socket {path}", lambda: bind(path))
    tries(f"unnamed {place}", lambda: os.open(place, os.O_TMPFILE | os.O_RDWR))
for path in ("/proc/self/oom_score_adj", "/proc/self/uid_map", "/proc/self/setgroups", "/proc/self/mem", "/proc/self/comm",
             "/proc/self/coredump_filter", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/1/oom_score_adj",
             "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory.max",
             "/sys/kernel/uevent_helper", "/etc/passwd", "/etc/hosts", "/etc/resolv.conf"):
    if os.path.exists(path):
        tries(f"write {path}", lambda: os.open(path, os.O_WRONLY))
print("\n".join(possible))
sys.exit(1 if possible else 0)
