# Runs inside the browser image, with the program of the built-in as its argument: each action on a page, and how failures are told.
import json, os, subprocess, sys, urllib.parse

os.chdir("/dev/shm")
with open("browse.py", "w") as file:
    file.write(sys.argv[1])
PAGE = "data:text/html," + urllib.parse.quote("""<title>First</title><style>p { font-family: serif } #late { display: none }</style>
<input id=name value=old><button onclick="document.querySelector('h1').textContent = document.querySelector('input').value">take</button>
<button id=late>never</button><h1></h1><p>\u00e9t\u00e9 <b>\u0416</b></p>
<a href="#" onclick="setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<i>came later</i>'), 200)">more</a>
<form onsubmit="document.title = 'sent'; return false"><input id=line></form>""")


def browse(actions, limit="20000", most="100000", room="1000000"):
    command = ["/usr/bin/python3", "browse.py", limit, most, room]
    env = {"HOME": "/dev/shm", "TMPDIR": "/dev/shm", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, input=json.dumps({"actions": actions}).encode(), stdout=subprocess.PIPE, env=env, check=True)
    return json.loads(done.stdout)


def on_page(*actions, **limits):
    return browse([{"action": "goto", "url": PAGE}, *actions], **limits)


def check(what, got, expected):
    if got != expected:
        sys.exit(f"{what}: expected {expected!r}, got {got!r}")


done = on_page(
    {"action": "type", "selector": "#name", "text": "w\u00f6rd"},
    {"action": "click", "selector": "button"},
    {"action": "text", "selector": "h1"},
    {"action": "click", "selector": "a"},
    {"action": "text", "selector": "i"},
    {"action": "type", "selector": "#line", "text": "x\n"},
    {"action": "screenshot", "path": "a.png"},
    {"action": "screenshot", "path": "b.png", "fullPage": True},
)
check("message", done["message"], "")
check("title", done["title"], "sent")
check("typed text", done["results"][3]["text"], "w\u00f6rd")
check("text that comes later", done["results"][5]["text"], "came later")
check("picture", done["results"][7]["png"][:11], "iVBORw0KGgo")
check("pictures", [result.get("path") for result in done["results"][-2:]], ["a.png", "b.png"])

for action, message in [
    ({"action": "click", "selector": "#none"}, 'action 2 (click "#none"): no element matches; correct selector, or raise timeoutMs if the page shows it later'),
    ({"action": "click", "selector": "a["}, 'action 2 (click "a["): is no CSS selector; correct selector'),
    ({"action": "type", "selector": "p", "text": "x"}, 'action 2 (type "p"): the element is <p>, which takes no text now'),
]:
    done = on_page(action, limit="1500")
    check("failure", (done["success"], done["message"]), (False, message))
    check("results", [result["success"] for result in done["results"]], [True, False])
hidden = on_page({"action": "click", "selector": "#late"}, limit="1500")
check("hidden element", hidden["results"][1]["error"], "the element is not shown")
small = on_page({"action": "screenshot", "path": "a.png"}, room="100")
check("picture that is too large", "3 MB together" in small["message"], True)
cut = on_page({"action": "text"}, most=str(len(PAGE) + 400))
check("text that is cut", (cut["success"], len(json.dumps(cut)) < len(PAGE) + 500), (True, True))
late = browse([{"action": "goto", "url": "data:text/html,<script>for(;;);</script>"}], limit="1500")
check("page that hangs", late["message"].endswith("within timeoutMs; raise it, or try another page"), True)
away = browse([{"action": "goto", "url": "http://127.0.0.2/"}])
check("port that is closed", away["message"].startswith('action 1 (goto "http://127.0.0.2/"): net::ERR_CONNECTION_REFUSED: the host refused'), True)
tls = browse([{"action": "goto", "url": "https://127.0.0.1:8443/"}])
check("host with TLS", tls["results"][0]["error"], "net::ERR_CERT_AUTHORITY_INVALID: no known authority has signed the host's certificate")

check("user", (os.getuid(), os.getgid()), (65532, 65532))
try:
    open("/usr/lib/own", "w")
    sys.exit("the root can be written")
except OSError:
    pass
with open("/var/lib/dpkg/status.d/chromium-headless-shell") as file:
    version = next(line.split()[1] for line in file if line.startswith("Version:"))
print("Chromium", version)
