# attack: open a socket of every family and type, or connect to the node, the cluster and the world
import errno, socket, sys

possible = []
for family in range(64):
    if family == socket.AF_UNIX:
        continue
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        for protocol in (0, 1, 6, 17, 255):
            try:
                socket.socket(family, kind, protocol).close()
                possible.append(f"socket({family}, {kind}, {protocol})")
            except OSError as error:
                if error.errno != errno.EPERM:
                    possible.append(f"socket({family}, {kind}, {protocol}) failed for another reason: {error}")
    try:
        socket.socketpair(family)
        possible.append(f"socketpair({family})")
    except OSError:
        pass

for host in ("127.0.0.1", "169.254.169.254", "10.96.0.1", "1.1.1.1", "kubernetes.default.svc"):
    try:
        socket.create_connection((host, 443), timeout=1)
        possible.append(f"connection to {host}")
    except OSError:
        pass

print("\n".join(possible))
sys.exit(1 if possible else 0)
