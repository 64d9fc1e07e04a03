# attack: read, forge or replace the receipt the runner leaves
import os, sys

log = "/dev/termination-log"
possible = []


def tries(what, attempt):
    try:
        attempt()
        possible.append(what)
    except OSError:
        pass


for mode in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_TRUNC):
    tries(f"open {mode:#x}", lambda: os.open(log, mode))
scratch = os.environ["TMPDIR"]
tries("unlink", lambda: os.unlink(log))
tries("rename", lambda: os.rename(log, os.path.join(scratch, "taken")))
tries("replace", lambda: os.rename(scratch, log))
tries("link", lambda: os.link(log, os.path.join(scratch, "linked")))
tries("truncate", lambda: os.truncate(log, 0))
os.symlink(log, os.path.join(scratch, "pointer"))
tries("open through a link", lambda: os.open(os.path.join(scratch, "pointer"), os.O_WRONLY))
tries("open through the root link", lambda: os.open(f"/proc/self/root{log}", os.O_WRONLY))
tries("open through another", lambda: os.open(f"/proc/1/root{log}", os.O_WRONLY))
reference = os.open(log, os.O_PATH)
tries("open again", lambda: os.open(f"/proc/self/fd/{reference}", os.O_WRONLY))
print("\n".join(possible))
sys.exit(1 if possible else 0)
