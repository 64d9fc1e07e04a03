# attack: reach a listener outside by an abstract name, a path or a descriptor
import os, socket, sys

possible = []
for line in open("/proc/net/unix").read().splitlines()[1:]:
    fields = line.split()
    if len(fields) < 8:
        continue
    name = fields[7]
    address = "\0" + name[1:] if name.startswith("@") else name
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        try:
            socket.socket(socket.AF_UNIX, kind).connect(address)
            possible.append(name)
        except OSError:
            pass
for path in ("/run/containerd/containerd.sock", "/var/run/docker.sock", "/run/systemd/private", "/run/dbus/system_bus_socket",
             "/run/crio/crio.sock", "/dev/log"):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        possible.append(path)
    except OSError:
        pass
# Among themselves the processes of one program may talk.
left, right = socket.socketpair()
left.send(b"x")
assert right.recv(1) == b"x"
print("\n".join(possible))
sys.exit(1 if possible else 0)
