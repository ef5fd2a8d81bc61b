"""allot-scheduler in a cluster where some pods have unusual contents: U+0000 in texts, very long annotations, or annotations
that claim GPU shares for a pod that requests none."""

import json
import time

import pytest

from cluster import SCHEDULER_TOKEN, ApiError
from machines import wait_until
from scheduler import Scheduler

NODE = "odd-0"
PODS = 1000
# Annotations that a user wrote to a pod that requests no GPU.
FORGED = {"hami.io/vgpu-node": NODE, "hami.io/vgpu-devices-allocated": "GPU-odd-0,NVIDIA,81920,100:;",
          "hami.io/bind-phase": "success"}
LIMITS = {"main": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}}
READY_S = 5


def scheduler_of(cluster, folder):
    kubeconfig = cluster.kubeconfig(f"{folder.name}.conf", user=f"token: {SCHEDULER_TOKEN}")
    return Scheduler(folder, f"kube_api = {kubeconfig}\nlease = none\n")


def is_ready(scheduler):
    return scheduler.ask("GET", "/readyz")[0] == 200


def make(cluster, index, annotations=None, arguments=(), labels=None):
    """A pod that is bound to a node without allot."""
    return cluster.request("POST", "/api/v1/namespaces/odd-pods/pods", {
        "metadata": {"name": f"odd-{index}", "annotations": annotations or {}, "labels": labels or {}},
        "spec": {"nodeName": "elsewhere", "containers": [{"name": "main", "image": "none", "args": list(arguments)}]}})


@pytest.fixture(scope="module")
def many_pods(cluster):
    """A thousand pods, of which some are unusual in each of the three ways."""
    try:
        cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "odd-pods"}})
    except ApiError as error:  # a test that is run again makes the pods again
        assert error.status == 409
    cluster.make_gpu_node(NODE, [{"id": "GPU-odd-0"}, {"id": "GPU-odd-1"}])
    for i in range(PODS):
        if i % 100 == 7:
            make(cluster, i, FORGED)
        elif i % 20 == 3:
            make(cluster, i, {"note": "before\0after"}, ["sh", "-c", "printf 'a\0b'"])
        elif i % 14 == 5:  # about 70 pods of 250 KB: together more than an API answer may have
            make(cluster, i, {"large": "x" * 250_000})
        else:
            make(cluster, i)
    yield
    cluster.request("DELETE", "/api/v1/namespaces/odd-pods/pods", query="?gracePeriodSeconds=0", raw=True)
    cluster.request("DELETE", f"/api/v1/nodes/{NODE}")


def test_scheduler_reads_and_watches_unusual_pods(cluster, many_pods, tmp_path):
    begun = time.monotonic()
    scheduler = scheduler_of(cluster, tmp_path / "odd")
    try:
        wait_until(lambda: is_ready(scheduler), 60, "all pods being known")
        ready_s = time.monotonic() - begun
        print(f"ready after {ready_s:.1f} s")
        # The lists were complete. The watch continues after an event with a pod that contains a NUL.
        make(cluster, PODS, {"note": "\0"})
        pod = cluster.make_pod("after-the-odd-one", limits=LIMITS)
        status, answer = scheduler.post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": [NODE]})
        assert status == 200 and answer["NodeNames"] == [NODE], answer
        wait_until(lambda: scheduler.ask("GET", "/explain/default/after-the-odd-one")[0] == 200, 20,
                   "the pod that was made after the one with a NUL")
        cluster.delete_pod("after-the-odd-one")
        # Both GPUs are free, since annotations without a request count for nothing; the log names such a pod.
        whole = cluster.make_pod("whole", limits={"main": {"nvidia.com/gpu": "2"}})
        status, answer = scheduler.post("/filter", {"Pod": whole, "Nodes": None, "NodeNames": [NODE]})
        assert status == 200 and answer["NodeNames"] == [NODE], answer
        cluster.delete_pod("whole")
        log = scheduler.log.read_text()
        assert "odd-pods/odd-7: has annotations with GPU shares but requests no GPU" in log
        assert "not JSON" not in log and "larger than 16 MiB" not in log, log
        assert ready_s < 4 * READY_S
    finally:
        scheduler.stop()


def test_filter_request_with_a_nul_is_read_completely(cluster, many_pods, tmp_path):
    """kube-scheduler sends the whole pod. A NUL must not hide the text behind it."""
    scheduler = scheduler_of(cluster, tmp_path / "review")
    try:
        wait_until(lambda: is_ready(scheduler), 60, "all pods being known")
        pod = cluster.make_pod("nul", limits=LIMITS, annotations={"nvidia.com/use-gputype": "H200\0,A100"})
        status, answer = scheduler.post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": [NODE]})
        assert status == 200 and not answer["NodeNames"], json.dumps(answer)
        cluster.delete_pod("nul")
    finally:
        scheduler.stop()
