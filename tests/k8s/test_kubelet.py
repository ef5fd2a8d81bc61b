"""allotd with a real kubelet, whose pods containerd and runc run: registration, quotas inside pods, the health of GPUs, and
pods that outlive a restart of allotd and of the kubelet.

ALLOT_KILLS: how often allotd is killed while a container is allocated, in each vocabulary; 5 by default."""

import json
import os
import random
import signal
import socket
import subprocess
import time

import pytest

import pods
from daemon import Daemon
from machines import BUILD, wait_until
from held import compile_c, link_with_driver
from test_allocate import PRIORITY
from test_binding import LOCK, PHASE, TO_ALLOCATE

MIB = 1 << 20
KILLS = int(os.environ.get("ALLOT_KILLS", "5"))
GPU_SLICES = 10
# The program in a pod allocates the first amount on each of its GPUs. Then it asks for the second, which must fail.
FITS_MIB, TOO_MUCH_MIB = 4 << 10, 140 << 10


@pytest.fixture(scope="module")
def kubelet(cluster, build_programs, tmp_path_factory):
    with pods.running_kubelet(cluster, build_programs, tmp_path_factory.mktemp("kubelet"), "with-kubelet") as kubelet:
        yield kubelet


@pytest.fixture(scope="module")
def quota_program(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("quota") / "quota", *link_with_driver(), "quota.c")


class Node(pods.QuotaPods):
    """allotd with two simulated GPUs, as a device plugin of the kubelet."""

    def __init__(self, kubelet, cluster, directory, program, vocabulary="slices"):
        shared = directory / "shared"
        shared.mkdir()
        super().__init__(kubelet, shared, shared / "quota", FITS_MIB, TOO_MUCH_MIB)
        self.cluster, self.directory = cluster, directory
        self.vocabulary = vocabulary
        self.program.write_bytes(program.read_bytes())
        self.program.chmod(0o755)
        settings = (f"kube_plugin = on\nkube_plugin_dir = {kubelet.plugins}\nkube_vocabulary = {vocabulary}\n"
                    f"kube_pod_resources = {kubelet.pod_resources}\nstate_dir = {directory}/state\n"
                    "claim_grace = 1s\nwatch_tasks = off\n")
        self.daemon = Daemon(directory, cluster.kubeconfig("with-kubelet.conf"), kubelet.node, is_private=False,
                             settings=settings)

    def start(self):
        registrations = self.registrations()
        self.daemon.start()
        self.wait_registered(registrations)
        return self

    def registrations(self):
        log = self.directory / "log"
        return log.read_text().count(": registered, in") if log.exists() else 0

    def wait_registered(self, before):
        wait_until(lambda: self.registrations() > before, what="the registration")
        wait_until(lambda: self.are_allocatable(2), what="the node's devices")

    def are_allocatable(self, gpus):
        return self.kubelet.allocatable() == gpus * GPU_SLICES

    def kill(self):
        process = self.daemon.processes.pop()
        process.send_signal(signal.SIGKILL)
        process.wait()

    def ctl(self, *words):
        subprocess.run([BUILD / "allot-sim", "--ctl", "--socket", self.daemon.run_dir / "sim.sock", *words],
                       check=True, capture_output=True)

    def ask(self, op):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.daemon.run_dir / "allotd.sock"))
            s.sendall(json.dumps({"version": 1, "op": op}).encode() + b"\n")
            return json.loads(s.makefile().readline())

    def tenants(self):
        return self.ask("list")["tenants"]

    def gpus(self):
        return {device["uuid"]: device["memory_bytes"] for device in self.ask("list")["devices"]}

    # ---- pods ----

    def make_pod(self, name, annotations=None, **containers):
        """`containers`: NAME=DEVICES."""
        self.kubelet.make_pod(name, {container: (self.limits(devices), self.command(f"{name}.{container}"))
                                     for container, devices in containers.items()}, self.shared, annotations)

    def limits(self, devices):
        return {pods.RESOURCE: devices}

    def slices_mib(self, devices):
        return devices * min(self.gpus().values()) // GPU_SLICES // MIB

    def close(self):
        left = self.kubelet.pods()
        alive = self.daemon.is_alive()
        if left:
            self.kubelet.remove_pods(*left)
        self.daemon.stop()
        wait_until(lambda: self.are_allocatable(0), what="the kubelet dropping the devices")
        assert alive, self.daemon.log


@pytest.fixture
def make_node(kubelet, cluster, quota_program, tmp_path_factory):
    made = []

    def make(vocabulary="slices"):
        made.append(Node(kubelet, cluster, tmp_path_factory.mktemp("n"), quota_program, vocabulary))
        return made[-1].start()

    yield make
    for node in made:
        node.close()


