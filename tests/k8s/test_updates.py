"""allotd and allot-scheduler are updated again and again during a rolling update of a Deployment, with a real kubelet,
kube-scheduler and controller manager. No pod may fail.

ALLOT_UPDATES: how many times each of the two is updated; 3 by default."""

import os
import random
import time

import pytest

import pods
from cluster import ADMIN_TOKEN
from daemon import Daemon
from machines import wait_until
from test_sched import CORES, GPU, MEMORY, Scheduler

UPDATES = int(os.environ.get("ALLOT_UPDATES", "3"))
REPLICAS = 8
PROFILE = "updates-of-the-test"
DEPLOYMENTS, PODS = "/apis/apps/v1/namespaces/default/deployments", "/api/v1/namespaces/default/pods"
NAME = "rolls"


@pytest.fixture(scope="module")
def kubelet(cluster, build_programs, tmp_path_factory):
    build_programs("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
    with pods.running_kubelet(cluster, build_programs, tmp_path_factory.mktemp("kubelet"), "updated") as kubelet:
        yield kubelet


@pytest.fixture
def daemon(kubelet, cluster, tmp_path):
    daemon = Daemon(tmp_path, cluster.kubeconfig("updated.conf"), kubelet.node, is_private=False, settings=(
        f"kube_plugin = on\nkube_plugin_dir = {kubelet.plugins}\nkube_vocabulary = hami\nclaim_grace = 1s\n"
        f"kube_pod_resources = {kubelet.pod_resources}\nstate_dir = {tmp_path}/state\nwatch_tasks = off\n"))
    yield daemon.start()
    daemon.stop()


@pytest.fixture
def scheduler(cluster, kubelet, tmp_path):
    scheduler = Scheduler(cluster, tmp_path)
    scheduler.launch()
    cluster.launch_scheduler(f"http://127.0.0.1:{scheduler.port}", name=PROFILE)
    cluster.launch("kube-controller-manager", "--kubeconfig",
                   cluster.kubeconfig("controllers.conf", user=f"token: {ADMIN_TOKEN}"), "--leader-elect=false",
                   "--controllers=deployment-controller,replicaset-controller,garbage-collector-controller",
                   "--secure-port=0")
    yield scheduler
    cluster.end("kube-controller-manager")
    cluster.end("kube-scheduler")
    scheduler.end()
    scheduler.proxy.close()


class RollingDeployment:
    def __init__(self, cluster, kubelet, shared):
        self.cluster = cluster
        # Tolerations: no controller removes the taint of a new node. Selector: nodes of other tests have no kubelet.
        spec = {"schedulerName": PROFILE, "nodeSelector": {"kubernetes.io/hostname": kubelet.node},
                "tolerations": [{"operator": "Exists"}],
                **kubelet.pod_spec({"main": ({GPU: 1, MEMORY: 1000, CORES: 5}, ["/bin/sleep", "100000"])}, shared)}
        cluster.request("POST", DEPLOYMENTS, {"metadata": {"name": NAME}, "spec": {
            "replicas": REPLICAS, "selector": {"matchLabels": {"app": NAME}},
            "template": {"metadata": {"labels": {"app": NAME}}, "spec": spec}}})

    def roll(self, number):
        self.cluster.request("PATCH", f"{DEPLOYMENTS}/{NAME}", {"spec": {"template": {"metadata": {"annotations": {
            "round": str(number)}}}}}, kind="application/merge-patch+json")

    def pods(self):
        return [pod for pod in self.cluster.request("GET", PODS)["items"]
                if pod["metadata"].get("labels", {}).get("app") == NAME and "deletionTimestamp" not in pod["metadata"]]

    def failed(self):
        return [(pod["metadata"]["name"], pod["status"].get("reason"), pod["status"].get("message"))
                for pod in self.pods() if pod["status"]["phase"] == "Failed"]

    def has_rolled(self):
        made = self.cluster.request("GET", f"{DEPLOYMENTS}/{NAME}")
        status = made["status"]
        return (status.get("observedGeneration") == made["metadata"]["generation"] and
                all(status.get(key) == REPLICAS for key in ("replicas", "updatedReplicas", "availableReplicas")))

    def wait(self):
        end = time.monotonic() + 120
        while not self.has_rolled() and not self.failed():
            assert time.monotonic() < end, str(self.pods()[0]["status"])
            time.sleep(0.2)
        assert not self.failed()

    def end(self):
        self.cluster.request("DELETE", f"{DEPLOYMENTS}/{NAME}", query="?propagationPolicy=Foreground")
        wait_until(lambda: not self.pods(), 60, "the end of its pods")


def test_no_pod_fails_while_daemon_and_scheduler_are_updated(cluster, kubelet, daemon, scheduler, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    choose = random.Random(3)
    deployment = RollingDeployment(cluster, kubelet, shared)
    try:
        deployment.wait()
        for number in range(UPDATES):
            deployment.roll(number)
            time.sleep(choose.uniform(0, 3))
            daemon.end()
            time.sleep(choose.uniform(0, 2))
            daemon.start()
            scheduler.end()
            scheduler.launch()
            deployment.wait()
    finally:
        deployment.end()
