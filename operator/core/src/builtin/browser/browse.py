# Steers Chromium through the actions on standard input, and prints how they ended. Arguments: time limit in ms, most bytes
# of the printed JSON without pictures, most bytes of the pictures as base64. It needs the core of Python's library alone.
import json, os, select, signal, sys, time

PROGRAM = "/usr/lib/chromium/chromium-headless-shell"
FLAGS = [
    "--headless",
    # Chromium's own sandbox needs namespaces, which this sandbox refuses to make. All of its processes are confined already:
    # no network but the hosts of the run, no files but the scratch space, no other processes.
    "--no-sandbox", "--no-zygote",
    # The run has one profile and ends with it: pages need no process for each site.
    "--disable-features=IsolateOrigins,site-per-process,Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,DialMediaRouteProvider",
    "--disable-site-isolation-trials", "--renderer-process-limit=1",
    "--disable-gpu", "--disable-software-rasterizer", "--disable-dev-shm-usage", "--disable-breakpad", "--disable-crash-reporter", "--disable-quic", "--no-proxy-server",
    "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-extensions", "--disable-sync",
    "--block-new-web-contents", "--mute-audio", "--hide-scrollbars", "--force-color-profile=srgb", "--lang=en-US", "--window-size=1280,800",
    "--remote-debugging-pipe",
]
# Tallest picture in pixels, and longest text of one action in characters.
TALLEST, LONGEST = 16384, 100000

# Waits for an element that is shown, and brings it into view. The page says when it changes.
FIND = """(selector, milliseconds) => new Promise((resolve) => {
  let found = "no element matches", timer;
  const observer = new MutationObserver(() => look());
  const finish = (result) => { observer.disconnect(); clearTimeout(timer); removeEventListener("load", look, true); resolve(result); };
  function look() {
    let element;
    try { element = document.querySelector(selector); } catch { return finish({ error: "is no CSS selector" }); }
    if (!element) { found = "no element matches"; return; }
    const style = getComputedStyle(element);
    if (element !== document.body && (!element.getClientRects().length || style.visibility === "hidden")) { found = "the element is not shown"; return; }
    finish({ element });
  }
  observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  addEventListener("load", look, true);
  timer = setTimeout(() => finish({ error: found }), milliseconds);
  look();
}).then(({ element, error }) => error ? { error } : %s)"""
CLICK = """(element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" }), (() => {
  element.closest("a[target], form[target]")?.removeAttribute("target");
  const box = [...element.getClientRects()].find((box) => box.width && box.height);
  if (!box) return { error: "the element has no area" };
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const top = document.elementFromPoint(x, y);
  if (!top) return { error: "the element is out of view" };
  const isIts = element.contains(top) || top.contains(element) || top.closest("label")?.control === element;
  return isIts ? { x, y } : { error: "the element is covered by <" + top.localName + (top.id && " id=" + top.id) + ">; click that away first" };
})())"""
TYPE = """(() => {
  const isField = "select" in element && !element.disabled && !element.readOnly;
  if (!isField && !element.isContentEditable) return { error: "the element is <" + element.localName + ">, which takes no text now" };
  element.focus();
  if (isField) element.select(); else getSelection().selectAllChildren(element);
  document.execCommand("delete");
  return { isLine: element.localName === "input" };
})()"""
TEXT = """((text) => ({ text: text.slice(0, %d), truncated: text.length > %d }))(element.innerText ?? element.textContent)""" % (LONGEST, LONGEST)


class Failure(Exception):
    """An action that could not be done; its text says why."""


class Gone(Exception):
    """The page was left while it was asked."""