def test_pods_get_the_memory_of_their_slices(make_node):
    """Two pods with slices of one GPU, one with slices of both GPUs, and a pod of two containers."""
    node = make_node()
    node.make_pod("tenths", main=5)
    node.make_pod("more", main=6)
    first, second = node.wait_for("tenths"), node.wait_for("more")
    node.make_pod("of-both", main=7)
    both = node.wait_for("of-both")
    node.make_pod("two", main=1, other=1)
    assert first == [node.slices_mib(5)] and second == [node.slices_mib(6)]
    assert len(both) == 2 and abs(sum(both) - node.slices_mib(7)) <= 1
    assert node.wait_for("two") == node.wait_for("two", "other") == [node.slices_mib(1)]
    tenants = node.tenants()
    assert len(tenants) == 5
    for tenant in tenants:
        for device in tenant["devices"]:
            assert device["denied"] == 1
            assert FITS_MIB * MIB <= device["memory_used_bytes"] <= device["memory_quota_bytes"]
    # No slices are left for another pod.
    node.make_pod("late", main=1)
    status = wait_until(lambda: node.kubelet.status("late").get("reason") and node.kubelet.status("late"),
                        what="the refusal")
    assert status["phase"] == "Failed" and pods.RESOURCE in status["message"], status


def test_unhealthy_gpu_is_not_allocatable(make_node):
    node = make_node()
    node.make_pod("before", main=1)
    node.wait_for("before")
    was = node.kubelet.identity("before")
    begun = time.monotonic()
    node.ctl("lose", "1")
    wait_until(lambda: node.kubelet.allocatable() == GPU_SLICES, what="the loss of the GPU")
    print(f"a lost GPU is not allocatable after {time.monotonic() - begun:.1f} s")
    node.ctl("heal", "1")
    wait_until(lambda: node.kubelet.allocatable() == 2 * GPU_SLICES, what="the return of the GPU")
    assert node.kubelet.identity("before") == was


def test_pods_outlive_a_killed_kubelet(make_node, kubelet):
    """allotd registers again, and the new kubelet allocates no device that a running pod has."""
    node = make_node()
    node.make_pod("before", main=12)
    seen = node.wait_for("before")
    was, tenants = node.kubelet.identity("before"), node.tenants()
    registrations = node.registrations()
    kubelet.kill()
    kubelet.launch()
    node.wait_registered(registrations)
    node.make_pod("after", main=8)
    after = node.wait_for("after")
    assert sum(after) == node.slices_mib(8)
    assert node.kubelet.identity("before") == was and len(seen) == 2
    held = {tenant["id"]: tenant for tenant in node.tenants()}
    assert len(held) == 2
    for tenant in tenants:
        assert [process["pid"] for process in held[tenant["id"]]["processes"]] == \
            [process["pid"] for process in tenant["processes"]]


# ---- live changes ----

