"""Device plugins for nodes without a kubelet: calls allotd's code for bindings (kube-binding) as a kubelet would, to allocate
what the scheduler has written."""

import os
import select
import subprocess
import threading

from cluster import ApiError
from machines import BUILD

LOCK = "hami.io/mutex.lock"
TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"


class DevicePlugin:
    def __init__(self, cluster, node, kubeconfig):
        self.cluster = cluster
        self.node = node
        self.process = subprocess.Popen([BUILD / "kube-binding", kubeconfig, node], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, bufsize=0)
        self.heard = b""
        self.is_over = threading.Event()
        self.given = []  # what kube-binding said of each call
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def hear(self):
        while b"\n" not in self.heard:
            if not select.select([self.process.stdout], [], [], 20)[0]:
                return "error: kube-binding says nothing"
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                return "error: kube-binding has ended"
            self.heard += more
        line, _, self.heard = self.heard.partition(b"\n")
        return line.decode()

    def ask(self):
        """As a kubelet calls for each container of the pod that is being bound. The ids are any of that number."""
        lock = self.cluster.annotations(self.node).get(LOCK, "").split(",")
        if len(lock) != 3:
            return
        pod = self.cluster.pod(lock[2], lock[1])
        if pod["spec"].get("nodeName") != self.node:
            return
        shares = pod["metadata"]["annotations"].get(TO_ALLOCATE, "").split(";")
        wanted = [[share.split(",")[0] for share in container.split(":") if share] for container in shares if container]
        if not wanted:
            return
        self.process.stdin.write(("allocate " + " ".join(f"{card}-0" for card in wanted[0]) + "\n").encode())
        answer = self.hear()
        if answer.startswith("chosen"):
            self.given.append(f"{answer}: {self.hear()}")

    def work(self):
        while not self.is_over.wait(0.03):
            try:
                self.ask()
            except (ApiError, OSError):
                pass

    def stop(self):
        self.is_over.set()
        self.thread.join(timeout=30)
        self.process.stdin.close()
        ended = self.process.wait(timeout=20)
        self.process.stdout.close()
        return ended
