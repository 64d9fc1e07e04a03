"""An API server as far as the gateway asks one, for journeys without a cluster.

It lists skills, a policy and nothing else, has the key of the model providers, grants every review, and ends each SkillExecution as the skill's program would.
"""

import base64
import itertools
import json
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

# A token for the gateway by its form: its claims are `{"aud":"skillet"}`.
TOKEN = "e30.eyJhdWQiOiJza2lsbGV0In0.c2ln"
NAMESPACE = "journeys"
GROUP = "skillet.dev/v1alpha1"
KEY_SECRET = "provider-key"
MADE = "2026-01-01T00:00:00Z"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
SCHEMA = {
    "type": "object", "properties": {"text": {"type": "string"}, "unit": {"type": "string"}}, "required": ["text"],
    "additionalProperties": False,
}
PROGRAMS = {
    "word-count": ("Counts the words of a text.", lambda text: {"words": len(text.split()), "text": text}),
    # A person confirms its calls.
    "word-tally": ("Tallies the words of a text.", lambda text: {"words": len(text.split()), "text": text}),
    "upside-down": ("Reverses characters.", lambda text: {"reversed": text[::-1]}),
}
# Skills that models read: their texts, and the files of their bundles.
GUIDES = {
    "release-notes": (
        "Writes release notes from a git log.",
        "Read references/style.md, then count the changes with scripts/count.py.",
        {"references/style.md": "Short lines, breaking changes first.", "scripts/count.py": "print('3 changes')"},
    ),
}
# As long as a short program takes, so that a stream has a pause.
RUN_SECONDS = 0.02
HYBRID = ("word-tally",)
SKILLS = [*PROGRAMS, *GUIDES]


def metadata(name, kind, **fields):
    return {
        "name": name, "namespace": NAMESPACE, "uid": f"{kind}-{name}", "resourceVersion": "1", "generation": 1,
        "creationTimestamp": MADE, **fields,
    }


def content(name):
    if name in GUIDES:
        description, body, files = GUIDES[name]
        bundle = [{"path": path, "content": text} for path, text in files.items()]
        return {"description": description, "instructions": {"body": body}, "files": bundle, "invocation": "auto"}
    return {
        "description": PROGRAMS[name][0], "tool": {"inputSchema": SCHEMA},
        "run": {"sandbox": {"runtime": "python", "script": "print()"}}, "limits": {"timeout": "10s", "memory": "128Mi"},
        "invocation": "hybrid" if name in HYBRID else "auto",
    }


def skill(name):
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": 1, "lastTransitionTime": MADE}
        for kind in ("Ready", "Sealed")
    ]
    status = {"observedGeneration": 1, "latestVersion": "1.0.0", "versions": ["1.0.0"], "digest": DIGEST, "conditions": conditions}
    spec = {**content(name), "version": "1.0.0", "mode": "on"}
    return {"apiVersion": GROUP, "kind": "Skill", "metadata": metadata(name, "skill"), "spec": spec, "status": status}


def version(name):
    owner = {
        "apiVersion": GROUP, "kind": "Skill", "name": name, "uid": f"skill-{name}", "controller": True, "blockOwnerDeletion": True,
    }
    labels = {"skillet.dev/skill": name, "app.kubernetes.io/managed-by": "skillet"}
    spec = {**content(name), "skill": name, "version": "1.0.0", "digest": DIGEST}
    meta = metadata(f"{name}-1.0.0", "version", labels=labels, ownerReferences=[owner])
    return {"apiVersion": GROUP, "kind": "SkillVersion", "metadata": meta, "spec": spec}


def policy(base_url):
    """All callers share the platform's key, as in most installations, and each namespace has its own stored responses.

    Gemini's cached contents are not bound to a namespace, so its clients have keys of their own.
    """
    shared = {"baseUrl": base_url, "keySecret": {"name": KEY_SECRET, "key": "key"}}
    providers = {"openai": shared, "anthropic": shared, "gemini": {"baseUrl": base_url}}
    meta = {"name": "default", "uid": "policy", "resourceVersion": "1"}
    return {"apiVersion": GROUP, "kind": "SkillPolicy", "metadata": meta, "spec": {"gateway": {"providers": providers}}}


