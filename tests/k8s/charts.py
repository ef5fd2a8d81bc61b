"""Renders the Helm chart and the kustomization, and reads the rendered objects."""

import json
import pathlib
import re
import subprocess

import yaml

from cluster import ADMIN_TOKEN, ApiError
from machines import BUILD, ROOT

CHART = ROOT / "deploy/helm/allot"
KUSTOMIZATION = ROOT / "deploy/kustomize"
NAMESPACE = "allot-chart"  # no other test uses it
VERSION = "1.34.4"

# Configurations of the chart. Each is linted, rendered, and sent to a real API server.
VALUES = {
    "defaults": [],
    "own-kube-scheduler": ["scheduler.kubeScheduler.enabled=false", "scheduler.bindSeconds=25",
                           "webhook.failurePolicy=Fail"],
    "strict": ["webhook.strict=true", "scheduler.settings.guard_mounts=warn"],
    "cert-manager": ["certificate.from=cert-manager", "vocabulary=gpu-manager"],
    "cert-manager-issuer": ["certificate.from=cert-manager", "certificate.issuerRef.name=x",
                            "certificate.issuerRef.kind=ClusterIssuer", "webhook.skipNamespaces=null"],
    "secret": ["certificate.from=secret", "certificate.secretName=mine", "certificate.caBundle=bWluZQ=="],
    "node-alone": ["scheduler.enabled=false", "vocabulary=slices", "daemon.settings.kube_slices=7",
                   "daemon.settings.gang=off", "daemon.nodeSelector=null"],
    "claims-alone": ["test.claim.memory=1Gi", "test.claim.cores=10", "scheduler.enabled=false", "daemon.devicePlugin=false",
                     "dra.enabled=true", "daemon.kubeletDir=/var/lib/k0s/kubelet"],
    "claims-of-limits": ["daemon.devicePlugin=false", "dra.enabled=true", "dra.convert=true",
                         "scheduler.kubeScheduler.enabled=false", "scheduler.settings.device_class=training.gpu.allot.dev"],
    "scheduler-alone": ["daemon.enabled=false", "scheduler.replicas=1", "webhook.enabled=false"],
    "clients": ["scheduler.kubeScheduler.enabled=false", "scheduler.clients.caSecret=clients",
                "scheduler.clients.tokenSecret=token", "scheduler.settings.client_names=kube-scheduler"],
    "everything": ["dra.enabled=true", "dra.extendedResourceName=example.com/whole-gpu",
                   "dra.classes.mine\\.example\\.com.coresLimit=50",
                   "scheduler.page.enabled=true", "scheduler.page.tokenSecret=token",
                   "scheduler.page.nodeUrl=http://{node}:9401/",
                   "scheduler.clients.caSecret=clients", "scheduler.clients.tokenSecret=token",
                   "daemon.metrics.enabled=true", "daemon.metrics.tokenSecret=token", "runtimeClass.create=true",
                   "monitoring.serviceMonitor.enabled=true", "monitoring.serviceMonitor.labels.release=prometheus",
                   "monitoring.rules.enabled=true", "monitoring.dashboard.enabled=true", "priorityClass.create=true",
                   "daemon.runtimeClassName=nvidia",
                   "scheduler.settings.runtime_class=nvidia", "scheduler.settings.gpu_resource=example.com/gpu",
                   "daemon.kubeletDir=/var/lib/k0s/kubelet", "image.digest=sha256:" + "a" * 64,
                   "image.pullSecrets[0].name=pull", "scheduler.podLabels.team=gpu", "daemon.podAnnotations.a=b",
                   "test.limits.nvidia\\.com/gpu=1", "daemon.maxUnavailable=10%", "scheduler.resources.limits.cpu=2",
                   "daemon.volumeConfig=names", "daemon.settings.swap_arena=64GiB", "scheduler.affinity.nodeAffinity=null",
                   "scheduler.auditVolume.hostPath.path=/var/log/allot"],
}


def sets(values):
    return [part for value in values for part in ("--set", value)]


class Helm:
    def __init__(self, program, folder):
        self.program = program
        self.home = folder

    def run(self, *arguments, timeout=120):
        return subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, check=False,
                              timeout=timeout, env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"})

    def check(self, *arguments):
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def render(self, values=(), *options, release="allot", namespace=NAMESPACE):
        """The objects of an installation, in Helm's order."""
        made = objects(self.check("template", release, CHART, "--namespace", namespace, "--kube-version", VERSION,
                                  *sets(values), *options))
        return [one for one in made if not is_of_uninstall(one)]

    def render_uninstall(self, values=(), release="allot", namespace=NAMESPACE):
        """The objects that Helm creates before it uninstalls the others."""
        made = objects(self.check("template", release, CHART, "--namespace", namespace, "--kube-version", VERSION,
                                  *sets(values)))
        return [one for one in made if is_of_uninstall(one)]


def is_of_uninstall(one):
    return one["metadata"].get("annotations", {}).get("helm.sh/hook") == "pre-delete"


def objects(text):
    return [one for one in yaml.safe_load_all(text) if one]


def kube_scheduler_configuration(cluster, folder, extender, **more):
    """Writes the chart's configuration of kube-scheduler to a file for a test, and returns its path. `extender`: the extender's
    fields that differ, such as its URL and TLS settings. `more`: other fields of the configuration."""
    program = subprocess.run([ROOT / "tests/k8s/build", "helm"], capture_output=True, text=True, check=True).stdout.strip()
    made = Helm(pathlib.Path(program) / "helm", folder).render()
    config = yaml.safe_load(of_kind(made, "ConfigMap", "allot-scheduler")["data"]["kube-scheduler.yaml"])
    access = cluster.kubeconfig("kube-scheduler.conf", user=f"token: {ADMIN_TOKEN}")
    config["clientConnection"] = {"kubeconfig": str(access), "qps": 500, "burst": 1000}
    config["leaderElection"] = {"leaderElect": False}
    # Short backoffs, so that tests do not wait for a retry.
    config.update({"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 2, **more})
    config["extenders"][0].update(extender)
    file = folder / "kube-scheduler.json"
    file.write_text(json.dumps(config))
    return file


def of_kind(made, kind, name=None):
    (one,) = [o for o in made if o["kind"] == kind and name in (None, o["metadata"]["name"])]
    return one


def path_of(one):
    """The API path of the collection that an object is created in."""
    api = one["apiVersion"]
    plural = re.sub("y$", "ie", one["kind"].lower())
    plural += "es" if plural.endswith("ss") else "s"
    where = one["metadata"].get("namespace")
    return (f"/apis/{api}" if "/" in api else f"/api/{api}") + (f"/namespaces/{where}" if where else "") + f"/{plural}"


def check_settings(program, text, folder):
    """Asserts that the program accepts this settings file."""
    file = folder / f"{program}.conf"
    file.write_text(text)
    done = subprocess.run([BUILD / program, "--check-config", file], capture_output=True, text=True, check=False,
                          timeout=60)
    assert done.returncode == 0, done.stderr + text


def are_policies_over(cluster):
    """Whether a deleted ValidatingAdmissionPolicy is no longer applied: the API server does so for a moment."""
    pod = {"metadata": {"name": "later", "annotations": {"hami.io/vgpu-node": "n"}},
           "spec": {"containers": [{"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
    try:
        return cluster.request("POST", "/api/v1/namespaces/default/pods", pod, query="?dryRun=All")
    except ApiError as error:
        assert error.status in (403, 422), error
        return None
