"""Device plugins for nodes without a kubelet: calls allotd's code for bindings (kube-binding) as a kubelet would, to allocate
the shares that the scheduler has written."""

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
        self.buffer = b""
        self.is_over = threading.Event()
        self.answers = []  # of kube-binding, one for each call
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def read_line(self):
        while b"\n" not in self.buffer:
            if not select.select([self.process.stdout], [], [], 20)[0]:
                return "error: kube-binding does not answer"
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                return "error: kube-binding has ended"
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode()

    def ask(self):
        """Calls kube-binding for the next container of the pod that is being bound, as a kubelet would, with arbitrary ids."""
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
        self.process.stdin.write(("allocate " + " ".join(f"{gpu}-0" for gpu in wanted[0]) + "\n").encode())
        answer = self.read_line()
        if answer.startswith("chosen"):
            self.answers.append(f"{answer}: {self.read_line()}")

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
