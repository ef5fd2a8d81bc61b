"""`helm test` of the chart with a ResourceClaim: a real API server, scheduler, claim controller and kubelet, the image that
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
VALUES = [f"image.repository={REPOSITORY}", "image.pullPolicy=Never", "dra.enabled=true", "daemon.devicePlugin=false",
          "scheduler.enabled=false", "test.claim.memory=3Gi", "test.claim.cores=10"]


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
    cluster.request("PATCH", f"/api/v1/nodes/{kubelet.node}", {"spec": {"taints": None}}, kind="application/merge-patch+json")
    node = ClaimNode(kubelet, cluster, tmp_path)
    try:
        node.start()
        # As the driver's device files are; the test's pod is nobody's.
        (node.daemon.run_dir / "sim.sock").chmod(0o666)
        yield node
    finally:
        node.close()


def test_it_computes_under_its_claim(node, kubelet, cluster, build_programs, tmp_path):  # noqa: F811
    helm = Helm(build_programs("helm", "kustomize") / "helm", tmp_path)
    into = ["--namespace", SPACE, "--kubeconfig", cluster.kubeconfig("helm.conf", user=f"token: {ADMIN_TOKEN}")]
    sets = [part for value in VALUES for part in ("--set", value)]
    helm.check("upgrade", "--install", RELEASE, CHART, "--create-namespace", *sets, "--set-string", f"image.tag={TAG}", *into)
    name = f"{RELEASE}-allot-test"
    done = helm.run("test", RELEASE, "--timeout", "120s", *into)
    log = kubelet.engine.call("sh", "-c", f"cat /var/log/pods/{SPACE}_{name}_*/load/*.log").stdout
    events = [event["message"] for event in cluster.events(SPACE)]
    assert done.returncode == 0 and "Phase:          Succeeded" in done.stdout, f"{done}\n{log}\n{events}"
    assert f"total {3 << 30}" in log, log
    assert f"{SPACE}.{name}" in node.daemon.log
    wait_until(lambda: not node.tenants(), 60, "the end of its claim")
    helm.check("uninstall", RELEASE, "--no-hooks", *into)
