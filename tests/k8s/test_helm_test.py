"""`helm test` of the chart on a node that runs pods: the image that deploy/image/build makes, a real kubelet, and Helm itself,
which waits for the end of the test pod."""

import shutil
import stat
import subprocess

import pytest

import pods
from charts import CHART, Helm, are_policies_over
from cluster import ADMIN_TOKEN, ApiError
from machines import BUILD, ROOT, wait_until

SPACE, RELEASE, NODE = "tested", "gpu", "helm-tests"
REPOSITORY, TAG = "allot.test/allot", "1"

# A CNI plugin that sets up nothing. It reports an address because containerd requires one.
PLUGIN = """#!/bin/sh
case $CNI_COMMAND in
VERSION) echo '{"cniVersion":"0.4.0","supportedVersions":["0.3.1","0.4.0"]}' ;;
ADD) echo '{"cniVersion":"0.4.0","interfaces":[{"name":"'"$CNI_IFNAME"'","sandbox":"'"$CNI_NETNS"'"}],' \\
	'"ips":[{"version":"4","interface":0,"address":"192.0.2.2/24"}]}' ;;
esac
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    if not shutil.which("apt-get") or not shutil.which("meson"):
        pytest.skip("no apt-get or no meson here: an image is made of the distribution's packages and what meson installs")
    path = tmp_path_factory.mktemp("image") / "allot.tar"
    done = subprocess.run([ROOT / "deploy/image/build", "--build", (BUILD / "meson").resolve(), "--output", path,
                           "--name", f"{REPOSITORY}:{TAG}"], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def kubelet(cluster, build_programs, image, tmp_path_factory):
    with pods.running_kubelet(cluster, build_programs, tmp_path_factory.mktemp("kubelet"), NODE) as kubelet:
        plugin = kubelet.engine.directory / "cni/loopback"
        plugin.write_text(PLUGIN)
        plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
        kubelet.engine.check("ctr", "--address", kubelet.engine.socket, "--namespace", "k8s.io", "images", "import",
                             "--snapshotter", "native", image)
        yield kubelet


@pytest.fixture(scope="module")
def helm(cluster, build_programs, tmp_path_factory):
    helm = Helm(build_programs("helm", "kustomize") / "helm", tmp_path_factory.mktemp("helm"))
    yield helm
    helm.run("uninstall", RELEASE, "--no-hooks", *release_of(cluster))
    wait_until(lambda: are_policies_over(cluster), 60, what="the end of the chart's policies")


def release_of(cluster):
    return ["--namespace", SPACE, "--kubeconfig", cluster.kubeconfig("helm-test.conf", user=f"token: {ADMIN_TOKEN}")]


def bind(cluster, name):
    """Binds the pod to the node of this file, as kube-scheduler would."""
    path = f"/api/v1/namespaces/{SPACE}/pods/{name}"

    def is_new():
        try:
            return "nodeName" not in cluster.request("GET", path)["spec"]
        except ApiError as error:
            assert error.status == 404
            return False

    # Helm first deletes the pod of the test before.
    wait_until(is_new, 60, "the test's pod")
    cluster.request("POST", f"{path}/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                                                "target": {"apiVersion": "v1", "kind": "Node", "name": NODE}})


def run_test(helm, cluster, kubelet, *values):
    """Installs the chart and runs `helm test`: (exit status, output, the pod's status, the log of its container)."""
    into = release_of(cluster)
    sets = [part for value in (f"image.repository={REPOSITORY}", "image.pullPolicy=Never", *values)
            for part in ("--set", value)]
    # Without the webhook, which no program would serve here: pods of other tests would wait for it.
    sets += ["--set", "webhook.enabled=false", "--set-string", f"image.tag={TAG}"]
    helm.check("upgrade", "--install", RELEASE, CHART, "--create-namespace", *sets, *into)
    name = f"{RELEASE}-allot-test"
    test = subprocess.Popen([helm.program, "test", RELEASE, "--timeout", "120s", *map(str, into)],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env={"HOME": str(helm.home), "PATH": "/usr/bin:/bin"})
    try:
        bind(cluster, name)
        output, _ = test.communicate(timeout=180)
    finally:
        test.kill()
        test.wait()
    status = cluster.request("GET", f"/api/v1/namespaces/{SPACE}/pods/{name}")["status"]
    log = kubelet.engine.call("sh", "-c", f"cat /var/log/pods/{SPACE}_{name}_*/load/*.log").stdout
    return test.returncode, output, status, log


def test_helm_test_succeeds(helm, cluster, kubelet):
    """The pod runs a simulated GPU, a daemon and a tenant, without root and with only /tmp writable. Nodes of other tests may
    have the label of nodes with GPUs, so the value does not stay automatic."""
    code, output, status, log = run_test(helm, cluster, kubelet, "test.gpu=simulated")
    assert code == 0 and status["phase"] == "Succeeded", f"{output}\n{status}\n{log}"
    assert "Phase:          Succeeded" in output
    assert "of the GPU" in log, log


def test_helm_test_fails_with_a_wrong_image(helm, cluster, kubelet):
    """The image does not contain allot."""
    code, output, status, _ = run_test(helm, cluster, kubelet, f"image.repository={kubelet.engine.image.split(':')[0]}")
    assert code != 0, output
    assert status["phase"] in ("Failed", "Pending"), status
