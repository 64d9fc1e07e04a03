# prints: ('1.1.1.1', 53) True
# prints: 16 2 53 1.1.1.1
# prints: 2 53 9.9.9.9
# prints: refused
import ctypes, errno, os, socket, struct
QUERY = b"\0\1\1\0\0\1\0\0\0\0\0\0\3web\7example\0\0\1\0\1"
libc = ctypes.CDLL(None, use_errno=True)
plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
plain.sendto(QUERY, ("1.1.1.1", 53))
answer, sender = plain.recvfrom(500)
print(sender, answer.endswith(bytes([198, 18, 1, 0])))


class Header(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_length", ctypes.c_uint32), ("parts", ctypes.c_void_p), ("count", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t), ("flags", ctypes.c_int)]


# As the C library musl does it: the sender's address is compared in whole, its length is not looked at.
plain.sendto(QUERY, ("1.1.1.1", 53))
name, data = ctypes.create_string_buffer(16), ctypes.create_string_buffer(500)
part = (ctypes.c_uint64 * 2)(ctypes.addressof(data), 500)
header = Header(ctypes.addressof(name), 16, ctypes.addressof(part), 1, None, 0, 0)
length = libc.recvmsg(plain.fileno(), ctypes.byref(header), 0)
print(len(name.raw), *struct.unpack("=H", name.raw[:2]), *struct.unpack("!H", name.raw[2:4]), socket.inet_ntoa(name.raw[4:8]))
# As glibc does it: connected, and by recvfrom.
connected = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
connected.connect(("9.9.9.9", 53))
connected.send(QUERY)
name, size = ctypes.create_string_buffer(16), ctypes.c_uint32(16)
libc.recvfrom(connected.fileno(), data, 500, 0, name, ctypes.byref(size))
print(*struct.unpack("=H", name.raw[:2]), *struct.unpack("!H", name.raw[2:4]), socket.inet_ntoa(name.raw[4:8]))
# Datagrams to a host are lost, and soon refused: clients of QUIC go on with TCP.
lost = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
lost.connect((socket.gethostbyname("web.example"), 443))
try:
    while True:
        lost.send(b"x")
except OSError:
    print("refused")
