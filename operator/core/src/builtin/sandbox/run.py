# Runs Python code and prints how it ended. Arguments: time limit in ms, most bytes of the printed JSON, code.
import json, os, subprocess, sys, threading, time

# Most characters of a stream that are printed, and so most bytes of it that are kept. The code may print more than there is
# memory for.
LONGEST = 100000
MOST_KEPT = 4 * LONGEST
# Seconds for what lies in the pipes when the code has ended: its own children may keep them open for as long as they like.
AFTER_END = 0.5

class Reader(threading.Thread):
    """Reads a stream to its end, and keeps its beginning."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream, self.kept, self.is_cut = stream, bytearray(), False
        self.start()

    def run(self):
        while part := self.stream.read(1 << 16):
            room = MOST_KEPT - len(self.kept)
            self.kept += part[:room]
            self.is_cut = self.is_cut or len(part) > room

    def text(self):
        return bytes(self.kept).decode("utf-8", "replace")

limit_ms, most, code = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
start = time.monotonic()
child, is_late = None, threading.Event()

def stop():
    is_late.set()
    if child:
        child.kill()

# Before the code, which may leave no room for another thread.
ends = [os.pipe(), os.pipe()]
streams = [Reader(os.fdopen(end, "rb", 0)) for end, _ in ends]
timer = threading.Timer(limit_ms / 1000, stop)
timer.start()
stdout, stderr = [end for _, end in ends]
child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
for end in (stdout, stderr):
    os.close(end)
status = child.wait()
timer.cancel()
killed = is_late.is_set() and status == -9
exit_code = None if killed else status if status >= 0 else 128 - status
until = time.monotonic() + AFTER_END
for stream in streams:
    stream.join(max(until - time.monotonic(), 0))
(out, err), kept = [stream.text() for stream in streams], LONGEST
is_cut = any(stream.is_cut for stream in streams)
while True:
    cut_out, cut_err = out[:kept], err[:kept]
    truncated = is_cut or len(cut_out) < len(out) or len(cut_err) < len(err)
    result = json.dumps({
        "success": exit_code == 0, "language": "python", "image": "python", "exitCode": exit_code,
        "stdout": cut_out, "stderr": cut_err, "output": cut_out, "truncated": truncated,
        "durationMs": int((time.monotonic() - start) * 1000), "killed": killed,
    })
    if len(result) <= most or kept == 0:
        break
    kept //= 2
print(result)
