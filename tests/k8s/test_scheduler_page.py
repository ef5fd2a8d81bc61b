"""The cluster's web page, served by an allot-scheduler that has a real API server and only its account's rights: a node, a pod
on it, and a pod that waits for room. tests/integration/test_cluster_page.py tests the other parts without Kubernetes."""

import json
import urllib.request

import pytest

from cluster import SCHEDULER_TOKEN
from machines import wait_until
from page import page_in
from scheduler import Scheduler

GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"


@pytest.fixture(scope="module")
def scheduler(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown")
    kubeconfig = cluster.kubeconfig("shown.conf", user=f"token: {SCHEDULER_TOKEN}")
    scheduler = Scheduler(folder, f"kube_api = {kubeconfig}\nlease = none\nweb_listen = 127.0.0.1:0\n", tls=False)
    yield scheduler
    scheduler.stop()


def test_page_shows_a_pod_that_waits_and_finds_room(cluster, scheduler):
    url = wait_until(lambda: page_in(scheduler.log.read_text()), what="the page being served")

    def state(view="namespace=shown"):
        with urllib.request.urlopen(f"{url}api/state?node=shown-&{view}", timeout=20) as answer:
            return json.load(answer)

    wait_until(lambda: state()["cluster"]["ready"], what="the cluster being known")
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "shown"}})
    cluster.make_gpu_node("shown-1", [{"id": "GPU-shown-0"}, {"id": "GPU-shown-1"}])
    cluster.make_pod("holder", node="shown-1", in_namespace="shown", annotations={
        "hami.io/vgpu-node": "shown-1", "hami.io/vgpu-devices-allocated": "GPU-shown-0,NVIDIA,81920,100:;",
        "hami.io/bind-phase": "success"}, limits={"main": {GPU: "1"}})
    # The pod names the GPUs that it accepts, because the cluster has nodes of other tests.
    cluster.make_pod("waiter", in_namespace="shown", limits={"main": {GPU: "2", MEMORY: "60000", CORES: "50"}},
                     annotations={"nvidia.com/use-gpuuuid": "GPU-shown-0,GPU-shown-1"},
                     more={"schedulerName": "nobody"})

    def row(name):
        return next((one for one in state("namespace=shown&pod_state=all")["pods"]["rows"] if one["pod"] == name), None)

    wait_until(lambda: row("holder") and state()["nodes"]["rows"], what="the bound pod and its node")
    assert (row("holder")["state"], row("holder")["node"], row("holder")["memory_mib"]) == ("bound", "shown-1", 81920)
    (node,) = state()["nodes"]["rows"]
    assert (node["node"], node["state"], node["cards"], node["promised_cores_pct"]) == ("shown-1", "used", 2, 100)

    def lacks():
        """Why shown-1 does not fit; None if the page does not list it, since it lists only some of the nodes."""
        one = row("waiter")
        nearest = one["why"]["nearest"] if one and one["why"] else []
        return next((node for node in nearest if node["node"] == "shown-1"), None)

    with urllib.request.urlopen(f"{url}events?namespace=shown", timeout=20):
        # Reasons are computed only while a client has the page open.
        wait_until(lacks, what="the reason why it waits")
        assert lacks()["cards"] == 1, lacks()
        cluster.request("DELETE", "/api/v1/namespaces/shown/pods/holder", query="?gracePeriodSeconds=0")
        wait_until(lambda: "enough free GPUs" in row("waiter")["why"]["says"], what="room")
        wait_until(lambda: state("order=name")["nodes"]["rows"][0]["state"] == "free", what="the node being free")
