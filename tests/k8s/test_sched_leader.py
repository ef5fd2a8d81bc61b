"""Leader election among several schedulers by a Lease on a real API server: leaders that are killed, stopped, shut down in
order or cut off from the server; and the Lease as others see it. Lease times are short here, so that no test waits for long.
Unit tests use the real times with a virtual clock."""

import os
import re
import select
import signal
import subprocess
import time

import pytest

from cluster import SCHEDULER_TOKEN
from machines import BUILD, wait_until
from door import Door

DURATION_S = 5
DEADLINE_MS = 3000
RETRY_MS = 500


class Replica:
    def __init__(self, kubeconfig, lease, identity):
        self.process = subprocess.Popen(
            [BUILD / "kube-sched-leader", kubeconfig, lease, identity, str(DURATION_S), str(DEADLINE_MS), str(RETRY_MS)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0)
        self.text = b""
        self.heard = []  # [(what, when)]

    def hear(self, seconds=0.0):
        """All that it has said so far; waits for more for so long."""
        if select.select([self.process.stdout], [], [], seconds)[0]:
            *lines, self.text = (self.text + os.read(self.process.stdout.fileno(), 65536)).split(b"\n")
            self.heard += [(line.split()[0].decode(), float(line.split()[1])) for line in lines]
        return self.heard

    def wait_for(self, what, seconds=30):
        """When it said so for the last time."""
        deadline = time.monotonic() + seconds
        while not self.hear(0.1) or self.heard[-1][0] != what:
            assert time.monotonic() < deadline, (what, self.heard)
        return self.heard[-1][1]

    def leads(self):
        return bool(self.hear()) and self.heard[-1][0] == "leads"

    def close(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def start(request, cluster):
    replicas, doors = [], []
    lease = request.node.name.replace("_", "-")

    def begin(identity, name=lease):
        doors.append(Door(cluster.port))
        path = cluster.kubeconfig(f"{lease}-{identity}.conf", doors[-1].port, f"token: {SCHEDULER_TOKEN}")
        replicas.append(Replica(path, name, identity))
        replicas[-1].door = doors[-1]
        return replicas[-1]

    yield begin
    for one in [*replicas, *doors]:
        one.close()


@pytest.fixture
def pair(start):
    """One that leads, and one that would."""
    first = start("first")
    first.wait_for("leads")
    second = start("second")
    time.sleep(1)
    assert not second.hear()
    return first, second


def spec_of(cluster, name):
    path = f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{name}"
    return cluster.request("GET", path)["spec"]


def test_lease_as_others_see_it(cluster, pair):
    name = "test-lease-as-others-see-it"
    spec = spec_of(cluster, name)
    assert spec["holderIdentity"] == "first" and spec["leaseDurationSeconds"] == DURATION_S
    assert spec["leaseTransitions"] == 0
    for key in ("acquireTime", "renewTime"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", spec[key])
    later = wait_until(lambda: (spec_of(cluster, name)["renewTime"] > spec["renewTime"]) and spec_of(cluster, name))
    assert later["acquireTime"] == spec["acquireTime"]
    assert pair[0].leads() and not pair[1].leads()


def test_alone_it_leads_from_the_first(start):
    """The list that its watch begins with may be of before its lease was made."""
    replicas = [start(f"alone-{i}", f"alone-{i}") for i in range(12)]
    for replica in replicas:
        replica.wait_for("leads")
    time.sleep(1)
    assert [[what for what, _ in replica.hear()] for replica in replicas] == [["leads"]] * len(replicas)


def test_killed(cluster, pair):
    first, second = pair
    killed = time.monotonic()
    first.process.kill()
    took = second.wait_for("leads") - killed
    print(f"took over {took:.2f} s after a kill, with a lease of {DURATION_S} s")
    # A renewal may be as old as the time between two.
    assert took > DURATION_S - RETRY_MS / 1000 - 1.5
    assert took < DURATION_S + 5
    spec = spec_of(cluster, "test-killed")
    assert spec["holderIdentity"] == "second" and spec["leaseTransitions"] == 1


def test_released(cluster, pair):
    """Well before the lease would have expired."""
    first, second = pair
    asked = time.monotonic()
    first.process.send_signal(signal.SIGTERM)
    followed = first.wait_for("released")
    assert first.process.wait(timeout=20) == 0
    assert [what for what, _ in first.heard] == ["leads", "follows", "released"]
    led = second.wait_for("leads")
    print(f"took over {led - asked:.3f} s after the leader was told to end; released at {followed - asked:.3f}")
    assert led > first.heard[1][1]
    assert led - asked < 2
    assert spec_of(cluster, "test-released")["leaseTransitions"] == 1


def test_released_by_one_that_does_not_lead(pair):
    first, second = pair
    second.process.send_signal(signal.SIGTERM)
    second.wait_for("released")
    assert [what for what, _ in second.hear()] == ["released"]
    assert first.leads()


def test_cut_off(pair):
    """It stops before the other begins, though it hears of nothing."""
    first, second = pair
    first.door.shut()
    led = second.wait_for("leads")
    stopped = first.wait_for("follows")
    assert stopped < led
    first.door.unshut()
    time.sleep(2)
    assert not first.leads() and second.leads()


def test_stands_still(pair):
    """One that was stopped says that it follows before anything else when it goes on."""
    first, second = pair
    first.process.send_signal(signal.SIGSTOP)
    second.wait_for("leads")
    first.process.send_signal(signal.SIGCONT)
    first.wait_for("follows")
    assert [what for what, _ in first.heard] == ["leads", "follows"]
    assert second.leads()


def test_many_want_it(start):
    replicas = [start(f"r{i}") for i in range(4)]
    wait_until(lambda: any(replica.leads() for replica in replicas))
    for _ in range(3):
        time.sleep(0.5)
        leaders = [replica for replica in replicas if replica.leads()]
        assert len(leaders) == 1
        leaders[0].process.send_signal(signal.SIGTERM)
        leaders[0].process.wait(timeout=20)
        leaders[0].hear()
        replicas.remove(leaders[0])
        wait_until(lambda: any(replica.leads() for replica in replicas))


def test_lease_taken_by_hand(cluster, pair):
    """Whoever's name stands there leads: somebody's who edits it, too."""
    first, second = pair
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/test-lease-taken-by-hand"
    cluster.request("PATCH", path, {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 2}},
                    kind="application/merge-patch+json")
    first.wait_for("follows")
    wait_until(lambda: first.leads() or second.leads(), what="the end of somebody's lease")


def test_server_restarted(cluster, pair):
    """Last, as others would wait for the server. It may be back before the leader has to stop, or not."""
    first, second = pair
    cluster.restart_apiserver()
    wait_until(lambda: first.leads() or second.leads(), what="a leader")
    time.sleep(1)
    assert first.leads() != second.leads()
