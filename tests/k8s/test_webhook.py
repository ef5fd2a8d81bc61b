"""The webhook, called by a real API server: it completes or refuses pods, and pods are admitted while it is unreachable."""

import base64
import json
import ssl
import time
import urllib.request

import pytest

import charts
from charts import Helm, of_kind
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

    def __init__(self, cluster, folder, settings="", policy="Fail", change=lambda configuration: None):
        self.cluster = cluster
        self.serial = 0
        for name, labels in ((NAMESPACE, {}), (charts.NAMESPACE, {}), ("quiet", {"allot.dev/webhook": "ignore"})):
            try:
                cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
            except ApiError as error:
                assert error.status == 409
        self.scheduler = Scheduler(folder, settings)
        made = configuration(self.scheduler, policy)
        change(made)
        cluster.request("POST", CONFIGURATIONS, made)
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

    def make(*arguments, **more):
        made.append(Webhook(cluster, tmp_path / "scheduler", *arguments, **more))
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
    assert "volume d: by the host path /dev/nvidia0 a pod can bypass the limits: leave it out" in refusal
    refusal = w.refusal({"nvidia.com/gpu": "1"}, container={"image": "other"})
    assert "image 'other' is not allowed to use GPUs" in refusal
    assert w.make({"nvidia.com/gpu": "1"})["spec"]["schedulerName"] == "allot-scheduler"


# ---- the chart's webhook.strict ----

@pytest.fixture
def strict(webhook, build_programs, tmp_path):
    """What the chart makes with webhook.strict, but for the namespaces of these tests, and with a URL."""
    made = Helm(build_programs("helm", "kustomize") / "helm", tmp_path / "helm").render(["webhook.strict=true"])
    rendered = of_kind(made, "MutatingWebhookConfiguration")["webhooks"]
    settings = next(one["data"]["allot-scheduler.conf"] for one in made
                    if one["kind"] == "ConfigMap" and "allot-scheduler.conf" in one["data"])

    def change(made):
        own, = made["webhooks"]
        namespaces = dict(own["namespaceSelector"]["matchExpressions"][0])
        namespaces["values"] = [*namespaces["values"], charts.NAMESPACE]
        for hook in rendered:
            hook["clientConfig"] = own["clientConfig"]
            hook["namespaceSelector"]["matchExpressions"].append(namespaces)
        made["webhooks"] = rendered

    return webhook("".join(f"{line}\n" for line in settings.splitlines() if line.startswith(("guard_", "pod_opt_out"))),
                   change=change)


def host_path(path):
    return {"volumes": [{"name": "v", "hostPath": {"path": path}}]}


def of_container(**container):
    return {"container": container}


def env(name):
    return of_container(env=[{"name": name, "value": "x"}])


def capability(name):
    return of_container(securityContext={"capabilities": {"add": [name]}})


WAYS_PAST = {
    **{path: (host_path(path), f"by the host path {path} a pod can bypass the limits")
       for path in ("/proc/1/root", "/run", "/var/run", "/run/allot", "/var/lib/allot", "/var/lib/kubelet/device-plugins", "/sys")},
    **{name: (env(name), f"environment variable {name} can bypass the limits")
       for name in ("ALLOT_SOCKET", "ALLOT_UNKNOWN", "LD_AUDIT", "LD_PRELOAD", "CUDA_MPS_PIPE_DIRECTORY")},
    "envFrom": (of_container(envFrom=[{"configMapRef": {"name": "x", "optional": True}}]), "environment variables from envFrom"),
    "mount": ({"volumes": [{"name": "v", "emptyDir": {}}],
               **of_container(volumeMounts=[{"name": "v", "mountPath": "/etc/../etc/ld.so.preload"}])},
              "by a mount at /etc/../etc/ld.so.preload a pod can bypass the limits"),
    "SYS_ADMIN": (capability("SYS_ADMIN"), "capability SYS_ADMIN reaches the node"),
    "privileged": (of_container(securityContext={"privileged": True}), "securityContext.privileged is true"),
    "hostPID": ({"hostPID": True}, "spec.hostPID: the pod reaches processes of others"),
}


