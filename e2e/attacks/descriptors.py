# attack: use a descriptor that the runner left open
import os, stat, sys

possible = []
for name in os.listdir("/proc/self/fd"):
    try:
        target = os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        continue  # the listing itself
    if int(name) > 2 and not target.startswith(os.environ["HOME"]):
        possible.append(f"descriptor {name} is {target}")
    if int(name) <= 2 and not stat.S_ISFIFO(os.fstat(int(name)).st_mode):
        possible.append(f"descriptor {name} is {target}, not a pipe of its own")
print("\n".join(possible))
sys.exit(1 if possible else 0)
