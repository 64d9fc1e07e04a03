# attack: run a program of scratch through the dynamic loader
# level: strict
import glob, os, shutil, subprocess, sys

loaders = glob.glob("/lib64/ld-*.so*") + glob.glob("/lib/ld-*.so*") + glob.glob("/lib/*/ld-*.so*")
copy = os.path.join(os.environ["TMPDIR"], "copy")
shutil.copy(os.path.realpath(sys.executable), copy)
os.chmod(copy, 0o755)
possible = [loader for loader in loaders if subprocess.run([loader, copy, "-c", ""], capture_output=True).returncode == 0]
library = os.path.join(os.environ["TMPDIR"], "library.so")
for source in glob.glob("/lib/*/libm.so.6") + glob.glob("/usr/lib/*/libm.so.6"):
    shutil.copy(os.path.realpath(source), library)
    import ctypes
    try:
        ctypes.CDLL(library)
        possible.append("dlopen")
    except OSError:
        pass
    if subprocess.run([sys.executable, "-c", ""], env={"LD_PRELOAD": library}, capture_output=True).stderr == b"":
        possible.append("LD_PRELOAD")
print("\n".join(possible) or f"{len(loaders)} loaders refused")
sys.exit(1 if possible else 0)
