"""Starts allot-scheduler for a test, sends it requests over HTTP and HTTPS, and ends it."""

import base64
import http.client
import json
import re
import ssl
import subprocess

from machines import BUILD, wait_until

PROGRAM = BUILD / "allot-scheduler"


def run_scheduler(*arguments):
    """Runs allot-scheduler with arguments after which it ends by itself."""
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)


def issue(folder, *arguments):
    """Makes a certificate and a key in `folder` by `allot-scheduler --issue`. Returns the caBundle."""
    done = run_scheduler("--issue", folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Scheduler:
    def __init__(self, folder, settings="", tls=True):
        folder.mkdir(exist_ok=True)
        self.log = folder / "log"
        self.certificate = folder / "tls.crt"
        self.key = folder / "tls.key"
        if tls and not self.certificate.exists():
            issue(folder, "--names", "localhost,127.0.0.1")
        secure = f"https_listen = 127.0.0.1:0\ntls_certificate = {self.certificate}\ntls_key = {self.key}\n"
        (folder / "settings").write_text(f"http_listen = 127.0.0.1:0\n{secure if tls else ''}{settings}")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([PROGRAM, "--config", folder / "settings"], stdin=subprocess.DEVNULL,
                                            stderr=log)
        self.http = self.address("http")
        self.https = self.address("https") if tls else None

    def address(self, kind):
        def find_address():
            assert self.process.poll() is None, self.log.read_text()
            found = re.search(rf"serves {kind} at (\S+)", self.log.read_text())
            return found and found[1]

        return wait_until(find_address, what=f"{kind} being served")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        status = self.process.wait(timeout=20)
        assert status == 0, self.log.read_text()

    def connect(self, certificate=None):
        """Connects by TLS, and verifies the server against `certificate`, which is its own by default."""
        context = ssl.create_default_context(cafile=certificate or self.certificate)
        return http.client.HTTPSConnection(self.https, timeout=20, context=context)

    def ask(self, method, path, body=None, connection=None, certificate=None):
        """Returns (status, bytes of the answer)."""
        own = connection or self.connect(certificate)
        try:
            own.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = own.getresponse()
            return answer.status, answer.read()
        finally:
            if not connection:
                own.close()

    def post(self, path, value):
        status, answer = self.ask("POST", path, json.dumps(value))
        return status, json.loads(answer)

    def bind(self, pod, node):
        """Returns the error of /bind, or "" on success. Repeats the request until the scheduler knows pod and node from its
        watches."""
        meta = pod["metadata"]

        def answer():
            status, result = self.post("/bind", {"PodName": meta["name"], "PodNamespace": meta["namespace"],
                                                 "PodUID": meta["uid"], "Node": node})
            assert status == 200
            return None if "is not known" in result["Error"] else result

        return wait_until(answer, what=f"{meta['name']} and {node} being known")["Error"]


def review(pod, namespace="default", uid="u-1"):
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": uid, "operation": "CREATE", "namespace": namespace,
                        "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": pod}}


def gpu_pod(limits, **spec):
    return {"metadata": {"name": "p"},
            "spec": {"containers": [{"name": "main", "image": "i", "resources": {"limits": limits}}], **spec}}


def patch_of(answer):
    return json.loads(base64.b64decode(answer["response"]["patch"]))
