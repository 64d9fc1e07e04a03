# Pages of a server on loopback that load in unusual ways, each through the program of the built-in. Arguments: the program's
# text, and Chromium's path where it is another than in the image. It needs the core of Python's library alone.
import json, os, socket, subprocess, sys, threading

PAGE = """<title>First</title><h1>first</h1><p id=part>part</p><a id=fragment href="#part">part</a>
<a id=none href="/none">none</a><a id=file href="/file">file</a><a id=next href="/redirect">next</a>
<a id=slow href="/slow-image">slow</a><button id=again onclick="location.reload()">again</button>
<button id=open onclick="document.open(); document.write('<h2>written</h2><button id=late>late</button>')">open</button>
<script>document.querySelector("h1").textContent = "load " + (sessionStorage.n = 1 + (sessionStorage.n | 0))</script>"""
HTML = "200 OK\r\nContent-Type: text/html"
PATHS = {
    "/": (HTML, PAGE),
    "/none": ("204 No Content", ""),
    "/file": ("200 OK\r\nContent-Type: application/zip\r\nContent-Disposition: attachment", "zip"),
    "/redirect": (HTML, "<script>location.replace('/end')</script>"),
    "/end": (HTML, "<h2>the end</h2>"),
    "/slow-image": (HTML, "<h2>usable</h2><a id=on href='/end'>on</a><img src=/never>"),
    # Its head comes, and the rest of it does not.
    "/unfinished": (HTML, "<h2>begun</h2>"),
}


def serve(listener):
    kept = []
    while True:
        connection, _ = listener.accept()
        # Connections that get no answer stay open.
        kept.append(connection)
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        part = connection.recv(65536)
        if not part:
            return
        head += part
    path = head.split()[1].decode()
    if path not in PATHS:
        return
    status, body = PATHS[path]
    # Without a length the body ends with the connection.
    connection.sendall(f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{body}".encode())
    if path != "/unfinished":
        connection.shutdown(socket.SHUT_RDWR)


def browse(*actions, limit=20000):
    env = {"HOME": folder, "TMPDIR": folder, "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "browse.py", str(limit), "100000", "1000000"]
    text = json.dumps({"actions": actions}).encode()
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, env=env, cwd=folder, check=True)
    return json.loads(done.stdout)


def goto(path):
    return {"action": "goto", "url": origin + path}


def click(selector):
    return {"action": "click", "selector": selector}


def text(selector):
    return {"action": "text", "selector": selector}


def check(what, done, texts, slowest):
    """The run must succeed with these texts, and not have waited for what never comes."""
    got = [result["text"] for result in done["results"] if "text" in result]
    if not done["success"] or got != texts or done["durationMs"] > slowest:
        sys.exit(f"{what}: expected {texts} within {slowest} ms, got {done}")


listener = socket.create_server(("127.0.0.1", 0))
origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
threading.Thread(target=serve, args=(listener,), daemon=True).start()
folder = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"pages-{os.getpid()}")
os.mkdir(folder)
program = sys.argv[1]
if len(sys.argv) > 2:
    program = program.replace("/usr/lib/chromium/chromium-headless-shell", sys.argv[2])
with open(os.path.join(folder, "browse.py"), "w") as file:
    file.write(program)


def remove(folder):
    """Chromium's last processes may still write into it."""
    for path, folders, files in os.walk(folder, topdown=False):
        for name in files + folders:
            try:
                at = os.path.join(path, name)
                os.rmdir(at) if os.path.isdir(at) and not os.path.islink(at) else os.unlink(at)
            except OSError:
                pass
    os.path.exists(folder) and not os.listdir(folder) and os.rmdir(folder)


try:
    # None of these waits: the limit is so long that a wait to its half would be seen.
    done = browse(
        goto("/"), goto("/#part"), goto("/#part"), text("h1"), click("#fragment"), text("#part"),
        click("#none"), text("h1"), click("#file"), text("h1"), click("#again"), text("h1"), goto("/"), text("h1"),
        click("#next"), text("h2"), goto("/redirect"), text("h2"),
        limit=60000,
    )
    check("pages that end", done, ["load 1", "part", "load 1", "load 1", "load 2", "load 3", "the end", "the end"], 25000)
    statuses = [result.get("status") for result in done["results"] if result["action"] == "goto"]
    if statuses != [200, None, None, 200, 200] or done["url"] != origin + "/end":
        sys.exit(f"statuses: {statuses} at {done['url']}")

    # These never finish. Half of the time is waited for, and then half of the rest.
    done = browse(goto("/slow-image"), text("h2"), click("#on"), text("h2"), limit=8000)
    check("an image that never comes", done, ["usable", "the end"], 7500)
    done = browse(goto("/unfinished"), text("h2"), limit=8000)
    check("a page of which the rest never comes", done, ["begun"], 7500)
    done = browse(goto("/"), click("#open"), text("h2"), click("#late"), text("h2"), limit=12000)
    check("a document that is written and never closed", done, ["written", "written"], 11500)

    for path, message in [
        ("/none", "net::ERR_ABORTED: the response is no page, such as a download"),
        ("/file", "net::ERR_ABORTED: the response is no page, such as a download"),
        ("/never", "the page did not load or answer within timeoutMs; raise it, or try another page"),
    ]:
        done = browse(goto(path), limit=4000)
        if done["success"] or done["results"][0]["error"] != message:
            sys.exit(f"{path}: {done}")
finally:
    remove(folder)
print("pages: ok")
