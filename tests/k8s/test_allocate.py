"""allotd with HAMi's resource names and annotations, end to end, with a real API server. The test binds pods as a scheduler
does, and a test kubelet, which uses gRPC's own library, calls Allocate with arbitrary devices."""

import json
import os
import re
import signal
import socket
import threading
import time

import pytest

from daemon import Daemon
from machines import wait_until
from api_proxy import ApiProxy
from kubelet import Kubelet, grpc
from test_binding import LOCK, PHASE, TO_ALLOCATE
from test_node import REGISTER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon needs root")

MIB = 1 << 20
ALLOCATED = "hami.io/vgpu-devices-allocated"
PRIORITY = "nvidia.com/priority"


class Node:
    def __init__(self, cluster, proxy, directory, name, settings="", **more):
        self.cluster = cluster
        self.path = f"/api/v1/nodes/{name}"
        self.name = name
        cluster.make_node(name)
        plugins = directory / "plugins"
        plugins.mkdir()
        self.kubelet = Kubelet(plugins).start()
        self.proxy = proxy
        self.daemon = Daemon(
            directory, cluster.kubeconfig(f"{name}.conf", proxy.port), name, is_private=False, settings=(
                f"kube_plugin = on\nkube_plugin_dir = {plugins}\nkube_vocabulary = hami\nkube_pod_resources = none\n"
                f"kube_slice_limit = hard\nstate_dir = {directory}/state\nwatch_tasks = off\n{settings}"), **more)
        self.daemon.start()
        self.plugin = self.kubelet.wait_registered()

    def ask(self, op, **more):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.daemon.run_dir / "allotd.sock"))
            s.sendall(json.dumps({"version": 1, "op": op, **more}).encode() + b"\n")
            return json.loads(s.makefile().readline())

    def uuids(self):
        return [device["uuid"] for device in self.ask("list")["devices"]]

    def tenants(self):
        return {tenant["name"]: tenant for tenant in self.ask("list")["tenants"]}

    def bind(self, name, shares, lock=True, since_s=None, annotations=None, **more):
        """Binds a pod as a scheduler does: writes the node's lock, the annotations and the binding."""
        if lock:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self.cluster.patch(self.path, {"annotations": {LOCK: f"{stamp},default,{name}"}})
        return self.cluster.make_pod(name, self.name, {
            "hami.io/vgpu-node": self.name, PHASE: "allocating", TO_ALLOCATE: shares, ALLOCATED: shares,
            "hami.io/bind-time": str(since_s or int(time.time())), **(annotations or {})}, **more)

    def annotations(self, pod):
        return self.cluster.pod(pod)["metadata"]["annotations"]

    def is_locked(self):
        return LOCK in self.cluster.annotations(self.name)


@pytest.fixture
def make_node(request, cluster, tmp_path):
    proxy = ApiProxy(cluster.port)
    made = []

    def make(settings="", **more):
        """`more`: arguments of Daemon."""
        name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
        made.append(Node(cluster, proxy, tmp_path, name, settings, **more))
        return made[-1]

    yield make
    for node in made:
        alive = node.daemon.is_alive()
        node.kubelet.stop()
        node.daemon.stop()
        # MPS groups with claims keep running without a daemon, as designed.
        for record in (node.daemon.run_dir / "mps").glob("*.json"):
            pid = json.loads(record.read_text())["pid"]
            if pid and os.path.exists(f"/proc/{pid}"):
                os.kill(pid, signal.SIGKILL)
        assert alive, node.daemon.log
    proxy.close()


