"""allotd with gpu-manager's resource names and a real kubelet: pods request cores and memory of simulated GPUs, and containerd
and runc run them.

ALLOT_KILLS: how often allotd is killed while a container is allocated; 5 by default."""

import time

import pytest

import test_kubelet
from machines import wait_until
from test_kubelet import KILLS, MIB, kubelet, quota_program  # noqa: F401
from test_vcuda import ASSIGNED, CORE, INDEX, LIMIT, MEMORY, TIME, UNIT_MIB


class Node(test_kubelet.Node):
    """As in test_kubelet.py, but the devices of a container are a pair, (cores, memory)."""

    def __init__(self, *arguments):
        super().__init__(*arguments, "gpu-manager")

    def units(self):
        return [memory // MIB // UNIT_MIB for memory in self.gpus().values()]

    def wait_registered(self, before):
        wait_until(lambda: self.registrations() >= before + 2, what="both registrations")
        wait_until(lambda: self.are_allocatable(2), what="the node's devices")

    def are_allocatable(self, gpus):
        # With no GPUs expected, the daemon may have ended, so its memory units can't be read.
        units = sum(self.units()[:gpus]) if gpus else 0
        return max(0, self.kubelet.allocatable(CORE)) == gpus * 100 and \
            max(0, self.kubelet.allocatable(MEMORY)) == units

    def limits(self, devices):
        return {resource: count for resource, count in zip((CORE, MEMORY), devices) if count}

    def promised(self):
        """{name: [(gpu, MiB, cores, limit)]}"""
        return {tenant["name"]: [(device["uuid"], device["memory_quota_bytes"] // MIB, device["cores_pct"],
                                  device["cores_limit_pct"]) for device in tenant["devices"]]
                for tenant in self.tenants()}


@pytest.fixture
def make_node(kubelet, cluster, quota_program, tmp_path_factory):  # noqa: F811
    made = []

    def make():
        made.append(Node(kubelet, cluster, tmp_path_factory.mktemp("n"), quota_program))
        return made[-1].start()

    yield make
    for node in made:
        node.close()


def test_pods_get_the_cores_and_memory_that_they_request(make_node):
    """Pods with a part of a GPU, with a soft limit above it, with parts of two GPUs, and with two containers. Each sees its
    quota as the GPU's memory, and an allocation beyond it fails."""
    node = make_node()
    node.make_pod("part", main=(30, 40))
    assert node.wait_for("part") == [40 * UNIT_MIB]
    node.make_pod("soft", {LIMIT: "50"}, main=(20, 30))
    assert node.wait_for("soft") == [30 * UNIT_MIB]
    node.make_pod("of-both", {"allot.dev/cards": "2"}, main=(60, 81))
    assert node.wait_for("of-both") == [81 * UNIT_MIB // 2] * 2
    node.make_pod("two", one=(10, 20), other=(15, 24))
    assert node.wait_for("two", "one") == [20 * UNIT_MIB] and node.wait_for("two", "other") == [24 * UNIT_MIB]
    promised = {name.removeprefix("default."): [device[2:] for device in devices]
                for name, devices in node.promised().items()}
    assert promised == {"part.main": [(30, 30)], "soft.main": [(20, 50)], "of-both.main": [(30, 30)] * 2,
                        "two.one": [(10, 10)], "two.other": [(15, 15)]}
    for tenant in node.tenants():
        assert all(device["denied"] == 1 for device in tenant["devices"])
    # No scheduler chose the GPU, so allotd writes its choice to the pod.
    uuids = list(node.gpus())
    gpu, = node.promised()["default.part.main"]
    annotations = node.cluster.pod("part")["metadata"]["annotations"]
    assert annotations[f"{INDEX}0"] == str(uuids.index(gpu[0])) and annotations[ASSIGNED] == "true"
    # The kubelet has picked devices of that GPU.
    keys = {claim["tenant"]: claim["key"] for claim in node.ask("claims")["claims"]}
    assert gpu[0] in keys["default.part.main"], keys
    assert "holds" not in node.daemon.log, node.daemon.log


def test_whole_gpus(make_node):
    """One pod has a GPU that its scheduler chose, with a memory quota; another has all of the other GPU; none is left."""
    node = make_node()
    node.make_pod("chosen", {TIME: str(time.time_ns()), ASSIGNED: "false", f"{INDEX}0": "1"}, main=(100, 44))
    assert node.wait_for("chosen") == [44 * UNIT_MIB]
    (uuid, _, cores, _), = node.promised()["default.chosen.main"]
    assert uuid == list(node.gpus())[1] and cores == 100
    node.make_pod("unlimited", main=(100, 0))
    total, = node.wait_for("unlimited")
    assert abs(total - list(node.gpus().values())[0] // MIB) <= 1
    node.make_pod("late", main=(1, 1))
    status = wait_until(lambda: node.kubelet.status("late").get("reason") and node.kubelet.status("late"),
                        what="the refusal")
    assert status["phase"] == "Failed" and CORE in status["message"], status


def test_pod_status_has_the_reason_of_a_refusal(make_node):
    node = make_node()
    for name, ask, annotations, reason in (
            ("no-memory", (30, 0), None, f"a part of a GPU needs {MEMORY} too"),
            ("no-cores", (0, 30), None, f"{MEMORY} is requested without {CORE}"),
            ("no-card", (30, 30), {TIME: "1", ASSIGNED: "false", f"{INDEX}0": "7"}, "GPU 7: is not a GPU of this node")):
        node.make_pod(name, annotations, main=ask)
        status = wait_until(lambda: node.kubelet.status(name).get("reason") and node.kubelet.status(name),
                            what="the refusal")
        assert status["reason"] == "UnexpectedAdmissionError" and reason in status["message"], status
    assert not node.tenants()


def test_many_pods_with_equal_requests(make_node):
    """Many pods at once, of which some request the same amounts: each gets its own share, also by the pod resources API."""
    node = make_node()
    asks = {f"p-{i}": (10 + 5 * (i % 2), 20) for i in range(8)}
    for name, ask in asks.items():
        node.make_pod(name, main=ask)
    for name in asks:
        assert node.wait_for(name) == [20 * UNIT_MIB]

    def are_right():
        cores = {name.split(".")[1]: device[2] for name, (device,) in node.promised().items()}
        return cores == {name: ask[0] for name, ask in asks.items()}

    wait_until(are_right, what="each pod's own share")
    assert "holds" not in node.daemon.log, node.daemon.log


def test_lost_gpu_and_killed_kubelet(make_node, kubelet):  # noqa: F811
    """Both resources lose the GPU's devices, and get them back. A restarted kubelet learns both, and pods keep running."""
    node = make_node()
    node.make_pod("before", main=(70, 40))
    node.wait_for("before")
    was = node.kubelet.identity("before")
    gpu = next(iter(node.promised()["default.before.main"]))[0]
    lost = 1 - list(node.gpus()).index(gpu)
    node.ctl("lose", str(lost))
    wait_until(lambda: node.kubelet.allocatable(CORE) == 100 and
               node.kubelet.allocatable(MEMORY) == node.units()[1 - lost], what="the loss of the GPU")
    # The pod "before" uses the other GPU, so only the remainder of that one is allocatable.
    node.make_pod("much", main=(40, 4))
    status = wait_until(lambda: node.kubelet.status("much").get("reason") and node.kubelet.status("much"),
                        what="the refusal")
    assert status["reason"] == "UnexpectedAdmissionError" and CORE in status["message"], status
    assert "allotd" not in status["message"] and "GPU" not in status["message"], status
    node.ctl("heal", str(lost))
    wait_until(lambda: node.are_allocatable(2), what="the return of the GPU")
    registrations = node.registrations()
    kubelet.kill()
    kubelet.launch()
    node.wait_registered(registrations)
    node.make_pod("after", main=(80, 44))
    assert node.wait_for("after") == [44 * UNIT_MIB]
    assert node.kubelet.identity("before") == was
    assert {device[0] for devices in node.promised().values() for device in devices} == set(node.gpus())
    assert "holds" not in node.daemon.log, node.daemon.log


class PodChurn(test_kubelet.PodChurn):
    """Aimed kills happen between the kubelet's two Allocate calls."""

    halves = 0      # kills after one call and before the other

    def make(self, stop_daemon=False):
        self.number += 1
        name = f"p-{self.number}"
        tenths = self.random.randint(1, 5)
        units = tenths * (min(self.node.units()) // 10)
        self.seen = (self.node.directory / "log").stat().st_size
        self.node.make_pod(name, main=(10 * tenths, units))
        return name, units * UNIT_MIB

    def kill_soon(self, span, is_aimed):
        """If aimed, kills the daemon up to 3 ms after one of the calls has appeared in the log."""
        if not is_aimed:
            super().kill_soon(span, False)
            return
        deadline = time.monotonic() + 30
        with open(self.node.directory / "log", "rb") as log:
            log.seek(self.seen)
            text = b""
            while not (b": made for uid" in text or b"units of memory" in text):
                assert time.monotonic() < deadline, text
                text += log.read()
                until = time.monotonic() + 0.003 * self.random.random() ** 2
            while time.monotonic() < until:
                pass
        self.node.kill()
        text = (self.node.directory / "log").read_bytes()[self.seen:]
        self.halves += (b": made for uid" in text) != (b"units of memory" in text)


def test_daemon_killed_between_the_two_calls(make_node):
    node = make_node()
    churn = PodChurn(node, seed=8)
    churn.check()
    begun = time.monotonic()
    churn.remember(*churn.make())
    span = time.monotonic() - begun
    for kill in range(KILLS):
        while len(churn.expected) >= 3:
            churn.drop(churn.random.choice(sorted(churn.expected)))
        name, mib = churn.make()
        churn.kill_soon(span, kill % 3 != 2)
        node.start()
        churn.check_after_kill(name, mib)
        churn.check()
    print(f"{KILLS} kills, {churn.halves} between the calls: {churn.refused} pods refused, {len(churn.expected)} run")
    for name in sorted(churn.expected):
        churn.drop(name)
    wait_until(lambda: not node.tenants(), 60, "the end of all claims")