class Cluster:
    def __init__(self, base_url):
        self.lists = {
            "skills": [skill(name) for name in SKILLS], "skillversions": [version(name) for name in SKILLS],
            "skillpolicies": [policy(base_url)],
        }
        self.executions, self.watchers = {}, []
        self.versions = itertools.count(2)
        self.lock = threading.Lock()

    def tell(self, kind, execution):
        execution["metadata"]["resourceVersion"] = str(next(self.versions))
        event = json.dumps({"type": kind, "object": execution})
        for watcher in self.watchers:
            watcher.put(event)

    def create(self, execution):
        """The created execution; None if there is one of its name."""
        with self.lock:
            meta = execution["metadata"]
            number = next(self.versions)
            meta.setdefault("name", f"{meta.get('generateName', '')}{number}")
            if meta["name"] in self.executions:
                return None
            meta |= {"uid": f"execution-{number}", "creationTimestamp": MADE, "generation": 1}
            self.executions[meta["name"]] = execution
            self.tell("ADDED", execution)
        threading.Thread(target=self.run, args=(execution,), daemon=True).start()
        return execution

    def run(self, execution):
        time.sleep(RUN_SECONDS)
        spec = execution["spec"]
        output = {"output": "3 changes\n"} if "script" in spec else PROGRAMS[spec["skill"]][1](spec.get("input", {}).get("text", ""))
        finished = [
            {"type": kind, "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": MADE}
            for kind in ("Finished", "Succeeded")
        ]
        with self.lock:
            execution["status"] = {
                "phase": "Succeeded", "reason": "Succeeded", "attempts": 1, "resolvedVersion": "1.0.0", "output": output,
                "exitCode": 0, "conditions": finished, "startedAt": "2026-01-01T00:00:00.000000Z",
                "finishedAt": "2026-01-01T00:00:00.020000Z", "durationMs": 20, "job": "job", "pod": "pod",
            }
            self.tell("MODIFIED", execution)

    def runs(self, text):
        """How many executions have this text as their input, or as the argument of their script."""
        with self.lock:
            specs = [it["spec"] for it in self.executions.values()]
        return sum(1 for it in specs if (it.get("input") or {}).get("text") == text or it.get("script", {}).get("args") == [text])

    def start(self):
        """Serves until the process ends; the port."""
        handler = type("Handler", (Api,), {"cluster": self})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        # A gateway that is stopped leaves its connections as they are.
        server.handle_error = lambda *_: None
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.server_port


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster = None

    def do_GET(self):
        url = urlsplit(self.path)
        parts = url.path.strip("/").split("/")
        query = parse_qs(url.query)
        if "watch" in query:
            return self.watch(parts[-1])
        if parts[-2:] == ["secrets", KEY_SECRET]:
            data = {"key": base64.b64encode(b"platform").decode()}
            return self.send(200, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": KEY_SECRET}, "data": data})
        if len(parts) > 2 and parts[-2] == "skillexecutions":
            found = self.cluster.executions.get(parts[-1])
            return self.send(200, found) if found else self.refuse(404, "NotFound")
        if len(parts) > 2 and parts[-2] == "skillversions":
            found = next((it for it in self.cluster.lists["skillversions"] if it["metadata"]["name"] == parts[-1]), None)
            return self.send(200, found) if found else self.refuse(404, "NotFound")
        listed = list(self.cluster.executions.values()) if parts[-1] == "skillexecutions" else self.cluster.lists.get(parts[-1], [])
        if "labelSelector" in query:
            label, _, value = query["labelSelector"][0].partition("=")
            listed = [it for it in listed if it["metadata"].get("labels", {}).get(label) == value]
        return self.send(200, {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": listed})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        plural = urlsplit(self.path).path.rsplit("/", 1)[-1]
        if plural == "skillexecutions":
            created = self.cluster.create(body)
            return self.send(201, created) if created else self.refuse(409, "AlreadyExists")
        account = f"system:serviceaccount:{NAMESPACE}"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
        granted = {"allowed": True, "authenticated": True, "audiences": ["skillet"], "user": {"username": f"{account}:agent", "groups": groups}}
        return self.send(201, {**body, "status": granted})

    def do_PATCH(self):
        patch = json.loads(self.rfile.read(int(self.headers["content-length"])))
        found = self.cluster.executions.get(urlsplit(self.path).path.rsplit("/", 1)[-1])
        for part in ("labels", "annotations") if found else ():
            found["metadata"].setdefault(part, {}).update(patch.get("metadata", {}).get(part, {}))
        return self.send(200, found) if found else self.refuse(404, "NotFound")

    def watch(self, plural):
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        events = queue.Queue()
        if plural == "skillexecutions":
            with self.cluster.lock:
                self.cluster.watchers.append(events)
        try:
            while True:
                data = events.get().encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
        except OSError:
            self.close_connection = True

    def refuse(self, code, reason):
        self.send(code, {"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "code": code, "message": reason})

    def send(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass
