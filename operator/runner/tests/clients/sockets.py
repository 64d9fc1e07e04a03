# prints: 80 198.18.0.1 AF_INET 1
# prints: True
# prints: True
# prints: True
# prints: True
# prints: True 0 True EISCONN
# prints: EACCES
# prints: EACCES
# prints: ENETUNREACH
# prints: ECONNREFUSED
# prints: ::ffff:198.18.1.0
import errno, select, socket, threading
def failure(call):
    try:
        call()
        return None
    except OSError as error:
        return errno.errorcode[error.errno]
plain = socket.create_connection(("web.example", 80), timeout=5)
print(plain.getpeername()[1], plain.getsockname()[0], plain.family.name, plain.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE))
plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print(failure(lambda: plain.connect(("web.example", 80))) in (None, "EISCONN"))
plain.sendall(b"GET /hello HTTP/1.0\r\nHost: half\r\n\r\n")
plain.shutdown(socket.SHUT_WR)
print(plain.makefile().read().endswith("hello half\n"))
address = socket.gethostbyname("web.example")
soon = socket.socket()
soon.setblocking(False)
# A host that answers at once is connected within the call.
print(soon.connect_ex((address, 80)) in (0, errno.EINPROGRESS))
print(failure(lambda: soon.getpeername()) in (None, "ENOTCONN"))
print(select.select([], [soon], [], 5)[1] == [soon], soon.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), soon.connect_ex((address, 80)) in (0, errno.EISCONN), errno.errorcode[soon.connect_ex((address, 80))])
refused = socket.socket()
refused.setblocking(False)
print(errno.errorcode[refused.connect_ex((address, 443 + 1))])
print(failure(lambda: socket.create_connection(("10.0.0.1", 80))))
print(failure(lambda: socket.socket(socket.AF_INET6).connect(("2001:db8::1", 80))))
print(failure(lambda: socket.socket().connect(("127.0.0.1", 1))))
mapped = socket.socket(socket.AF_INET6)
mapped.connect(("::ffff:" + address, 80))
print(mapped.getpeername()[0])
