"""A device plugin's part of a binding, against a real API server: how it finds the pod of an Allocate call, and what it writes
once the pod has its shares."""

import os
import select
import subprocess
import time

import pytest

from machines import BUILD, wait_until
from door import Door

LOCK = "hami.io/mutex.lock"
PHASE = "hami.io/bind-phase"
TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"


class Node:
    """A node without kubelet and allotd: kube-binding is its device plugin."""

    def __init__(self, cluster, name, kubeconfig):
        self.cluster = cluster
        self.name = name
        self.path = f"/api/v1/nodes/{name}"
        cluster.make_node(name)
        self.plugin = subprocess.Popen([BUILD / "kube-binding", kubeconfig, name], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, bufsize=0)
        self.heard = b""

    def say(self, *words):
        self.plugin.stdin.write(" ".join(words).encode() + b"\n")

    def hear(self):
        """The next line."""
        while b"\n" not in self.heard:
            assert select.select([self.plugin.stdout], [], [], 20)[0], "kube-binding says nothing"
            more = os.read(self.plugin.stdout.fileno(), 65536)
            assert more, "kube-binding has ended"
            self.heard += more
        line, _, self.heard = self.heard.partition(b"\n")
        return line.decode()

    def bind(self, name, shares, bind_time=None, lock=True, **more):
        """As a scheduler does: lock, annotations, binding."""
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if lock:
            self.cluster.patch(self.path, {"annotations": {LOCK: f"{since},default,{name}"}})
        self.cluster.make_pod(name, self.name, {
            "hami.io/vgpu-node": self.name, PHASE: "allocating", "hami.io/bind-time":
            str(bind_time or int(time.time())), TO_ALLOCATE: shares, "hami.io/vgpu-devices-allocated": shares}, **more)
        self.say("wait", f"default/{name}")
        assert self.hear() == "known"

    def annotations(self, pod):
        return self.cluster.pod(pod)["metadata"]["annotations"]

    def is_locked(self):
        return LOCK in self.cluster.annotations(self.name)

    def allocate(self, *ids):
        """Until the watch, which may be behind the scheduler, shows whom it is for."""
        def ask():
            self.say("allocate", *ids)
            answer = self.hear()
            return None if "has not shown to allotd yet" in answer or "no pod is being bound" in answer else answer

        return wait_until(ask, what="an answer")


@pytest.fixture
def door(cluster):
    door = Door(cluster.port)
    yield door
    door.close()


@pytest.fixture
def node(request, cluster, door):
    name = request.node.name.replace("_", "-")
    node = Node(cluster, name, cluster.kubeconfig(f"{name}.conf", door.port))
    yield node
    node.plugin.stdin.close()
    ended = node.plugin.wait(timeout=20)
    node.plugin.stdout.close()
    assert ended == 0


def test_containers_one_after_the_other(node):
    node.bind("three", "GPU-a,NVIDIA,3000,0:;;GPU-b,NVIDIA,500,10:GPU-a,NVIDIA,100,20:;", containers=("main", "log"),
              init=("fetch",))
    assert node.allocate("GPU-a-4") == "chosen default/three fetch GPU-a:3000:0 agree"
    assert node.hear() == "written"
    annotations = node.annotations("three")
    assert annotations[TO_ALLOCATE] == ";;GPU-b,NVIDIA,500,10:GPU-a,NVIDIA,100,20:;"
    assert annotations[PHASE] == "allocating"
    assert node.is_locked(), "others of its containers wait for theirs"

    def second():
        node.say("allocate", "GPU-b-1", "GPU-b-2")
        answer = node.hear()
        return answer if "log" in answer else None

    assert wait_until(second) == "chosen default/three log GPU-b:500:10,GPU-a:100:20 differ"
    assert node.hear() == "written"
    annotations = node.annotations("three")
    assert annotations[TO_ALLOCATE] == ";;;"
    assert annotations[PHASE] == "success"
    assert annotations["hami.io/vgpu-devices-allocated"].startswith("GPU-a,NVIDIA,3000,0:;;")
    assert not node.is_locked()


