# attack: have more processes and threads than the limit, by fork, clone, vfork and threads
import os, signal, sys, threading

children = []
try:
    for _ in range(100_000):
        child = os.fork()
        if child == 0:
            signal.pause()
        children.append(child)
except BlockingIOError:
    pass
try:
    threading.Thread(target=signal.pause, daemon=True).start()
    print("a thread on top of", len(children), "processes")
    os._exit(1)
except RuntimeError:
    pass
for child in children:
    os.kill(child, signal.SIGKILL)
print(len(children) + 1, "processes at once")
sys.exit(0 if 1 < len(children) + 1 <= 256 else 1)
