"""A device plugin's part of a binding, with a real API server: how it finds the pod of an Allocate call, and which annotations
it writes when the pod has its shares."""

import os
import select
import subprocess
import time

import pytest

from machines import BUILD, wait_until
from api_proxy import ApiProxy

LOCK = "hami.io/mutex.lock"
PHASE = "hami.io/bind-phase"
TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"


class Node:
    """A node without a kubelet and allotd: kube-binding is its device plugin."""

    def __init__(self, cluster, name, kubeconfig):
        self.cluster = cluster
        self.name = name
        self.path = f"/api/v1/nodes/{name}"
        cluster.make_node(name)
        self.plugin = subprocess.Popen([BUILD / "kube-binding", kubeconfig, name], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, bufsize=0)
        self.buffer = b""

    def send(self, *words):
        self.plugin.stdin.write(" ".join(words).encode() + b"\n")

    def read_line(self):
        """The next line of kube-binding's output."""
        while b"\n" not in self.buffer:
            assert select.select([self.plugin.stdout], [], [], 20)[0], "kube-binding does not answer"
            more = os.read(self.plugin.stdout.fileno(), 65536)
            assert more, "kube-binding has ended"
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode()

    def bind(self, name, shares, bind_time=None, lock=True, **more):
        """Binds a pod as a scheduler does, and waits until kube-binding knows the pod."""
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if lock:
            self.cluster.patch(self.path, {"annotations": {LOCK: f"{since},default,{name}"}})
        self.cluster.make_pod(name, self.name, {
            "hami.io/vgpu-node": self.name, PHASE: "allocating", "hami.io/bind-time":
            str(bind_time or int(time.time())), TO_ALLOCATE: shares, "hami.io/vgpu-devices-allocated": shares}, **more)
        self.send("wait", f"default/{name}")
        assert self.read_line() == "known"

    def annotations(self, pod):
        return self.cluster.pod(pod)["metadata"]["annotations"]

    def is_locked(self):
        return LOCK in self.cluster.annotations(self.name)

    def allocate(self, *ids):
        """The answer to `allocate`. Repeats the call until the watch, which may lag behind, has reported the pod."""
        def ask():
            self.send("allocate", *ids)
            answer = self.read_line()
            return None if "has not shown to allotd yet" in answer or "no pod is being bound" in answer else answer

        return wait_until(ask, what="an answer")


@pytest.fixture
def proxy(cluster):
    proxy = ApiProxy(cluster.port)
    yield proxy
    proxy.close()


@pytest.fixture
def node(request, cluster, proxy):
    name = request.node.name.replace("_", "-")
    node = Node(cluster, name, cluster.kubeconfig(f"{name}.conf", proxy.port))
    yield node
    node.plugin.stdin.close()
    ended = node.plugin.wait(timeout=20)
    node.plugin.stdout.close()
    assert ended == 0


def test_containers_get_their_shares_one_after_the_other(node):
    node.bind("three", "GPU-a,NVIDIA,3000,0:;;GPU-b,NVIDIA,500,10:GPU-a,NVIDIA,100,20:;", containers=("main", "log"),
              init=("fetch",))
    assert node.allocate("GPU-a-4") == "chosen default/three fetch GPU-a:3000:0 agree"
    assert node.read_line() == "written"
    annotations = node.annotations("three")
    assert annotations[TO_ALLOCATE] == ";;GPU-b,NVIDIA,500,10:GPU-a,NVIDIA,100,20:;"
    assert annotations[PHASE] == "allocating"
    assert node.is_locked(), "the pod has containers that wait for their shares"

    def second():
        node.send("allocate", "GPU-b-1", "GPU-b-2")
        answer = node.read_line()
        return answer if "log" in answer else None

    assert wait_until(second) == "chosen default/three log GPU-b:500:10,GPU-a:100:20 differ"
    assert node.read_line() == "written"
    annotations = node.annotations("three")
    assert annotations[TO_ALLOCATE] == ";;;"
    assert annotations[PHASE] == "success"
    assert annotations["hami.io/vgpu-devices-allocated"].startswith("GPU-a,NVIDIA,3000,0:;;")
    assert not node.is_locked()


