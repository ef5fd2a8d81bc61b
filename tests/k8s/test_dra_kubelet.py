"""The DRA driver in a whole cluster: pods with ResourceClaims, a real API server, scheduler, claim controller and kubelet, and
containerd and runc, which run the containers with their CDI devices."""

import os
import random
import time

import pytest

import dra
import engines
import pods
from cluster import ALLOTD_DRA_RULES, Cluster
from daemon import Daemon
from held import compile_c, link_with_driver
from machines import wait_until
from dra_node import Node, shares

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon is root's")

MIB = 1 << 20
GIB = 1 << 30
# What the program in a pod takes of each of its cards, and then asks for in vain.
FITS_MIB, TOO_MUCH_MIB = 1 << 10, 140 << 10
WHOLE = "example.com/whole-gpu"
CHURN = int(os.environ.get("ALLOT_CLAIMS", "12"))
CHURN_SEED = int(os.environ.get("ALLOT_CLAIMS_SEED", "36"))
CHURN_ROUND, CHURN_KEPT = 4, 3  # claims that are made together, and the most that stay from the rounds before
CHURN_PATIENCE_S = 180          # the machine may be busy for a while in a churn of an hour


@pytest.fixture(scope="module")
def cluster(build_programs, tmp_path_factory):
    programs = build_programs("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
    cluster = Cluster(programs, tmp_path_factory.mktemp("cluster"), f"{dra.GATES},DRAExtendedResource=true", ALLOTD_DRA_RULES)
    try:
        cluster.start()
        dra.make_class(cluster, extendedResourceName=WHOLE)
        cluster.launch_plain_scheduler()
        # The claim of a pod that knows nothing of claims ends with its owner, the pod.
        cluster.launch_controllers("resourceclaim-controller,garbage-collector-controller")
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def cdi_engine(build_programs):
    """A containerd that knows CDI, where the machine's does not: Debian 12 has 1.6."""
    if (engines.find("containerd") and engines.version_of("containerd") or (0, 0)) >= (1, 7):
        yield
        return
    folder = build_programs("containerd", "ctr", "containerd-shim-runc-v2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "PATH", os.pathsep.join([str(folder), engines.PATH]))
        yield


@pytest.fixture(scope="module")
def kubelet(cluster, cdi_engine, build_programs, tmp_path_factory):
    with pods.running_kubelet(cluster, build_programs, tmp_path_factory.mktemp("kubelet"), "with-claims",
                              {"DRAExtendedResource": True}) as kubelet:
        yield kubelet


class ClaimNode(pods.QuotaPods, Node):
    """allotd beside a kubelet that calls it. Pods are placed by the scheduler."""

    def __init__(self, kubelet, cluster, directory):  # noqa: PLW0231
        shared = directory / "shared"
        shared.mkdir()
        program = compile_c(shared / "quota", *link_with_driver(), "quota.c")
        self.watcher = compile_c(shared / "watch_memory", *link_with_driver(), "watch_memory.c")
        pods.QuotaPods.__init__(self, kubelet, shared, program, FITS_MIB, TOO_MUCH_MIB)
        self.cluster, self.directory, self.name = cluster, directory, kubelet.node
        self.cdi = kubelet.engine.specs
        self.registry, self.socket = kubelet.registry, kubelet.registry / dra.SOCKET
        self.driver = None
        self.daemon = Daemon(directory, cluster.kubeconfig("allotd.conf"), self.name, is_private=False, settings=(
            f"kube_dra = on\nkube_dra_dir = {self.registry}\nkube_cdi_dir = {self.cdi}\nstate_dir = {directory}/state\n"
            "watch_tasks = off\nclaim_grace = 1s\n"))

    def start(self):
        registrations = self.registrations()
        super().start()
        wait_until(lambda: self.registrations() > registrations, what="the registration")
        return self

    def registrations(self):
        log = self.directory / "log"
        return log.read_text().count("the kubelet has registered") if log.exists() else 0

    # ---- pods ----

    def make_template(self, name, requests, config=(), **more):
        self.cluster.request("POST", f"{dra.API}/namespaces/default/resourceclaimtemplates", {
            "metadata": {"name": name},
            "spec": {"spec": {"devices": {"requests": requests, "config": list(config), **more}}}})

    def watch(self, out):
        """A command that appends to the file `out` whenever a GPU's total memory changes."""
        return ["/bin/sh", "-c", f"exec {self.watcher} >{self.shared}/{out}"]

    def last(self, out):
        """The last line of that file: a GPU's index, and its MiB."""
        path = self.shared / out
        lines = path.read_text().splitlines() if path.exists() else []
        return lines[-1] if lines else None

    def make_pod(self, name, containers=("main",), command=None, **source):
        """`source`: resourceClaimTemplateName or resourceClaimName."""
        spec = self.kubelet.pod_spec(
            {container: ({}, command or self.command(f"{name}.{container}")) for container in containers}, self.shared)
        for container in spec["containers"]:
            container["resources"] = {"claims": [{"name": "gpu"}]}
        # Who makes a node taints it; the controller that would take that away is not there.
        self.cluster.request("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": {
            **spec, "restartPolicy": "Never", "resourceClaims": [{"name": "gpu", **source}],
            "tolerations": [{"operator": "Exists"}]}})

    def claim_of(self, name):
        found = self.kubelet.status(name).get("resourceClaimStatuses", [{}])
        return self.cluster.request("GET", dra.path_of(found[0]["resourceClaimName"]))

    def claims_named(self, prefix):
        found = self.cluster.request("GET", f"{dra.API}/namespaces/default/resourceclaims")["items"]
        return [claim for claim in found if claim["metadata"]["name"].startswith(prefix)]

    def events_of(self, name):
        return [event["message"] for event in self.cluster.events(about=name)]

    def has_no_room(self, name):
        """Says the scheduler."""
        return any("cannot allocate all claims" in text for text in self.events_of(name))

    def wait_placed(self, name, seconds):
        """Returns True if the scheduler found no room for the pod, else the MiB that its container sees."""
        return wait_until(lambda: self.seen(name) or self.has_no_room(name), seconds, f"pod {name}")

    def close(self):
        alive = self.daemon.is_alive()
        left = self.kubelet.pods()
        if left:
            self.kubelet.remove_pods(*left)
        for pod in self.cluster.request("GET", "/api/v1/namespaces/default/pods")["items"]:
            self.cluster.delete_pod(pod["metadata"]["name"])
        if self.driver:
            self.driver.close()
        self.daemon.stop()
        assert alive, self.daemon.log


@pytest.fixture
def node(kubelet, cluster, tmp_path_factory):
    node = ClaimNode(kubelet, cluster, tmp_path_factory.mktemp("n"))
    try:
        yield node.start()
    finally:
        node.close()


def test_a_third_of_a_card(node):
    """Requested = quota in allot ps = what the container is told; other pods have the rest, and no more."""
    node.make_template("third", [dra.request(capacity={"memory": "46Gi", "cores": "33"})])
    for name in ("a", "b"):
        node.make_pod(name, resourceClaimTemplateName="third")
    assert node.wait_for("a") == node.wait_for("b") == [46 << 10]
    tenants = node.tenants()
    assert len(tenants) == 2 and all(shares(tenant) == [(46 * GIB, 33, 100)] for tenant in tenants.values())
    assert all(tenant["devices"][0]["memory_used_bytes"] >= FITS_MIB * MIB for tenant in tenants.values())
    assert set(tenants) == {f"default.{node.claim_of(name)['metadata']['name']}" for name in ("a", "b")}
    node.kubelet.remove_pods("a", "b")
    wait_until(lambda: not node.tenants(), what="the tenants' end")
    wait_until(lambda: not node.specs(), what="the specs' end")


def test_both_cards_fill_up(node):
    """kube-scheduler looks at each GPU: kubernetes/kubernetes#133705."""
    node.make_template("most", [dra.request(capacity={"memory": "80Gi"})])
    for name in ("x", "y"):
        node.make_pod(name, resourceClaimTemplateName="most")
    assert node.wait_for("x") == node.wait_for("y") == [80 << 10]
    assert len({tenant["devices"][0]["uuid"] for tenant in node.tenants().values()}) == 2
    node.make_pod("z", resourceClaimTemplateName="most")
    wait_until(lambda: node.has_no_room("z"), what="the scheduler's word")
    node.kubelet.remove_pods("x")
    assert node.wait_for("z") == [80 << 10]


def test_one_claim_of_several_pods(node):
    """Containers of two pods are in one tenant."""
    dra.make_claim(node.cluster, "shared", [dra.request(capacity={"memory": "20Gi"})])
    node.make_pod("first", ("main", "other"), resourceClaimName="shared")
    assert node.wait_for("first") == node.wait_for("first", "other") == [20 << 10]
    node.make_pod("second", resourceClaimName="shared")
    assert node.wait_for("second") == [20 << 10]
    tenant, = node.tenants().values()
    assert len(tenant["processes"]) == 3
    assert tenant["devices"][0]["memory_used_bytes"] >= 3 * FITS_MIB * MIB
    node.kubelet.remove_pods("first")
    assert len(node.tenants()) == 1
    node.kubelet.remove_pods("second")
    wait_until(lambda: not node.tenants(), what="the tenant's end")


def test_halves_of_two_cards(node):
    """As the guide has it: chosen by attributes, of one NVLink domain, not the same card twice; one tenant on both."""
    half = {"memory": "40Gi", "cores": "50"}
    hopper = [{"cel": {"expression": 'device.attributes["gpu.allot.dev"].architecture == "Hopper"'}}]
    domain = {device["attributes"].get("nvlinkDomain", {}).get("string") for device in node.devices().values()}
    constraints = [{"requests": ["a", "b"], "distinctAttribute": "gpu.allot.dev/uuid"}]
    if domain != {None}:
        constraints.append({"requests": ["a", "b"], "matchAttribute": "gpu.allot.dev/nvlinkDomain"})
    node.make_template("halves", [dra.request("a", half, selectors=hopper), dra.request("b", half)], constraints=constraints)
    node.make_pod("halves", resourceClaimTemplateName="halves")
    assert node.wait_for("halves") == [40 << 10, 40 << 10]
    tenant, = node.tenants().values()
    assert shares(tenant) == 2 * [(40 * GIB, 50, 100)] and len({device["uuid"] for device in tenant["devices"]}) == 2


def test_a_limit_becomes_a_claim(node):
    """A pod that knows nothing of claims gets a whole card by the class's extendedResourceName."""
    spec = node.kubelet.pod_spec({"main": ({WHOLE: 1}, node.command("whole.main", 2 * TOO_MUCH_MIB))}, node.shared)
    node.cluster.request("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "whole"}, "spec": {
        **spec, "restartPolicy": "Never", "tolerations": [{"operator": "Exists"}]}})
    whole = node.cards()[0]["memory_bytes"] // MIB
    assert node.wait_for("whole") == [whole]
    tenant, = node.tenants().values()
    assert shares(tenant) == [(whole * MIB, 0, 100)]


