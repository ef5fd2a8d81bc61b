"""Annotations of a pod that change the shares of its running containers, with a real API server, allotd, and a test kubelet
that uses gRPC's own library. The tests read the new shares from the daemon, which enforces them."""

import itertools
import os
import signal
import time

import pytest

from machines import wait_until
from scrape import Page, request
from test_allocate import MIB, make_node, quotas  # noqa: F401

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon needs root")


numbers = itertools.count(1)


class LivePod:
    """A node with one pod, whose container has 3,000 MiB and 30 % of the first GPU, with a hard limit."""

    def __init__(self, make_node, cluster, directory, shares="{0},NVIDIA,3000,30:;", **more):  # noqa: F811
        self.cluster = cluster
        self.pod = f"p-live-{next(numbers)}"
        self.metrics = f"unix:{directory}/metrics.sock"
        self.node = make_node(f"metrics_listen = {self.metrics}\n")
        self.gpus = self.node.uuids()
        self.node.bind(self.pod, shares.format(*self.gpus), **more)
        self.node.plugin.allocate([f"{self.gpus[0]}-{i}" for i in range(shares.count(":"))])

    def annotate(self, **values):
        """`on_full="wait"` sets allot.dev/on-full, and None removes it. `main__memory` is for the container main alone."""
        def name(key):
            owner, _, field = key.rpartition("__")
            return f"{owner + '.' if owner else ''}allot.dev/{field.replace('_', '-')}"

        self.cluster.patch(f"/api/v1/namespaces/default/pods/{self.pod}",
                           {"annotations": {name(key): value for key, value in values.items()}})

    def tenant(self, container="main"):
        return self.node.tenants().get(f"default.{self.pod}.{container}")

    def quotas(self, container="main"):
        return [terms[1:] for terms in quotas(self.tenant(container))]

    def wait_for(self, *terms, container="main"):
        wait_until(lambda: self.tenant(container) and self.quotas(container) == list(terms),
                   what=f"{terms}, not {self.quotas(container)}; {self.node.daemon.log[-2000:]}")

    def events(self, reason):
        return [event for event in self.cluster.events()
                if event["reason"] == reason and event["involvedObject"]["name"] == self.pod]

    def refused(self):
        return Page(request(self.metrics)[2]).value("allot_live_changes_refused_total")

    def restart(self, between=lambda: None):
        node = self.node
        node.daemon.processes[-1].send_signal(signal.SIGKILL)
        node.daemon.processes.pop().wait()
        between()
        registrations = len(node.kubelet.registrations)
        node.daemon.start()
        node.plugin = node.kubelet.wait_registered(registrations + 1)


@pytest.fixture
def live(make_node, cluster, tmp_path):  # noqa: F811
    return lambda **more: LivePod(make_node, cluster, tmp_path, **more)


def test_shares_follow_the_annotations(live):
    pod = live()
    assert pod.quotas() == [(3000, 30, 30)]
    pod.annotate(memory="4000MiB")
    pod.wait_for((4000, 30, 30))
    pod.annotate(cores="50")
    pod.wait_for((4000, 50, 50))
    pod.annotate(cores_limit="80", memory=None)
    pod.wait_for((3000, 50, 80))
    pod.annotate(on_full="wait", sharing="time", priority="-20")
    wait_until(lambda: pod.tenant()["on_full"] == "wait" and pod.tenant()["priority"] == -20, what="on-full and priority")
    wait_until(lambda: pod.events("GPUTermsChanged"), what="the event")
    pod.annotate(cores=None, cores_limit=None, on_full=None, sharing=None, priority=None)
    pod.wait_for((3000, 30, 30))
    assert pod.tenant()["on_full"] == "fail" and pod.tenant()["priority"] == 0
    assert pod.refused() == 0


def test_changes_survive_restarts_of_the_daemon(live):
    """A change is kept, and a change that was made while no daemon ran is applied at its start."""
    pod = live()
    pod.annotate(memory="4000MiB")
    pod.wait_for((4000, 30, 30))
    pod.restart()
    assert pod.quotas() == [(4000, 30, 30)]
    pod.restart(between=lambda: pod.annotate(memory=None, cores="20"))
    pod.wait_for((3000, 20, 20))
    pod.restart(between=lambda: pod.annotate(cores=None))
    pod.wait_for((3000, 30, 30))


def test_annotations_of_one_container(live):
    pod = live(shares="{0},NVIDIA,3000,30:{1},NVIDIA,1000,10:;", containers=("main", "log"))
    pod.annotate(main__memory="3500MiB,1500MiB", cores="40")
    pod.wait_for((3500, 40, 40), (1500, 40, 40))
    wait_until(lambda: pod.events("GPUTermsChanged"), what="the event")
    assert "container main: priority 0" in pod.events("GPUTermsChanged")[0]["message"]
    pod.annotate(main__memory="3500MiB,1500MiB,1GiB")
    wait_until(lambda: pod.events("GPUTermsRefused"), what="the event")
    message = pod.events("GPUTermsRefused")[0]["message"]
    assert message.startswith("container main: ") and "3 values: must be one, or one for each" in message
    assert pod.quotas() == [(3500, 40, 40), (1500, 40, 40)]


@pytest.mark.parametrize("name, value, why", [
    ("memory", "lots", "'lots'"),
    ("memory", "900GiB", "is more than the GPU has"),
    ("memory", "3500000", "unit"),
    ("cores", "300", "'300'"),
    ("on_full", "swap", "must stay 'fail'"),
    ("sharing", "turns", "must be time or space"),
    ("priority", "101", "from -100 to 100"),
    ("memroy", "4GiB", "there is no such annotation"),
    ("nobody__memory", "4GiB", "has no container 'nobody'"),
])
def test_invalid_changes_are_refused_once(live, name, value, why):
    """The log, an event and a metric report a refusal once, however often the pod is written; the shares do not change."""
    pod = live()
    pod.annotate(**{name: value, "cores_limit": "90"})
    wait_until(lambda: pod.refused() == 1, what=f"the refusal; {pod.node.daemon.log[-2000:]}")
    wait_until(lambda: pod.events("GPUTermsRefused"), what="the event")
    assert why in pod.events("GPUTermsRefused")[0]["message"]
    for beat in range(5):
        pod.cluster.patch(f"/api/v1/namespaces/default/pods/{pod.pod}", {"annotations": {"beat": str(beat)}})
        time.sleep(0.1)
    assert pod.quotas() == [(3000, 30, 30)]
    pod.annotate(**{name: None, "memory": "3333MiB"})
    pod.wait_for((3333, 30, 90))
    assert pod.refused() == 1
    assert pod.node.daemon.log.count("the changed annotations are refused") == 1
    assert len(pod.events("GPUTermsRefused")) == 1


def test_changes_can_be_disabled(make_node, cluster):  # noqa: F811
    node = make_node("kube_live_terms = off\n")
    first, _ = node.uuids()
    node.bind("p-still", f"{first},NVIDIA,3000,30:;")
    node.plugin.allocate([f"{first}-0"])
    cluster.patch("/api/v1/namespaces/default/pods/p-still", {"annotations": {"allot.dev/memory": "4GiB"}})
    # The daemon has seen a pod that was made later, so it has also seen the change.
    node.bind("p-seen-after", f"{first},NVIDIA,1000,10:;")
    node.plugin.allocate([f"{first}-1"])
    assert quotas(node.tenants()["default.p-still.main"]) == [(first, 3000, 30, 30)]
