"""The Helm chart: Helm lints and renders it with several sets of values, refuses wrong values by name, and a real API server
accepts its objects."""

import base64
import json
import re
import socket
import ssl
import subprocess

import pytest
import yaml

from charts import CHART, NAMESPACE, VALUES, Helm, are_policies_over, check_settings, objects, of_kind, path_of, sets
from cluster import ADMIN_TOKEN, ApiError
from machines import BUILD, ROOT, wait_until
from scheduler import Scheduler

# Kinds of operators that are not installed here. The API server does not know them without their definitions.
FOREIGN = {"ServiceMonitor": "monitoring.coreos.com/v1", "PrometheusRule": "monitoring.coreos.com/v1",
           "Certificate": "cert-manager.io/v1", "Issuer": "cert-manager.io/v1"}


@pytest.fixture(scope="module")
def helm(build_programs, tmp_path_factory):
    return Helm(build_programs("helm", "kustomize") / "helm", tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def namespace(cluster):
    try:
        cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    except ApiError as error:
        assert error.status == 409
    return NAMESPACE


def administrator(cluster):
    return cluster.kubeconfig("helm.conf", user=f"token: {ADMIN_TOKEN}")


# ---- values ----

@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_lint(helm, values):
    helm.check("lint", "--strict", CHART, *sets(values))


@pytest.mark.parametrize("value, message", [
    ("vocabulary=nvidia", "'/vocabulary': value must be one of 'hami', 'gpu-manager', 'slices'"),
    ("scheduler.setings.a=b", "'/scheduler': additional properties 'setings' not allowed"),
    ("scheduler.settings.gpu_polcy=spread", "'/scheduler/settings': additional properties 'gpu_polcy' not allowed"),
    ("daemon.settings.quantumm=1ms", "'/daemon/settings': additional properties 'quantumm' not allowed"),
    ("daemon.settings.gang=maybe", "'/daemon/settings/gang': value must be one of true, false, 'on', 'off'"),
    # The chart itself writes these settings.
    ("daemon.settings.kube_plugin=off", "'/daemon/settings': additional properties 'kube_plugin' not allowed"),
    ("scheduler.settings.lease=none", "'/scheduler/settings': additional properties 'lease' not allowed"),
    ("scheduler.replicas=0", "'/scheduler/replicas'"),
    ("scheduler.replicas=two", "'/scheduler/replicas': got string, want integer"),
    ("webhook.failurePolicy=Maybe", "'/webhook/failurePolicy': value must be one of 'Ignore', 'Fail'"),
    ("certificate.from=elsewhere", "'/certificate/from': value must be one of 'helm', 'files', 'secret',"),
    ("daemon.kubeletDir=lib/kubelet", "'/daemon/kubeletDir'"),
    ("daemon.metrics.port=70000", "'/daemon/metrics/port': maximum"),
    ("image.digest=sha256:1", "'/image/digest'"),
    ("priorityClass.value=2000000000", "'/priorityClass/value'"),
    # Combinations of values.
    ("vocabulary=slices", "vocabulary: slices needs no scheduler"),
    ("scheduler.bindSeconds=12", "scheduler.bindSeconds: 12: must be at most leaseSeconds - renewSeconds of "
                                 "scheduler.kubeScheduler, 10"),
    ("scheduler.kubeScheduler.renewSeconds=25", "renewSeconds: 25: must be less than leaseSeconds"),
    ("scheduler.kubeScheduler.retrySeconds=12", "retrySeconds: 12: must be less than renewSeconds"),
    ("scheduler.page.enabled=true", "scheduler.page.tokenSecret: is empty"),
    ("daemon.devicePlugin=false", "daemon.devicePlugin and dra.enabled: are both false"),
    ("test.claim.memory=1Gi", "test.claim: needs dra.enabled"),
    ("daemon.volumeConfig=x,daemon.settings.container_driver=/x", "daemon.volumeConfig: sets container_driver itself"),
    ("dra.convert=true", "dra.convert: needs dra.enabled"),
    ("dra.enabled=true,dra.extendedResourceName=nvidia.com/gpu", "is also the device plugin's resource"),
    ("dra.convert=true,dra.enabled=true", "set scheduler.kubeScheduler.enabled to false"),
    ("scheduler.settings.make_claims=on", "'/scheduler/settings': additional properties 'make_claims' not allowed"),
    ("dra.classes.a.onFull=pray", "'/dra/classes/a/onFull'"),
    ("scheduler.page.nodeUrl=node-1", "'/scheduler/page/nodeUrl'"),
    ("certificate.from=files", "certificate.from: files needs certificate.crt and certificate.key"),
    ("certificate.from=secret", "certificate.from: secret needs certificate.secretName"),
    ("monitoring.serviceMonitor.enabled=true", "monitoring.serviceMonitor.enabled: needs daemon.metrics.enabled"),
])
def test_wrong_values_are_refused_by_name(helm, value, message):
    done = helm.run("template", "allot", CHART, *sets([value]))
    assert done.returncode != 0 and message in done.stderr, done.stderr


def test_schema_matches_the_programs(helm):
    made = subprocess.run([ROOT / "scripts/chart-schema", BUILD], capture_output=True, text=True, check=True).stdout
    assert made == (CHART / "values.schema.json").read_text(), "scripts/chart-schema writes a different schema"


def test_every_schema_value_is_in_values_yaml():
    """Each value that the schema allows is in values.yaml, where users find it. Helm's lint checks the other direction."""
    schema = json.loads((CHART / "values.schema.json").read_text())

    def check(shape, values, path):
        for name, inner in shape.get("properties", {}).items():
            if path + name in ("global", "scheduler.settings", "daemon.settings") or path.endswith("resources."):
                continue
            assert name in values, path + name
            check(inner, values[name] if isinstance(values[name], dict) else {}, f"{path}{name}.")

    check(schema, yaml.safe_load((CHART / "values.yaml").read_text()), "")


@pytest.mark.parametrize("guide", [*sorted((ROOT / "docs/guide").glob("migrate-from-*.md")),
                                   ROOT / "docs/guide/kubernetes.md", CHART / "README.md"],
                         ids=lambda path: path.stem)
def test_guides_name_existing_values(guide):
    schema = json.loads((CHART / "values.schema.json").read_text())
    tops = "|".join(schema["properties"])
    # Values of other charts are in the first column of a table, or behind that chart's name. Links name files.
    text = re.sub(r"^\| .*? \| |^helm .*upgrade hami .*$|\]\([^)]*\)", "", guide.read_text(), flags=re.M)
    named = re.findall(rf"(?<![\w./-])(?:{tops})(?:\.\w+)+", text)
    assert named
    for path in named:
        shape = schema
        for part in path.split("."):
            if shape.get("type") == "object" and "properties" not in shape:
                break   # the user chooses the names below, such as those of resources
            assert part in shape.get("properties", {}), f"{path}: there is no {part}"
            shape = shape["properties"][part]


# ---- rendered objects ----

@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_api_server_accepts_the_objects(helm, cluster, namespace, values):
    made = helm.render(values)
    names = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in made]
    assert len(set(names)) == len(names)
    for one in made:
        if one["kind"] in FOREIGN:
            assert one["apiVersion"] == FOREIGN[one["kind"]]
            continue
        if one["kind"] == "Pod":
            one["spec"].pop("runtimeClassName", None)   # a dry run makes no RuntimeClass
        # The server checks all fields. An object that already exists belongs to another test.
        try:
            cluster.request("POST", path_of(one), one, query="?fieldValidation=Strict&dryRun=All")
        except ApiError as error:
            assert error.status == 409, f"{one['kind']} {one['metadata']['name']}: {error}"


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_programs_accept_their_settings(helm, tmp_path, values):
    found = {file: text for one in helm.render(values) if one["kind"] == "ConfigMap"
             for file, text in one["data"].items()}
    for file, text in found.items():
        if re.fullmatch(r"allot.*\.conf", file):
            check_settings(file.removesuffix(".conf"), text, tmp_path)
    assert {"allotd.conf", "allot-scheduler.conf"} & set(found)


def test_settings_are_passed_through(helm):
    made = helm.render(["daemon.settings.gang=false", "daemon.settings.quantum=30ms", "daemon.settings.elastic=on",
                        "daemon.settings.kube_split_count=1000000", "daemon.settings.kube_memory_scaling=1.5",
                        "daemon.settings.cordon=null"])
    assert of_kind(made, "ConfigMap", "allotd")["data"]["allotd.conf"].splitlines() == [
        "elastic = on", "gang = off", "kube_api = in-cluster", "kube_memory_scaling = 1.5",
        "kube_plugin = on", "kube_split_count = 1000000", "kube_vocabulary = hami", "quantum = 30ms"]


def test_volume_config_of_gpu_manager_is_mirrored(helm, tmp_path):
    config = tmp_path / "volume.conf"
    config.write_text(json.dumps({"volume": [{"name": "nvidia", "mode": "ro", "base": "/etc/gpu-manager/vdriver",
                                              "components": {"libraries": ["libGLX_nvidia.so"]}}]}, indent=2) + "\n")
    made = helm.render([], "--set-file", f"daemon.volumeConfig={config}")
    files = of_kind(made, "ConfigMap", "allotd")["data"]
    assert files["volume.conf"].strip() == config.read_text().strip()
    folder, = re.findall(r"^container_driver = (/var/lib/allot/driver-\w{12})$", files["allotd.conf"], re.M)
    pod = of_kind(made, "DaemonSet")["spec"]["template"]
    first, = pod["spec"]["initContainers"]
    assert first["command"] == ["allot", "mirror", "--config", "/etc/allot/volume.conf", folder]
    # Running containers keep the folder of the image before.
    assert folder not in of_kind(helm.render(["image.tag=next"], "--set-file", f"daemon.volumeConfig={config}"),
                                 "ConfigMap", "allotd")["data"]["allotd.conf"]
    usual = of_kind(helm.render(), "DaemonSet")["spec"]["template"]
    assert "initContainers" not in usual["spec"]
    assert usual["metadata"]["annotations"]["allot.dev/settings"] != pod["metadata"]["annotations"]["allot.dev/settings"]


def test_changed_settings_restart_only_their_pods(helm):
    def stamps(*values):
        made = helm.render(values)
        return [of_kind(made, kind)["spec"]["template"]["metadata"]["annotations"]["allot.dev/settings"]
                for kind in ("DaemonSet", "Deployment")]

    before, daemon = stamps(), stamps("daemon.settings.quantum=30ms")
    scheduler = stamps("scheduler.kubeScheduler.leaseSeconds=30")
    assert before[0] != daemon[0] and before[1] == daemon[1]
    assert before[0] == scheduler[0] and before[1] != scheduler[1]


def test_host_volumes_are_mounted_at_the_hosts_path(helm):
    for values in VALUES["defaults"], VALUES["everything"]:
        spec = of_kind(helm.render(values), "DaemonSet")["spec"]["template"]["spec"]
        paths = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
        for mount in spec["containers"][0]["volumeMounts"]:
            assert paths.get(mount["name"], mount["mountPath"]) == mount["mountPath"]


def test_extender_manages_the_resources_of_the_settings(helm):
    made = helm.render(["scheduler.settings.gpu_resource=example.com/gpu", "scheduler.settings.scheduler_name=shares"])
    config = yaml.safe_load(of_kind(made, "ConfigMap", "allot-scheduler")["data"]["kube-scheduler.yaml"])
    names = [one["name"] for one in config["extenders"][0]["managedResources"]]
    assert names[0] == "example.com/gpu" and "nvidia.com/gpumem" in names and len(names) == 7
    assert config["profiles"] == [{"schedulerName": "shares", "percentageOfNodesToScore": 100}]


def test_webhook_that_creates_templates_declares_side_effects(helm):
    for name, effects, rights in (("claims-of-limits", "NoneOnDryRun", [["list", "create", "patch", "delete"], ["list"]]),
                                  ("defaults", "None", [])):
        made = helm.render(VALUES[name])
        assert of_kind(made, "MutatingWebhookConfiguration")["webhooks"][0]["sideEffects"] == effects
        role = of_kind(made, "ClusterRole", "allot-scheduler")
        assert [rule["verbs"] for rule in role["rules"] if rule["apiGroups"] == ["resource.k8s.io"]] == rights


