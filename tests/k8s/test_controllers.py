"""Pods that a real controller manager creates and deletes: a Deployment keeps its replicas on GPUs and frees the GPUs of
replicas that it removes; the pods of a Job that form a gang are placed together."""

import re

import pytest

from cluster import ADMIN_TOKEN
from machines import wait_until
from test_sched import CORES, GPU, GPU_MIB, MEMORY, Nodes, Scheduler, shares_of

PROFILE = "controllers-of-the-test"
DEPLOYMENTS, JOBS = "/apis/apps/v1/namespaces/default/deployments", "/apis/batch/v1/namespaces/default/jobs"


@pytest.fixture(scope="module")
def scheduler(cluster, build_programs, tmp_path_factory):
    build_programs("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
    scheduler = Scheduler(cluster, tmp_path_factory.mktemp("scheduler"))
    scheduler.launch()
    cluster.launch_scheduler(f"http://127.0.0.1:{scheduler.port}", name=PROFILE)
    # Without the node controllers: no kubelet reports that the nodes are alive.
    cluster.launch("kube-controller-manager", "--kubeconfig",
                   cluster.kubeconfig("controllers.conf", user=f"token: {ADMIN_TOKEN}"), "--leader-elect=false",
                   "--controllers=deployment-controller,replicaset-controller,job-controller", "--secure-port=0")
    yield scheduler
    cluster.end("kube-controller-manager")
    cluster.end("kube-scheduler")
    scheduler.end()
    scheduler.proxy.close()


class ControlledPods(Nodes):
    """The pods that controllers create on nodes of one test. They have the label app=NAME."""

    profile = PROFILE

    def template(self, mib, annotations=None, **more):
        return {"metadata": {"labels": {"app": self.name}, "annotations": annotations or {}},
                "spec": {"schedulerName": self.profile, "nodeSelector": {"of": self.name},
                         # No kubelet here would end a pod that has a grace period.
                         "terminationGracePeriodSeconds": 0,
                         "containers": [{"name": "main", "image": "none", "resources": {
                             "limits": {GPU: "1", MEMORY: str(mib), CORES: "20"}}}], **more}}

    def deploy(self, replicas, mib, annotations=None):
        self.cluster.request("POST", DEPLOYMENTS, {"metadata": {"name": self.name}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": self.name}},
            "template": self.template(mib, annotations)}})

    def scale(self, replicas):
        self.cluster.request("PATCH", f"{DEPLOYMENTS}/{self.name}", {"spec": {"replicas": replicas}},
                             kind="application/merge-patch+json")

    def delete(self, path):
        """Deletes an object and its pods: no garbage collector runs here."""
        self.cluster.request("DELETE", path)

        def are_gone():
            for name in self.pods():
                self.cluster.delete_pod(name)
            return not self.pods()

        wait_until(are_gone, 60, "the end of its pods")

    def pods(self):
        found = self.cluster.request("GET", "/api/v1/namespaces/default/pods")["items"]
        return {pod["metadata"]["name"]: pod for pod in found if pod["metadata"].get("labels", {}).get("app") == self.name
                and "deletionTimestamp" not in pod["metadata"]}

    def wait_for(self, count):
        """Waits until there are `count` pods that all have their shares. Returns [share, ...]."""
        wait_until(lambda: len(self.pods()) == count and len(self.allocated(list(self.pods()))) == count, 60,
                   f"{count} pods with GPUs, of {list(self.pods())}")
        return [shares_of(pod)[0][0] for pod in self.pods().values()]


@pytest.fixture
def made(request, cluster, scheduler):
    made = ControlledPods(cluster, re.sub("[^a-z0-9]+", "-", request.node.name).strip("-"))
    yield made
    made.stop()


def test_deployment_keeps_its_replicas(cluster, made):
    """Four replicas fill two GPUs. A deleted one is replaced on the same GPU, and scaling down makes room."""
    made.add(gpus=2)
    half = GPU_MIB // 2
    made.deploy(4, half)
    shares = made.wait_for(4)
    gpus = sorted(share.gpu for share in shares)
    assert gpus == sorted([f"GPU-{made.nodes[0]}-0", f"GPU-{made.nodes[0]}-1"] * 2)
    before = set(made.pods())
    cluster.delete_pod(min(before))
    wait_until(lambda: min(before) not in made.pods() and len(made.pods()) == 4, 60, "the replacement")
    assert sorted(share.gpu for share in made.wait_for(4)) == gpus
    # The node is full: a pod that needs a whole GPU waits until replicas are removed.
    made.make_pod("wants-a-gpu", mib=GPU_MIB)
    made.scale(2)
    made.wait_for(2)
    made.scale(1)
    left, = made.wait_for(1)
    _, ((share,),) = made.placed("wants-a-gpu")
    assert share.gpu != left.gpu and share.mib == GPU_MIB
    made.scale(0)
    made.wait_for(0)
    cluster.request("DELETE", f"{DEPLOYMENTS}/{made.name}")
    cluster.delete_pod("wants-a-gpu")


def test_deployment_is_placed_by_its_annotations(made):
    """By its limits all replicas would fit on one GPU; by the annotation each gets half a GPU."""
    made.add(gpus=1)
    half = GPU_MIB // 2
    made.deploy(2, 1000, {"main.allot.dev/memory": f"{half}MiB"})
    assert [share.mib for share in made.wait_for(2)] == [half, half]
    made.scale(3)
    wait_until(lambda: len(made.pods()) == 3, 60, "the third pod")
    wait_until(lambda: any("CardInsufficientMemory" in event["message"] for event in made.cluster.events()
                           if event["involvedObject"]["name"] in made.pods()), 60, "the reason of the third pod")
    assert len(made.allocated(list(made.pods()))) == 2
    # Scaled down first: without a garbage collector the ReplicaSet outlives its Deployment, and would replace pods.
    made.scale(0)
    made.wait_for(0)
    made.cluster.request("DELETE", f"{DEPLOYMENTS}/{made.name}")


def test_pods_of_a_job_are_placed_as_a_gang(cluster, made):
    """The labels of the Job's controller identify the gang. Its pods wait for each other, and are placed together."""
    made.add(gpus=2)
    made.make_pod("in-the-way", mib=GPU_MIB)
    made.placed("in-the-way")
    whole = made.template(GPU_MIB, {"allot.dev/gang-size": "2"}, restartPolicy="Never")
    cluster.request("POST", JOBS, {"metadata": {"name": made.name}, "spec": {
        "completions": 2, "parallelism": 2, "completionMode": "Indexed", "template": whole}})
    wait_until(lambda: len(made.pods()) == 2, 60, "the Job's pods")

    def reasons(name):
        return [event["message"] for event in cluster.events() if event["involvedObject"]["name"] == name]

    for name in made.pods():
        wait_until(lambda name=name: any("only 1 of its 2 pods have room" in why for why in reasons(name)), 60,
                   f"the reason of {name}")
    assert not made.allocated(list(made.pods()))
    cluster.delete_pod("in-the-way")
    assert len({share.gpu for share in made.wait_for(2)}) == 2
    made.delete(f"{JOBS}/{made.name}")
