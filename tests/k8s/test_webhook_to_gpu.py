"""A pod's path from the API to a GPU: a real API server calls the webhook, and a real kube-scheduler calls the extender."""

import json
import subprocess

import pytest

from charts import kube_scheduler_configuration
from cluster import SCHEDULER_TOKEN, free_ports
from machines import wait_until
from scheduler import Scheduler
from test_scheduler import register_entry
from test_webhook import CONFIGURATIONS, configuration

NAMESPACE = "webhook"


class SchedulingCluster:
    """A cluster whose pods with GPUs are placed by allot-scheduler. No kubelet runs them."""

    def __init__(self, cluster, program, folder, nodes):
        self.cluster = cluster
        for name in nodes:
            cluster.make_node(name, {"hami.io/node-nvidia-register": json.dumps([register_entry(i, name) for i in range(2)])})
            # No kubelet reports that the node is ready, so the test removes its taint.
            cluster.request("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}},
                            kind="application/merge-patch+json")
            amounts = {"pods": "110", "cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "20",
                       "tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "256"}
            cluster.set_status(name, {"capacity": amounts, "allocatable": amounts})
        cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        kubeconfig = cluster.kubeconfig("placing.conf", user=f"token: {SCHEDULER_TOKEN}")
        self.scheduler = Scheduler(folder / "s", f"kube_api = {kubeconfig}\nlease = none\n")
        wait_until(lambda: self.scheduler.ask("GET", "/readyz")[0] == 200, what="nodes and pods being known")
        cluster.request("POST", CONFIGURATIONS, configuration(self.scheduler, "Fail"))
        config = kube_scheduler_configuration(cluster, folder, {
            "urlPrefix": f"https://{self.scheduler.https}", "enableHTTPS": True,
            "tlsConfig": {"caFile": str(self.scheduler.certificate)}})
        with open(folder / "kube-scheduler.log", "ab") as log:
            self.process = subprocess.Popen(
                [program, "--config", config, "--bind-address=127.0.0.1", f"--secure-port={free_ports(1)[0]}",
                 "--authentication-skip-lookup=true", f"--cert-dir={folder}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def make(self, name, limits, query="", **meta):
        return self.cluster.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", {
            "metadata": {"name": name, **meta},
            "spec": {"containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}]}},
            query=query)

    def is_asked(self):
        """Whether the API server calls the webhook; a dry run stores no pod."""
        pod = self.make("probe", {"nvidia.com/gpu": "1"}, "?dryRun=All")
        return pod["spec"]["schedulerName"] == "allot-scheduler"

    def place(self, name, limits, **meta):
        """Creates a pod: (its node, [(UUID, MiB, percent)]). Ends its allocation, as the node's device plugin would."""
        self.make(name, limits, **meta)
        wait_until(lambda: self.pod(name)["spec"].get("nodeName"), 30, f"{name} having a node")
        pod = self.pod(name)
        node, notes = pod["spec"]["nodeName"], pod["metadata"]["annotations"]
        assert notes["hami.io/bind-phase"] == "allocating"
        shares = [one.split(",") for one in notes["hami.io/vgpu-devices-to-allocate"].strip(";").strip(":").split(":")]
        self.cluster.patch(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}",
                           {"annotations": {"hami.io/bind-phase": "success",
                                            "hami.io/vgpu-devices-to-allocate": ";"}})
        self.cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {"hami.io/mutex.lock": None}})
        return node, [(uuid, int(mib), int(cores)) for uuid, _, mib, cores in shares]

    def pod(self, name):
        return self.cluster.pod(name, NAMESPACE)

    def why_pending(self, name):
        """The scheduler's reasons in the pod's events."""
        return [event["message"] for event in self.cluster.events(NAMESPACE)
                if event["involvedObject"]["name"] == name and event["reason"] == "FailedScheduling"]

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        self.cluster.request("DELETE", f"{CONFIGURATIONS}/allot")
        self.scheduler.stop()


@pytest.fixture(scope="module")
def placing(build_programs, tmp_path_factory):
    """A cluster for this file alone, because kube-scheduler considers all nodes."""
    from cluster import Cluster
    programs = build_programs("etcd", "kube-apiserver", "kube-scheduler")
    cluster = Cluster(programs, tmp_path_factory.mktemp("placing"))
    made = None
    try:
        cluster.start()
        made = SchedulingCluster(cluster, programs / "kube-scheduler", tmp_path_factory.mktemp("scheduler"), ["n1", "n2"])
        wait_until(made.is_asked, what="the API server, which learns of the webhook by a watch, calling it")
        yield made
    finally:
        if made:
            made.close()
        cluster.stop()


def test_pods_are_placed_by_hamis_defaults(placing):
    """Nodes are filled one after the other, and pods are spread over the GPUs of a node."""
    first, shares = placing.place("first", {"nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"})
    assert [share[1:] for share in shares] == [(3000, 30)]
    again, more = placing.place("second", {"nvidia.com/gpumem": "3000"})
    assert again == first and more[0][0] != shares[0][0]
    # gpu-manager's resource names, with the memory in bytes.
    third, shares = placing.place("third", {"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "8Gi"})
    assert third == first and [share[1:] for share in shares] == [(8192, 20)]
    other, shares = placing.place("spread", {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "1000"},
                                annotations={"hami.io/node-scheduler-policy": "spread"})
    assert other != first and len({share[0] for share in shares}) == 2


def test_pod_that_does_not_fit_has_the_reason(placing):
    placing.make("large", {"nvidia.com/gpumem": "40000"})
    reasons = wait_until(lambda: placing.why_pending("large"), 60, "the reason")
    assert "CardInsufficientMemory" in reasons[0], reasons
    assert not placing.pod("large")["spec"].get("nodeName")