def test_shares_of_slices_follow_their_pod(make_node, cluster):
    """The kubelet's pod resources API says which pod has which slices. Annotated shares end with their pod: the next pod with
    the same slices gets the default shares."""
    node = make_node()

    def annotate(**values):
        cluster.patch("/api/v1/namespaces/default/pods/live",
                      {"annotations": {name.replace("__", ".allot.dev/"): value for name, value in values.items()}})

    def wait_for_shares(mib, cores):
        def terms():
            return [(device["memory_quota_bytes"] // MIB, device["cores_pct"]) for tenant in node.tenants()
                    for device in tenant["devices"]]

        wait_until(lambda: (mib, cores) in terms(), what=f"{mib} MiB and {cores} %")

    node.make_pod("live", {"main.allot.dev/memory": "20GiB"}, main=2, other=3)
    node.wait_for("live")
    node.wait_for("live", "other")
    was = node.kubelet.identity("live")
    wait_for_shares(20 << 10, 20)
    annotate(other__cores="40", main__memory="25GiB")
    wait_for_shares(25 << 10, 20)
    wait_for_shares(node.slices_mib(3), 40)
    annotate(other__cores=None)
    wait_for_shares(node.slices_mib(3), 30)
    assert node.kubelet.identity("live") == was
    node.kubelet.remove_pods("live")
    node.make_pod("next", main=2)
    assert node.wait_for("next") == [node.slices_mib(2)]


def test_priorities_of_slices(make_node, cluster):
    """The limit nvidia.com/priority sets it. The kubelet ignores the limit, as no node has the resource. An annotation wins."""
    node = make_node()
    node.kubelet.make_pod("ranked", {"main": ({pods.RESOURCE: 2, PRIORITY: 0}, node.command("ranked.main"))}, node.shared)
    node.wait_for("ranked")

    def is_ranked(priority):
        return [tenant["priority"] for tenant in node.tenants()] == [priority]

    wait_until(lambda: is_ranked(10), what="the limit's priority")
    path = "/api/v1/namespaces/default/pods/ranked"
    cluster.patch(path, {"annotations": {"allot.dev/priority": "-7"}})
    wait_until(lambda: is_ranked(-7), what="the annotation's priority")
    cluster.patch(path, {"annotations": {"allot.dev/priority": None}})
    wait_until(lambda: is_ranked(10), what="the limit's priority again")


# ---- kills ----

def bind(node, name, shares):
    """Locks the node, and returns the annotations that a scheduler writes to the pod in HAMi's vocabulary."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    node.cluster.patch(f"/api/v1/nodes/{node.kubelet.node}", {"annotations": {LOCK: f"{stamp},default,{name}"}})
    return {"hami.io/vgpu-node": node.kubelet.node, PHASE: "allocating", TO_ALLOCATE: shares,
            "hami.io/bind-time": str(int(time.time()))}


class PodChurn:
    """Pods that are created and deleted at random, and the shares that each must have."""

    def __init__(self, node, seed):
        self.node = node
        self.random = random.Random(seed)
        self.expected = {}      # {pod: (MiB in total, identity)}
        self.number = self.refused = 0

    def make(self, stop_daemon=False):
        """Creates a pod: (its name, MiB in total). `stop_daemon`: stops the daemon with SIGSTOP before the pod is created."""
        node, self.number = self.node, self.number + 1
        name = f"p-{self.number}"
        devices = self.random.randint(1, 5)
        mib, taken = node.slices_mib(devices), self.taken()
        if stop_daemon:
            node.daemon.processes[-1].send_signal(signal.SIGSTOP)
        if node.vocabulary == "slices":
            node.make_pod(name, main=devices)
            return name, mib
        free = {uuid: memory // MIB - taken.get(uuid, 0) for uuid, memory in self.gpus.items()}
        gpu = max(free, key=free.get)
        node.make_pod(name, bind(node, name, f"{gpu},NVIDIA,{mib},{5 * devices}:;"), main=1)
        return name, mib

    def taken(self):
        """{UUID: MiB that are promised to tenants}."""
        sums = {}
        for tenant in self.node.tenants():
            for device in tenant["devices"]:
                sums[device["uuid"]] = sums.get(device["uuid"], 0) + device["memory_quota_bytes"] // MIB
        return sums

    def remember(self, name, mib):
        assert abs(sum(self.node.wait_for(name)) - mib) <= 1
        self.expected[name] = (mib, self.node.kubelet.identity(name))

    def drop(self, name):
        self.node.kubelet.remove_pods(name)
        self.expected.pop(name, None)

    def has_ended(self, name):
        return self.node.kubelet.status(name)["phase"] == "Failed"

    def check_after_kill(self, name, mib):
        """A pod whose allocation was interrupted either runs, or the kubelet has refused it with a reason."""
        node = self.node
        wait_until(lambda: self.has_ended(name) or node.seen(name), 30, f"pod {name}")
        wait_until(lambda: LOCK not in node.cluster.annotations(node.kubelet.node), what="the lock's release")
        if not self.has_ended(name):
            self.remember(name, mib)
            return
        assert node.kubelet.status(name)["reason"] == "UnexpectedAdmissionError", node.kubelet.status(name)
        self.refused += 1
        self.drop(name)

    def check(self):
        """No GPU promises more memory than it has, and the other pods still run with their shares."""
        node = self.node
        self.gpus = node.gpus()
        for uuid, mib in self.taken().items():
            assert mib <= self.gpus[uuid] // MIB, f"{uuid}: {mib} MiB promised"
        for name, (_, identity) in self.expected.items():
            assert node.kubelet.identity(name) == identity

        def held():
            return [tenant for tenant in node.tenants() if any(d["memory_used_bytes"] for d in tenant["devices"])]

        wait_until(lambda: len(held()) == len(self.expected), what="the tenants of the running pods")
        assert sorted(sum(d["memory_quota_bytes"] // MIB for d in tenant["devices"]) for tenant in held()) == \
            sorted(self.expected_mib())

    def expected_mib(self):
        return [mib for mib, _ in self.expected.values()]

    def kill_soon(self, span, is_aimed):
        """Kills the daemon at a random moment of a pod's start, which takes `span` seconds. If aimed, the kubelet's call waits
        for the stopped daemon, which is continued and then killed within the few milliseconds of the call."""
        if is_aimed:
            time.sleep(span)
            self.node.daemon.processes[-1].send_signal(signal.SIGCONT)
            time.sleep(0.03 * self.random.random() ** 3)
        else:
            time.sleep(self.random.uniform(0, span))
        self.node.kill()


@pytest.mark.parametrize("vocabulary", ["slices", "hami"])
def test_daemon_killed_while_a_container_is_allocated(make_node, vocabulary):
    """It is killed between a pod's binding and the start of its container, every second time within the Allocate call."""
    node = make_node(vocabulary)
    churn = PodChurn(node, seed=6)
    churn.check()
    begun = time.monotonic()
    churn.remember(*churn.make())
    span = time.monotonic() - begun
    for kill in range(KILLS):
        is_aimed = kill % 2 == 0
        while len(churn.expected) >= 3:
            churn.drop(churn.random.choice(sorted(churn.expected)))
        name, mib = churn.make(is_aimed)
        churn.kill_soon(span, is_aimed)
        node.start()
        churn.check_after_kill(name, mib)
        churn.check()
    print(f"{KILLS} kills, {vocabulary}: {churn.refused} pods refused, {len(churn.expected)} run")
    churn.check()
    for name in sorted(churn.expected):
        churn.drop(name)
    wait_until(lambda: not node.tenants(), 60, "the end of all claims")
