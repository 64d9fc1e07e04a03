"""The gateway as a process of its own, before an API server of this process and the strict provider."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from cluster import Cluster

MODEL = Path(__file__).resolve().parent.parent / "model" / "model.py"
READY_SECONDS = 60


def free_address():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=1) as response:
            return response.status == 200
    except (OSError, urllib.error.URLError):
        return False


class Stack:
    """`url` is the gateway's; without a program it is the provider's own."""

    def __init__(self, program, folder):
        self.children = []
        address = free_address()
        self.provider = f"http://{address}"
        self.cluster, self.url = None, self.provider
        command = [sys.executable, "-u", str(MODEL), address.rsplit(":", 1)[1]]
        try:
            self.begin(command, folder / "provider.log", f"{self.provider}/healthz", None)
            if program:
                self.begin_gateway(program, folder)
        except BaseException:
            self.stop()
            raise

    def begin_gateway(self, program, folder):
        self.cluster = Cluster(self.provider)
        port = self.cluster.start()
        config = folder / "kubeconfig"
        config.write_text(json.dumps(kubeconfig(port)))
        address, probes = free_address(), free_address()
        self.url = f"http://{address}"
        key = folder / "confirmation-key"
        key.write_text("k" * 64)
        command = [program, "gateway", "--gateway-address", address, "--gateway-probes-address", probes]
        command += ["--confirmation-key-file", str(key)]
        self.begin(command, folder / "gateway.log", f"http://{probes}/readyz", {"KUBECONFIG": str(config)})

    def begin(self, command, log, ready, environment):
        with open(log, "wb") as out:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)
        self.children.append(child)
        until = time.monotonic() + READY_SECONDS
        while not answers(ready):
            if child.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{command[0]} is not ready: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def stop(self):
        for child in self.children:
            child.kill()
            child.wait()


def kubeconfig(port):
    def named(kind, value):
        return [{"name": "journeys", kind: value}]

    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "journeys", "users": named("user", {}),
        "clusters": named("cluster", {"server": f"http://127.0.0.1:{port}"}),
        "contexts": named("context", {"cluster": "journeys", "user": "journeys"}),
    }