def test_lock_of_another_pod_is_not_released(node):
    """If the lock names no pod that is being bound, the only such pod is chosen. The other pod's lock is kept."""
    node.bind("unlocked", "GPU-a,NVIDIA,1,2:;", lock=False)
    old = "2026-01-01T00:00:00Z,default,somebody"
    node.cluster.patch(node.path, {"annotations": {LOCK: old}})
    assert node.allocate("GPU-a-0").startswith("chosen default/unlocked main")
    assert node.read_line() == "written"
    assert node.annotations("unlocked")[PHASE] == "success"
    assert node.cluster.annotations(node.name)[LOCK] == old


def test_failure_is_written_and_releases_the_lock(node):
    node.bind("failing", "GPU-a,NVIDIA,1,2:;")
    node.send("fail", "default/failing")
    assert node.read_line() == "written"
    assert node.annotations("failing")[PHASE] == "failed"
    assert node.annotations("failing")[TO_ALLOCATE] == "GPU-a,NVIDIA,1,2:;"
    assert not node.is_locked()


def test_concurrent_changes_are_kept(node, proxy):
    """The pod and the node have changed since they were read: no change is lost."""
    node.bind("busy", "GPU-a,NVIDIA,1,2:;")
    answer = node.allocate("GPU-a-0")
    for beat in range(20):
        node.cluster.patch("/api/v1/namespaces/default/pods/busy", {"annotations": {"beat": str(beat)}})
        node.cluster.patch(node.path, {"annotations": {"beat": str(beat)}})
    assert answer.startswith("chosen default/busy")
    assert node.read_line() == "written"
    assert node.annotations("busy")["beat"] == "19"
    assert node.cluster.annotations(node.name)["beat"] == "19"
    assert node.annotations("busy")[PHASE] == "success"
    assert not node.is_locked()


def test_write_waits_for_an_unreachable_server(node, proxy):
    node.bind("patient", "GPU-a,NVIDIA,1,2:;")
    proxy.refuse()
    assert node.allocate("GPU-a-0").startswith("chosen default/patient")
    time.sleep(0.5)
    assert node.is_locked()
    proxy.accept()
    assert node.read_line() == "written"
    assert node.annotations("patient")[PHASE] == "success"
    assert not node.is_locked()


def test_lock_of_a_deleted_pod_is_released(node, proxy):
    node.bind("brief", "GPU-a,NVIDIA,1,2:;")
    proxy.refuse()
    assert node.allocate("GPU-a-0").startswith("chosen default/brief")
    node.cluster.delete_pod("brief")
    proxy.accept()
    assert node.read_line() == "written"
    assert not node.is_locked(), "a deleted pod must not keep the lock"


def test_new_pod_of_the_same_name_is_not_written(node, proxy):
    node.bind("twice", "GPU-a,NVIDIA,1,2:;")
    proxy.refuse()
    assert node.allocate("GPU-a-0").startswith("chosen default/twice")
    node.cluster.delete_pod("twice")
    node.cluster.make_pod("twice", node.name, {TO_ALLOCATE: "GPU-a,NVIDIA,1,2:;"})
    proxy.accept()
    assert "was deleted and created again" in node.read_line()
    assert PHASE not in node.annotations("twice")


def test_changed_annotation_is_an_error(node, proxy):
    node.bind("changed", "GPU-a,NVIDIA,1,2:;")
    proxy.refuse()
    assert node.allocate("GPU-a-0").startswith("chosen default/changed")
    node.cluster.patch("/api/v1/namespaces/default/pods/changed", {"annotations": {TO_ALLOCATE: "GPU-b,NVIDIA,1,2:;"}})
    proxy.accept()
    answer = node.read_line()
    assert answer.startswith("error ") and "GPU-b,NVIDIA,1,2:;" in answer and "container 1 got its GPUs" in answer
    assert node.annotations("changed")[PHASE] == "allocating"


def test_device_count_mismatch_names_both_counts(node):
    node.bind("unequal", "GPU-a,NVIDIA,1,2:;")
    answer = node.allocate("GPU-a-0", "GPU-a-1")
    assert answer == ("error pod default/unequal: hami.io/vgpu-devices-to-allocate has 1 GPU shares for container main, "
                      "but the kubelet asks for 2 (GPU-a-0, GPU-a-1): create the pod anew")
    assert node.annotations("unequal")[TO_ALLOCATE] == "GPU-a,NVIDIA,1,2:;"


def test_call_without_a_pod_being_bound_is_refused(node):
    node.send("allocate", "GPU-a-0")
    assert node.read_line() == (
        f"error no pod is being bound to node {node.name} by a scheduler that chooses GPUs, but the kubelet "
        "asks for GPU-a-0: pods that request GPUs need allot-scheduler's schedulerName")
