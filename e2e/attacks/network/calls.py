# attack: connect or send by calls that the runner does not answer, and reach the runner by its descriptors
import array, ctypes, errno, fcntl, os, platform, signal, socket, struct, sys, threading

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
IS_X86 = platform.machine() == "x86_64"
NUMBERS = dict(ptrace=101, process_vm_readv=310, pidfd_open=434, pidfd_getfd=438, kcmp=312, seccomp=317, io_uring=425,
               sendmmsg=307, setns=308, unshare=272, bpf=321, memfd=319, sendmsg=46, open_tree=428)
if not IS_X86:
    NUMBERS.update(ptrace=117, process_vm_readv=270, kcmp=272, seccomp=277, sendmmsg=269, setns=268, unshare=97, bpf=280, memfd=279, sendmsg=211)
RUNNER = os.getppid()
possible, count = [], 0


def call(name, *arguments):
    result = libc.syscall(NUMBERS[name], *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def attempt(name, action, *expected):
    """The action must fail, with one of the expected errors if there are any."""
    global count
    count += 1
    try:
        action()
        possible.append(name)
    except OSError as error:
        if expected and error.errno not in expected:
            possible.append(f"{name} failed for another reason: {error}")


def inet(address, port, family=socket.AF_INET):
    return struct.pack("=H", family) + struct.pack("!H", port) + socket.inet_aton(address) + bytes(8)


class Header(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_length", ctypes.c_uint32), ("parts", ctypes.c_void_p), ("count", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t), ("flags", ctypes.c_int)]


def send_message(sender, address, flags):
    name = ctypes.create_string_buffer(address, len(address))
    data = ctypes.create_string_buffer(b"x", 1)
    part = (ctypes.c_uint64 * 2)(ctypes.addressof(data), 1)
    header = Header(ctypes.addressof(name), len(address), ctypes.addressof(part), 1, None, 0, 0)
    call("sendmsg", sender.fileno(), ctypes.byref(header), flags)


FAST_OPEN = 0x20000000
allowed = socket.gethostbyname("allowed.example")
for address in ("127.0.0.1", "169.254.169.254", "10.0.0.1", allowed):
    for flags in (0, FAST_OPEN):
        attempt(f"sendmsg {address} {flags:#x}", lambda: send_message(socket.socket(), inet(address, 80), flags))
        attempt(f"sendto {address} {flags:#x}", lambda: socket.socket().sendto(b"x", flags, (address, 80)))
    # Datagrams without a connection go to the runner, which answers queries and nothing else.
    datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagram.settimeout(0.05)
    send_message(datagram, inet(address, 80), 0)
    attempt(f"an answer of {address}", lambda: datagram.recv(1))
connected = socket.create_connection((allowed, 80))
attempt("sendmsg on a connection", lambda: send_message(connected, inet("10.0.0.1", 80), 0), errno.EISCONN)
attempt("connect a connection", lambda: connected.connect(("10.0.0.1", 80)))
attempt("listen on a connection", lambda: connected.listen(), errno.EINVAL)
attempt("accept on a connection", lambda: connected.accept(), errno.EINVAL)
attempt("bind a connection", lambda: connected.bind(("127.0.0.1", 80)), errno.EINVAL)
for address in ("1.2.3.4", "198.18.1.0", "169.254.169.254", "224.0.0.1"):
    attempt(f"bind {address}", lambda: socket.socket().bind((address, 80)), errno.EADDRNOTAVAIL)

# Addresses of another kind, of no length, and out of the program's memory.
def raw_connect(family, kind, address, length, pointer=None):
    made = socket.socket(family, kind)
    number = 42 if IS_X86 else 203
    buffer = ctypes.create_string_buffer(address, max(len(address), 1))
    if libc.syscall(number, made.fileno(), ctypes.c_void_p(pointer) if pointer is not None else buffer, ctypes.c_uint32(length)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    attempt("a local address", lambda: raw_connect(socket.AF_INET, kind, struct.pack("=H", 1) + b"/x", 110), errno.EAFNOSUPPORT)
    attempt("an abstract address", lambda: raw_connect(socket.AF_INET, kind, struct.pack("=H", 1) + b"\0x", 4), errno.EAFNOSUPPORT)
    for family in (3, 16, 17, 40, 0xFFFF):
        attempt(f"family {family}", lambda: raw_connect(socket.AF_INET, kind, struct.pack("=H", family) + bytes(30), 32), errno.EAFNOSUPPORT)
    attempt("IPv6 on IPv4", lambda: raw_connect(socket.AF_INET, kind, inet(allowed, 80, 10) + bytes(12), 28), errno.EAFNOSUPPORT)
    attempt("IPv4 on IPv6", lambda: raw_connect(socket.AF_INET6, kind, inet(allowed, 80), 16), errno.EAFNOSUPPORT, errno.EINVAL)
    for length in (0, 1, 2, 15, 129, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000010):
        attempt(f"length {length:#x}", lambda: raw_connect(socket.AF_INET, kind, inet(allowed, 80), length), errno.EINVAL)
    for pointer in (0, 1, 0xFFFFFFFFFFFFF000, 0x7FFFFFFFF000):
        attempt(f"pointer {pointer:#x}", lambda: raw_connect(socket.AF_INET, kind, b"", 16, pointer), errno.EFAULT)

# Ways around the filter, and into the runner.
attempt("io_uring", lambda: call("io_uring", 8, ctypes.create_string_buffer(120)), errno.EPERM)
attempt("memory file", lambda: call("memfd", b"x", 0), errno.EPERM)
attempt("bpf", lambda: call("bpf", 0, ctypes.create_string_buffer(120), 120), errno.EPERM)
attempt("ptrace attach", lambda: call("ptrace", 16, RUNNER, 0, 0), errno.EPERM)
attempt("ptrace seize", lambda: call("ptrace", 0x4206, RUNNER, 0, 0), errno.EPERM)
attempt("read the runner", lambda: call("process_vm_readv", RUNNER, None, 0, None, 0, 0), errno.EPERM)
attempt("kcmp", lambda: call("kcmp", RUNNER, os.getpid(), 0, 0, 0), errno.EPERM)
attempt("pidfd_getfd", lambda: call("pidfd_getfd", call("pidfd_open", RUNNER, 0), 3, 0), errno.EPERM)
attempt("network namespace", lambda: call("unshare", 0x40000000), errno.EPERM)
attempt("namespace of the runner", lambda: call("setns", os.open(f"/proc/{RUNNER}/ns/net", os.O_RDONLY), 0))
for name in ("mem", "fd/0", "fd/1", "fd/3", "fd/4", "fd/5", "fd/6", "environ", "maps"):
    attempt(f"/proc/runner/{name}", lambda: os.open(f"/proc/{RUNNER}/{name}", os.O_RDWR))
attempt("the runner's descriptors", lambda: os.listdir(f"/proc/{RUNNER}/fd"))
attempt("a tunnel", lambda: os.open("/dev/net/tun", os.O_RDWR))
# A listener of its own would take calls from the runner: BPF "return USER_NOTIF", installed with NEW_LISTENER.
instruction = (ctypes.c_uint64 * 1)(0x7FC0000000000006)
program = (ctypes.c_uint64 * 2)(1, ctypes.addressof(instruction))
attempt("a nested listener", lambda: call("seccomp", 1, 8, program), errno.EBUSY)
for request in (0x8910, 0x8912, 0x8913, 0x8915, 0x8927, 0x8933, 0x890B, 0x8940, 0x89F0, 0x89E0):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        attempt(f"ioctl {request:#x}", lambda: fcntl.ioctl(socket.socket(socket.AF_INET, kind), request, bytes(64)), errno.EPERM)
if IS_X86:
    for number in (41, 42, 43, 49, 46):
        count += 1
        if libc.syscall(0x40000000 | number, 2, 1, 0) >= 0 or ctypes.get_errno() != errno.ENOSYS:
            possible.append(f"x32 call {number}")
# The listener's pipe belongs to the program: what it does to it must be its own harm alone.
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
listener.setblocking(False)
port = listener.getsockname()[1]
forged = os.open(f"/proc/self/fd/{listener.fileno()}", os.O_WRONLY | os.O_NONBLOCK)
os.write(forged, b"x" * 1000)
attempt("accept what nobody connected", lambda: listener.accept(), errno.EAGAIN)
os.close(forged)
client = socket.create_connection(("127.0.0.1", port))
accepted, _ = listener.accept()
client.sendall(b"works still")
assert accepted.recv(20) == b"works still"
attempt("listen twice on a port", lambda: socket.socket().bind(("127.0.0.1", port)), errno.EADDRINUSE)
# What comes with a descriptor over a connection is the kernel's matter; the runner must not keep it.
connected.sendmsg([b"with a descriptor"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
connected.shutdown(socket.SHUT_WR)
received = b""
while piece := connected.recv(1000):
    received += piece
assert received == b"with a descriptor", received
print("\n".join(possible))
print(f"{count} attempts")
sys.exit(1 if possible else 0)
