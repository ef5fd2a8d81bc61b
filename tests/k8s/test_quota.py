"""GPU quotas of namespaces, with a real API server and kube-scheduler: pods beyond a quota wait with the reason until the
quota has room, or the webhook refuses them. Pods of other namespaces are not affected."""

import base64
import json
import shutil
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cluster import SCHEDULER_RULES, SCHEDULER_TOKEN, ApiError
from machines import ROOT, wait_until
from plugin import DevicePlugin
from scheduler import Scheduler, review

GPU, MEMORY, PERCENT = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage"
KEY = "limits.nvidia.com/gpumem"
PROFILE = "quotas-of-the-test"  # the schedulerName of this file's pods alone
GPU_MIB = 40960
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def start(cluster, folder, token=SCHEDULER_TOKEN):
    kubeconfig = cluster.kubeconfig(f"{folder.name}.conf", user=f"token: {token}")
    scheduler = Scheduler(folder, f"kube_api = {kubeconfig}\nlease = none\nscheduler_name = {PROFILE}\n")
    wait_until(lambda: scheduler.ask("GET", "/readyz")[0] == 200, 60, "nodes, pods and quotas being known")
    return scheduler


@pytest.fixture(scope="module")
def scheduler(cluster, build_programs, tmp_path_factory):
    """allot-scheduler with a kube-scheduler and a node with two GPUs."""
    build_programs("etcd", "kube-apiserver", "kube-scheduler")
    scheduler = start(cluster, tmp_path_factory.mktemp("quota"))
    cluster.launch_scheduler(f"http://{scheduler.http}", name=PROFILE)
    cluster.make_gpu_node("quota-node", [{"id": f"GPU-quota-{i}", "devmem": GPU_MIB} for i in range(2)],
                          labels={"of": "quota"})
    plugin = DevicePlugin(cluster, "quota-node", cluster.kubeconfig("quota-node.conf"))
    yield scheduler
    assert plugin.stop() == 0
    cluster.request("DELETE", "/api/v1/nodes/quota-node")
    cluster.end("kube-scheduler")
    scheduler.stop()


class Team:
    """A namespace with a quota."""

    def __init__(self, cluster, scheduler, name, hard):
        self.cluster, self.scheduler, self.name = cluster, scheduler, name
        self.path = f"/api/v1/namespaces/{name}/resourcequotas"
        cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        cluster.request("POST", self.path, {"metadata": {"name": "gpus"}, "spec": {"hard": hard}})

    def set(self, hard):
        return self.cluster.request("PATCH", f"{self.path}/gpus", {"spec": {"hard": hard}},
                                    kind="application/merge-patch+json")

    def make_pod(self, name, limits):
        return self.cluster.make_pod(name, limits={"main": limits}, in_namespace=self.name,
                                     more={"schedulerName": PROFILE, "nodeSelector": {"of": "quota"}})

    def is_placed(self, name):
        annotations = self.cluster.pod(name, self.name)["metadata"].get("annotations", {})
        return annotations.get("hami.io/bind-phase") == "success"

    def place(self, name, limits):
        self.make_pod(name, limits)
        wait_until(lambda: self.is_placed(name), 60, f"the placement of {name}")

    def warnings(self, name, text):
        return [event for event in self.cluster.events(self.name) if event["involvedObject"]["name"] == name
                and event["type"] == "Warning" and text in event["message"]]

    def check_pending(self, name, text):
        wait_until(lambda: self.warnings(name, text), 60, f"the reason of {name}")
        pod = self.cluster.pod(name, self.name)
        assert pod["status"]["phase"] == "Pending" and not pod["spec"].get("nodeName")

    def metrics(self):
        page = self.scheduler.ask("GET", "/metrics")[1].decode()
        return page, {(sample.name, sample.labels["quota_name"]): sample
                      for family in text_string_to_metric_families(page) for sample in family.samples
                      if sample.labels.get("namespace") == self.name and "quota_name" in sample.labels}

    def is_known(self, mib):
        """Whether allot-scheduler has read that limit."""
        sample = self.metrics()[1].get(("hami_resource_quota_limit", MEMORY))
        return sample and sample.value == mib