def test_a_wrong_parameter_stands_in_the_pods_events(node):
    node.make_template("wrong", [dra.request(capacity={"memory": "1Gi"})], [dra.terms(onFull="pray")])
    node.make_pod("wrong", resourceClaimTemplateName="wrong")
    wait_until(lambda: any("onFull: 'pray': must be fail, wait or swap" in text for text in node.events_of("wrong")),
               what="the event")
    assert not node.tenants() and not node.specs()


# ---- changes of a prepared claim ----

def test_allot_set_on_a_claim(node, kubelet):
    """A process that runs sees the new quota, and so does a pod that starts later with the same claim, even after restarts of
    allotd and the kubelet, which then prepares the claim again. When the pods have ended, nothing is left."""
    dra.make_claim(node.cluster, "changed", [dra.request(capacity={"memory": "10Gi", "cores": "20"})])
    node.make_pod("first", resourceClaimName="changed", command=node.watch("first.watch"))
    wait_until(lambda: node.last("first.watch") == "0 10240", what="the quota in the container")
    name, = node.tenants()
    node.set(name, "--memory", "30GiB", "--cores-limit", "70", "--priority", "9")
    wait_until(lambda: node.last("first.watch") == "0 30720", what="the new quota in the container")
    assert shares(node.tenants()[name]) == [(30 * GIB, 20, 70)] and node.tenants()[name]["priority"] == 9
    was, registrations = node.kubelet.identity("first"), node.registrations()
    node.kill()
    node.start()
    kubelet.kill()
    kubelet.launch()
    wait_until(lambda: node.registrations() > registrations + 1, what="the kubelet's registration")
    node.make_pod("second", resourceClaimName="changed")
    assert node.wait_for("second") == [30 << 10]
    tenant, = node.tenants().values()
    assert shares(tenant) == [(30 * GIB, 20, 70)] and tenant["priority"] == 9 and len(tenant["processes"]) == 2
    node.set(name, "--memory", "20GiB")
    wait_until(lambda: node.last("first.watch") == "0 20480", what="a lower quota in the container")
    assert node.kubelet.identity("first") == was
    node.kubelet.remove_pods("first", "second")
    wait_until(lambda: not node.tenants() and not node.specs(), what="the end of the tenant")


