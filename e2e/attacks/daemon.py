# attack: leave a daemon behind that holds the outputs and ignores signals
import os, signal, time

for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        for number in range(1, 32):
            try:
                signal.signal(number, signal.SIG_IGN)
            except OSError:
                pass
        while True:
            time.sleep(1)
print("left")