class Browser:
    """Chromium with one page. `room` is what pictures may still have, in characters of base64."""

    def __init__(self, folder, deadline, room):
        self.deadline, self.room, self.number, self.session, self.frame = deadline, room, 0, None, None
        self.unread, self.replies, self.status = b"", {}, {}
        # A document is on its way; it, or what belongs to it, is not here yet.
        self.is_navigating, self.is_loading = False, False
        commands, self.commands = os.pipe()
        self.events, events = os.pipe()
        # The protocol has descriptor 3 for commands and 4 for replies. One that lies there already would be closed: first aside.
        moves = [(os.POSIX_SPAWN_DUP2, commands, 10), (os.POSIX_SPAWN_DUP2, events, 11), (os.POSIX_SPAWN_DUP2, 10, 3), (os.POSIX_SPAWN_DUP2, 11, 4)]
        # It complains at length about what a sandbox has not, such as a message bus.
        quiet = os.open("/dev/null", os.O_RDWR)
        moves += [(os.POSIX_SPAWN_DUP2, quiet, number) for number in (0, 1, 2)] + [(os.POSIX_SPAWN_CLOSE, number) for number in (10, 11)]
        argv = [PROGRAM, *FLAGS, "--user-data-dir=" + folder + "/profile", "about:blank"]
        self.child = os.posix_spawn(PROGRAM, argv, os.environ, file_actions=moves, setpgroup=0)
        os.close(commands)
        os.close(events)

    def start(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.frame = self.call("Page.getFrameTree")["frameTree"]["frame"]["id"]
        for domain in ("Page", "Network", "Inspector"):
            self.call(domain + ".enable")
        self.call("Browser.setDownloadBehavior", behavior="deny")

    def end(self):
        try:
            os.killpg(self.child, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.child, 0)

    def send(self, method, params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self.commands, data):]
        except BrokenPipeError:
            raise Failure("the browser has ended; raise spec.limits.memory of the Skill if its pages are large") from None
        return self.number

    def call(self, method, **params):
        number = self.send(method, params)
        while number not in self.replies:
            self.receive()
        reply = self.replies.pop(number)
        if "error" in reply:
            message = reply["error"].get("message", "")
            if any(words in message for words in ("navigated", "context was destroyed", "Cannot find context", "uniqueContextId")):
                raise Gone
            raise Failure(message)
        return reply["result"]

    def receive(self, until=None):
        """Takes what the browser sends next. False if nothing comes before `until`."""
        end = self.deadline if until is None else until
        while b"\0" not in self.unread:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.events], [], [], left)[0]:
                if end < self.deadline:
                    return False
                raise Failure("the page did not load or answer within timeoutMs; raise it, or try another page")
            part = os.read(self.events, 1 << 20)
            if not part:
                raise Failure("the browser has ended; raise spec.limits.memory of the Skill if its pages are large")
            self.unread += part
        text, self.unread = self.unread.split(b"\0", 1)
        message = json.loads(text)
        if "id" in message:
            self.replies[message["id"]] = message
        else:
            self.take(message["method"], message.get("params", {}))
        return True

    def take(self, event, params):
        if event == "Page.frameStartedLoading" and params["frameId"] == self.frame:
            self.is_loading = True
        elif event == "Page.frameStartedNavigating" and params["frameId"] == self.frame:
            # To another part of the same document nothing is loaded, and no event says that it has stopped.
            if not params["navigationType"].lower().endswith("samedocument"):
                self.is_navigating = self.is_loading = True
        elif event == "Page.frameNavigated" and params["frame"]["id"] == self.frame:
            self.is_navigating = False
        elif event == "Page.frameStoppedLoading" and params["frameId"] == self.frame:
            self.is_navigating = self.is_loading = False
        elif event == "Network.responseReceived" and params["type"] == "Document":
            self.status[params["loaderId"]] = params["response"]["status"]
        elif event == "Page.javascriptDialogOpening":
            # Nobody is there to answer. The page goes on as if the question had been declined.
            self.send("Page.handleJavaScriptDialog", {"accept": params["type"] in ("alert", "beforeunload")})
        elif event == "Inspector.targetCrashed":
            raise Failure("the page has crashed; raise spec.limits.memory of the Skill")

    def evaluate(self, expression):
        # In a world of its own: what the page has made of the functions of JavaScript does not count.
        world = self.call("Page.createIsolatedWorld", frameId=self.frame, worldName="skillet")["executionContextId"]
        result = self.call("Runtime.evaluate", expression=expression, contextId=world, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in result:
            raise Failure(result["exceptionDetails"].get("exception", {}).get("description", "the page failed"))
        return result["result"].get("value")

    def settle(self):
        """Waits for the load that an input has begun, if any. A page that never finishes is taken as it is after half of the time."""
        until = self.half_time()
        while True:
            try:
                # What the page does in answer to an input has begun when its next two turns have come.
                has_body = self.evaluate("new Promise((done) => setTimeout(() => setTimeout(() => done(document.body !== null))))")
            except Gone:
                has_body = False
            else:
                is_over = time.monotonic() >= until
                if not self.is_loading or is_over and has_body and not self.is_navigating:
                    return
                if is_over:
                    until = self.half_time()
            while self.is_loading and self.receive(until):
                pass

    def half_time(self):
        now = time.monotonic()
        return now + (self.deadline - now) / 2

    def at_element(self, selector, then):
        """The value of `then` at the element, as soon as the page shows it."""
        while True:
            # A page may say no more in time. One that does not answer at all is noticed by the limit itself.
            left = int((self.deadline - time.monotonic()) * 1000) - 300
            arguments = json.dumps(selector) + "," + str(max(left, 0))
            try:
                value = self.evaluate("(" + FIND % then + ")(" + arguments + ")")
            except Gone:
                self.settle()
                continue
            if "error" in value:
                raise Failure(value["error"])
            return value


def goto(browser, action, result):
    reply = browser.call("Page.navigate", url=action["url"])
    if reply.get("errorText"):
        raise Failure(explain(reply["errorText"]))
    if "loaderId" in reply:
        browser.settle()
    else:
        # Another part of the same document: nothing is loaded.
        browser.is_navigating = browser.is_loading = False
    result["status"] = browser.status.get(reply.get("loaderId"))


def explain(error):
    return error + {
        "net::ERR_NAME_NOT_RESOLVED": ": the name has no address, or the skill may not reach it; see network of the Skill and of SkillPolicy",
        "net::ERR_ADDRESS_UNREACHABLE": ": the host could not be reached, or the skill may not reach it; see network of the Skill and of SkillPolicy",
        "net::ERR_CONNECTION_REFUSED": ": the host refused, or the skill may not reach it on this port; see network of the Skill and of SkillPolicy",
        "net::ERR_CERT_AUTHORITY_INVALID": ": no known authority has signed the host's certificate",
        "net::ERR_ABORTED": ": the response is no page, such as a download",
    }.get(error, "")


def click(browser, action, result):
    place = browser.at_element(action["selector"], CLICK)
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        pressed = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        try:
            browser.call("Input.dispatchMouseEvent", type=kind, x=place["x"], y=place["y"], **pressed)
        except Gone:
            break
    browser.settle()


def type_text(browser, action, result):
    text = action["text"]
    is_line = browser.at_element(action["selector"], TYPE)["isLine"]
    enter = is_line and text.endswith("\n")
    if text := text.rstrip("\n") if is_line else text:
        browser.call("Input.insertText", text=text)
    if enter:
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
        browser.call("Input.dispatchKeyEvent", type="keyDown", text="\r", **key)
        try:
            browser.call("Input.dispatchKeyEvent", type="keyUp", **key)
        except Gone:
            pass
    browser.settle()


def read_text(browser, action, result):
    found = browser.at_element(action.get("selector") or "body", TEXT)
    result["text"], result["truncated"] = found["text"], found["truncated"]


def screenshot(browser, action, result):
    params = {}
    if action.get("fullPage"):
        size = browser.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], TALLEST), "scale": 1}
        params = {"clip": clip, "captureBeyondViewport": True}
    picture = browser.call("Page.captureScreenshot", format="png", **params)["data"]
    browser.room -= len(picture)
    if browser.room < 0:
        raise Failure("the pictures of a run may have 3 MB together; take fewer, or without fullPage")
    result["path"], result["png"] = action["path"], picture


