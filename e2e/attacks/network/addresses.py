# attack: connect to an address in any range and notation, by TCP and by datagrams
import errno, socket, struct, sys

V4 = """0.0.0.1 10.0.0.1 10.96.0.1 100.64.0.1 127.0.0.1 127.255.255.254 169.254.1.1 169.254.169.254 172.16.0.1 192.0.0.8
192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.0 198.18.0.1 198.18.0.255 198.18.9.9 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1
239.255.255.255 240.0.0.1 255.255.255.255 1.1.1.1 8.8.8.8""".split()
V6 = """:: ::1 ::2 ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:1.1.1.1 ::127.0.0.1 64:ff9b::10.0.0.1
64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1::1 2606:4700::1111 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1""".split()
NOTATIONS = """127.1 0177.0.0.1 0x7f.0.0.1 0x7f000001 2130706433 017700000001 10.1 0xa9fea9fe 2852039166 169.254.43518 1.1
[::1] ::1%lo fe80::1%eth0 127.0.0.1. １２７.0.0.1 127。0。0。1 user@allowed.example allowed.example:80 allowed.example/x
other.example allowed.example.other.example wild.example xwild.example ALLOWED.EXAMPLE.other kubernetes.default.svc
metadata.google.internal host.docker.internal instance-data ip6-localhost allowed.example%00.wild.example""".split()
REFUSALS = {errno.EACCES, errno.EPERM, errno.ECONNREFUSED, errno.ENETUNREACH, errno.EINVAL, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
possible, count = [], 0


def attempt(name, call):
    global count
    count += 1
    try:
        call()
        possible.append(name)
    except OSError as error:
        if not isinstance(error, socket.gaierror) and error.errno not in REFUSALS:
            possible.append(f"{name} failed for another reason: {error}")


def datagram(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.settimeout(0.05)
        sender.connect((address, 123))
        # A connection of datagrams sends nothing. Its datagrams must be lost, and soon refused.
        for _ in range(100):
            sender.send(b"x")
        sender.recv(1)


for family, addresses in ((socket.AF_INET, V4), (socket.AF_INET6, V6)):
    for address in addresses:
        for port in (0, 80, 443):
            attempt(f"tcp {address} {port}", lambda: socket.socket(family).connect((address, port)))
        attempt(f"send to {address}", lambda: socket.socket(family, socket.SOCK_DGRAM).sendto(b"x", (address, 123)))
        try:
            datagram(family, address)
            possible.append(f"datagrams to {address}")
        except OSError:
            count += 1
for notation in NOTATIONS:
    for port in (80, 443):
        attempt(f"{notation} {port}", lambda: socket.create_connection((notation, port), timeout=2))

# Wrong ports of an allowed name, and its own address before and after its lookup.
allowed = socket.gethostbyname("allowed.example")
for port in (0, 1, 22, 79, 81, 443, 6443, 10250, 65535):
    attempt(f"allowed.example:{port}", lambda: socket.create_connection((allowed, port), timeout=2))
first = struct.unpack("!I", socket.inet_aton(allowed))[0]
for offset in (-1, 1, 2, 255, 4096, 65536):
    address = socket.inet_ntoa(struct.pack("!I", first + offset))
    attempt(f"neighbor {address}", lambda: socket.socket().connect((address, 80)))

print("\n".join(possible))
print(f"{count} attempts")
sys.exit(1 if possible else 0)
