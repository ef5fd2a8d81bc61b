"""Manifests without claims in a cluster that uses claims: the webhook makes ResourceClaimTemplates from their limits, the
cluster's own scheduler places the claims, and a real kubelet runs the pods."""

import concurrent.futures
import json
import os
import subprocess

import pytest

import dra
from cluster import ADMIN_TOKEN, ALLOTD_TOKEN, CLAIM_MAKER_RULES, SCHEDULER_TOKEN, ApiError
from machines import BUILD, wait_until
from scheduler import Scheduler, review
from dra_node import shares
from test_dra_kubelet import FITS_MIB, MIB, TOO_MUCH_MIB, ClaimNode, cdi_engine, cluster, kubelet  # noqa: F401
from test_webhook import CONFIGURATIONS, configuration

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon is root's")

TEMPLATES = f"{dra.API}/namespaces/default/resourceclaimtemplates"
PODS = "/api/v1/namespaces/default/pods"


def settings(cluster, token):  # noqa: F811
    kubeconfig = cluster.kubeconfig(f"{token}.conf", user=f"token: {token}")
    return f"kube_api = {kubeconfig}\nlease = none\nmake_claims = on\n"


class OldNode(ClaimNode):
    def make_old(self, name, limits, annotations=None, init=None, query="", **more):
        """`limits`: of each container."""
        def command(container):
            return ["/bin/sh", "-c", f"sleep 10000 | {self.program} {FITS_MIB} {TOO_MUCH_MIB} >{self.shared}/{name}.{container}"]

        spec = self.kubelet.pod_spec({one: (amounts, command(one)) for one, amounts in limits.items()}, self.shared)
        if init:
            once = f"echo | {self.program} {FITS_MIB} {TOO_MUCH_MIB} >{self.shared}/{name}.init"
            spec["initContainers"] = self.kubelet.pod_spec({"init": (init, ["/bin/sh", "-c", once])}, self.shared)["containers"]
        return self.cluster.request("POST", PODS, {"metadata": {"name": name, "annotations": annotations or {}}, "spec": {
            **spec, "restartPolicy": "Never", "tolerations": [{"operator": "Exists"}], **more}}, query=query)

    def templates(self):
        return [one["metadata"]["name"] for one in self.cluster.request("GET", TEMPLATES)["items"]]

    def template_of(self, name):
        claim, = self.cluster.pod(name)["spec"]["resourceClaims"]
        return claim["resourceClaimTemplateName"]