def test_all_pods_but_the_daemons_are_restricted(helm):
    """They meet the rules of Kubernetes' restricted pod security standard that are checked here."""
    for values in VALUES.values():
        for one in helm.render(values):
            if one["kind"] not in ("Deployment", "Pod"):
                continue
            spec = one["spec"]["template"]["spec"] if one["kind"] == "Deployment" else one["spec"]
            assert spec["securityContext"]["runAsNonRoot"] and not spec.get("hostPID") and not spec.get("hostNetwork")
            for each in spec["containers"]:
                assert each["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                   "capabilities": {"drop": ["ALL"]}}


def test_helm_test_pod_uses_the_configured_gpus(helm):
    simulated = of_kind(helm.render(), "Pod")
    assert simulated["metadata"]["labels"]["allot.dev/webhook"] == "ignore"
    assert simulated["spec"]["containers"][0]["command"][:4] == ["allot", "run", "--sim", "h200"]
    real = of_kind(helm.render(["test.limits.nvidia\\.com/gpu=1"]), "Pod")
    assert "allot.dev/webhook" not in real["metadata"]["labels"]
    assert real["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 1}
    # Also beside limits of an earlier upgrade, which --reuse-values keeps.
    made = helm.render([*VALUES["claims-alone"], "test.limits.nvidia\\.com/gpu=1"])
    pod, template = of_kind(made, "Pod"), of_kind(made, "ResourceClaimTemplate")
    assert "limits" not in pod["spec"]["containers"][0]["resources"]
    assert pod["metadata"]["labels"]["allot.dev/webhook"] == "ignore"
    assert pod["spec"]["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": template["metadata"]["name"]}]
    assert pod["spec"]["containers"][0]["command"][0] == "/usr/local/bin/allot-load"
    request, = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["capacity"]["requests"] == {"memory": "1Gi", "cores": 10}


@pytest.mark.parametrize("values, wanted", [
    ([], {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4096, "nvidia.com/gpucores": 10}),
    (["scheduler.settings.gpu_resource=example.com/gpu"],
     {"example.com/gpu": 1, "nvidia.com/gpumem": 4096, "nvidia.com/gpucores": 10}),
    (["vocabulary=gpu-manager"], {"tencent.com/vcuda-core": 10, "tencent.com/vcuda-memory": 16}),
    (["vocabulary=slices", "scheduler.enabled=false"], {"nvidia.com/gpu": 1}),
    (["dra.enabled=true", "daemon.devicePlugin=false", "scheduler.enabled=false"], None),
], ids=["hami", "other-name", "gpu-manager", "slices", "claims"])
def test_a_real_gpu_is_asked_for_in_the_vocabulary(helm, values, wanted):
    made = helm.render(["test.gpu=real", "daemon.runtimeClassName=nvidia", *values])
    spec = of_kind(made, "Pod")["spec"]
    assert spec["runtimeClassName"] == "nvidia" and "schedulerName" not in spec
    assert spec["containers"][0]["command"][0] == "/usr/local/bin/allot-load"
    assert spec["containers"][0]["resources"].get("limits") == wanted
    if not wanted:
        request, = of_kind(made, "ResourceClaimTemplate")["spec"]["spec"]["devices"]["requests"]
        assert request["exactly"]["capacity"]["requests"] == {"memory": "4Gi", "cores": "10"}


def test_a_simulated_gpu_can_be_chosen(helm):
    """Also beside limits, and then without the runtime of the nodes' GPUs."""
    spec = of_kind(helm.render(["test.gpu=simulated", "test.limits.nvidia\\.com/gpu=1", "daemon.runtimeClassName=nvidia"]),
                   "Pod")["spec"]
    assert "--sim" in spec["containers"][0]["command"] and "runtimeClassName" not in spec


def test_without_the_webhook_the_test_names_its_scheduler(helm):
    assert of_kind(helm.render(["test.gpu=real", "webhook.enabled=false"]), "Pod")["spec"]["schedulerName"] == "allot-scheduler"


def test_the_test_uses_a_gpu_if_a_node_is_labelled(helm, cluster):
    def planned(*values):
        text = helm.check("install", "--dry-run=server", "planned", CHART, "--namespace", "default", "--kubeconfig",
                          administrator(cluster), *sets(["daemon.nodeSelector.allot\\.dev/node=planned", *values]))
        return "--sim" in text, "uses a simulated GPU" in text

    cluster.request("POST", "/api/v1/nodes", {"metadata": {"name": "unlabelled"}})
    assert planned() == (True, True)
    cluster.request("POST", "/api/v1/nodes", {"metadata": {"name": "labelled", "labels": {"allot.dev/node": "planned"}}})
    assert planned() == (False, False)
    assert planned("test.gpu=simulated") == (True, True)
    assert planned("daemon.enabled=false")[0]


def test_notes_show_the_extender_of_another_kube_scheduler(helm, cluster):
    notes = helm.check("install", "--dry-run=client", "notes", CHART, "--namespace", NAMESPACE, "--kubeconfig",
                       administrator(cluster), *sets(VALUES["own-kube-scheduler"])).split("NOTES:\n", 1)[1]
    block = notes[notes.index("profiles:"):notes.index("\nThe certificate")]
    config = yaml.safe_load(block)
    assert config["extenders"][0]["tlsConfig"]["serverName"] == f"notes-allot-scheduler.{NAMESPACE}.svc"
    assert config["extenders"][0]["bindVerb"] == "bind"


# ---- certificates ----

def test_secret_and_webhook_have_the_same_certificate(helm, tmp_path):
    made = helm.render()
    secret, webhook = of_kind(made, "Secret"), of_kind(made, "MutatingWebhookConfiguration")
    assert webhook["webhooks"][0]["clientConfig"]["caBundle"] == secret["data"]["tls.crt"]
    # A certificate from files, made by allot-scheduler --issue.
    issued = subprocess.run([BUILD / "allot-scheduler", "--issue", tmp_path / "tls"], capture_output=True, text=True,
                            check=True, timeout=60).stdout.strip()
    made = helm.render(["certificate.from=files"], "--set-file", f"certificate.crt={tmp_path}/tls/tls.crt",
                       "--set-file", f"certificate.key={tmp_path}/tls/tls.key")
    secret, webhook = of_kind(made, "Secret"), of_kind(made, "MutatingWebhookConfiguration")
    assert secret["data"]["tls.crt"] == webhook["webhooks"][0]["clientConfig"]["caBundle"] == issued
    made = helm.render(VALUES["cert-manager"])
    assert not [one for one in made if one["kind"] == "Secret"]
    webhook = of_kind(made, "MutatingWebhookConfiguration")
    certificate = of_kind(made, "Certificate")
    assert webhook["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] == \
        f"{NAMESPACE}/{certificate['metadata']['name']}"
    mounted = [v for v in of_kind(made, "Deployment")["spec"]["template"]["spec"]["volumes"] if v["name"] == "tls"]
    assert mounted[0]["secret"]["secretName"] == certificate["spec"]["secretName"]


def test_certificate_made_by_helm_is_served(helm, tmp_path):
    """It is valid for the Service's name, under which an API server connects."""
    made = helm.render()
    name = f"{of_kind(made, 'Service')['metadata']['name']}.{NAMESPACE}.svc"
    folder = tmp_path / "tls"
    folder.mkdir()
    for file, data in of_kind(made, "Secret")["data"].items():
        (folder / file).write_bytes(base64.b64decode(data))
    scheduler = Scheduler(folder)
    try:
        host, port = scheduler.https.rsplit(":", 1)
        context = ssl.create_default_context(cafile=scheduler.certificate)
        with socket.create_connection((host, int(port)), timeout=20) as plain:
            with context.wrap_socket(plain, server_hostname=name) as tls:
                assert tls.version()
    finally:
        scheduler.stop()


def test_upgrade_keeps_the_certificate(helm, cluster):
    """The chart is installed in a real API server, upgraded and uninstalled."""
    into = ["--namespace", "chart", "--kubeconfig", administrator(cluster)]
    secret = "/api/v1/namespaces/chart/secrets/gpu-allot-scheduler-tls"
    helm.check("install", "gpu", CHART, "--create-namespace", *into)
    before = cluster.request("GET", secret)["data"]
    helm.check("upgrade", "gpu", CHART, "--set", "daemon.settings.quantum=30ms", *into)
    assert cluster.request("GET", secret)["data"] == before
    webhooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    webhook = cluster.request("GET", f"{webhooks}/gpu-allot-scheduler")
    assert webhook["webhooks"][0]["clientConfig"]["caBundle"] == before["tls.crt"]
    settings = cluster.request("GET", "/api/v1/namespaces/chart/configmaps/gpu-allotd")["data"]["allotd.conf"]
    assert "quantum = 30ms" in settings
    # The API server applies new policies late, too: those of a chart that is uninstalled at once may come after their end.
    wait_until(lambda: not are_policies_over(cluster), 60, what="the chart's policies")
    helm.check("uninstall", "gpu", "--no-hooks", *into)
    assert "gpu-allot-scheduler" not in [one["metadata"]["name"] for one in cluster.request("GET", webhooks)["items"]]
    wait_until(lambda: are_policies_over(cluster), 60, what="the end of the chart's policies")


# ---- alerts and the dashboard ----

def test_rule_and_dashboard_objects_have_the_charts_files(helm):
    made = helm.render(VALUES["everything"])
    assert of_kind(made, "PrometheusRule")["spec"] == objects((CHART / "files/rules.yaml").read_text())[0]
    assert json.loads(of_kind(made, "ConfigMap", "allot-dashboard")["data"]["allot.json"])["title"] == "allot"
