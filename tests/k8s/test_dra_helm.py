"""`helm test` of the chart on a node's GPU, by a ResourceClaim: a real API server, scheduler, claim controller and kubelet, the image that
deploy/image/build makes, and an allotd that the test starts as the driver."""

import os
import stat

import pytest

import dra
from charts import CHART, Helm
from cluster import ADMIN_TOKEN
from machines import wait_until
from test_dra_kubelet import ClaimNode, cdi_engine, cluster, kubelet  # noqa: F401
from test_helm_test import PLUGIN, REPOSITORY, TAG, image  # noqa: F401

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the system daemon is root's")

SPACE, RELEASE = "tested", "gpu"
POD = f"{RELEASE}-allot-test"
VALUES = [f"image.repository={REPOSITORY}", "image.pullPolicy=Never", "dra.enabled=true", "daemon.devicePlugin=false",
          "scheduler.enabled=false"]


@pytest.fixture
def node(kubelet, cluster, image, tmp_path):  # noqa: F811
    plugin = kubelet.engine.directory / "cni/loopback"
    plugin.write_text(PLUGIN)
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    kubelet.engine.check("ctr", "--address", kubelet.engine.socket, "--namespace", "k8s.io", "images", "import",
                         "--snapshotter", "native", image)
    # The chart makes its own.
    cluster.request("DELETE", f"{dra.API}/deviceclasses/{dra.DRIVER}")
    # Who makes a node taints it; the controller that would take that away is not there.
    cluster.request("PATCH", f"/api/v1/nodes/{kubelet.node}",
                    {"spec": {"taints": None}, "metadata": {"labels": {"allot.dev/node": "true"}}},
                    kind="application/merge-patch+json")
    node = ClaimNode(kubelet, cluster, tmp_path)
    try:
        node.start()
        # As the driver's device files are; the test's pod is nobody's.
        (node.daemon.run_dir / "sim.sock").chmod(0o666)
        yield node
    finally:
        node.close()


def run_test(helm, node, into, *values):
    """Installs or upgrades the release and runs its test, which must succeed. Returns the log of the test's container."""
    sets = [part for value in (*VALUES, *values) for part in ("--set", value)]
    helm.check("upgrade", "--install", RELEASE, CHART, "--create-namespace", *sets, "--set-string", f"image.tag={TAG}", *into)
    done = helm.run("test", RELEASE, "--timeout", "120s", *into)
    log = node.kubelet.engine.call("sh", "-c", f"cat /var/log/pods/{SPACE}_{POD}_*/load/*.log").stdout
    events = [event["message"] for event in node.cluster.events(SPACE)]
    assert done.returncode == 0 and "Phase:          Succeeded" in done.stdout, f"{done}\n{log}\n{events}"
    return log


def test_it_computes_under_its_claim(node, build_programs, tmp_path):
    helm = Helm(build_programs("helm", "kustomize") / "helm", tmp_path)
    into = ["--namespace", SPACE, "--kubeconfig", node.cluster.kubeconfig("helm.conf", user=f"token: {ADMIN_TOKEN}")]
    # By default it uses a GPU, because the node is labelled.
    for values, memory in ([], 4 << 30), (["test.claim.memory=3Gi", "test.claim.cores=10"], 3 << 30):
        log = run_test(helm, node, into, *values)
        assert f"total {memory}" in log, log
        assert f"{SPACE}.{POD}" in node.daemon.log
        wait_until(lambda: not node.tenants(), 60, "the end of its claim")
    helm.check("uninstall", RELEASE, "--no-hooks", *into)
