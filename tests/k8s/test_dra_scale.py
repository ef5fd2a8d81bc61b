"""ResourceClaims at scale: a real API server, the cluster's own scheduler and claim controller, and an allotd with simulated
GPUs for each node; the test plays the kubelets. Claims with random memory and cores come and go. Each tenant must get
what it requested, no claim that the scheduler placed may be refused, and no GPU may be overcommitted.

    ALLOT_CLAIMS_AT=64x8x1000 build/venv/bin/python -m pytest -s tests/k8s/test_dra_scale.py     nodes x GPUs x claims

prints the measurements and, to compare, those of pods that ask for the same in their limits and are bound through the extender
in the same cluster. The size is small by default."""

import contextlib
import json
import os
import queue
import random
import threading
import time

import pytest

import dra
from cluster import ADMIN_TOKEN, ALLOTD_DRA_RULES, SCHEDULER_TOKEN, Cluster
from machines import wait_until
from node_agents import Server
from scheduler import Scheduler
from test_binding_rate import Agents
from test_binding_rate import pod as pod_with_limits
from dra_node import MIB, Node, shares

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon is root's")

NODES, GPUS, CLAIMS = map(int, os.environ.get("ALLOT_CLAIMS_AT", "3x2x40").split("x"))
HELD = max(2, min(2 * NODES * GPUS, CLAIMS // 2))   # at a time
WAITING = 8                                         # of these, to be bound or prepared
PODS_PATH, CLAIMS_PATH = "/api/v1/namespaces/default/pods", f"{dra.API}/namespaces/default/resourceclaims"
KUBELETS = 4


@pytest.fixture(scope="module")
def own(build_programs, tmp_path_factory):
    """A cluster of its own: other tests' nodes are not to be looked at."""
    programs = build_programs("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
    cluster = Cluster(programs, tmp_path_factory.mktemp("scale"), dra.GATES, ALLOTD_DRA_RULES)
    try:
        cluster.start()
        dra.make_class(cluster)
        cluster.launch_plain_scheduler()
        cluster.launch_controllers("resourceclaim-controller")
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def nodes(own, tmp_path_factory):
    made = {}
    try:
        for i in range(NODES):
            # The way to the API server is the server's own port.
            node = Node(own, own, tmp_path_factory.mktemp("n"), f"node-{i}", cards=f"h200x{GPUS}")
            made[node.name] = node
            amounts = {"cpu": "192", "memory": "2Ti", "pods": "500"}
            own.set_status(node.name, {"capacity": amounts, "allocatable": amounts,
                                       "conditions": [{"type": "Ready", "status": "True"}]})
            # Who makes a node taints it; the controller that would take that away is not there.
            own.request("PATCH", f"/api/v1/nodes/{node.name}", {"spec": {"taints": None}}, kind="application/merge-patch+json")
            node.start()
        yield made
        assert all(node.daemon.is_alive() for node in made.values())
    finally:
        for node in made.values():
            if node.driver:
                node.driver.close()
            node.daemon.stop()


class Pod:
    """One that asks by a claim of its own. Times are of its states."""

    def __init__(self, number, chosen):
        self.name = f"c-{number}"
        self.mib, self.cores = chosen.randint(1 << 10, 60 << 10), chosen.randint(0, 40)
        self.node = self.uid = self.created = self.bound = self.prepared = None

    def make(self, server):
        self.created = time.time()
        spec = {"devices": {"requests": [dra.request(capacity={"memory": f"{self.mib}Mi", "cores": str(self.cores)})]}}
        status, claim = server.ask("POST", CLAIMS_PATH, {"metadata": {"name": self.name}, "spec": spec})
        assert status == 201, claim
        self.uid = claim["metadata"]["uid"]
        status, answer = server.ask("POST", PODS_PATH, {"metadata": {"name": self.name}, "spec": {
            "containers": [{"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": self.name}], "terminationGracePeriodSeconds": 0}})
        assert status == 201, answer

    def claim(self):
        return {"metadata": {"name": self.name, "namespace": "default", "uid": self.uid}}

    def share(self):
        return [(self.mib * MIB, self.cores, 100)]


class Kubelets:
    """Prepares the claims of pods that are bound, and tells of the pods."""

    def __init__(self, make_server, nodes, pods):
        self.make_server, self.nodes, self.pods = make_server, nodes, pods
        self.jobs, self.done, self.faults = queue.Queue(), queue.Queue(), []
        for what in (self.see, *[self.work] * KUBELETS):
            threading.Thread(target=what, daemon=True).start()

    def see(self):
        # The cluster ends before this does.
        with contextlib.suppress(OSError):
            for one in self.make_server().watch(PODS_PATH):
                pod = self.pods.get(one["metadata"]["name"])
                if pod and not pod.bound and one["spec"].get("nodeName"):
                    pod.bound, pod.node = time.time(), self.nodes[one["spec"]["nodeName"]]
                    self.jobs.put(pod)

    def work(self):
        server = self.make_server()
        while True:
            pod = self.jobs.get()
            try:
                pod.node.driver.prepare(pod.claim())
                pod.prepared = time.time()
                server.ask("PATCH", f"{PODS_PATH}/{pod.name}/status", {"status": {"phase": "Running"}},
                           "application/merge-patch+json")
            except Exception as fault:  # noqa: BLE001, pylint: disable=broad-except
                self.faults.append(f"{pod.name}: {fault}")
            self.done.put(pod)


def end(server, pod):
    """As a kubelet ends it; its claim is not needed any more."""
    pod.node.driver.unprepare(pod.claim())
    server.ask("DELETE", f"{PODS_PATH}/{pod.name}?gracePeriodSeconds=0", {})
    server.ask("DELETE", f"{CLAIMS_PATH}/{pod.name}", {})


def check(nodes, running):
    """All tenants have what was requested; no card is promised over."""
    for node in nodes.values():
        wanted = {f"default.{pod.name}": pod.share() for pod in running if pod.node is node}
        assert {name: shares(tenant) for name, tenant in node.tenants().items()} == wanted
        for card in node.cards():
            assert card["promised_bytes"] <= card["memory_bytes"] and card["promised_cores_pct"] <= 100


def tell(what, seconds):
    times = sorted(seconds)
    print(f"{what}: p50 {1000 * times[len(times) // 2]:.0f} ms, p99 {1000 * times[len(times) * 99 // 100]:.0f} ms, "
          f"most {1000 * times[-1]:.0f} ms")


@pytest.fixture(scope="module")
def make_server(own):
    return lambda: Server(own.url, str(own.path("ca.crt")), ADMIN_TOKEN)


def test_claims_come_and_go(own, make_server, nodes):
    begun = time.time()
    wait_until(lambda: sum(len(one["spec"].get("devices") or []) for one in own.request(
        "GET", f"{dra.API}/resourceslices")["items"]) == NODES * GPUS, 60, "a slice of each GPU")
    chosen = random.Random(36)
    pods = [Pod(number, chosen) for number in range(CLAIMS)]
    kubelets = Kubelets(make_server, nodes, {pod.name: pod for pod in pods})
    server = make_server()
    running, waiting, ended = [], 0, 0

    def take():
        running.append(kubelets.done.get(timeout=120))
        assert not kubelets.faults, kubelets.faults

    for pod in pods:
        while waiting >= WAITING:
            take()
            waiting -= 1
        if len(running) + waiting >= HELD:
            end(server, running.pop(chosen.randrange(len(running))))
            ended += 1
        pod.make(server)
        waiting += 1
    for _ in range(waiting):
        take()
    took = time.time() - begun
    check(nodes, running)
    assert len(running) + ended == CLAIMS
    print(f"\n{CLAIMS} claims on {NODES} nodes of {GPUS} GPUs, at most {HELD} at a time: {took:.1f} s, {CLAIMS / took:.1f} a second")
    tell("from creation to binding", [pod.bound - pod.created for pod in pods])
    tell("from binding to prepared", [pod.prepared - pod.bound for pod in pods])
    tell("from creation to prepared", [pod.prepared - pod.created for pod in pods])
    for pod in running:
        end(server, pod)
    check(nodes, [])


def tell_of_cards(own, node):
    """As a device plugin in HAMi's words."""
    cards = [{"id": card["uuid"], "index": card["index"], "count": 10, "devmem": card["memory_bytes"] // MIB, "devcore": 100,
              "type": "NVIDIA-H200", "numa": 0, "mode": "hami-core", "health": True} for card in node.cards()]
    own.patch(f"/api/v1/nodes/{node.name}", {"labels": {"gpu": "on"},
                                             "annotations": {"hami.io/node-nvidia-register": json.dumps(cards)}})
    amounts = {**own.node(node.name)["status"]["allocatable"], "nvidia.com/gpu": str(10 * GPUS)}
    own.set_status(node.name, {"capacity": amounts, "allocatable": amounts})


def test_the_same_by_limits(own, make_server, nodes, tmp_path):
    """By kube-scheduler with allot-scheduler as its extender."""
    for node in nodes.values():
        tell_of_cards(own, node)
    own.end("kube-scheduler")
    kubeconfig = own.kubeconfig("allot-scheduler.conf", user=f"token: {SCHEDULER_TOKEN}")
    scheduler = Scheduler(tmp_path / "s", f"kube_api = {kubeconfig}\nlease = none\n")
    agents = Agents(own)
    server, chosen = make_server(), random.Random(36)
    running, waiting, times = [], {}, []
    begun = time.time()
    try:
        own.launch_scheduler(f"http://{scheduler.http}")
        for number in range(CLAIMS):
            def is_room():
                for name in waiting.keys() & agents.bound.keys():
                    times.append(agents.bound[name] - waiting.pop(name))
                    running.append(name)
                return len(waiting) < WAITING

            wait_until(is_room, 120, "a pod's binding")
            if len(running) + len(waiting) >= HELD:
                server.ask("DELETE", f"{PODS_PATH}/{running.pop(chosen.randrange(len(running)))}?gracePeriodSeconds=0", {})
            name, claim = f"l-{number}", Pod(number, chosen)
            waiting[name] = time.time()
            status, answer = server.ask("POST", PODS_PATH, pod_with_limits(name, {
                "nvidia.com/gpu": "1", "nvidia.com/gpumem": str(claim.mib), "nvidia.com/gpucores": str(claim.cores)},
                "allot-scheduler"))
            assert status == 201, answer
        wait_until(lambda: is_room() and not waiting, 120, "the last pods' binding")
        took = time.time() - begun
    finally:
        agents.end()
        own.end("kube-scheduler")
        scheduler.stop()
    print(f"\n{CLAIMS} pods by the extender: {took:.1f} s, {CLAIMS / took:.1f} a second")
    tell("from creation to binding", times)
    assert len(times) == CLAIMS
