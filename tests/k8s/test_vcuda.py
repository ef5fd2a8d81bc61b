"""allotd with gpu-manager's resource names and a real API server. A test kubelet, which uses gRPC's own library, allocates
cores and memory in separate calls, and serves the pod resources API, which lists the devices of each container."""

import json
import os
import random
import re
import signal
import socket
import threading
import time

import pytest

from daemon import Daemon
from machines import wait_until
from kubelet import Books, Kubelet, grpc
from test_binding import LOCK, PHASE, TO_ALLOCATE

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon needs root")

MIB = 1 << 20
UNIT_MIB = 256
CORE, MEMORY = "tencent.com/vcuda-core", "tencent.com/vcuda-memory"
LIMIT, INDEX = "tencent.com/vcuda-core-limit", "tencent.com/predicate-gpu-idx-"
ALLOCATED = "hami.io/vgpu-devices-allocated"
ASSIGNED, TIME = "tencent.com/gpu-assigned", "tencent.com/predicate-time"


class Node:
    def __init__(self, cluster, directory, name, settings="", cards="h200x2"):
        self.cluster, self.name, self.directory = cluster, name, directory
        cluster.make_node(name)
        plugins = directory / "plugins"
        plugins.mkdir()
        self.pod_resources = Books(directory / "pod-resources.sock")
        self.kubelet = Kubelet(plugins).start()
        self.free, self.pods = {}, []
        self.random = random.Random(4)
        self.daemon = Daemon(
            directory, cluster.kubeconfig(f"{name}.conf"), name, is_private=False, cards=cards, settings=(
                f"kube_plugin = on\nkube_plugin_dir = {plugins}\nkube_vocabulary = gpu-manager\n"
                f"kube_pod_resources = {directory}/pod-resources.sock\nstate_dir = {directory}/state\nwatch_tasks = off\n"
                f"claim_grace = 1s\n{settings}"))
        self.start(0)

    def start(self, registrations):
        self.daemon.start()
        self.kubelet.wait_registered(registrations + 2)
        for resource, watch in self.kubelet.watches.items():
            taken = {name for devices in self.pod_resources.held.values() for name in devices.get(resource, ())}
            self.free[resource] = sorted(set(watch.last) - taken)
            # The kubelet picks arbitrary devices.
            self.random.shuffle(self.free[resource])

    def restart(self):
        registrations = len(self.kubelet.registrations)
        self.daemon.processes[-1].send_signal(signal.SIGKILL)
        self.daemon.processes.pop().wait()
        self.start(registrations)

    # ---- pods ----

    def make_pod(self, name, annotations=None, **asks):
        """`asks`: CONTAINER=(cores, memory); those whose names begin with "init" are init containers."""
        limits = {container: {resource: str(count) for resource, count in zip((CORE, MEMORY), ask) if count}
                  for container, ask in asks.items()}
        self.pods.append(name)
        return self.cluster.make_pod(name, self.name, annotations,
                                     containers=[one for one in asks if not one.startswith("init")],
                                     init=[one for one in asks if one.startswith("init")], limits=limits)

    def delete_pod(self, name):
        self.cluster.delete_pod(name)
        self.pods.remove(name)

    def take(self, resource, count):
        taken, self.free[resource] = self.free[resource][:count], self.free[resource][count:]
        return taken

    def call(self, resource, ids):
        answer, = self.kubelet.plugins[resource].allocate(ids)
        return answer

    def refused(self, resource, count):
        """Calls Allocate for `count` devices, which must fail, and returns the gRPC error."""
        ids = self.take(resource, count)
        error = self.kubelet.plugins[resource].refused(ids)
        self.free[resource] += ids
        return error

    def admit(self, name, container="main", cores=0, memory=0, order=(CORE, MEMORY), is_recorded=True):
        """Admits a container as the kubelet does, with an Allocate call for each resource in this order. Returns the answer
        for the cores. `is_recorded`: whether the pod resources API then lists the devices."""
        ids = {CORE: self.take(CORE, cores), MEMORY: self.take(MEMORY, memory)}
        answers = {resource: self.call(resource, ids[resource]) for resource in order if ids[resource]}
        if is_recorded:
            self.pod_resources.held["default", name, container] = ids
        if MEMORY in answers:
            nothing = answers[MEMORY]
            assert (nothing.env, nothing.mounts, nothing.devices) == ({}, [], [])
        return answers.get(CORE)

    def has_started(self, name):
        """Sets the start time, as the kubelet does when it has admitted a pod."""
        self.status(name, {"startTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})

    def status(self, name, status):
        self.cluster.request("PATCH", f"/api/v1/namespaces/default/pods/{name}/status", {"status": status},
                             kind="application/merge-patch+json")

    # ---- allotd ----

    def ask(self, op):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.daemon.run_dir / "allotd.sock"))
            s.sendall(json.dumps({"version": 1, "op": op}).encode() + b"\n")
            return json.loads(s.makefile().readline())

    def uuids(self):
        return [device["uuid"] for device in self.ask("list")["devices"]]

    def tenants(self):
        """{name: [(gpu, MiB, cores, limit)]}"""
        return {tenant["name"]: [(device["uuid"], device["memory_quota_bytes"] // MIB, device["cores_pct"],
                                  device["cores_limit_pct"]) for device in tenant["devices"]]
                for tenant in self.ask("list")["tenants"]}

    def annotations(self, pod):
        return self.cluster.pod(pod)["metadata"].get("annotations", {})


