# attack: exhaust the runner by sockets, lookups, connections, closings and bytes
import errno, os, resource, signal, socket, sys, threading, time

count = 0


def attempt(_):
    global count
    count += 1


def until_refused(make, most):
    made, error = [], None
    try:
        for _ in range(most):
            made.append(make())
    except OSError as refusal:
        error = refusal.errno
    return made, error


attempt("unconnected sockets in one process are limited")
kept, error = until_refused(socket.socket, 5000)
assert error == errno.EMFILE, error
kept.clear()
attempt("sockets made and closed at once")
for _ in range(3000):
    socket.socket().close()
for _ in range(3000):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
attempt("in several processes they are limited too")
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        mine, _ = until_refused(socket.socket, 250)
        time.sleep(0.3)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
attempt("listeners")
kept, _ = until_refused(lambda: (lambda s: (s.bind(("127.0.0.1", 0)), s.listen(1), s)[2])(socket.socket()), 150)
assert len(kept) == 150, len(kept)
attempt("a full backlog")
address = kept[0].getsockname()
def connect():
    made = socket.socket()
    made.connect(address)
    return made
clients, error = until_refused(connect, 200)
assert error in (errno.ECONNREFUSED, errno.EMFILE) and len(clients) >= 50, (error, len(clients))
clients.clear()
kept.clear()
attempt("channels are limited")
allowed, silent = socket.gethostbyname("allowed.example"), socket.gethostbyname("silent.example")
def open_channel():
    made = socket.socket()
    made.connect((allowed, 80))
    return made
kept, error = until_refused(open_channel, 100)
assert error == errno.EAGAIN and len(kept) == 32, (error, len(kept))
assert socket.gethostbyname("n.wild.example").startswith("198.18."), "names are looked up all the same"
kept.clear()
attempt("connections closed while they are made")
for _ in range(300):
    made = socket.socket()
    made.setblocking(False)
    made.connect_ex((silent, 81))
    made.close()
attempt("processes killed while they connect")
for _ in range(20):
    child = os.fork()
    if child == 0:
        socket.socket().connect((silent, 81))
        os._exit(1)
    time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
attempt("threads that wait in accept")
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
for _ in range(10):
    threading.Thread(target=listener.accept, daemon=True).start()
attempt("lookups")
asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asker.connect(("1.1.1.1", 53))
asker.setblocking(False)
for n in range(20000):
    name = b"n%d" % n
    try:
        asker.send(b"\0\1\1\0\0\1\0\0\0\0\0\0" + bytes([len(name)]) + name + b"\4wild\7example\0\0\1\0\1")
    except BlockingIOError:
        time.sleep(0.001)
attempt("refusals")
for n in range(2000):
    try:
        socket.socket().connect((f"10.0.{n // 250}.{n % 250}", 80))
    except OSError:
        pass
attempt("bytes that come back and are not read")
for _ in range(8):
    made = open_channel()
    made.setblocking(False)
    try:
        while True:
            made.send(b"x" * 65536)
    except BlockingIOError:
        kept.append(made)
attempt("two floods at once, of a connection and of output")
child = os.fork()
if child == 0:
    made = open_channel()
    def drain():
        while made.recv(65536):
            pass
    threading.Thread(target=drain, daemon=True).start()
    end = time.monotonic() + 1
    while time.monotonic() < end:
        made.sendall(b"y" * 65536)
    os._exit(0)
end = time.monotonic() + 1
while time.monotonic() < end:
    os.write(2, b"z" * 4096)
assert os.waitpid(child, 0)[1] == 0
print(f"{count} attempts")
