# Runs Python code and prints how it ended. Arguments: time limit in ms, most bytes of the printed JSON, code.
import json, subprocess, sys, time

def text(data):
    return (data or b"").decode("utf-8", "replace")

limit_ms, most, code = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
start = time.monotonic()
killed = False
try:
    done = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_ms / 1000)
    exit_code, out, err = done.returncode if done.returncode >= 0 else 128 - done.returncode, text(done.stdout), text(done.stderr)
except subprocess.TimeoutExpired as late:
    killed, exit_code, out, err = True, None, text(late.stdout), text(late.stderr)
kept, truncated = 100000, False
while True:
    cut_out, cut_err = out[:kept], err[:kept]
    truncated = len(cut_out) < len(out) or len(cut_err) < len(err)
    result = json.dumps({
        "success": exit_code == 0, "language": "python", "image": "python", "exitCode": exit_code,
        "stdout": cut_out, "stderr": cut_err, "output": cut_out, "truncated": truncated,
        "durationMs": int((time.monotonic() - start) * 1000), "killed": killed,
    })
    if len(result) <= most or kept == 0:
        break
    kept //= 2
print(result)
