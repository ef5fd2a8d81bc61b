"""The webhook, called by a real API server: it completes or refuses pods, and pods are admitted while it is unreachable."""

import base64
import json
import ssl
import time
import urllib.request

import pytest

from cluster import ADMIN_TOKEN, ApiError
from machines import wait_until
from scheduler import Scheduler, issue

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
NAMESPACE = "webhook"


def configuration(scheduler, policy):
    """The configuration of the manual, but with a URL, because no Service works here."""
    ignored = [{"key": "allot.dev/webhook", "operator": "NotIn", "values": ["ignore"]},
               {"key": "hami.io/webhook", "operator": "NotIn", "values": ["ignore"]}]
    return {"metadata": {"name": "allot"}, "webhooks": [{
        "name": "pods.allot.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": policy, "timeoutSeconds": 10,
        "clientConfig": {"url": f"https://{scheduler.https}/webhook",
                         "caBundle": base64.b64encode(scheduler.certificate.read_bytes()).decode()},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [NAMESPACE, "quiet"]}, *ignored]},
        "objectSelector": {"matchExpressions": ignored}}]}


class Webhook:
    """allot-scheduler, and a cluster that calls its webhook before pods are stored."""

    def __init__(self, cluster, folder, settings="", policy="Fail"):
        self.cluster = cluster
        self.serial = 0
        for name, labels in ((NAMESPACE, {}), ("quiet", {"allot.dev/webhook": "ignore"})):
            try:
                cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
            except ApiError as error:
                assert error.status == 409
        self.scheduler = Scheduler(folder, settings)
        cluster.request("POST", CONFIGURATIONS, configuration(self.scheduler, policy))
        # The API server learns of the webhook by a watch.
        wait_until(self.is_asked, what="the API server calling the webhook")

    def is_asked(self):
        return self.make({"nvidia.com/gpu": "1"})["spec"]["schedulerName"] == "allot-scheduler"

    def make(self, limits, in_namespace=NAMESPACE, labels=None, annotations=None, container=None, **spec):
        """The pod as the API server has stored it."""
        self.serial += 1
        return self.cluster.request("POST", f"/api/v1/namespaces/{in_namespace}/pods", {
            "metadata": {"name": f"p{self.serial}-{time.monotonic_ns()}", "labels": labels or {},
                         "annotations": annotations or {}},
            "spec": {"containers": [{"name": "main", "image": "none", "resources": {"limits": limits},
                                     **(container or {})}], **spec}})

    def refusal(self, *arguments, **more):
        with pytest.raises(ApiError) as refused:
            self.make(*arguments, **more)
        return str(refused.value)

    def is_left_alone(self):
        try:
            return self.make({"nvidia.com/gpu": "1"})["spec"]["schedulerName"] == "default-scheduler"
        except ApiError:
            return False  # the API server still calls the webhook

    def close(self):
        """Removes the webhook, and waits until it is no longer called, so that the next test can have its own."""
        self.cluster.request("DELETE", f"{CONFIGURATIONS}/allot")
        wait_until(self.is_left_alone, what="the API server no longer calling the webhook")
        if self.scheduler.process.poll() is None:
            self.scheduler.stop()


@pytest.fixture
def webhook(cluster, tmp_path):
    made = []

    def make(settings="", policy="Fail"):
        made.append(Webhook(cluster, tmp_path / "scheduler", settings, policy))
        return made[-1]

    yield make
    for one in made:
        one.close()


def resources(pod):
    return pod["spec"]["containers"][0]["resources"]


