"""The chart's hook before Helm uninstalls it ends the daemons while they still have their rights."""

import subprocess

import pytest

from charts import Helm, of_kind, path_of
from cluster import ADMIN_TOKEN
from machines import wait_until

SPACE, RELEASE = "uninstalled", "gone"
SETS = f"/apis/apps/v1/namespaces/{SPACE}/daemonsets"
PODS = f"/api/v1/namespaces/{SPACE}/pods"


@pytest.fixture(scope="module")
def kubernetes(build_programs):
    return build_programs("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")


@pytest.fixture(scope="module")
def helm(build_programs, tmp_path_factory):
    return Helm(build_programs("helm", "kustomize") / "helm", tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def installed(helm, cluster, kubernetes):
    """The objects of the uninstallation. The DaemonSet is installed; no kubelet runs its one pod."""
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
    cluster.make_node("of-uninstalled", labels={"allot.dev/node": "true"})
    made = helm.render(["scheduler.enabled=false"], release=RELEASE, namespace=SPACE)
    before = helm.render_uninstall(release=RELEASE, namespace=SPACE)
    for one in [*made, *before]:
        if one["kind"] in ("ServiceAccount", "Role", "RoleBinding", "DaemonSet"):
            cluster.request("POST", path_of(one), one)
    cluster.launch("kube-controller-manager", "--kubeconfig",
                   cluster.kubeconfig("uninstall.conf", user=f"token: {ADMIN_TOKEN}"), "--leader-elect=false",
                   "--controllers=daemonset-controller,garbage-collector-controller", "--secure-port=0")
    yield before
    cluster.end("kube-controller-manager")


@pytest.fixture
def kubectl(kubernetes, cluster, installed):
    """kubectl(ARGUMENTS...) starts kubectl with the account of the hook's Job, by default with the Job's arguments."""
    account = of_kind(installed, "ServiceAccount")["metadata"]["name"]
    bearer = cluster.request("POST", f"/api/v1/namespaces/{SPACE}/serviceaccounts/{account}/token",
                             {"spec": {}})["status"]["token"]
    access = cluster.kubeconfig("uninstalling.conf", user=f"token: {bearer}")
    container, = of_kind(installed, "Job")["spec"]["template"]["spec"]["containers"]
    assert container["command"][0] == "kubectl"
    begun = []

    def begin(*more):
        command = [kubernetes / "kubectl", "--kubeconfig", access, *(more or container["command"][1:])]
        begun.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return begun[-1]

    yield begin
    for process in begun:
        process.kill()
        process.wait()


def test_job_waits_for_the_end_of_the_daemons(cluster, kubectl):
    (pod,) = wait_until(lambda: cluster.request("GET", PODS)["items"], what="the daemon's pod")
    path = f"{PODS}/{pod['metadata']['name']}"
    cluster.request("PATCH", path, {"metadata": {"finalizers": ["test.allot.dev/still-ending"]}},
                    kind="application/merge-patch+json")
    process = kubectl()
    wait_until(lambda: "deletionTimestamp" in cluster.request("GET", path)["metadata"], what="the daemon's end")
    with pytest.raises(subprocess.TimeoutExpired):
        process.communicate(timeout=2)
    cluster.request("PATCH", path, {"metadata": {"finalizers": None}}, kind="application/merge-patch+json")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert not cluster.request("GET", SETS)["items"]


def test_job_succeeds_without_daemons(kubectl):
    process = kubectl()
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output


def test_job_may_delete_no_other_daemonset(cluster, kubectl):
    other = {"metadata": {"name": "other"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "main", "image": "none"}]}}}}
    cluster.request("POST", SETS, other)
    process = kubectl("--namespace", SPACE, "delete", "daemonset", "other")
    output, _ = process.communicate(timeout=60)
    assert process.returncode != 0 and "forbidden" in output, output


def test_helm_deletes_the_hooks_objects(installed, helm):
    assert {one["kind"] for one in installed} == {"ServiceAccount", "Role", "RoleBinding", "Job"}
    for one in installed:
        ends = one["metadata"]["annotations"]["helm.sh/hook-delete-policy"].split(",")
        assert {"hook-succeeded", "hook-failed"} <= set(ends), one
    for off in ("uninstall.endDaemons=false", "daemon.enabled=false"):
        assert not helm.render_uninstall([off])
