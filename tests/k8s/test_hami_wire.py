"""Compatibility with HAMi in both directions: allot-scheduler with HAMi's device plugin, and allotd with HAMi's scheduler.
HAMi's output is recorded, and hami.py reimplements how HAMi reads."""

import datetime
import json
import os
import re
import time

import pytest

import hami
from cluster import SCHEDULER_TOKEN
from machines import wait_until
from scheduler import Scheduler
from test_allocate import make_node, quotas  # noqa: F401

GPU, MEMORY, PERCENT, CORES = (f"nvidia.com/{name}" for name in ("gpu", "gpumem", "gpumem-percentage", "gpucores"))
NODES = {"node-v2.8": "2.8", "node-v2.10": "2.10", "node-text-v2.4": "2.8", "node-text-v2.6": "2.8"}


# ---- allot-scheduler with HAMi's device plugin ----

@pytest.fixture(scope="module")
def scheduler(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hami")
    kubeconfig = cluster.kubeconfig("hami.conf", user=f"token: {SCHEDULER_TOKEN}")
    scheduler = Scheduler(folder, f"kube_api = {kubeconfig}\nlease = none\n")
    wait_until(lambda: scheduler.ask("GET", "/readyz")[0] == 200, what="all nodes and pods being known")
    yield scheduler
    scheduler.stop()


@pytest.fixture
def plugin(request, cluster):
    """plugin(FILE) creates a recorded node; returns HAMi's plugin of that version, and the UUIDs of its GPUs by index."""
    made = []

    def make(name):
        node = hami.recorded(name)
        node["metadata"]["name"] = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
        cluster.request("POST", "/api/v1/nodes", node)
        made.append(node["metadata"]["name"])
        return hami.Plugin(cluster, made[-1], NODES.get(name, "2.10")), hami.recorded_gpus(node)

    yield make
    for name in made:
        cluster.request("DELETE", f"/api/v1/nodes/{name}")


def fits(scheduler, pod, node):
    status, answer = scheduler.post("/filter", {"Pod": pod, "NodeNames": [node]})
    assert status == 200 and not answer.get("Error"), answer
    return answer["NodeNames"] == [node]


def reason(scheduler, pod, node):
    _, answer = scheduler.post("/filter", {"Pod": pod, "NodeNames": [node]})
    return {**(answer["FailedNodes"] or {}), **(answer["FailedAndUnresolvableNodes"] or {})}.get(node)


def bind(scheduler, pod, node):
    """Filters and binds a pod, as kube-scheduler does."""
    wait_until(lambda: fits(scheduler, pod, node), what="room for the pod")
    assert scheduler.bind(pod, node) == ""


def check_written(cluster, name, node):
    """Asserts the annotations, label and lock that HAMi's plugin and scheduler read."""
    pod = cluster.pod(name)
    notes = pod["metadata"]["annotations"]
    assert pod["spec"]["nodeName"] == notes[hami.NODE] == pod["metadata"]["labels"][hami.NODE] == node
    assert notes[hami.PHASE] == "allocating" and notes[hami.TO_ALLOCATE] == notes[hami.ALLOCATED]
    assert abs(hami.number(notes[hami.BIND_TIME]) - time.time()) < 300
    assert abs(hami.number(notes["hami.io/vgpu-time"]) - time.time()) < 300
    assert hami.read_lock(cluster.annotations(node)[hami.LOCK]) == ("default", name)


@pytest.mark.parametrize("form", NODES)
def test_hamis_plugin_serves_our_pods(cluster, scheduler, plugin, form):
    """A pod of two containers with GPUs and two without, on a node as each version writes it; then another pod."""
    plugin, gpus = plugin(form)
    pod = cluster.make_pod(f"to-{plugin.node}", containers=("log", "train", "web", "serve"), limits={
        "train": {GPU: "1", MEMORY: "3000", CORES: "30"}, "serve": {GPU: "1", PERCENT: "10"}})
    bind(scheduler, pod, plugin.node)
    name = pod["metadata"]["name"]
    check_written(cluster, name, plugin.node)
    total = {"node-v2.8": 15360, "node-v2.10": 215655}.get(form, 32768)
    first, (one,) = plugin.allocate(1)
    assert one[0] in gpus and one[1:] == ("NVIDIA", 3000, 30)
    assert hami.LOCK in cluster.annotations(plugin.node), "the other container waits for its shares"
    second, (other,) = plugin.allocate(1)
    assert other[0] in gpus and other[1:] == ("NVIDIA", total // 10, 0)
    # v2.8 counts only containers with GPUs, so it names the first container each time.
    assert (first, second) == (("train", "serve") if plugin.version == "2.10" else ("log", "log"))
    notes = cluster.pod(name)["metadata"]["annotations"]
    assert notes[hami.PHASE] == "success" and not notes[hami.TO_ALLOCATE].strip(";")
    assert hami.LOCK not in cluster.annotations(plugin.node)
    # Another pod fits and is bound: the lock was released.
    bind(scheduler, cluster.make_pod(f"{name}-b", limits={"main": {GPU: "1", MEMORY: "100"}}), plugin.node)
    plugin.allocate(1)
    cluster.delete_pod(name)
    cluster.delete_pod(f"{name}-b")


def test_hamis_plugin_serves_init_containers_and_several_gpus(cluster, scheduler, plugin):
    """Shares are in the order in which v2.10's plugin counts containers. Healthy GPUs that are close together are chosen."""
    plugin, gpus = plugin("node-v2.10")
    pod = cluster.make_pod("to-several", init=("fetch",), containers=("log", "main"), limits={
        "fetch": {GPU: "1", MEMORY: "500"}, "main": {GPU: "2", MEMORY: "200000", CORES: "20"}})
    bind(scheduler, pod, plugin.node)
    check_written(cluster, "to-several", plugin.node)
    name, (share,) = plugin.allocate(1)
    assert name == "fetch" and share[2:] == (500, 0)
    name, shares = plugin.allocate(2)
    assert name == "main" and {share[0] for share in shares} == set(gpus[:2]), "those of one NUMA node, linked by NVLink"
    assert cluster.pod("to-several")["metadata"]["annotations"][hami.PHASE] == "success"
    cluster.delete_pod("to-several")


@pytest.mark.parametrize("form,gpus,why", [
    ("node-v2.10", 4, "1/4 CardNotHealth"), ("node-text-v2.4", 2, "1/2 CardNotHealth"),
    ("node-v2.10-mig", 1, "1/1 CardTypeMismatch")])
def test_unhealthy_and_mig_gpus_are_not_assigned(cluster, scheduler, plugin, form, gpus, why):
    """A GPU may be unhealthy in either form. In mode mig, only HAMi's own scheduler can choose the MIG instance."""
    plugin, _ = plugin(form)
    pod = cluster.make_pod("to-none", limits={"main": {GPU: str(gpus), MEMORY: "100"}})
    wait_until(lambda: why in (reason(scheduler, pod, plugin.node) or ""), what=why)
    assert not fits(scheduler, pod, plugin.node)
    cluster.delete_pod("to-none")


# ---- HAMi's scheduler with allotd ----

# The shares of each container, in the order of the kubelet's calls: (container, [(index of the GPU, MiB, percent)]).
RECORDED = {
    "pod-v2.8-one": [("main", [(1, 3000, 30)])],
    "pod-v2.8-several": [("train", [(0, 1000, 10), (1, 1000, 10)]), ("serve", [(1, 500, 0)])],
    "pod-v2.8-init": [("main", [(1, 2000, 20)])],
    "pod-v2.10-init": [("fetch", [(0, 3000, 0)]), ("main", [(1, 500, 10)])],
    "pod-v2.10-cards": [("train", [(0, 4096, 25), (1, 4096, 25)])],
    "pod-v2.10-percent": [("half", [(1, 71885, 0)]), ("tenth", [(1, 14377, 5)])],
}


def bind_recorded(node, form):
    """Creates the pod and the node's lock as HAMi's scheduler writes them, with this node's GPUs."""
    gpus = hami.recorded_gpus(hami.recorded("node-v2.8"))
    pod = hami.recorded(form, **dict(zip(gpus, node.uuids())))
    notes, spec = pod["metadata"]["annotations"], pod["spec"]
    spec["nodeName"] = notes[hami.NODE] = pod["metadata"]["labels"][hami.NODE] = node.name
    notes[hami.BIND_TIME] = str(int(time.time()))
    node.cluster.patch(node.path, {"annotations": {hami.LOCK: hami.lock_of(pod)}})
    node.cluster.request("POST", "/api/v1/namespaces/default/pods", pod)
    return pod


@pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon needs root")
@pytest.mark.parametrize("form", RECORDED)
def test_allotd_serves_pods_of_hamis_scheduler(make_node, form):  # noqa: F811
    """Each container gets the GPU that was chosen, whatever devices the kubelet picked, and the node's lock is released."""
    node = make_node()
    uuids = node.uuids()
    pod = bind_recorded(node, form)
    for done, (container, shares) in enumerate(RECORDED[form], 1):
        # The kubelet picks arbitrary devices, here those of a wrong GPU.
        node.plugin.allocate([f"{uuids[1 - shares[0][0]]}-{i + 4 * done}" for i in range(len(shares))])
        tenants = node.tenants()
        assert len(tenants) == done
        tenant = tenants[f"default.{pod['metadata']['name']}.{container}"]
        assert quotas(tenant) == [(uuids[gpu], mib, cores, cores or 100) for gpu, mib, cores in shares]
        if done < len(RECORDED[form]):
            assert node.is_locked(), "the pod has containers that wait for their shares"
    notes = node.annotations(pod["metadata"]["name"])
    assert notes[hami.PHASE] == "success" and not notes[hami.TO_ALLOCATE].strip(";")
    # HAMi's scheduler reads the pod's shares from this annotation.
    assert notes[hami.ALLOCATED] == pod["metadata"]["annotations"][hami.ALLOCATED]
    wait_until(lambda: not node.is_locked(), what="the lock's release")


@pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon needs root")
def test_hamis_scheduler_reads_allotds_node(make_node):  # noqa: F811
    """Each field has the right type, and the handshake of both versions is answered."""
    node = make_node()
    notes = wait_until(lambda: (found := node.cluster.annotations(node.name)).get(hami.REGISTER) and found, what="the GPUs")
    gpus = hami.read_register(notes[hami.REGISTER])
    assert [gpu["id"] for gpu in gpus] == node.uuids()
    assert all(gpu["health"] is True and gpu["mode"] == "hami-core" and gpu["devmem"] > 1000 for gpu in gpus)
    assert all(gpu["type"].startswith("NVIDIA") for gpu in gpus)
    assert {one["uuid"] for one in hami.read_scores(notes[hami.SCORE])} <= set(node.uuids())
    for asked in ("Requesting_2026-08-21 10:00:00", "Requesting_2026.08.21 10:00:00"):
        node.cluster.patch(node.path, {"annotations": {hami.HANDSHAKE: asked}})
        wait_until(lambda: not hami.handshake_is_asked(node.cluster.annotations(node.name)[hami.HANDSHAKE]),
                   what="the answer")


# ---- the recordings themselves ----

def test_recordings_pass_hamis_parsers():
    """This shows that the tests use no form that HAMi does not have."""
    for name in ("node-v2.8", "node-v2.10", "node-v2.10-mig"):
        notes = hami.recorded(name)["metadata"]["annotations"]
        for gpu in hami.read_register(notes[hami.REGISTER]):
            assert all(gpu.values()), "HAMi leaves out fields that are false, 0 or empty"
        assert hami.handshake_is_asked(notes[hami.HANDSHAKE])
        datetime.datetime.strptime(notes[hami.HANDSHAKE].partition("_")[2], "%Y-%m-%d %H:%M:%S")
    hami.read_scores(hami.recorded("node-v2.10")["metadata"]["annotations"][hami.SCORE])
    gpus = hami.recorded_gpus(hami.recorded("node-v2.8"))
    for name, containers in RECORDED.items():
        pod = hami.recorded(name)
        text = pod["metadata"]["annotations"][hami.ALLOCATED]
        version = "2.8" if "v2.8" in name else "2.10"
        found = [[(gpus.index(gpu), *amounts) for gpu, _, *amounts in one] for one in hami.decode(text, version) if one]
        assert found == [shares for _, shares in containers]
        of = pod["spec"]["containers"] + (pod["spec"].get("initContainers", []) if version == "2.10" else [])
        assert text.count(";") == len(of), "each has its ';'"
    assert json.dumps(hami.decode("A,NVIDIA,1,2:;", "2.10")) == '[[["A", "NVIDIA", 1, 2]], []]'