def test_strict_refuses_each_way_past_the_limits(strict):
    strict.make({"nvidia.com/gpu": "1"}, labels={"allot.dev/webhook": "ignore"})
    for name, (pod, reason) in WAYS_PAST.items():
        for labels in ({}, {"allot.dev/webhook": "ignore"}):
            refusal = strict.refusal({"nvidia.com/gpu": "1"}, labels=labels, **pod)
            assert refusal.startswith("403: ") and "gpu-pods.allot.dev" in refusal and reason in refusal, (name, refusal)
    for name in ("privileged", "SYS_ADMIN", "hostPID", "/run", "/sys"):
        assert WAYS_PAST[name][1] in strict.refusal({"cpu": "1"}, **WAYS_PAST[name][0]), name
    # The operator's escape.
    strict.make({"nvidia.com/gpu": "1"}, in_namespace="quiet", **WAYS_PAST["privileged"][0])
    # An image of CUDA shows all GPUs to a container that requests none, unless the variable says otherwise.
    pod = strict.make({"cpu": "1"})
    assert pod["spec"]["containers"][0]["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}]


def test_strict_stores_the_pods_of_allot_itself(strict, build_programs, tmp_path):
    """Also with failurePolicy Fail while no replica answers: else none could begin to. Their label exempts no pod elsewhere."""
    made = Helm(build_programs("helm", "kustomize") / "helm", tmp_path / "helm").render(["webhook.strict=true"])
    pods = [of_kind(made, kind)["spec"]["template"] for kind in ("DaemonSet", "Deployment")]

    def store(pod, in_namespace):
        # These tests make neither the accounts nor the PriorityClass.
        spec = {name: value for name, value in pod["spec"].items() if name not in ("serviceAccountName", "priorityClassName")}
        strict.cluster.request("POST", f"/api/v1/namespaces/{in_namespace}/pods", {
            "metadata": {"generateName": "own-", "labels": pod["metadata"]["labels"]}, "spec": spec})

    def is_refused(in_namespace):
        try:
            strict.make({"cpu": "1"}, in_namespace=in_namespace)
            return False
        except ApiError as error:
            return "failed calling webhook" in str(error)

    for pod in pods:
        store(pod, charts.NAMESPACE)
    with pytest.raises(ApiError, match="can bypass the limits"):
        store(pods[0], NAMESPACE)
    hooks = strict.cluster.request("GET", f"{CONFIGURATIONS}/allot")
    for hook in hooks["webhooks"]:
        hook["failurePolicy"] = "Fail"
    strict.cluster.request("PUT", f"{CONFIGURATIONS}/allot", hooks)
    strict.scheduler.stop()
    for namespace in (NAMESPACE, charts.NAMESPACE):
        wait_until(lambda where=namespace: is_refused(where), what="the API server refusing pods without the webhook")
    for pod in pods:
        store(pod, charts.NAMESPACE)


def test_strict_guards_ephemeral_containers(strict):
    """As kubectl debug adds them."""
    for limits in ({"nvidia.com/gpu": "1"}, {"cpu": "1"}):
        name = strict.make(limits)["metadata"]["name"]
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/ephemeralcontainers"

        def debug(container, **more):
            return strict.cluster.request("PATCH", path, {"spec": {"ephemeralContainers": [
                {"name": container, "image": "none", **more}]}}, kind="application/strategic-merge-patch+json")

        for more in (WAYS_PAST["privileged"], WAYS_PAST["SYS_ADMIN"]):
            with pytest.raises(ApiError) as refused:
                debug("wrong", **more[0]["container"])
            assert str(refused.value).startswith("403: ") and more[1] in str(refused.value)
        made = debug("first")["spec"]["ephemeralContainers"]
        assert made[0]["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}]
        assert {one["name"] for one in debug("second")["spec"]["ephemeralContainers"]} == {"first", "second"}


def test_strict_stores_no_pod_with_gpus_while_the_webhook_is_down(strict):
    strict.scheduler.stop()
    refusal = strict.refusal({"nvidia.com/gpumem": "100"})
    assert 'failed calling webhook \\"gpu-pods.allot.dev\\"' in refusal
    assert strict.make({"cpu": "1"})["spec"]["schedulerName"] == "default-scheduler"
    strict.make({"nvidia.com/gpumem": "100"}, in_namespace="quiet")


# ---- pods that the webhook does not see ----

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
