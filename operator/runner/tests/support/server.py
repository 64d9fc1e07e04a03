# A server outside of the sandbox for the tests of clients: HTTP and HTTPS on loopback, static files of a folder, sizes and counts.
# Prints its two ports, then serves until its standard input ends.
import http.server, os, ssl, sys, threading


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_GET(self):
        first, _, rest = self.path.strip("/").partition("/")
        if first == "size":
            self.reply(b"x" * int(rest))
        elif first == "hello":
            self.reply(b"hello " + self.headers["Host"].encode() + b"\n")
        else:
            super().do_GET()

    def do_POST(self):
        left = int(self.headers["Content-Length"])
        total = 0
        while left:
            piece = self.rfile.read(min(left, 1 << 16))
            if not piece:
                break
            left -= len(piece)
            total += len(piece)
        self.reply(f"{total} bytes\n".encode())

    def reply(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


os.chdir(sys.argv[1])
plain = Server(("127.0.0.1", 0), Handler)
encrypted = Server(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
encrypted.socket = context.wrap_socket(encrypted.socket, server_side=True)
for server in (plain, encrypted):
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(plain.server_port, encrypted.server_port, flush=True)
sys.stdin.read()