# ---- recoveries ----

def prepares_anew(recovery, node, template):
    """A pod that is made now gets a claim, and its tenant. It runs soon after."""
    before = set(node.tenants())
    node.make_pod("after", resourceClaimTemplateName=template)
    recovery.wait("a new claim", lambda: set(node.tenants()) - before)
    assert node.wait_for("after") == [10 << 10]


def test_the_kubelet_is_killed(node, kubelet):
    node.make_template("kept", [dra.request(capacity={"memory": "10Gi"})])
    node.make_pod("before", resourceClaimTemplateName="kept")
    node.wait_for("before")
    was, registrations = node.kubelet.identity("before"), node.registrations()
    kubelet.kill()
    recovery = dra.Recovery("a kill of the kubelet")
    kubelet.launch()
    recovery.wait("the registration", lambda: node.registrations() > registrations)
    prepares_anew(recovery, node, "kept")
    assert node.kubelet.identity("before") == was and len(node.tenants()) == 2


def test_a_removed_socket(node):
    node.make_template("cut", [dra.request(capacity={"memory": "10Gi"})])
    registrations = node.registrations()
    node.socket.unlink()
    recovery = dra.Recovery("the removal of the driver's socket")
    recovery.wait("the registration", lambda: node.registrations() > registrations)
    prepares_anew(recovery, node, "cut")


