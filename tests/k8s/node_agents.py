"""Simulates the device plugins of many nodes: shortly after a pod was bound, it writes the annotations that its node's plugin
would write. It is a separate program, so that it does not take CPU time from the process that measures:

    node_agents.py URL CA TOKEN     prints "NAME SECONDS" when it sees that a pod is bound; SECONDS is time.time()
"""

import http.client
import json
import queue
import ssl
import sys
import threading
import time
import urllib.parse

LOCK, PHASE = "hami.io/mutex.lock", "hami.io/bind-phase"
DELAY_S = 0.2  # from the binding to Allocate
WORKERS = 8


class Server:
    """A client of the API server with one persistent connection."""

    def __init__(self, url, ca, token):
        self.at = urllib.parse.urlsplit(url).netloc
        self.context = ssl.create_default_context(cafile=ca)
        self.headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self.connection = None

    def open(self):
        self.connection = http.client.HTTPSConnection(self.at, timeout=600, context=self.context)

    def ask(self, method, path, body=None, kind="application/json"):
        """(status, the object). Reconnects once if the server has closed the connection."""
        for left in (1, 0):
            try:
                if not self.connection:
                    self.open()
                self.connection.request(method, path, body and json.dumps(body), {**self.headers, "Content-Type": kind})
                answer = self.connection.getresponse()
                return answer.status, json.loads(answer.read())
            except (OSError, http.client.HTTPException):
                self.connection = None
                if not left:
                    raise

    def watch(self, path):
        """Yields all objects, then each that is added or changed. Lists again whenever the watch ends; skips deletions."""
        while True:
            _, found = self.ask("GET", path)
            yield from found["items"]
            version = found["metadata"]["resourceVersion"]
            try:
                self.open()
                self.connection.request("GET", f"{path}?watch=1&resourceVersion={version}", headers=self.headers)
                for line in self.connection.getresponse():
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        break
                    if event["type"] != "DELETED":
                        yield event["object"]
            except (OSError, http.client.HTTPException, ValueError):
                pass    # the connection ended, perhaps within a line
            self.connection = None


def finish_allocation(server, pod):
    """Marks all containers of the pod as allocated, and releases the node's lock for the next pod."""
    meta = pod["metadata"]
    node = f"/api/v1/nodes/{pod['spec']['nodeName']}"
    patch = "application/merge-patch+json"
    server.ask("PATCH", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}",
               {"metadata": {"annotations": {"hami.io/vgpu-devices-to-allocate": ";", PHASE: "success"}}}, patch)
    _, found = server.ask("GET", node)
    notes = found["metadata"]
    if notes.get("annotations", {}).get(LOCK, "").endswith(f",{meta['namespace']},{meta['name']}"):
        server.ask("PATCH", node, {"metadata": {"annotations": {LOCK: None}}}, patch)


def work(server, jobs):
    while True:
        due, pod = jobs.get()
        time.sleep(max(0, due - time.monotonic()))
        try:
            finish_allocation(server, pod)
        except (OSError, http.client.HTTPException):
            jobs.put((time.monotonic() + DELAY_S, pod))


def main():
    access = sys.argv[1:4]
    jobs = queue.Queue()
    for _ in range(WORKERS):
        threading.Thread(target=work, args=(Server(*access), jobs), daemon=True).start()
    seen = set()
    print("ready", flush=True)
    for pod in Server(*access).watch("/api/v1/pods"):
        uid = pod["metadata"]["uid"]
        if not pod["spec"].get("nodeName") or uid in seen:
            continue
        seen.add(uid)
        print(pod["metadata"]["name"], f"{time.time():.3f}", flush=True)
        if pod["metadata"].get("annotations", {}).get(PHASE) == "allocating":
            jobs.put((time.monotonic() + DELAY_S, pod))


if __name__ == "__main__":
    main()