def test_lock_of_another_pod_stays(node):
    """Without a lock of its own the only pod that is being bound is meant; that of others is not released."""
    node.bind("unlocked", "GPU-a,NVIDIA,1,2:;", lock=False)
    old = "2026-01-01T00:00:00Z,default,somebody"
    node.cluster.patch(node.path, {"annotations": {LOCK: old}})
    assert node.allocate("GPU-a-0").startswith("chosen default/unlocked main")
    assert node.hear() == "written"
    assert node.annotations("unlocked")[PHASE] == "success"
    assert node.cluster.annotations(node.name)[LOCK] == old


def test_failure(node):
    node.bind("failing", "GPU-a,NVIDIA,1,2:;")
    node.say("fail", "default/failing")
    assert node.hear() == "written"
    assert node.annotations("failing")[PHASE] == "failed"
    assert node.annotations("failing")[TO_ALLOCATE] == "GPU-a,NVIDIA,1,2:;"
    assert not node.is_locked()


def test_somebody_is_faster(node, door):
    """The pod and the node have changed since they were read: nothing of that is lost."""
    node.bind("busy", "GPU-a,NVIDIA,1,2:;")
    answer = node.allocate("GPU-a-0")
    for beat in range(20):
        node.cluster.patch("/api/v1/namespaces/default/pods/busy", {"annotations": {"beat": str(beat)}})
        node.cluster.patch(node.path, {"annotations": {"beat": str(beat)}})
    assert answer.startswith("chosen default/busy")
    assert node.hear() == "written"
    assert node.annotations("busy")["beat"] == "19"
    assert node.cluster.annotations(node.name)["beat"] == "19"
    assert node.annotations("busy")[PHASE] == "success"
    assert not node.is_locked()


def test_server_is_away_meanwhile(node, door):
    node.bind("patient", "GPU-a,NVIDIA,1,2:;")
    door.shut()
    assert node.allocate("GPU-a-0").startswith("chosen default/patient")
    time.sleep(0.5)
    assert node.is_locked()
    door.unshut()
    assert node.hear() == "written"
    assert node.annotations("patient")[PHASE] == "success"
    assert not node.is_locked()


def test_pod_is_gone(node, door):
    node.bind("brief", "GPU-a,NVIDIA,1,2:;")
    door.shut()
    assert node.allocate("GPU-a-0").startswith("chosen default/brief")
    node.cluster.delete_pod("brief")
    door.unshut()
    assert node.hear() == "written"
    assert not node.is_locked(), "the lock is not its to keep"


def test_another_pod_of_that_name(node, door):
    node.bind("twice", "GPU-a,NVIDIA,1,2:;")
    door.shut()
    assert node.allocate("GPU-a-0").startswith("chosen default/twice")
    node.cluster.delete_pod("twice")
    node.cluster.make_pod("twice", node.name, {TO_ALLOCATE: "GPU-a,NVIDIA,1,2:;"})
    door.unshut()
    assert "was deleted and created again" in node.hear()
    assert PHASE not in node.annotations("twice")


def test_annotation_that_was_changed(node, door):
    node.bind("changed", "GPU-a,NVIDIA,1,2:;")
    door.shut()
    assert node.allocate("GPU-a-0").startswith("chosen default/changed")
    node.cluster.patch("/api/v1/namespaces/default/pods/changed", {"annotations": {TO_ALLOCATE: "GPU-b,NVIDIA,1,2:;"}})
    door.unshut()
    answer = node.hear()
    assert answer.startswith("error ") and "GPU-b,NVIDIA,1,2:;" in answer and "container 0 got its GPUs" in answer
    assert node.annotations("changed")[PHASE] == "allocating"


def test_disagreement_names_both_sides(node):
    node.bind("unequal", "GPU-a,NVIDIA,1,2:;")
    answer = node.allocate("GPU-a-0", "GPU-a-1")
    assert answer == ("error pod default/unequal: hami.io/vgpu-devices-to-allocate has 1 GPU shares for container main, "
                      "but the kubelet asks for 2 (GPU-a-0, GPU-a-1): create the pod anew")
    assert node.annotations("unequal")[TO_ALLOCATE] == "GPU-a,NVIDIA,1,2:;"


def test_nobody_is_being_bound(node):
    node.say("allocate", "GPU-a-0")
    assert node.hear() == (f"error no pod is being bound to node {node.name} by a scheduler that chooses GPUs, but the kubelet "
                           "asks for GPU-a-0: the pod needs allot-scheduler's schedulerName, which its webhook sets")