def quotas(tenant):
    return [(device["uuid"], device["memory_quota_bytes"] // MIB, device["cores_pct"], device["cores_limit_pct"])
            for device in tenant["devices"]]


def test_pod_gets_the_shares_that_its_scheduler_wrote(make_node):
    """The devices that the kubelet has picked do not matter."""
    node = make_node()
    first, second = node.uuids()
    assert len(node.kubelet.watch.last) == 20
    node.bind("p-one", f"{second},NVIDIA,3000,30:;")
    (answer,) = node.plugin.allocate([f"{first}-4"])
    (tenant,) = node.tenants().values()
    assert tenant["name"] == "default.p-one.main" and quotas(tenant) == [(second, 3000, 30, 30)]
    assert answer.env["CUDA_DEVICE_MEMORY_LIMIT_0"] == "3000m"
    assert any(inside == "/run/allot/tenant" for inside, _, _ in answer.mounts)
    # The pod was updated before the kubelet got its answer.
    assert node.annotations("p-one")[TO_ALLOCATE] == ";" and node.annotations("p-one")[PHASE] == "success"
    wait_until(lambda: not node.is_locked(), what="the lock's release")
    assert node.annotations("p-one")[ALLOCATED] == f"{second},NVIDIA,3000,30:;"


@pytest.mark.parametrize("is_bound", [True, False])
def test_shutdown_waits_for_pods_that_are_being_bound(make_node, is_bound):
    """The daemon withdraws its GPUs, and still serves a pod that has locked the node: the kubelet would fail it for good."""
    node, pod = make_node(), f"p-way-{int(is_bound)}"
    first, _ = node.uuids()
    wait_until(lambda: REGISTER in node.cluster.annotations(node.name), what="the GPUs")
    if is_bound:
        node.bind(pod, f"{first},NVIDIA,3000,30:;")
    else:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        node.cluster.patch(node.path, {"annotations": {LOCK: f"{stamp},default,{pod}"}})
    daemon = node.daemon.processes[-1]
    daemon.send_signal(signal.SIGTERM)
    wait_until(lambda: REGISTER not in node.cluster.annotations(node.name), what="the withdrawal of the GPUs")
    if not is_bound:
        node.bind(pod, f"{first},NVIDIA,3000,30:;", lock=False)
    time.sleep(0.5)
    node.plugin.allocate([f"{first}-4"])
    assert node.annotations(pod)[PHASE] == "success"
    assert daemon.wait(timeout=60) == 0 and not node.is_locked()
    assert "the kubelet may fail that pod" not in node.daemon.log
    node.daemon.start()


def test_shutdown_before_the_node_was_read(make_node):
    """The daemon withdraws the GPUs that the one before it has published, and serves a pod that was bound to them."""
    node = make_node()
    first, _ = node.uuids()
    wait_until(lambda: REGISTER in node.cluster.annotations(node.name), what="the GPUs")
    node.daemon.stop()
    node.bind("p-early", f"{first},NVIDIA,3000,30:;")
    node.proxy.passing.clear()
    node.daemon.start()
    plugin = node.kubelet.wait_registered(2)
    node.daemon.processes[-1].send_signal(signal.SIGTERM)
    wait_until(lambda: "signal 15" in node.daemon.log, what="the shutdown")
    node.proxy.passing.set()
    plugin.allocate([f"{first}-4"])
    assert node.annotations("p-early")[PHASE] == "success"
    assert node.daemon.processes[-1].wait(timeout=60) == 0
    assert REGISTER not in node.cluster.annotations(node.name)
    node.daemon.start()


def test_shutdown_does_not_wait_for_ever(make_node):
    node = make_node()
    node.bind("p-never", f"{node.uuids()[0]},NVIDIA,3000,30:;")
    node.daemon.processes[-1].send_signal(signal.SIGTERM)
    assert node.daemon.processes[-1].wait(timeout=60) == 0
    assert "the kubelet may fail that pod" in node.daemon.log
    node.daemon.start()


def test_containers_get_their_shares_in_order(make_node):
    """The second call comes at once, when the watch may not yet have reported the changes of the first."""
    node = make_node()
    first, second = node.uuids()
    node.bind("p-three", f"{first},NVIDIA,3000,0:;;{second},NVIDIA,500,10:{first},NVIDIA,100,20:;",
              containers=("main", "log"), init=("fetch",))
    node.plugin.allocate([f"{first}-0"])
    node.plugin.allocate([f"{first}-1", f"{second}-0"])
    tenants = node.tenants()
    assert quotas(tenants["default.p-three.fetch"]) == [(first, 3000, 0, 100)]
    assert quotas(tenants["default.p-three.log"]) == [(second, 500, 10, 10), (first, 100, 20, 20)]
    assert node.annotations("p-three")[TO_ALLOCATE] == ";;;" and node.annotations("p-three")[PHASE] == "success"


def test_init_containers_and_others_share_the_same_room(make_node):
    """They never run at the same time, so each may have the whole GPU. That still holds after a restart of the daemon."""
    node = make_node()
    first, _ = node.uuids()
    (memory, _) = [device["memory_bytes"] // MIB for device in node.ask("list")["devices"]]
    whole = f"{first},NVIDIA,{memory},100:;"
    node.bind("p-stages", 3 * whole, init=("fetch", "check"))
    for number in range(3):
        node.plugin.allocate([f"{first}-{number}"])
    names = {f"default.p-stages.{name}" for name in ("fetch", "check", "main")}
    assert set(node.tenants()) == names
    gpu = node.ask("list")["devices"][0]
    assert gpu["promised_bytes"] == memory * MIB and gpu["promised_cores_pct"] == 100
    node.daemon.end()
    registrations = len(node.kubelet.registrations)
    node.daemon.start()
    node.plugin = node.kubelet.wait_registered(registrations + 1)
    assert {name: quotas(tenant) for name, tenant in node.tenants().items()} == dict.fromkeys(
        names, [(first, memory, 100, 100)])
    node.bind("p-other", f"{first},NVIDIA,1000,10:;")
    assert "does not fit" in node.plugin.refused([f"{first}-5"]).details()


def test_sidecars_need_room_of_their_own(make_node):
    node = make_node()
    first, _ = node.uuids()
    (memory, _) = [device["memory_bytes"] // MIB for device in node.ask("list")["devices"]]
    side = [{"name": "proxy", "image": "none", "restartPolicy": "Always"}, {"name": "fetch", "image": "none"}]
    node.bind("p-side", f"{first},NVIDIA,1000,10:;{first},NVIDIA,{memory - 1000},90:;{first},NVIDIA,{memory},50:;",
              more={"initContainers": side})
    node.plugin.allocate([f"{first}-0"])
    node.plugin.allocate([f"{first}-1"])
    assert "GPU 0: memory of" in node.plugin.refused([f"{first}-2"]).details()


def test_space_sharing_groups_pods_by_namespace_and_name(make_node):
    """A namespace is one group, a group name separates pods in it, and a container gets only its own group's MPS."""
    node = make_node()
    first, _ = node.uuids()
    pipes = {}
    for name, annotations in (("p-first", {"allot.dev/sharing": "space"}),
                              ("p-second", {"main.allot.dev/sharing": "space"}),
                              ("p-apart", {"allot.dev/sharing": "space", "allot.dev/group": "x"}),
                              ("p-turns", {})):
        node.bind(name, f"{first},NVIDIA,1000,25:;", annotations=annotations)
        (answer,) = node.plugin.allocate([f"{first}-{len(pipes)}"])
        pipes[name] = next((outside for inside, outside, _ in answer.mounts if inside == "/run/allot/mps"), None)
        assert answer.env.get("CUDA_MPS_PIPE_DIRECTORY") == ("/run/allot/mps" if annotations else None)
    mps = node.daemon.run_dir / "mps"
    assert pipes == {"p-first": f"{mps}/0-1/pipe", "p-second": f"{mps}/0-1/pipe", "p-apart": f"{mps}/0-2/pipe",
                     "p-turns": None}
    wait_until(lambda: {tenant["space"] and (tenant["space"]["group"], tenant["space"]["state"])
                        for tenant in node.tenants().values()} ==
               {("namespace/default", "ready"), ("namespace/default/x", "ready"), None}, what="both groups")
    # Users of the host can't reach it. Inside a container, whose user is not known, the directory is accessible.
    assert (mps / "0-1").stat().st_mode & 0o777 == 0o700 and (mps / "0-1/pipe").stat().st_mode & 0o777 == 0o755
    node.bind("p-both", f"{first},NVIDIA,1000,25:;", annotations={"allot.dev/sharing": "time", "allot.dev/group": "x"})
    assert "possible only with sharing 'space'" in node.plugin.refused([f"{first}-9"]).details()
    node.bind("p-auto", f"{first},NVIDIA,1000,25:;", annotations={"allot.dev/sharing": "auto"})
    assert "'auto': was removed; must be time or space" in node.plugin.refused([f"{first}-8"]).details()


def test_priorities_of_containers(make_node):
    """Each container has the priority of its own limits: HAMi's 0 is above the default; 1, or none, is the default."""
    node = make_node()
    first, _ = node.uuids()
    share = f"{first},NVIDIA,1000,10:;"
    node.bind("p-ranks", 4 * share, init=("fetch",), containers=("serve", "train", "log"),
              limits={"fetch": {PRIORITY: "1"}, "serve": {PRIORITY: "0"}, "train": {PRIORITY: "1"}})
    answers = [node.plugin.allocate([f"{first}-{i}"])[0] for i in range(4)]
    assert [answer.env["CUDA_TASK_PRIORITY"] for answer in answers] == ["1", "0", "1", "1"]
    priorities = {name: tenant["priority"] for name, tenant in node.tenants().items()}
    assert priorities == {"default.p-ranks.fetch": 0, "default.p-ranks.serve": 10, "default.p-ranks.train": 0,
                          "default.p-ranks.log": 0}
    node.bind("p-rank-2", share, limits={"main": {PRIORITY: "2"}})
    error = node.plugin.refused([f"{first}-5"])
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "limits: nvidia.com/priority" in error.details() and "'2'" in error.details(), error.details()
    wait_until(lambda: node.annotations("p-rank-2")[PHASE] == "failed", what="the bind-phase")
    assert len(node.tenants()) == 4


def test_allocate_waits_for_the_watch(make_node, cluster):
    """A call that arrives before the watch has reported the pod waits."""
    node = make_node()
    first, _ = node.uuids()
    answers = []
    caller = threading.Thread(target=lambda: answers.extend(node.plugin.allocate([f"{first}-0"])))
    caller.start()
    time.sleep(0.5)
    assert not answers and caller.is_alive()
    node.bind("p-late", f"{first},NVIDIA,1000,10:;")
    caller.join(timeout=30)
    assert len(answers) == 1 and list(node.tenants()) == ["default.p-late.main"]


def test_impossible_shares_are_refused_with_the_reason(make_node):
    """The kubelet gets the reason, the scheduler the failed phase, and no claim is left."""
    node = make_node()
    first, second = node.uuids()
    node.bind("p-much", f"{first},NVIDIA,999999,10:;")
    error = node.plugin.refused([f"{first}-0"])
    assert "pod default/p-much, container main" in error.details(), error.details()
    wait_until(lambda: node.annotations("p-much")[PHASE] == "failed", what="the bind-phase")
    wait_until(lambda: not node.is_locked(), what="the lock's release")
    node.bind("p-elsewhere", "GPU-of-another-node,NVIDIA,1000,10:;")
    error = node.plugin.refused([f"{first}-0"])
    assert "GPU-of-another-node is not a GPU of this node" in error.details()
    wait_until(lambda: node.annotations("p-elsewhere")[PHASE] == "failed", what="the bind-phase")
    assert node.tenants() == {} and not node.ask("claims")["claims"]
    # Other pods are served as before.
    node.bind("p-next", f"{second},NVIDIA,1000,10:;")
    assert node.plugin.allocate([f"{first}-0"])


def test_malformed_annotation_is_refused(make_node):
    node = make_node()
    first, _ = node.uuids()
    node.bind("p-broken", f"{first},NVIDIA,lots,10:;")
    error = node.plugin.refused([f"{first}-0"])
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and "lots" in error.details(), error.details()
    assert node.tenants() == {}


def test_call_for_several_containers_is_refused(make_node):
    node = make_node()
    first, second = node.uuids()
    error = node.plugin.refused([f"{first}-0"], [f"{second}-0"])
    assert "the kubelet's call is for 2 containers, and allotd answers calls for one only" in error.details()


def test_claim_lives_as_long_as_its_pod(make_node, cluster):
    """A full GPU is free again as soon as the pod is gone. The claim survives a restart of the daemon."""
    node = make_node()
    first, _ = node.uuids()
    memory = next(device["memory_bytes"] for device in node.ask("list")["devices"]) // MIB
    node.bind("p-whole", f"{first},NVIDIA,{memory},100:;")
    node.plugin.allocate([f"{first}-0"])
    node.daemon.processes[-1].send_signal(signal.SIGKILL)
    node.daemon.processes.pop().wait()
    registrations = len(node.kubelet.registrations)
    node.daemon.start()
    node.plugin = node.kubelet.wait_registered(registrations + 1)
    wait_until(lambda: list(node.tenants()) == ["default.p-whole.main"], what="the claim")
    time.sleep(2)
    assert list(node.tenants()) == ["default.p-whole.main"]
    cluster.delete_pod("p-whole")
    node.bind("p-after", f"{first},NVIDIA,{memory},100:;")
    node.plugin.allocate([f"{first}-0"])
    assert list(node.tenants()) == ["default.p-after.main"]