ACTIONS = {"goto": goto, "click": click, "type": type_text, "text": read_text, "screenshot": screenshot}


def describe(number, action):
    about = action.get("selector") or action.get("url") or action.get("path")
    return "action " + str(number) + " (" + action["action"] + (" " + json.dumps(about, ensure_ascii=False) if about else "") + ")"


def run(browser, actions, output):
    browser.start()
    for number, action in enumerate(actions, 1):
        result = {"action": action["action"], "success": True}
        output["results"].append(result)
        try:
            ACTIONS[action["action"]](browser, action, result)
        except Gone:
            fail(output, number, action, "the page was left meanwhile; add a text action with a selector of the page that follows")
        except Failure as failure:
            fail(output, number, action, str(failure))
        if not output["success"]:
            break
    try:
        history = browser.call("Page.getNavigationHistory")
        entry = history["entries"][history["currentIndex"]]
        output["url"], output["title"] = entry["url"][:8192], entry["title"][:1000]
    except (Failure, Gone):
        # The actions have said what is wrong. A page that does not answer has no title.
        pass


FIXES = {
    "no element matches": "; correct selector, or raise timeoutMs if the page shows it later",
    "the element is not shown": "; choose an element that the page shows, or raise timeoutMs",
    "is no CSS selector": "; correct selector",
}


def fail(output, number, action, why):
    output["success"] = False
    output["results"][-1].update(success=False, error=why)
    output["message"] = describe(number, action) + ": " + why + FIXES.get(why, "")


def printed(output, most):
    """The output as JSON. Texts are cut until it fits without the pictures."""
    kept = LONGEST
    while True:
        pictures = sum(len(result.get("png", "")) for result in output["results"])
        text = json.dumps(output, ensure_ascii=False)
        if len(text.encode("utf-8", "replace")) - pictures <= most or kept == 0:
            return text
        kept = kept * 3 // 4
        for result in output["results"]:
            if len(result.get("text", "")) > kept:
                result["text"], result["truncated"] = result["text"][:kept], True


def main():
    limit, most, room = (int(word) for word in sys.argv[1:4])
    start = time.monotonic()
    output = {"success": True, "url": "", "title": "", "results": [], "message": ""}
    browser = Browser(os.getcwd(), start + limit / 1000, room)
    try:
        run(browser, json.load(sys.stdin)["actions"], output)
    except Failure as failure:
        output.update(success=False, message="the browser could not be started: " + str(failure))
    finally:
        browser.end()
    output["durationMs"] = int((time.monotonic() - start) * 1000)
    sys.stdout.buffer.write(printed(output, most).encode("utf-8", "replace"))


main()