def test_pods_beyond_a_quota_wait(cluster, scheduler):
    team = Team(cluster, scheduler, "team", {KEY: "20000"})
    wait_until(lambda: team.is_known(20000), what="the quota being known")
    team.place("first", {GPU: "1", MEMORY: "10000"})
    team.place("second", {GPU: "2", MEMORY: "5000"})
    team.make_pod("third", {GPU: "1", MEMORY: "1"})
    team.make_pod("part", {GPU: "1", PERCENT: "25"})
    team.check_pending("third", "2/2 ResourceQuotaNotFit")
    team.check_pending("part", "2/2 ResourceQuotaNotFit")
    # A pod of another namespace is placed, since the GPUs have room.
    cluster.make_pod("elsewhere", limits={"main": {GPU: "1", MEMORY: "20000"}},
                     more={"schedulerName": PROFILE, "nodeSelector": {"of": "quota"}})
    wait_until(lambda: cluster.pod("elsewhere")["spec"].get("nodeName"), 60, "the placement of the other namespace's pod")

    page, samples = team.metrics()
    used = samples["hami_resource_quota_used", MEMORY]
    assert used.value == 20000 and used.labels["limit"] == "20000"
    assert samples["hami_resource_quota_limit", MEMORY].value == 20000
    assert ("hami_resource_quota_limit", "nvidia.com/gpucores") not in samples
    check_by_promtool(page)

    # A larger quota: kube-scheduler does not try the pod again because of a quota alone.
    team.set({KEY: "20001"})
    wait_until(lambda: team.is_placed("third"), 60, "the placement of the third pod")
    # The end of another pod makes room in the quota.
    team.make_pod("fourth", {GPU: "1", MEMORY: "9000"})
    team.check_pending("fourth", "2/2 ResourceQuotaNotFit")
    cluster.delete_pod("first", "team")
    wait_until(lambda: team.is_placed("fourth"), 60, "the placement of the fourth pod")
    # The pod "part" needs 10240 MiB beside 19001.
    args = {"Pod": cluster.pod("part", "team"), "NodeNames": ["quota-node"]}
    assert scheduler.post("/filter", args)[1]["FailedNodes"] == {"quota-node": "2/2 ResourceQuotaNotFit"}
    team.set({KEY: "29240"})
    wait_until(lambda: team.is_known(29240), what="the quota being known")
    assert scheduler.post("/filter", args)[1]["FailedNodes"] == {"quota-node": "2/2 ResourceQuotaNotFit"}
    team.set({KEY: "29241"})
    wait_until(lambda: team.is_placed("part"), 60, "the placement of the last pod")
    for name in ("second", "third", "fourth", "part"):
        cluster.delete_pod(name, "team")
    cluster.delete_pod("elsewhere")
    wait_until(lambda: ("hami_resource_quota_used", MEMORY) in team.metrics()[1]
               and team.metrics()[1]["hami_resource_quota_used", MEMORY].value == 0, what="the quota being unused again")


def check_by_promtool(page):
    promtool = shutil.which("promtool") or shutil.which(ROOT / "build/promtool")
    if promtool:
        done = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True, text=True, check=False)
        assert "hami_resource_quota" not in done.stdout + done.stderr, done


