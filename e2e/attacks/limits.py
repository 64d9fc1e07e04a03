# attack: raise each resource limit again
import os, resource, sys

possible = []
names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
for name in names:
    number = getattr(resource, name)
    soft, hard = resource.getrlimit(number)
    if hard == resource.RLIM_INFINITY:
        continue
    for wanted in (hard + 1, resource.RLIM_INFINITY):
        try:
            resource.setrlimit(number, (soft, wanted))
            possible.append(f"{name} {hard} to {wanted}")
        except (ValueError, OSError):
            pass
for name in ("RLIMIT_NPROC", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_CORE"):
    if resource.getrlimit(getattr(resource, name))[1] == resource.RLIM_INFINITY:
        possible.append(f"{name} is unlimited")
print("\n".join(possible))
sys.exit(1 if possible else 0)
