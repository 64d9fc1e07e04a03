# attack: get more from copies of sockets: by dup, fork, exec, threads and messages, and after the closing of the first
import array, os, socket, subprocess, sys

count, possible = 0, []


def attempt(name, is_refused):
    global count
    count += 1
    if not is_refused:
        possible.append(name)


def is_refused(call):
    try:
        call()
        return False
    except OSError:
        return True


def echoes(connection, text):
    connection.sendall(text)
    return connection.recv(100) == text


connection = socket.create_connection(("allowed.example", 80))
copy = socket.socket(fileno=os.dup(connection.fileno()))
connection.close()
attempt("a copy works on", echoes(copy, b"copy"))
attempt("a copy connects", is_refused(lambda: copy.connect(("10.0.0.1", 80))))
child = os.fork()
if child == 0:
    os._exit(0 if echoes(copy, b"child") and copy.getpeername()[1] == 80 and is_refused(lambda: copy.connect(("10.0.0.1", 80))) else 1)
attempt("a child", os.waitpid(child, 0)[1] == 0)
program = "import socket; s = socket.socket(fileno=%d); s.sendall(b'exec'); print(s.recv(9), s.getpeername()[1])" % copy.fileno()
os.set_inheritable(copy.fileno(), True)
said = subprocess.run([sys.executable, "-c", program], close_fds=False, capture_output=True, text=True).stdout
attempt(f"after exec: {said}", said == "b'exec' 80\n")
left, right = socket.socketpair()
fresh = socket.socket()
left.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fresh.fileno()]))])
fresh.close()
child = os.fork()
if child == 0:
    _, messages, _, _ = right.recvmsg(1, 100)
    received = socket.socket(fileno=array.array("i", messages[0][2])[0])
    refused = is_refused(lambda: received.connect(("10.0.0.1", 80)))
    received.connect((socket.gethostbyname("allowed.example"), 80))
    os._exit(0 if refused and echoes(received, b"sent") else 1)
attempt("a sent socket", os.waitpid(child, 0)[1] == 0)
closed = socket.socket()
os.close(os.dup(closed.fileno()))
closed.setblocking(False)
closed.connect_ex((socket.gethostbyname("silent.example"), 81))
descriptor = closed.detach()
os.close(descriptor)
attempt("a closed descriptor", is_refused(lambda: socket.socket(fileno=descriptor)))
# A session of its own, and a process that outlives its parent, are under the same rules.
child = os.fork()
if child == 0:
    os.setsid()
    if os.fork() == 0:
        refused = is_refused(lambda: socket.create_connection(("10.0.0.1", 80), timeout=2))
        os.write(left.fileno(), b"refused" if refused else b"open")
        os._exit(0)
    os._exit(0)
os.waitpid(child, 0)
attempt("an orphan", right.recv(10) == b"refused")
print("\n".join(possible))
print(f"{count} attempts")
sys.exit(1 if possible else 0)
