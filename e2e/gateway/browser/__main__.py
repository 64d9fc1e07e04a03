"""The page `/docs` of the gateway in a real browser, without a network. Ends with one line: N passed, N failed.

    python3 -B e2e/gateway/browser --gateway target/debug/skillet [--only PATTERN] [--screenshot FILE]
"""

import argparse
import base64
import json
import signal
import sys
import tempfile
import traceback
import urllib.request
from fnmatch import fnmatch
from pathlib import Path

from devtools import Browser

sys.path.append(str(Path(__file__).resolve().parent.parent / "journeys"))
from cluster import PROGRAMS, TOKEN
from stack import Stack

# The block of one operation.
BLOCK = "[...document.querySelectorAll('details')].find(block => block.querySelector('summary').textContent.startsWith({}))"


def block(method, path):
    return BLOCK.format(json.dumps(f"{method}{path} "))


def opened(browser, url):
    browser.events.clear()
    browser.call("Page.navigate", url=f"{url}/docs")
    browser.wait("document.querySelectorAll('details').length > 0")


def sent(browser, method, path, token=TOKEN, body=None, **values):
    """The response that the page shows after a click on Send."""
    browser.evaluate(f"document.getElementById('token').value = {json.dumps(token)}")
    if body:
        browser.evaluate(f"{block(method, path)}.querySelector('textarea').value = {json.dumps(json.dumps(body))}")
    for name, value in values.items():
        browser.evaluate(f"{block(method, path)}.querySelector('[name={name}]').value = {json.dumps(value)}")
    browser.evaluate(f"{block(method, path)}.querySelector('button').click()")
    shown = f"{block(method, path)}.querySelector('pre').textContent"
    return browser.wait(f"/^[0-9]/.test({shown}) && {shown}")


def every_operation_is_shown_with_its_summary(browser, url):
    with urllib.request.urlopen(f"{url}/openapi.json") as response:
        paths = json.load(response)["paths"]
    wanted = {
        f"{method.upper()}{path} {operation['summary']}" for path, methods in paths.items() for method, operation in methods.items()
    }
    found = set(browser.evaluate("[...document.querySelectorAll('summary')].map(one => one.textContent)"))
    assert len(wanted) >= 20 and found == wanted, found ^ wanted


def fields_and_allowed_values_of_requests_and_responses_are_shown(browser, url):
    text = browser.evaluate(f"{block('POST', '/api/skills/executions')}.textContent")
    for words in ("Idempotency-Key", "timeout", "Fields of 200", "Pending | Running | Succeeded", "stdout", "phase *"):
        assert words in text, f"{words}: {text}"
    text = browser.evaluate(f"{block('PATCH', '/api/skills/{name}')}.textContent")
    assert "on | auto | off" in text, text
    empty = browser.evaluate(
        "[...document.querySelectorAll('table')].flatMap(table => [...table.rows])"
        ".filter(row => [...row.cells].some(cell => cell.textContent === 'undefined')).length"
    )
    assert empty == 0, f"{empty} rows have no text"


def a_request_is_sent_with_the_token_and_its_response_shown(browser, url):
    shown = sent(browser, "GET", "/api/skills")
    assert shown.startswith("200") and all(name in shown for name in PROGRAMS), shown


def a_path_parameter_is_filled_in(browser, url):
    shown = sent(browser, "GET", "/api/skills/{name}", name="word-count")
    assert shown.startswith("200") and "Counts the words of a text." in shown, shown


def a_refusal_is_shown_with_its_code(browser, url):
    shown = sent(browser, "GET", "/api/skills", token="nobody")
    assert shown.startswith("401") and "error" in shown, shown


def what_a_response_says_never_becomes_markup(browser, url):
    attempt = "<img src=x onerror=document.title=1>"
    shown = sent(browser, "POST", "/api/skills/executions", body={"skill": attempt})
    assert "<img" in shown, shown
    assert browser.evaluate("document.images.length") == 0
    assert browser.evaluate("document.title") == "Skillet gateway"


def everything_comes_from_the_gateway_and_nothing_is_refused(browser, url):
    opened(browser, url)
    urls = [event["request"]["url"] for event in browser.params("Network.requestWillBeSent")]
    assert f"{url}/docs" in urls and f"{url}/openapi.json" in urls, urls
    assert all(one.startswith(f"{url}/") for one in urls), urls
    entries = [event["entry"] for event in browser.params("Log.entryAdded") if event["entry"]["level"] != "verbose"]
    # A browser asks for an icon by itself; there is none.
    complaints = [entry["text"] for entry in entries if not entry.get("url", "").endswith("/favicon.ico")]
    assert not complaints and not browser.params("Runtime.exceptionThrown"), complaints


CHECKS = [
    every_operation_is_shown_with_its_summary, fields_and_allowed_values_of_requests_and_responses_are_shown,
    a_request_is_sent_with_the_token_and_its_response_shown, a_path_parameter_is_filled_in, a_refusal_is_shown_with_its_code,
    what_a_response_says_never_becomes_markup, everything_comes_from_the_gateway_and_nothing_is_refused,
]


def run(url, folder, given):
    """How many checks passed, and how many did not."""
    browser = Browser(folder / "profile")
    passed = failed = 0
    try:
        opened(browser, url)
        for check in (check for check in CHECKS if fnmatch(check.__name__, given.only)):
            try:
                check(browser, url)
                passed += 1
            except (AssertionError, RuntimeError):
                failed += 1
                print(f"{check.__name__}: {traceback.format_exc(limit=-2)}")
        if given.screenshot:
            browser.evaluate("document.querySelectorAll('details')[1].open = true")
            image = browser.call("Page.captureScreenshot", format="png")["data"]
            given.screenshot.write_bytes(base64.b64decode(image))
    finally:
        browser.stop()
    return passed, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gateway", required=True)
    parser.add_argument("--only", default="*")
    parser.add_argument("--screenshot", type=Path)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # The browser may still write to its folder while it ends.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        stack = Stack(given.gateway, Path(folder))
        try:
            passed, failed = run(stack.url, Path(folder), given)
        finally:
            stack.stop()
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