def test_webhook_refuses_pods_beyond_a_quota(cluster, scheduler):
    team = Team(cluster, scheduler, "denied", {KEY: "20000", "limits.nvidia.com/gpucores": "150"})
    wait_until(lambda: team.is_known(20000), what="the quota being known")
    cluster.request("POST", WEBHOOKS, {"metadata": {"name": "quotas"}, "webhooks": [{
        "name": "quotas.allot.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Fail", "timeoutSeconds": 10,
        "clientConfig": {"url": f"https://{scheduler.https}/webhook",
                         "caBundle": base64.b64encode(scheduler.certificate.read_bytes()).decode()},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "denied"}}}]})
    try:
        def refusal(name, limits):
            try:
                team.make_pod(name, limits)
            except ApiError as error:
                return error
            cluster.delete_pod(name, "denied")
            return None

        # The API server learns of the webhook by a watch.
        error = wait_until(lambda: refusal("large", {MEMORY: "20001"}), what="the API server calling the webhook")
        assert error.status == 403
        assert ("exceeding resource quota: namespace denied: the pod asks for 20001 of nvidia.com/gpumem, "
                "but only 20000 of 20000 are left" in str(error))
        team.place("first", {MEMORY: "15000"})
        assert "5001 of nvidia.com/gpumem, but only 5000 of 20000 are left" in str(refusal("more", {MEMORY: "5001"}))
        assert "200 of nvidia.com/gpucores, but only 150 of 150 are left" in str(refusal("whole", {GPU: "2"}))
        # A percentage is admitted, because the amount depends on the GPU.
        team.make_pod("part", {PERCENT: "25"})
        team.check_pending("part", "2/2 ResourceQuotaNotFit")
    finally:
        cluster.request("DELETE", f"{WEBHOOKS}/quotas")
        for name in ("first", "part"):
            cluster.delete_pod(name, "denied")


def test_unreadable_quota_keeps_the_previous_one(cluster, scheduler):
    team = Team(cluster, scheduler, "odd", {KEY: "20000"})
    wait_until(lambda: team.is_known(20000), what="the quota being known")
    with pytest.raises(ApiError):
        team.set({KEY: "-1"})
    # The API server stores a number that is too large for a 64-bit integer.
    team.set({KEY: "99E"})
    wait_until(lambda: "ResourceQuota odd/gpus: spec.hard: limits.nvidia.com/gpumem: '99E': must be a whole number"
               in scheduler.log.read_text(), what="the reason in the log")
    assert team.is_known(20000)
    team.set({KEY: "30000"})
    wait_until(lambda: team.is_known(30000), what="the quota being known")


def test_without_the_right_to_read_quotas(cluster, scheduler, tmp_path):
    """With the role of an older installation it enforces no quotas and logs that once. With the right, it reads them."""
    older = [rule for rule in SCHEDULER_RULES if "resourcequotas" not in rule["resources"]]
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    cluster.permit("older-role", older)
    cluster.request("POST", accounts, {"metadata": {"name": "older-role"}})
    token = cluster.request("POST", f"{accounts}/older-role/token", {"spec": {}})["status"]["token"]
    team = Team(cluster, scheduler, "older", {KEY: "100"})
    mine = start(cluster, tmp_path / "older", token)
    try:
        pod = cluster.make_pod("older", limits={"main": {GPU: "1", MEMORY: "200"}}, in_namespace="older",
                               more={"schedulerName": "nobody"})
        args = {"Pod": pod, "NodeNames": ["quota-node"]}
        assert mine.post("/filter", args)[1]["NodeNames"] == ["quota-node"]
        assert json.loads(mine.ask("POST", "/webhook", json.dumps(review(pod, "older")))[1])["response"]["allowed"]
        cluster.request("PATCH", f"{ROLES}/older-role", {"rules": SCHEDULER_RULES},
                        kind="application/merge-patch+json")
        wait_until(lambda: mine.post("/filter", args)[1]["FailedAndUnresolvableNodes"] ==
                   {"quota-node": "2/2 ResourceQuotaNotFit"}, 60, "the quota being known")
        lines = [line for line in mine.log.read_text().splitlines() if "ResourceQuota" in line]
        assert len(lines) == 2, lines
        assert "ResourceQuota objects are not enforced, except those read before" in lines[0] and "forbidden" in lines[0]
        assert "ResourceQuota objects can be read now, so allot-scheduler enforces their limits" in lines[1]
    finally:
        mine.stop()
    assert team.scheduler.process.poll() is None