@pytest.fixture
def make_node(request, cluster, tmp_path):
    made = []

    def make(settings="", cards="h200x2"):
        name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
        made.append(Node(cluster, tmp_path, name, settings, cards))
        return made[-1]

    yield make
    for node in made:
        alive = node.daemon.is_alive()
        node.kubelet.stop()
        node.daemon.stop()
        node.pod_resources.stop()
        for name in node.pods:
            node.cluster.delete_pod(name)
        assert alive, node.daemon.log


def test_two_resources_are_registered(make_node):
    node = make_node()
    assert set(node.kubelet.watches) == {CORE, MEMORY}
    cores, memory = node.kubelet.watches[CORE].last, node.kubelet.watches[MEMORY].last
    assert len(cores) == 200 and len(cores) < len(memory) < 2 * 144 * 4
    assert len(memory) == sum(device["memory_bytes"] // MIB // UNIT_MIB for device in node.ask("list")["devices"])
    assert all(len(name) <= 63 for name in [*cores, *memory])
    options = {fields[3].decode(): fields["options"] for _, fields in node.kubelet.registrations}
    assert options == {CORE: {2: 1}, MEMORY: {}}


@pytest.mark.parametrize("order", [(CORE, MEMORY), (MEMORY, CORE)])
def test_pod_with_a_part_of_a_gpu(make_node, order):
    """The order of the two calls does not matter."""
    node = make_node()
    node.make_pod("p", main=(30, 20))
    answer = node.admit("p", cores=30, memory=20, order=order)
    (name, (device,)), = node.tenants().items()
    assert name == "default.p.main" and device[1:] == (20 * UNIT_MIB, 30, 30) and device[0] in node.uuids()
    assert answer.env["CUDA_DEVICE_MEMORY_LIMIT_0"] == f"{20 * UNIT_MIB}m"
    assert any(inside == "/run/allot/tenant" for inside, _, _ in answer.mounts)
    index = str(node.uuids().index(device[0]))
    wait_until(lambda: node.annotations("p").get(ASSIGNED) == "true", what="the annotations")
    assert node.annotations("p")[f"{INDEX}0"] == index


def test_soft_limits_whole_gpus_and_parts_of_two(make_node):
    """Pods with a soft limit, with whole GPUs with and without a memory quota, and with parts of two GPUs."""
    node = make_node(cards="dgx-a100")
    memory = node.ask("list")["devices"][0]["memory_bytes"] // MIB
    node.make_pod("soft", {LIMIT: "50"}, main=(30, 20))
    node.admit("soft", cores=30, memory=20)
    node.make_pod("whole", main=(100, 40))
    node.admit("whole", cores=100, memory=40)
    node.make_pod("wholes", main=(200, 0))
    node.admit("wholes", cores=200)
    node.make_pod("parts", {"allot.dev/cards": "2"}, main=(60, 41))
    node.admit("parts", cores=60, memory=41)
    node.make_pod("both", {"two.allot.dev/cards": "2"}, one=(10, 4), two=(150, 8))
    node.admit("both", "one", cores=10, memory=4)
    node.admit("both", "two", cores=150, memory=8)
    seen = {name.removeprefix("default."): devices for name, devices in node.tenants().items()}
    assert [device[1:] for device in seen["soft.main"]] == [(20 * UNIT_MIB, 30, 50)]
    assert [device[1:] for device in seen["whole.main"]] == [(40 * UNIT_MIB, 100, 100)]
    assert [device[1:] for device in seen["wholes.main"]] == [(memory, 100, 100)] * 2
    assert [device[1:] for device in seen["parts.main"]] == [(41 * UNIT_MIB // 2, 30, 30)] * 2
    assert [device[1:] for device in seen["both.one"]] == [(4 * UNIT_MIB, 10, 10)]
    assert [device[1:] for device in seen["both.two"]] == [(4 * UNIT_MIB, 75, 75)] * 2
    of_whole = [device[0] for name in ("whole.main", "wholes.main") for device in seen[name]]
    others = [device[0] for name, devices in seen.items() if not name.startswith("whole") for device in devices]
    assert len(set(of_whole)) == 3 and not set(of_whole) & set(others)


def test_preferred_devices_are_those_of_the_chosen_gpus(make_node):
    """GetPreferredAllocation returns devices of the GPUs that the pod's scheduler, or allotd, has chosen."""
    node = make_node(cards="dgx-a100")
    uuids, plugin = node.uuids(), node.kubelet.plugins[CORE]

    def preferred_gpus(count):
        return {name.rpartition("-")[0] for name in plugin.prefer(node.free[CORE], count)}

    assert len(preferred_gpus(30)) == 1       # no pod is known yet
    node.make_pod("p", predicate("6"), main=(30, 20))
    wait_until(lambda: preferred_gpus(30) == {uuids[6]}, what="the scheduler's GPU")
    node.make_pod("two", predicate("1,3"), main=(40, 20))
    wait_until(lambda: preferred_gpus(40) == {uuids[1], uuids[3]}, what="the scheduler's GPUs")


def test_request_that_fits_on_no_gpu_is_refused(make_node):
    """The kubelet has enough free devices in total, but no GPU has enough."""
    node = make_node()
    for name, ask in {"a": (60, 40), "b": (60, 40)}.items():
        node.make_pod(name, main=ask)
        node.admit(name, cores=60, memory=40)
    assert len({devices[0][0] for devices in node.tenants().values()}) == 2
    node.make_pod("c", main=(50, 4))
    error = node.refused(CORE, 50)
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "pod default/c, container main: 1 GPU with enough room is needed" in error.details(), error.details()
    assert "2/2 CardInsufficientCore" in error.details(), error.details()
    assert len(node.ask("claims")["claims"]) == 2


def make_full_node(make_node):
    """A node whose two GPUs are used by the pods "a" and "b"; the pod "c" does not fit beside either."""
    node = make_node()
    for name in ("a", "b"):
        node.make_pod(name, main=(80, 40))
        node.admit(name, cores=80, memory=40)
    node.make_pod("c", main=(50, 4))
    return node


def test_allocate_waits_for_a_deleted_pods_devices(make_node):
    """A deleted pod is still in the pod resources API, or in allotd's copy of it. The call waits until it is removed."""
    node = make_full_node(make_node)
    asked = node.pod_resources.asked
    wait_until(lambda: node.pod_resources.asked > asked, 60, "the pod resources to be read")
    node.delete_pod("a")
    node.free[CORE] += node.pod_resources.held["default", "a", "main"][CORE]
    answers = []
    ids = node.take(CORE, 50)
    thread = threading.Thread(target=lambda: answers.append(node.call(CORE, ids)))
    thread.start()
    thread.join(1)
    assert thread.is_alive()
    del node.pod_resources.held["default", "a", "main"]
    thread.join(30)
    assert answers and answers[0].env
    node.pod_resources.held["default", "c", "main"] = {CORE: ids}
    assert set(node.tenants()) == {"default.b.main", "default.c.main"}
    # If the API keeps listing a deleted pod, the call is refused in the end.
    node.call(MEMORY, node.take(MEMORY, 4))
    node.make_pod("d", main=(70, 4))
    node.delete_pod("b")
    node.free[CORE] += node.pod_resources.held["default", "b", "main"][CORE]
    error = node.refused(CORE, 70)
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "2/2 CardInsufficientCore" in error.details(), error.details()


def test_allocate_waits_for_the_watch_to_report_a_deletion(make_node):
    """The kubelet reuses a pod's devices before the API server, or its watch, has reported the end of the pod."""
    node = make_full_node(make_node)
    node.free[CORE] += node.pod_resources.held.pop(("default", "a", "main"))[CORE]
    answers = []
    thread = threading.Thread(target=lambda: answers.append(node.call(CORE, node.take(CORE, 50))))
    thread.start()
    time.sleep(0.1)
    node.delete_pod("a")
    thread.join(30)
    assert answers and answers[0].env
    assert set(node.tenants()) == {"default.b.main", "default.c.main"}


def predicate(*gpus, node=None, assigned="false"):
    return {TIME: str(time.time_ns()), ASSIGNED: assigned, **({"tencent.com/predicate-node": node} if node else {}),
            **{f"{INDEX}{i}": gpu for i, gpu in enumerate(gpus)}}


def test_gpu_admissions_choice_is_used(make_node):
    """gpu-admission's annotations choose the GPUs. The refusal of an impossible choice names the values of both sides."""
    node = make_node(cards="dgx-a100")
    uuids = node.uuids()
    node.make_pod("p", predicate("3", "5", node=node.name), one=(30, 20), two=(40, 10))
    node.admit("p", "one", cores=30, memory=20)
    assert node.annotations("p")[ASSIGNED] == "false"
    node.admit("p", "two", cores=40, memory=10)
    seen = node.tenants()
    assert [seen[f"default.p.{one}"][0][0] for one in ("one", "two")] == [uuids[3], uuids[5]]
    wait_until(lambda: node.annotations("p")[ASSIGNED] == "true", what="the annotation")
    node.make_pod("wide", predicate("6,7"), main=(60, 40))
    node.admit("wide", cores=60, memory=40)
    assert node.tenants()["default.wide.main"] == [(uuid, 20 * UNIT_MIB, 30, 30) for uuid in uuids[6:]]
    for name, annotations, ask, parts in (
            ("taken", predicate("3"), (80, 4),
             ("GPU 3: the scheduler chose this GPU", "does not fit on it: CardInsufficientCore")),
            ("none", predicate("9"), (81, 4), ("GPU 9: is not a GPU of this node",)),
            ("bad", predicate("x"), (82, 4), ("'x': must be GPU numbers",)),
            ("without", predicate(), (83, 4), (f"{INDEX}0 is missing",)),
            ("elsewhere", predicate("1", node="n-9"), (84, 4), ("predicate-node is n-9", node.name)),
            ("limit", {LIMIT: "much"}, (85, 4), (f"{LIMIT}: 'much'",))):
        node.make_pod(name, annotations, main=ask)
        details = node.refused(CORE, ask[0]).details()
        assert f"pod default/{name}, container main" in details and all(part in details for part in parts), details
    assert len(node.ask("claims")["claims"]) == 3


def test_scheduler_with_hamis_annotations(make_node, cluster):
    """Before the kubelet gets its answer, the annotations say that a container has its shares, or that the binding failed. The
    lock is released after the last container."""
    node = make_node()
    first, second = node.uuids()

    def lock(name):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        cluster.patch(f"/api/v1/nodes/{node.name}", {"annotations": {LOCK: f"{stamp},default,{name}"}})

    def bind(name, shares, **asks):
        lock(name)
        node.make_pod(name, {"hami.io/vgpu-node": node.name, PHASE: "allocating", TO_ALLOCATE: shares,
                             ALLOCATED: shares, "hami.io/bind-time": str(int(time.time()))}, **asks)

    shares = f"{second},NVIDIA,5120,30:;{first},NVIDIA,1024,30:{second},NVIDIA,1024,30:;"
    bind("p", shares, one=(30, 20), two=(60, 8))
    node.admit("p", "one", cores=30, memory=20)
    assert node.annotations("p")[PHASE] == "allocating"
    assert node.annotations("p")[TO_ALLOCATE] == f";{first},NVIDIA,1024,30:{second},NVIDIA,1024,30:;"
    node.admit("p", "two", cores=60, memory=8, order=(MEMORY, CORE))
    assert node.annotations("p")[PHASE] == "success" and node.annotations("p")[TO_ALLOCATE] == ";;"
    wait_until(lambda: LOCK not in cluster.annotations(node.name), what="the lock's release")
    assert node.tenants() == {"default.p.one": [(second, 5120, 30, 30)],
                              "default.p.two": [(first, 1024, 30, 30), (second, 1024, 30, 30)]}
    bind("much", f"{second},NVIDIA,1024,50:;", main=(50, 4))
    details = node.refused(CORE, 50).details()
    assert (f"{TO_ALLOCATE}: {second}: the scheduler chose this GPU, but the request does not fit on it: "
            "CardInsufficientCore") in details, details
    wait_until(lambda: node.annotations("much")[PHASE] == "failed", what="the bind-phase")
    wait_until(lambda: LOCK not in cluster.annotations(node.name), what="the lock's release")
    bind("other", f"{first},NVIDIA,1024,9:;", main=(10, 4))
    details = node.refused(CORE, 10).details()
    assert f"1024 MiB and 9 cores of {first}, but the pod asks for 10 {CORE} and 4 {MEMORY}" in details, details
    wait_until(lambda: node.annotations("other")[PHASE] == "failed", what="the bind-phase")
    time.sleep(3)
    assert len(node.tenants()) == 2 and "holds" not in node.daemon.log, node.daemon.log


def test_calls_wait_for_the_watch_to_report_their_pod(make_node):
    """A call for either resource that arrives before the watch has reported the pod waits."""
    node = make_node()
    for name, order in {"a": (CORE, MEMORY), "b": (MEMORY, CORE)}.items():
        caller = threading.Thread(target=lambda: node.admit(name, cores=10, memory=4, order=order))
        caller.start()
        time.sleep(0.5)
        assert caller.is_alive()
        node.make_pod(name, main=(10, 4))
        caller.join(timeout=30)
        assert f"default.{name}.main" in node.tenants()


def test_memory_call_identifies_the_pod(make_node):
    """Two pods request the same cores but different memory: the memory identifies the pod, or the call is refused."""
    node = make_node()
    node.make_pod("a", main=(50, 30))
    node.make_pod("b", main=(50, 20))
    node.admit("b", cores=50, memory=20, order=(MEMORY, CORE))
    assert node.tenants()["default.b.main"][0][1] == 20 * UNIT_MIB
    node.admit("a", cores=50, memory=30)
    assert node.tenants()["default.a.main"][0][1] == 30 * UNIT_MIB
    # A call for the cores is assigned to the older pod, but the kubelet meant the other one.
    node.make_pod("c", main=(10, 30))
    time.sleep(1.1)
    node.make_pod("d", main=(10, 20))
    ids = node.take(CORE, 10)
    node.call(CORE, ids)
    assert "default.c.main" in node.tenants()
    details = node.refused(MEMORY, 20).details()
    assert f"asks for 20 {MEMORY}, but its previous call, for 10 {CORE}, was answered for pod default/c" in details, details
    assert f"That container requests 30 {MEMORY}" in details
    assert "default.c.main" not in node.tenants()
    # The kubelet has failed that pod; the other gets what it asks for.
    node.delete_pod("d")
    node.admit("c", cores=10, memory=30)
    assert node.tenants()["default.c.main"][0][1] == 30 * UNIT_MIB


def test_indistinguishable_pods_with_different_limits_are_refused(make_node):
    node = make_node()
    # The pods must have the same creation second; otherwise the older one is chosen.
    for _ in range(20):
        made = [node.make_pod("a", {LIMIT: "60"}, main=(50, 30)), node.make_pod("b", main=(50, 30))]
        if len({pod["metadata"]["creationTimestamp"] for pod in made}) == 1:
            break
        node.delete_pod("a")
        node.delete_pod("b")
    error = node.refused(CORE, 50)
    assert error.code() == grpc.StatusCode.FAILED_PRECONDITION, error
    assert "pod default/a, container main" in error.details() and "pod default/b, container main" in error.details()
    assert not node.tenants()


def test_pod_resources_correct_the_owner_of_a_claim(make_node):
    """Two pods request the same amounts, and the kubelet admits the younger first. Its pod resources API then corrects the
    claim's owner."""
    node = make_node()
    node.make_pod("a", main=(20, 8))
    time.sleep(1.1)
    node.make_pod("b", main=(20, 8))
    node.admit("b", cores=20, memory=8)
    assert list(node.tenants()) == ["default.a.main"]
    wait_until(lambda: list(node.tenants()) == ["default.b.main"], what="the corrected owner")
    assert [claim["key"].split("/")[2] for claim in node.ask("claims")["claims"]] == ["main"]
    assert "the former container requests the same amounts" in node.daemon.log
    node.admit("a", cores=20, memory=8)
    assert set(node.tenants()) == {"default.a.main", "default.b.main"}
    # The claims survive a restart of the daemon.
    node.restart()
    wait_until(lambda: set(node.tenants()) == {"default.a.main", "default.b.main"}, what="the claims")
    time.sleep(3)
    assert "holds" not in node.daemon.log, node.daemon.log


def test_container_reuses_the_claim_of_an_init_container(make_node):
    """The kubelet allocates the devices of a pod's init containers to its other containers again."""
    node = make_node()
    node.make_pod("p", init=(60, 40), main=(60, 40))
    answer = node.admit("p", "init", cores=60, memory=40)
    ids = node.pod_resources.held.pop(("default", "p", "init"))
    again = node.call(CORE, ids[CORE])
    node.call(MEMORY, ids[MEMORY])
    node.pod_resources.held["default", "p", "main"] = ids
    assert again.mounts == answer.mounts and list(node.tenants()) == ["default.p.init"]
    node.has_started("p")
    time.sleep(3)
    assert list(node.tenants()) == ["default.p.init"] and "holds" not in node.daemon.log


def test_daemon_killed_between_the_two_calls(make_node):
    """The calls come in either order. The pod's admission continues, or the pod fails and its claim ends."""
    node = make_node()
    node.make_pod("a", main=(20, 8))
    ids = {CORE: node.take(CORE, 20), MEMORY: node.take(MEMORY, 8)}
    node.call(CORE, ids[CORE])
    node.pod_resources.held["default", "a", "main"] = {CORE: ids[CORE]}
    node.restart()
    node.call(MEMORY, ids[MEMORY])
    node.pod_resources.held["default", "a", "main"] = ids
    node.make_pod("b", main=(30, 8))
    ids = {CORE: node.take(CORE, 30), MEMORY: node.take(MEMORY, 8)}
    node.call(MEMORY, ids[MEMORY])
    node.restart()
    node.call(CORE, ids[CORE])
    node.pod_resources.held["default", "b", "main"] = ids
    assert set(node.tenants()) == {"default.a.main", "default.b.main"}
    node.make_pod("c", main=(40, 8))
    node.call(CORE, node.take(CORE, 40))
    node.restart()
    assert "default.c.main" in node.tenants()
    node.status("c", {"phase": "Failed", "reason": "UnexpectedAdmissionError"})
    wait_until(lambda: set(node.tenants()) == {"default.a.main", "default.b.main"}, what="the end of its claim")
    # The memory of "c" was never requested: the next pod's memory call is not assigned to "c".
    node.make_pod("d", main=(10, 6))
    node.admit("d", cores=10, memory=6)
    assert node.tenants()["default.d.main"][0][1] == 6 * UNIT_MIB


def test_restarted_kubelet_that_lost_an_allocation(make_node):
    """A kubelet restarts before it has recorded an allocation, and calls again: the pod still has one claim."""
    node = make_node()
    node.make_pod("a", main=(60, 8))
    node.admit("a", cores=60, memory=8, is_recorded=False)
    registrations = len(node.kubelet.registrations)
    node.kubelet.stop()
    node.kubelet.start()
    node.kubelet.wait_registered(registrations + 2)
    node.admit("a", cores=60, memory=8)
    (name, (device,)), = node.tenants().items()
    assert name == "default.a.main" and device[1:] == (8 * UNIT_MIB, 60, 60)
    assert len(node.ask("claims")["claims"]) == 1


def test_invalid_requests_are_refused(make_node):
    node = make_node("kube_share = off\n")
    first, _ = node.uuids()
    core, memory = node.kubelet.plugins[CORE], node.kubelet.plugins[MEMORY]
    assert "'GPU-x-0' is not one of allotd's" in core.refused(["GPU-x-0"]).details()
    assert "must be 0 to 99" in core.refused([f"{first}-100"]).details()
    assert "'GPU-x-0' is not one of allotd's" in memory.refused(["GPU-x-0"]).details()
    assert "named twice" in memory.refused([f"{first}-111"] * 2).details()
    assert ("the kubelet's call is for 2 containers, and allotd answers calls for one only"
            in memory.refused([f"{first}-0"], [f"{first}-1"]).details())
    assert "the request names no devices" in core.refused([]).details()
    node.make_pod("part", main=(30, 20))
    assert "must be 100 for each GPU while kube_share is off" in node.refused(CORE, 30).details()
    node.make_pod("much", main=(150, 20))
    assert "must be at most 100 for each GPU" in node.refused(CORE, 150).details()
    node.make_pod("no-memory", main=(31, 0))
    assert f"31: a part of a GPU needs {MEMORY} too" in node.refused(CORE, 31).details()
    node.make_pod("no-cores", main=(0, 21))
    assert f"{MEMORY} is requested without {CORE}: request both" in node.refused(MEMORY, 21).details()
    node.make_pod("whole", main=(100, 19))
    node.admit("whole", cores=100, memory=19)
    assert [device[1:] for device in node.tenants()["default.whole.main"]] == [(19 * UNIT_MIB, 100, 100)]
