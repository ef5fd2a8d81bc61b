"""Leader election among several schedulers by a Lease on a real API server: leaders that are killed, stopped, shut down in
order or disconnected, and the contents of the Lease. Lease times are short here, so that no test waits for long. Unit tests
use the real times with a virtual clock."""

import os
import re
import select
import signal
import subprocess
import time

import pytest

from cluster import SCHEDULER_TOKEN
from machines import BUILD, wait_until
from api_proxy import ApiProxy

DURATION_S = 5
DEADLINE_MS = 3000
RETRY_MS = 500


class Replica:
    def __init__(self, kubeconfig, lease, identity):
        self.process = subprocess.Popen(
            [BUILD / "kube-sched-leader", kubeconfig, lease, identity, str(DURATION_S), str(DEADLINE_MS), str(RETRY_MS)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0)
        self.text = b""
        self.events = []  # [(name, time)]

    def read_events(self, seconds=0.0):
        """All events so far, [(name, time)]. Waits up to `seconds` for the next one."""
        if select.select([self.process.stdout], [], [], seconds)[0]:
            *lines, self.text = (self.text + os.read(self.process.stdout.fileno(), 65536)).split(b"\n")
            self.events += [(line.split()[0].decode(), float(line.split()[1])) for line in lines]
        return self.events

    def wait_for(self, what, seconds=30):
        """Waits until this is the last event, and returns its time."""
        deadline = time.monotonic() + seconds
        while not self.read_events(0.1) or self.events[-1][0] != what:
            assert time.monotonic() < deadline, (what, self.events)
        return self.events[-1][1]

    def leads(self):
        return bool(self.read_events()) and self.events[-1][0] == "leads"

    def close(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def start(request, cluster):
    replicas, proxies = [], []
    lease = request.node.name.replace("_", "-")

    def begin(identity, name=lease):
        proxies.append(ApiProxy(cluster.port))
        path = cluster.kubeconfig(f"{lease}-{identity}.conf", proxies[-1].port, f"token: {SCHEDULER_TOKEN}")
        replicas.append(Replica(path, name, identity))
        replicas[-1].proxy = proxies[-1]
        return replicas[-1]

    yield begin
    for one in [*replicas, *proxies]:
        one.close()


@pytest.fixture
def pair(start):
    """A leader and a replica that waits."""
    first = start("first")
    first.wait_for("leads")
    second = start("second")
    time.sleep(1)
    assert not second.read_events()
    return first, second


def spec_of(cluster, name):
    path = f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{name}"
    return cluster.request("GET", path)["spec"]


def test_lease_has_the_fields_of_kubernetes(cluster, pair):
    name = "test-lease-has-the-fields-of-kubernetes"
    spec = spec_of(cluster, name)
    assert spec["holderIdentity"] == "first" and spec["leaseDurationSeconds"] == DURATION_S
    assert spec["leaseTransitions"] == 0
    for key in ("acquireTime", "renewTime"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", spec[key])
    later = wait_until(lambda: (spec_of(cluster, name)["renewTime"] > spec["renewTime"]) and spec_of(cluster, name))
    assert later["acquireTime"] == spec["acquireTime"]
    assert pair[0].leads() and not pair[1].leads()


def test_single_replica_leads_once_and_keeps_leading(start):
    """The watch may begin with a list from before its own lease was created: that must not end its leadership."""
    replicas = [start(f"alone-{i}", f"alone-{i}") for i in range(12)]
    for replica in replicas:
        replica.wait_for("leads")
    time.sleep(1)
    assert [[what for what, _ in replica.read_events()] for replica in replicas] == [["leads"]] * len(replicas)


def test_takeover_after_a_kill(cluster, pair):
    first, second = pair
    killed = time.monotonic()
    first.process.kill()
    took = second.wait_for("leads") - killed
    print(f"took over {took:.2f} s after a kill, with a lease of {DURATION_S} s")
    # The last renewal may be as old as the renewal interval.
    assert took > DURATION_S - RETRY_MS / 1000 - 1.5
    assert took < DURATION_S + 5
    spec = spec_of(cluster, "test-takeover-after-a-kill")
    assert spec["holderIdentity"] == "second" and spec["leaseTransitions"] == 1


def test_takeover_after_a_release(cluster, pair):
    """The other replica leads well before the lease would have expired."""
    first, second = pair
    asked = time.monotonic()
    first.process.send_signal(signal.SIGTERM)
    followed = first.wait_for("released")
    assert first.process.wait(timeout=20) == 0
    assert [what for what, _ in first.events] == ["leads", "follows", "released"]
    led = second.wait_for("leads")
    print(f"took over {led - asked:.3f} s after the leader's SIGTERM; released at {followed - asked:.3f}")
    assert led > first.events[1][1]
    assert led - asked < 2
    assert spec_of(cluster, "test-takeover-after-a-release")["leaseTransitions"] == 1


def test_release_by_a_replica_that_does_not_lead(pair):
    first, second = pair
    second.process.send_signal(signal.SIGTERM)
    second.wait_for("released")
    assert [what for what, _ in second.read_events()] == ["released"]
    assert first.leads()


def test_disconnected_leader_stops_first(pair):
    """It ceases to lead before the other begins, although no message reaches it."""
    first, second = pair
    first.proxy.refuse()
    led = second.wait_for("leads")
    stopped = first.wait_for("follows")
    assert stopped < led
    first.proxy.accept()
    time.sleep(2)
    assert not first.leads() and second.leads()


def test_stopped_leader_follows_when_it_continues(pair):
    """A leader that was stopped by SIGSTOP and has lost the lease only reports that it follows."""
    first, second = pair
    first.process.send_signal(signal.SIGSTOP)
    second.wait_for("leads")
    first.process.send_signal(signal.SIGCONT)
    first.wait_for("follows")
    assert [what for what, _ in first.events] == ["leads", "follows"]
    assert second.leads()


def test_one_of_many_replicas_leads(start):
    replicas = [start(f"r{i}") for i in range(4)]
    wait_until(lambda: any(replica.leads() for replica in replicas))
    for _ in range(3):
        time.sleep(0.5)
        leaders = [replica for replica in replicas if replica.leads()]
        assert len(leaders) == 1
        leaders[0].process.send_signal(signal.SIGTERM)
        leaders[0].process.wait(timeout=20)
        leaders[0].read_events()
        replicas.remove(leaders[0])
        wait_until(lambda: any(replica.leads() for replica in replicas))


def test_lease_changed_by_hand(cluster, pair):
    """The leader follows if someone writes another holder to the Lease. That holder's lease expires."""
    first, second = pair
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/test-lease-changed-by-hand"
    cluster.request("PATCH", path, {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 2}},
                    kind="application/merge-patch+json")
    first.wait_for("follows")
    wait_until(lambda: first.leads() or second.leads(), what="the end of the other holder's lease")


def test_server_restarted(cluster, pair):
    """The leader may change or not. This test is the last one, because others would have to wait for the server."""
    first, second = pair
    cluster.restart_apiserver()
    wait_until(lambda: first.leads() or second.leads(), what="a leader")
    time.sleep(1)
    assert first.leads() != second.leads()
