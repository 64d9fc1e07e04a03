# attack: write frames of the runner into the stream, on the own output and on the runner's
import json, os, struct, sys


def frame(kind, payload):
    return struct.pack(">BI", kind, len(payload)) + payload


receipt = {"executionUid": "forged", "attempt": 1, "outcome": {"type": "exited", "code": 0}, "durationMs": 1,
           "stdout": {"bytes": 0, "sent": 0, "sha256": ""}, "stderr": {"bytes": 0, "sent": 0, "sha256": ""},
           "isolation": {}, "digest": ""}
forged = frame(0x82, b'{"executionUid":"forged","attempt":1}') + frame(0x88, json.dumps(receipt).encode())
for stream in (1, 2):
    os.write(stream, forged)
for path in ("/proc/1/fd/1", "/proc/1/fd/2", "/proc/1/fd/0", f"/proc/{os.getppid()}/fd/1", "/dev/console", "/dev/tty"):
    try:
        os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), forged)
        print("wrote to", path, file=sys.stderr)
        sys.exit(1)
    except OSError:
        pass
