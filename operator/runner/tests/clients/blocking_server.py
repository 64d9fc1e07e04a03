# prints: 1 True True b'from the child' b''
# prints: no second connection
import os, socket, threading
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(5)
listening = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
if os.fork() == 0:
    client = socket.create_connection(listener.getsockname())
    client.sendall(b"from the child")
    os._exit(0)
connection, peer = listener.accept()
print(listening, peer == connection.getpeername(), connection.getsockname() == listener.getsockname(), connection.recv(100), connection.recv(1))
listener.settimeout(0.05)
try:
    listener.accept()
except TimeoutError:
    print("no second connection")