def test_pods_are_completed(webhook):
    w = webhook("runtime_class = none\nguard_environment = rewrite\n")
    pod = w.make({"nvidia.com/gpumem": "3000", "nvidia.com/priority": "0"},
                 annotations={"allot.dev/workload": "inference"},
                 container={"env": [{"name": "LD_PRELOAD", "value": "/x.so"}, {"name": "KEEP", "value": "1"}]})
    expected = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3k", "nvidia.com/priority": "0"}
    assert resources(pod) == {"limits": expected, "requests": expected}
    assert pod["spec"]["schedulerName"] == "allot-scheduler"
    assert pod["spec"]["containers"][0]["env"] == [{"name": "KEEP", "value": "1"},
                                                   {"name": "CUDA_TASK_PRIORITY", "value": "0"}]
    assert pod["metadata"]["annotations"]["hami.io/gpu-scheduler-policy"] == "spread"
    assert pod["metadata"]["annotations"]["hami.io/node-scheduler-policy"] == "binpack"
    # gpu-manager's resource names, with the memory in bytes.
    pod = w.make({"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "8Gi"})
    expected = {"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "32"}
    assert resources(pod) == {"limits": expected, "requests": expected}
    # A pod that requests no GPU is not changed.
    pod = w.make({"cpu": "1"})
    assert pod["spec"]["schedulerName"] == "default-scheduler" and set(resources(pod)["limits"]) == {"cpu"}
    pod = w.make({"nvidia.com/gpu": "1"}, schedulerName="volcano")
    assert pod["spec"]["schedulerName"] == "volcano"


def test_creator_of_a_pod_gets_the_warning(webhook):
    """The warning is in the header that kubectl shows."""
    w = webhook()
    request = urllib.request.Request(
        f"{w.cluster.url}/api/v1/namespaces/{NAMESPACE}/pods", method="POST",
        data=json.dumps({"metadata": {"name": f"warned-{time.monotonic_ns()}"}, "spec": {"containers": [
            {"name": "main", "image": "none", "resources": {"limits": {
                "tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "8Gi"}}}]}}).encode(),
        headers={"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"})
    context = ssl.create_default_context(cafile=w.cluster.path("ca.crt"))
    with urllib.request.urlopen(request, timeout=20, context=context) as answer:
        assert "so it is read as bytes and replaced by 32 (units of 256 MiB)" in answer.headers["Warning"]


def test_pods_are_refused_with_the_reason(webhook):
    w = webhook("guard_mounts = deny\nimages = none, allowed/*\n")
    refusal = w.refusal({"nvidia.com/gpu": "1"}, nodeName="somewhere")
    assert refusal.startswith("403: ") and "admission webhook \\\"pods.allot.dev\\\" denied the request: " \
                                        "pod has node assigned: somewhere" in refusal
    refusal = w.refusal({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "130"})
    assert refusal.startswith("422: ") and "container main: nvidia.com/gpucores: '130': must be 0 to 100" in refusal
    refusal = w.refusal({"nvidia.com/gpu": "1"}, container={"securityContext": {"privileged": True}})
    assert "container main: securityContext.privileged is true (the container requests a GPU)" in refusal
    refusal = w.refusal({"nvidia.com/gpu": "1"}, volumes=[{"name": "d", "hostPath": {"path": "/dev/nvidia0"}}])
    assert "volume d: the host path /dev/nvidia0 contains device files" in refusal
    refusal = w.refusal({"nvidia.com/gpu": "1"}, container={"image": "other"})
    assert "image 'other' is not allowed to use GPUs" in refusal
    assert w.make({"nvidia.com/gpu": "1"})["spec"]["schedulerName"] == "allot-scheduler"


def test_labels_opt_out_of_the_webhook(webhook):
    w = webhook()
    for label in ("allot.dev/webhook", "hami.io/webhook"):
        pod = w.make({"nvidia.com/gpumem": "100"}, labels={label: "ignore"})
        assert pod["spec"]["schedulerName"] == "default-scheduler"
    pod = w.make({"nvidia.com/gpumem": "100"}, in_namespace="quiet")
    assert pod["spec"]["schedulerName"] == "default-scheduler"


def test_pods_are_admitted_while_the_webhook_is_down(webhook):
    """With failurePolicy Ignore, which is the default of the installation; with Fail they would be refused."""
    w = webhook(policy="Ignore")
    w.scheduler.stop()
    pod = w.make({"nvidia.com/gpumem": "100"})
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    assert resources(pod)["limits"] == {"nvidia.com/gpumem": "100"}


def test_new_certificate_needs_no_restart(webhook):
    """The API server may keep its old connection. A new connection gets the new certificate."""
    w = webhook()
    w.scheduler.certificate.unlink()
    w.scheduler.key.unlink()
    issue(w.scheduler.certificate.parent, "--names", "127.0.0.1")
    bundle = base64.b64encode(w.scheduler.certificate.read_bytes()).decode()
    w.cluster.request("PATCH", f"{CONFIGURATIONS}/allot", [
        {"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}],
        kind="application/json-patch+json")

    def is_asked():
        try:
            return w.is_asked()
        except ApiError:
            return False  # it does not trust the new certificate yet

    wait_until(is_asked, what="the API server accepting the new certificate")
    assert "were read again" in w.scheduler.log.read_text()
