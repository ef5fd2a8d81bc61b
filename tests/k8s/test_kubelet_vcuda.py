"""gpu-manager's resource names with a real kubelet: pods that ask for cores and memory of simulated cards, and that containerd
and runc run.

ALLOT_KILLS: how often allotd is killed while a container is allocated; 5 by default."""

import time

import pytest

import test_kubelet
from machines import wait_until
from test_kubelet import KILLS, MIB, kubelet, quota_program  # noqa: F401
from test_vcuda import ASSIGNED, CORE, INDEX, LIMIT, MEMORY, TIME, UNIT_MIB


class Node(test_kubelet.Node):
    """Devices are a pair, (cores, memory)."""

    def __init__(self, *arguments):
        super().__init__(*arguments, "gpu-manager")

    def units(self):
        return [memory // MIB // UNIT_MIB for memory in self.cards().values()]

    def wait_registered(self, before):
        wait_until(lambda: self.registrations() >= before + 2, what="both registrations")
        wait_until(lambda: self.are_allocatable(2), what="the node's devices")

    def are_allocatable(self, cards):
        # Where no daemon is, how much memory there was is not known.
        units = sum(self.units()[:cards]) if cards else 0
        return max(0, self.kubelet.allocatable(CORE)) == cards * 100 and \
            max(0, self.kubelet.allocatable(MEMORY)) == units

    def limits(self, devices):
        return {resource: count for resource, count in zip((CORE, MEMORY), devices) if count}

    def promised(self):
        """{name: [(card, MiB, cores, limit)]}"""
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


def test_pods_have_what_they_ask_for(make_node):
    """A part of a card, and with a limit above it; parts of two cards; a pod of two containers. What each is told of its
    cards is its quota, and more is refused."""
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
    # Written to the pod, whose card the node's scheduler has left to it.
    uuids = list(node.cards())
    card, = node.promised()["default.part.main"]
    annotations = node.cluster.pod("part")["metadata"]["annotations"]
    assert annotations[f"{INDEX}0"] == str(uuids.index(card[0])) and annotations[ASSIGNED] == "true"
    # The kubelet has picked devices of that card.
    keys = {claim["tenant"]: claim["key"] for claim in node.ask("claims")["claims"]}
    assert card[0] in keys["default.part.main"], keys
    assert "holds" not in node.daemon.log, node.daemon.log


def test_whole_cards(make_node):
    """With a quota all the same; the other by the scheduler's word; then there is none left."""
    node = make_node()
    node.make_pod("chosen", {TIME: str(time.time_ns()), ASSIGNED: "false", f"{INDEX}0": "1"}, main=(100, 44))
    assert node.wait_for("chosen") == [44 * UNIT_MIB]
    (uuid, _, cores, _), = node.promised()["default.chosen.main"]
    assert uuid == list(node.cards())[1] and cores == 100
    node.make_pod("rest", main=(100, 0))
    total, = node.wait_for("rest")
    assert abs(total - list(node.cards().values())[0] // MIB) <= 1
    node.make_pod("late", main=(1, 1))
    status = wait_until(lambda: node.kubelet.status("late").get("reason") and node.kubelet.status("late"),
                        what="the refusal")
    assert status["phase"] == "Failed" and CORE in status["message"], status


def test_what_can_not_be_given_is_told_to_the_pod(make_node):
    node = make_node()
    for name, ask, annotations, said in (
            ("no-memory", (30, 0), None, f"a part of a GPU needs {MEMORY} too"),
            ("no-cores", (0, 30), None, f"{MEMORY} is requested without {CORE}"),
            ("no-card", (30, 30), {TIME: "1", ASSIGNED: "false", f"{INDEX}0": "7"}, "GPU 7: is not a GPU of this node")):
        node.make_pod(name, annotations, main=ask)
        status = wait_until(lambda: node.kubelet.status(name).get("reason") and node.kubelet.status(name),
                            what="the refusal")
        assert status["reason"] == "UnexpectedAdmissionError" and said in status["message"], status
    assert not node.tenants()


def test_a_storm_of_equals(make_node):
    """Many pods at the same time, of which some ask for the same: each has its own, by the kubelet's books too."""
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


def test_a_card_is_lost_and_the_kubelet_killed(make_node, kubelet):  # noqa: F811
    """Both resources lose the card's part, and have it again; a kubelet that comes back is told of both, and pods run on."""
    node = make_node()
    node.make_pod("before", main=(70, 40))
    node.wait_for("before")
    was = node.identity("before")
    card = next(iter(node.promised()["default.before.main"]))[0]
    lost = 1 - list(node.cards()).index(card)
    node.ctl("lose", str(lost))
    wait_until(lambda: node.kubelet.allocatable(CORE) == 100 and
               node.kubelet.allocatable(MEMORY) == node.units()[1 - lost], what="the loss")
    # Its devices are on the card that is left: so no more than the rest of that is there.
    node.make_pod("much", main=(40, 4))
    status = wait_until(lambda: node.kubelet.status("much").get("reason") and node.kubelet.status("much"),
                        what="the refusal")
    assert status["reason"] == "UnexpectedAdmissionError" and CORE in status["message"], status
    assert "allotd" not in status["message"] and "GPU" not in status["message"], status
    node.ctl("heal", str(lost))
    wait_until(lambda: node.are_allocatable(2), what="the return")
    registrations = node.registrations()
    kubelet.kill()
    kubelet.launch()
    node.wait_registered(registrations)
    node.make_pod("after", main=(80, 44))
    assert node.wait_for("after") == [44 * UNIT_MIB]
    assert node.identity("before") == was
    assert {device[0] for devices in node.promised().values() for device in devices} == set(node.cards())
    assert "holds" not in node.daemon.log, node.daemon.log


class Storm(test_kubelet.Storm):
    """Kills are aimed at the time between the kubelet's two calls."""

    halves = 0      # kills after one call and before the other

    def make(self, is_still=False):
        self.number += 1
        name = f"p-{self.number}"
        tenths = self.random.randint(1, 5)
        units = tenths * (min(self.node.units()) // 10)
        self.seen = (self.node.directory / "log").stat().st_size
        self.node.make_pod(name, main=(10 * tenths, units))
        return name, units * UNIT_MIB

    def kill_soon(self, span, is_aimed):
        """Aimed: as soon as one of the calls shows in the log, or some moments later."""
        if not is_aimed:
            super().kill_soon(span, False)
            return
        deadline = time.monotonic() + 30
        with open(self.node.directory / "log", "rb") as log:
            log.seek(self.seen)
            said = b""
            while not (b": made for uid" in said or b"units of memory" in said):
                assert time.monotonic() < deadline, said
                said += log.read()
                until = time.monotonic() + 0.003 * self.random.random() ** 2
            while time.monotonic() < until:
                pass
        self.node.kill()
        said = (self.node.directory / "log").read_bytes()[self.seen:]
        self.halves += (b": made for uid" in said) != (b"units of memory" in said)


def test_killed_between_the_calls(make_node):
    node = make_node()
    storm = Storm(node, seed=8)
    storm.check()
    begun = time.monotonic()
    storm.remember(*storm.make())
    span = time.monotonic() - begun
    for kill in range(KILLS):
        while len(storm.expected) >= 3:
            storm.drop(storm.random.choice(sorted(storm.expected)))
        name, mib = storm.make()
        storm.kill_soon(span, kill % 3 != 2)
        node.start()
        storm.settle(name, mib)
        storm.check()
    print(f"{KILLS} kills, {storm.halves} between the calls: {storm.refused} pods refused, {len(storm.expected)} run")
    for name in sorted(storm.expected):
        storm.drop(name)
    wait_until(lambda: not node.tenants(), 60, "the end of all claims")