@pytest.fixture(scope="module")
def webhook(cluster, tmp_path_factory):  # noqa: F811
    cluster.permit("claim-maker", CLAIM_MAKER_RULES, "allot-scheduler")
    scheduler = Scheduler(tmp_path_factory.mktemp("scheduler") / "s", settings(cluster, SCHEDULER_TOKEN))
    hook = configuration(scheduler, "Fail")
    hook["webhooks"][0]["sideEffects"] = "NoneOnDryRun"
    hook["webhooks"][0]["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    cluster.request("POST", CONFIGURATIONS, hook)

    def is_asked():
        pod = cluster.request("POST", PODS, {"metadata": {"name": "probe"}, "spec": {"containers": [
            {"name": "a", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}, query="?dryRun=All")
        return "resourceClaims" in pod["spec"]

    try:
        wait_until(is_asked, what="the API server asking")
        yield scheduler
    finally:
        cluster.request("DELETE", f"{CONFIGURATIONS}/allot")
        scheduler.stop()


@pytest.fixture
def node(kubelet, cluster, webhook, tmp_path_factory):  # noqa: F811
    node = OldNode(kubelet, cluster, tmp_path_factory.mktemp("n"))
    try:
        yield node.start()
    finally:
        node.close()
        for name in node.templates():
            cluster.request("DELETE", f"{TEMPLATES}/{name}")


def test_an_old_manifest_runs_with_its_quota(node):
    """Those of one namespace that ask for the same have one template, and each pod a claim, which goes with it."""
    limits = {"main": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 10000, "nvidia.com/gpucores": 30}}
    for name in ("a", "b"):
        pod = node.make_old(name, limits, {"allot.dev/on-full": "wait", "allot.dev/cores-limit": "60"},
                            schedulerName="allot-scheduler")
        assert pod["spec"]["schedulerName"] == "default-scheduler"
        assert "nvidia.com/gpu" not in json.dumps(pod["spec"])
    assert node.wait_for("a") == node.wait_for("b") == [10000]
    tenants = node.tenants()
    assert [shares(tenant) for tenant in tenants.values()] == 2 * [[(10000 * MIB, 30, 60)]]
    assert {tenant["on_full"] for tenant in tenants.values()} == {"wait"}
    assert set(tenants) == {f"default.{node.claim_of(name)['metadata']['name']}" for name in ("a", "b")}
    assert len(node.templates()) == 1
    node.kubelet.remove_pods("a", "b")
    claims = f"{dra.API}/namespaces/default/resourceclaims"
    wait_until(lambda: not node.cluster.request("GET", claims)["items"], what="the claims' end")
    assert len(node.templates()) == 1


def test_containers_and_gpus(node):
    """Each container has a claim; an init container has that of one that asks for the same."""
    gpus = [card["uuid"] for card in node.cards()]
    two = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000}
    node.make_old("many", {"pair": two, "other": {"tencent.com/vcuda-core": 20, "tencent.com/vcuda-memory": 16}},
                  {"nvidia.com/use-gpuuuid": ",".join(gpus[:2]), "nvidia.com/use-gputype": "h100,h200"}, init=two)
    assert node.wait_for("many", "pair") == [3000, 3000]
    assert node.wait_for("many", "other") == [4096]
    assert node.seen("many", "init") == [3000, 3000]
    found = sorted(shares(tenant) for tenant in node.tenants().values())
    assert found == [[(3000 * MIB, 0, 100)] * 2, [(4096 * MIB, 20, 20)]]
    assert {device["uuid"] for tenant in node.tenants().values() for device in tenant["devices"]} == set(gpus[:2])


def test_a_percentage_of_each_gpu(node):
    node.make_old("part", {"main": {"nvidia.com/gpumem-percentage": 25}})
    whole = node.cards()[0]["memory_bytes"] // MIB
    assert node.wait_for("part") == [whole * 25 // 100]


def test_a_whole_gpu(node):
    """A count alone: nobody else gets on it."""
    node.make_old("whole", {"main": {"nvidia.com/gpu": 1}})
    whole = node.cards()[0]["memory_bytes"] // MIB
    assert node.wait_for("whole") == [whole]
    tenant, = node.tenants().values()
    assert shares(tenant) == [(whole * MIB, 100, 100)]


def test_explain(node):
    """Why it waits, in a sentence."""
    node.make_old("big", {"main": {"nvidia.com/gpumem": 200 << 10, "nvidia.com/gpucores": 5}})
    wait_until(lambda: node.has_no_room("big"), what="the scheduler's word")
    done = subprocess.run([BUILD / "allot", "explain", "big", "--kubeconfig", node.cluster.kubeconfig(
        "explain.conf", user=f"token: {ADMIN_TOKEN}")], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert "asks for 200.0 GiB and 5 %, and none of 2 GPUs on 1 node has that left" in first, first


def test_nothing_is_left_of_what_is_not_stored(node):
    node.make_old("dry", {"main": {"nvidia.com/gpumem": 77}}, query="?dryRun=All")
    with pytest.raises(ApiError) as refused:
        node.make_old("gang", {"main": {"nvidia.com/gpumem": 78}}, {"allot.dev/gang": "g", "allot.dev/gang-size": "2"})
    assert "are placed by the cluster's own scheduler" in str(refused.value)
    assert not node.templates()


def test_many_at_once_have_one_template(node):
    """That none had before. They ask for more than a GPU has, and wait."""
    names = [f"many-{number}" for number in range(16)]
    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: node.make_old(name, {"main": {"nvidia.com/gpumem": 201 << 10}}), names))
    template, = {node.template_of(name) for name in names}
    assert node.templates() == [template]


def test_templates_that_no_pod_uses_are_removed(node, cluster, tmp_path):  # noqa: F811
    """An hour after a pod asked for them last; those that a pod names stay."""
    asked = "allot.dev/asked-at"

    def last_asked(template):
        return cluster.request("GET", f"{TEMPLATES}/{template}")["metadata"]["annotations"][asked]

    amounts = {"used": 2000, "left": 3000, "again": 4000, "new": 5000}
    for name, mib in amounts.items():
        node.make_old(name, {"main": {"nvidia.com/gpumem": mib}})
    used, left, again, new = templates = [node.template_of(name) for name in amounts]
    now = last_asked(used)
    for name, mib in amounts.items():
        assert node.wait_for(name) == [mib]
    for name in ("left", "again", "new"):
        node.kubelet.remove_pods(name)
    for template in (used, left, again):
        cluster.patch(f"{TEMPLATES}/{template}", {"annotations": {asked: "2026-01-01T00:00:00Z"}})
    node.make_old("fresh", {"main": {"nvidia.com/gpumem": amounts["again"]}})
    assert last_asked(again) >= now
    assert node.wait_for("fresh") == [amounts["again"]]
    node.kubelet.remove_pods("fresh")
    scheduler = Scheduler(tmp_path / "s", settings(cluster, SCHEDULER_TOKEN))
    try:
        wait_until(lambda: left not in node.templates(), what="the end of the one that is left over")
        wait_until(lambda: "removed 1 ResourceClaimTemplates" in scheduler.log.read_text(), what="the end of the sweep")
    finally:
        scheduler.stop()
    assert sorted(node.templates()) == sorted(set(templates) - {left})
    node.make_old("back", {"main": {"nvidia.com/gpumem": amounts["left"]}})
    assert node.template_of("back") == left and node.wait_for("back") == [amounts["left"]]
    assert node.wait_for("used") == [amounts["used"]]


def test_no_right_to_make_templates(cluster, tmp_path):  # noqa: F811
    """Then the pod is refused, with the API server's reason."""
    scheduler = Scheduler(tmp_path / "s", settings(cluster, ALLOTD_TOKEN))
    try:
        status, answer = scheduler.post("/webhook", review({"metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "a", "resources": {"limits": {"nvidia.com/gpumem": "79"}}}]}}))
        response = answer["response"]
        assert status == 200 and not response["allowed"] and response["status"]["code"] == 403
        assert "a ResourceClaimTemplate for the pod" in response["status"]["message"]
        assert "cannot patch resource" in response["status"]["message"]
    finally:
        scheduler.stop()
