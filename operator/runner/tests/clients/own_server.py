# prints: True 20 b'127.0.0.1 /x\n'
# prints: True 20 b'127.0.0.1 /x\n'
# prints: True 20 b'127.0.0.1 /x\n'
import http.server, threading, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{self.client_address[0]} {self.path}\n".encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *words): pass
for host in ("127.0.0.1", "", "localhost"):
    with http.server.ThreadingHTTPServer((host, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_port
        bodies = {urllib.request.urlopen(f"http://127.0.0.1:{port}/{n}").read() for n in range(20)}
        print(port > 1024, len(bodies), urllib.request.urlopen(f"http://localhost:{port}/x").read())
        server.shutdown()
