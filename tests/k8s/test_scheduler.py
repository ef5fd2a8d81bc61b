"""allot-scheduler with a real API server. The test sends it the requests that kube-scheduler sends to an extender."""

import json
import signal
import time

import pytest

from cluster import SCHEDULER_TOKEN
from machines import wait_until
from scheduler import Scheduler

PHASE = "hami.io/bind-phase"


def register_entry(index, node, memory=32768):
    return {"id": f"GPU-{node}-{index}", "index": index, "count": 10, "devmem": memory, "devcore": 100,
            "type": "NVIDIA-H200", "health": True}


@pytest.fixture
def start(request, cluster, tmp_path):
    started = []

    def make(settings="lease = none\n", **more):
        name = f"{request.node.name}-{len(started)}"
        kubeconfig = cluster.kubeconfig(f"{name}.conf", user=f"token: {SCHEDULER_TOKEN}")
        started.append(Scheduler(tmp_path / name, f"kube_api = {kubeconfig}\n{settings}", **more))
        return started[-1]

    yield make
    for one in started:
        one.stop()


@pytest.fixture
def nodes(request, cluster):
    """Two nodes with two GPUs each."""
    names = [f"{request.node.name.replace('_', '-')}-{i}" for i in range(2)]
    for name in names:
        cluster.make_node(name, {"hami.io/node-nvidia-register": json.dumps([register_entry(i, name) for i in range(2)]),
                                 "hami.io/node-handshake": "Reported_" + time.strftime("%Y-%m-%d %H:%M:%S")})
    return names


def is_ready(scheduler):
    return scheduler.ask("GET", "/readyz")[0] == 200


def test_pod_is_filtered_scored_and_bound(cluster, start, nodes):
    s = start()
    wait_until(lambda: is_ready(s), what="all nodes and pods being known")
    pod = cluster.make_pod("fits", limits={"main": {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000",
                                                    "nvidia.com/gpucores": "30"}})
    status, answer = s.post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": [*nodes, "unknown"]})
    assert status == 200 and not answer.get("Error")
    assert sorted(answer["NodeNames"]) == nodes
    status, scores = s.post("/prioritize", {"Pod": pod, "NodeNames": nodes})
    assert status == 200 and {one["Host"] for one in scores} == set(nodes)

    assert s.bind(pod, nodes[0]) == ""
    stored = cluster.pod("fits")
    annotations = stored["metadata"]["annotations"]
    assert stored["spec"]["nodeName"] == nodes[0]
    assert annotations[PHASE] == "allocating" and annotations["hami.io/vgpu-node"] == nodes[0]
    assert sorted(annotations["hami.io/vgpu-devices-to-allocate"].strip(":;").split(":")) == [
        f"GPU-{nodes[0]}-{i},NVIDIA,3000,30" for i in range(2)]
    # The node is locked until the device plugin releases the lock, so another binding fails with the reason.
    status, answer = s.post("/bind", {"PodName": "fits", "PodNamespace": "default", "PodUID": "other", "Node": nodes[0]})
    assert status == 200 and answer["Error"]
    text = s.ask("GET", "/metrics")[1].decode()
    assert 'allot_scheduler_requests_total{verb="filter",result="good"} 1\n' in text


def test_pod_that_requests_too_much(cluster, start, nodes):
    s = start()
    wait_until(lambda: is_ready(s), what="all nodes and pods being known")
    pod = cluster.make_pod("large", limits={"main": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "40000"}})
    status, answer = s.post("/filter", {"Pod": pod, "NodeNames": nodes})
    assert status == 200 and not answer["NodeNames"]
    failed = {**(answer.get("FailedNodes") or {}), **(answer.get("FailedAndUnresolvableNodes") or {})}
    assert set(failed) == set(nodes)
    assert all("CardInsufficientMemory" in why for why in failed.values())


def test_one_of_two_replicas_binds(cluster, start, nodes):
    lease = "lease = default/two-replicas\n"
    first = start(lease)
    wait_until(lambda: first.ask("GET", "/leaderz")[0] == 200, what="the first to lead")
    second = start(lease)
    wait_until(lambda: is_ready(second), what="the second to be ready")
    assert second.ask("GET", "/leaderz")[0] == 503
    pod = cluster.make_pod("replicas", limits={"main": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "100"}})
    status, answer = second.post("/filter", {"Pod": pod, "NodeNames": nodes})
    assert status == 200 and sorted(answer["NodeNames"]) == nodes
    assert "does not lead" in second.bind(pod, nodes[0])
    # A replica that ends releases the lease.
    first.stop()
    wait_until(lambda: second.ask("GET", "/leaderz")[0] == 200, what="the second to lead")
    wait_until(lambda: second.bind(pod, nodes[1]) == "" or
               cluster.pod("replicas")["spec"].get("nodeName"), what="the pod being bound")
    assert cluster.pod("replicas")["spec"]["nodeName"] == nodes[1]


def test_replica_takes_over_from_a_killed_leader(cluster, start, nodes):
    """With the default lease of 14 s, another replica leads when it has expired, and knows the shares that were assigned."""
    lease = "lease = default/leader-killed\n"
    first = start(lease)
    wait_until(lambda: first.ask("GET", "/leaderz")[0] == 200, what="the first to lead")
    second = start(lease)
    wait_until(lambda: is_ready(second), what="the second to be ready")
    whole = {"main": {"nvidia.com/gpu": "2", "nvidia.com/gpumem-percentage": "100", "nvidia.com/gpucores": "100"}}
    given = cluster.make_pod("given", limits=whole)
    first.post("/filter", {"Pod": given, "NodeNames": nodes})
    assert first.bind(given, nodes[0]) == ""
    first.process.kill()
    assert first.process.wait() == -signal.SIGKILL
    first.stop = lambda: None
    began = time.monotonic()
    wait_until(lambda: second.ask("GET", "/leaderz")[0] == 200, what="the second to lead")
    print(f"another leads {time.monotonic() - began:.1f} s after the leader was killed")
    pod = cluster.make_pod("after-the-kill", limits=whole)
    _, answer = second.post("/filter", {"Pod": pod, "NodeNames": nodes})
    assert answer["NodeNames"] == [nodes[1]]
    assert second.bind(pod, nodes[1]) == ""
    assert cluster.pod("after-the-kill")["spec"]["nodeName"] == nodes[1]


def test_unreachable_api_server(cluster, start):
    """The program starts and is healthy but not ready, and the extender's answers give the reason."""
    (folder := cluster.path("nowhere")).mkdir()
    kubeconfig = cluster.kubeconfig("nowhere/closed.conf", port=1, user=f"token: {SCHEDULER_TOKEN}")
    s = Scheduler(folder / "s", f"kube_api = {kubeconfig}\nlease = none\n")
    try:
        assert s.ask("GET", "/healthz")[0] == 200 and not is_ready(s)
        status, answer = s.post("/filter", {"Pod": {}, "NodeNames": []})
        assert status == 200 and "nodes and pods are still being read" in answer["Error"]
        status, answer = s.post("/bind", {})
        assert status == 200 and "nodes and pods are still being read" in answer["Error"]
        assert s.post("/prioritize", {})[0] == 503
    finally:
        s.stop()
