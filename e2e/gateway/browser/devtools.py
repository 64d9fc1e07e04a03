"""Chromium without a window, steered by the DevTools protocol over two pipes."""

import json
import os
import select
import subprocess
import time

SECONDS = 30
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--remote-debugging-pipe",
    # No name but this machine's is found: a page that loads something from elsewhere fails.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


class Browser:
    """One page. `events` are those that the browser has sent, in their order."""

    def __init__(self, profile):
        commands, self.commands = os.pipe()
        self.replies, replies = os.pipe()
        # The protocol has descriptor 3 for commands and 4 for replies.
        script = f'exec chromium "$@" 3<&{commands} 4>&{replies}'
        command = ["bash", "-c", script, "chromium", *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self.child = subprocess.Popen(
            command, pass_fds=(commands, replies), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(commands)
        os.close(replies)
        self.unread, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        """The result of a command."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + SECONDS
        while True:
            found = self.receive(until)
            if found.get("id") == self.number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                return found["result"]
            self.events.append(found)

    def receive(self, until):
        while b"\0" not in self.unread:
            readable, _, _ = select.select([self.replies], [], [], max(0, until - time.monotonic()))
            part = os.read(self.replies, 1 << 16) if readable else b""
            if not part:
                raise RuntimeError(f"the browser does not reply; its state is {self.child.poll()}")
            self.unread += part
        text, self.unread = self.unread.split(b"\0", 1)
        return json.loads(text)

    def evaluate(self, expression):
        """The value of an expression of the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def wait(self, expression):
        """The value of an expression, as soon as it is true."""
        until = time.monotonic() + SECONDS
        while True:
            value = self.evaluate(expression)
            if value:
                return value
            if time.monotonic() > until:
                raise RuntimeError(f"not in {SECONDS} seconds: {expression}")
            time.sleep(0.05)

    def params(self, method):
        """What the events of one kind said."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def stop(self):
        """Ends the browser with all its processes; one that does not end by itself is killed."""
        self.session = None
        try:
            self.call("Browser.close")
            self.child.wait(timeout=SECONDS)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.child.kill()
            self.child.wait()
        os.close(self.commands)
        os.close(self.replies)