def test_the_daemon_is_killed(node):
    """The pod that runs goes on. A pod that is made meanwhile waits."""
    node.make_template("lasting", [dra.request(capacity={"memory": "10Gi"})])
    node.make_pod("before", resourceClaimTemplateName="lasting")
    node.wait_for("before")
    was = node.kubelet.identity("before")
    node.kill()
    node.make_pod("meanwhile", resourceClaimTemplateName="lasting")
    recovery = dra.Recovery("a kill of allotd")
    node.start()
    recovery.wait("the registration", lambda: True)
    prepares_anew(recovery, node, "lasting")
    assert node.wait_for("meanwhile") == [10 << 10]
    assert node.kubelet.identity("before") == was and len(node.tenants()) == 3


def test_churn(node):
    """Claims of random memory and cores come and go, a few at a time, and the daemon is killed now and then, also amid prepare
    calls. Each pod must have the quota that it asked for, in `allot ps` and by cuMemGetInfo, and no GPU may be overcommitted.
    ALLOT_CLAIMS is the number of claims, and ALLOT_CLAIMS_SEED chooses their amounts."""
    chosen = random.Random(CHURN_SEED)
    running = {}
    kills = without_room = 0
    begun = time.monotonic()

    def restart(is_due):
        nonlocal kills
        if is_due:
            node.kill()
            node.start()
            kills += 1

    for first in range(0, CHURN, CHURN_ROUND):
        gone = chosen.sample(sorted(running), max(0, len(running) - chosen.randint(0, CHURN_KEPT)))
        node.kubelet.remove_pods(*gone, seconds=CHURN_PATIENCE_S)
        for name in gone:
            del running[name]
        wait_until(lambda: len(node.claims_named("churn-")) == len(running), CHURN_PATIENCE_S, "the end of the pods' claims")
        restart(chosen.random() < 0.4)
        wanted = {f"churn-{number}": (chosen.randint(2 << 10, 60 << 10), chosen.randint(0, 50))
                  for number in range(first, min(first + CHURN_ROUND, CHURN))}
        for name, (mib, cores) in wanted.items():
            node.make_template(name, [dra.request(capacity={"memory": f"{mib}Mi", "cores": str(cores)})])
            node.make_pod(name, resourceClaimTemplateName=name)
        restart(chosen.random() < 0.1)
        for name, (mib, cores) in wanted.items():
            if node.wait_placed(name, CHURN_PATIENCE_S) is True:
                node.cluster.delete_pod(name)
                without_room += 1
            else:
                assert node.wait_for(name, seconds=CHURN_PATIENCE_S) == [mib]
                running[name] = (mib * MIB, cores, 100)
        assert sorted(share for tenant in node.tenants().values() for share in shares(tenant)) == sorted(running.values())
        for card in node.cards():
            assert card["promised_bytes"] <= card["memory_bytes"] and card["promised_cores_pct"] <= 100
        print(f"{first + len(wanted)} claims in {time.monotonic() - begun:.0f} s, {without_room} without room, {kills} kills",
              flush=True)
