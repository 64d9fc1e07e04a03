# attack: write one file larger than the limit for one file
import os, resource, signal, sys

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
file = os.open(os.path.join(os.environ["TMPDIR"], "large"), os.O_WRONLY | os.O_CREAT)
try:
    os.pwrite(file, b"x", limit)
    sys.exit("it grew")
except OSError as error:
    print(error.strerror)
try:
    os.ftruncate(file, limit + 1)
    sys.exit("it was stretched")
except OSError as error:
    print(error.strerror)
