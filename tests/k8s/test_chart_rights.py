"""The chart's service accounts have exactly the rights that the programs need: the API server's access reviews list them, and
the programs work with no other rights."""

import http.client
import json
import re
import ssl
import subprocess

import pytest
import yaml

import dra
from charts import VALUES, Helm, of_kind, path_of
from cluster import ADMIN_TOKEN, ALLOTD_DRA_RULES, ALLOTD_RULES, CLAIM_MAKER_RULES, SCHEDULER_RULES, ApiError, free_ports
from machines import wait_until
from machines import ROOT
from scheduler import Scheduler

REVIEWS = "/apis/authorization.k8s.io/v1"
RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


@pytest.fixture(scope="module")
def helm(build_programs, tmp_path_factory):
    return Helm(build_programs("helm", "kustomize") / "helm", tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def accounts(helm, cluster):
    """accounts(VALUES, NAMESPACE) creates a namespace with the chart's accounts and rights; returns all rendered objects."""
    def install(values, namespace):
        cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        # The release name makes the objects' names unique among all tests.
        made = helm.render(values, release=f"{namespace}-allot", namespace=namespace)
        for one in made:
            if one["kind"] in RIGHTS:
                cluster.request("POST", path_of(one), one)
        return made

    return install


def token(cluster, namespace, account):
    return cluster.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
                           {"spec": {}})["status"]["token"]


def flat(rules):
    """{(group, resource, name or "*", verb)}"""
    return {(group, resource, name, verb) for rule in rules for group in rule["apiGroups"]
            for resource in rule["resources"] for name in rule.get("resourceNames") or ["*"] for verb in rule["verbs"]}


def rights_in(cluster, namespace, account, where):
    """The account's rights in the namespace `where`, as flat(), without those that every account has."""
    def ask(bearer):
        context = ssl.create_default_context(cafile=cluster.path("ca.crt"))
        connection = http.client.HTTPSConnection(f"127.0.0.1:{cluster.port}", timeout=20, context=context)
        connection.request("POST", f"{REVIEWS}/selfsubjectrulesreviews", json.dumps({"spec": {"namespace": where}}),
                           {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"})
        answer = json.load(connection.getresponse())
        assert not answer["status"]["incomplete"], answer
        return flat(answer["status"]["resourceRules"])

    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    try:
        cluster.request("POST", accounts, {"metadata": {"name": "nobody"}})
    except ApiError as error:
        assert error.status == 409
    return ask(token(cluster, namespace, account)) - ask(token(cluster, namespace, "nobody"))


def without_leases(rules):
    return [rule for rule in rules if "leases" not in rule["resources"]]


def test_daemon_has_exactly_the_rights_of_its_tests(accounts, cluster):
    made = accounts(["scheduler.enabled=false", "vocabulary=slices"], "rights-daemon")
    account = of_kind(made, "ServiceAccount")["metadata"]["name"]
    # allotd runs with these rights in tests/k8s.
    for where in ("rights-daemon", "default"):
        assert rights_in(cluster, "rights-daemon", account, where) == flat(ALLOTD_RULES)


def test_dra_driver_has_fewer_rights(accounts, cluster):
    """It may not read pods or change Nodes, unless the device plugin is enabled too."""
    for where, plugin, rules in (("rights-claims", "false", ALLOTD_DRA_RULES),
                                 ("rights-both", "true", [*ALLOTD_RULES, *ALLOTD_DRA_RULES])):
        made = accounts(["scheduler.enabled=false", "vocabulary=slices", "dra.enabled=true", f"daemon.devicePlugin={plugin}"],
                        where)
        account = of_kind(made, "ServiceAccount")["metadata"]["name"]
        assert rights_in(cluster, where, account, "default") == flat(rules)


def test_policy_lets_a_driver_write_only_its_nodes_slices(accounts, cluster):
    """The chart's policy reads the node from the token that a kubelet gives a pod."""
    where = "slices-policy"
    made = accounts(["scheduler.enabled=false", "dra.enabled=true"], where)
    account = of_kind(made, "ServiceAccount", f"{where}-allotd")["metadata"]["name"]
    for one in made:
        if one["kind"].startswith("ValidatingAdmissionPolicy") and one["metadata"]["name"].endswith("-dra"):
            cluster.request("POST", path_of(one), one)
    cluster.make_node("slices-mine")
    daemon = cluster.make_pod("daemon", "slices-mine", in_namespace=where, more={"serviceAccountName": account})
    bound = cluster.request("POST", f"/api/v1/namespaces/{where}/serviceaccounts/{account}/token", {"spec": {
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "daemon",
                           "uid": daemon["metadata"]["uid"]}}})["status"]["token"]
    path = "/apis/resource.k8s.io/v1/resourceslices"

    def slice_of(node, driver="gpu.allot.dev"):
        return {"metadata": {"generateName": "policy-"}, "spec": {
            "driver": driver, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}

    def may(method, where, body=None):
        try:
            cluster.request(method, where, body, token=bound)
        except ApiError as error:
            assert error.status == 422 and "allotd may write only ResourceSlices of its own node" in str(error), error
            return False
        return True

    wait_until(lambda: not may("POST", path, slice_of("slices-other")), what="the policy")
    assert may("POST", path, slice_of("slices-mine"))
    assert not may("POST", path, slice_of("slices-mine", "gpu.example.com"))
    for node in ("slices-mine", "slices-other"):
        one = cluster.request("POST", path, slice_of(node))
        assert may("PUT", f"{path}/{one['metadata']['name']}", one) == (node == "slices-mine")
        assert may("DELETE", f"{path}/{one['metadata']['name']}") == (node == "slices-mine")


def test_policy_refuses_wrong_claim_parameters(helm, cluster):
    """The chart's policy refuses them when a claim, template or class is created, not later on a node."""
    made = [one for one in helm.render(["scheduler.enabled=false", "dra.enabled=true"], release="early-allot")
            if one["metadata"]["name"].endswith("-dra-terms")]
    assert len(made) == 2
    for one in made:
        cluster.request("POST", path_of(one), one)

    def refusal(make, **fields):
        """Why it is refused; None if it is accepted."""
        try:
            make([dra.terms(**fields)])
        except ApiError as error:
            assert error.status == 422, error
            return str(error)
        return None

    def claim(config, where="resourceclaims", wrap=lambda spec: spec):
        spec = wrap({"devices": {"requests": [dra.request()], "config": config}})
        cluster.request("POST", f"{dra.API}/namespaces/default/{where}", {"metadata": {"name": "early"}, "spec": spec},
                        query="?dryRun=All")

    def template(config):
        claim(config, "resourceclaimtemplates", lambda spec: {"spec": spec})

    def device_class(config):
        cluster.request("POST", f"{dra.API}/deviceclasses", {"metadata": {"name": "early"}, "spec": {"config": config}},
                        query="?dryRun=All")

    wait_until(lambda: refusal(claim, onFull="pray"), what="the policy")
    for make in (claim, template, device_class):
        assert not refusal(make, coresLimit=60, priority=-7, onFull="wait", sharing="space", group="a.b")
        assert not refusal(make) and not refusal(make, coresLimit="50.5%") and not refusal(make, coresLimit=0.5)
        for fields, why in (({"memory": "1Gi"}, "there is no such field: must be coresLimit"),
                            ({"coresLimit": 0}, "coresLimit: must be a percentage"),
                            ({"coresLimit": "101"}, "coresLimit: must be a percentage"),
                            ({"priority": 101}, "priority: must be a whole number from -100 to 100"),
                            ({"priority": "1"}, "priority: must be a whole number"),
                            ({"onFull": "pray"}, "onFull: must be fail, wait or swap"),
                            ({"sharing": "auto"}, "sharing: must be time or space"),
                            ({"group": "a b"}, "group: must be a letter or digit"),
                            ({"kind": "Other"}, "apiVersion gpu.allot.dev/v1 and the kind GpuTerms")):
            assert why in (refusal(make, **fields) or ""), (make, fields)
    # A request for several GPUs could get one GPU twice.
    for more in ({"count": 2}, {"allocationMode": "All"}, {"count": 1}):
        for where, wrap in (("resourceclaims", lambda spec: spec), ("resourceclaimtemplates", lambda spec: {"spec": spec})):
            for class_name in (dra.DRIVER, "other.example.com"):
                spec = wrap({"devices": {"requests": [dra.request(**{**more, "deviceClassName": class_name})]}})
                try:
                    cluster.request("POST", f"{dra.API}/namespaces/default/{where}",
                                    {"metadata": {"name": "early"}, "spec": spec}, query="?dryRun=All")
                    is_refused = False
                except ApiError as error:
                    assert "make a request for each GPU" in str(error), error
                    is_refused = True
                assert is_refused == (more != {"count": 1} and class_name == dra.DRIVER), (more, where, class_name)
    # Parameters of another driver are not checked.
    other = {"opaque": {"driver": "gpu.example.com", "parameters": {"memory": "1Gi"}}}
    for make in (claim, template, device_class):
        make([other])


def test_scheduler_has_exactly_the_rights_of_its_tests(accounts, cluster):
    made = accounts(["daemon.enabled=false", *VALUES["own-kube-scheduler"]], "rights-scheduler")
    account = of_kind(made, "ServiceAccount")["metadata"]["name"]
    elsewhere = flat(without_leases(SCHEDULER_RULES))
    assert rights_in(cluster, "rights-scheduler", account, "default") == elsewhere
    (claims,) = [one for one in accounts(VALUES["claims-of-limits"], "rights-of-limits")
                 if one["kind"] == "ServiceAccount" and one["metadata"]["name"].endswith("allot-scheduler")]
    assert rights_in(cluster, "rights-of-limits", claims["metadata"]["name"], "default") == flat(
        [*without_leases(SCHEDULER_RULES), *CLAIM_MAKER_RULES])
    (leases,) = [rule["verbs"] for rule in SCHEDULER_RULES if "leases" in rule["resources"]]
    at_home = {("coordination.k8s.io", "leases", "*" if verb == "create" else account, verb) for verb in leases}
    assert rights_in(cluster, "rights-scheduler", account, "rights-scheduler") == elsewhere | at_home


def test_policy_lets_the_scheduler_write_only_its_templates(accounts, cluster):
    """The chart's policy checks the name and the label of a ResourceClaimTemplate."""
    where = "templates-policy"
    made = accounts(VALUES["claims-of-limits"], where)
    for one in made:
        if one["kind"].startswith("ValidatingAdmissionPolicy") and one["metadata"]["name"].endswith("-templates"):
            cluster.request("POST", path_of(one), one)
    bearer = token(cluster, where, f"{where}-allot-scheduler")
    path = f"{dra.API}/namespaces/default/resourceclaimtemplates"
    spec = {"spec": {"devices": {"requests": [dra.request()]}}}
    own = {"app.kubernetes.io/managed-by": "allot-scheduler"}

    def make(name, labels):
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    def may(method, at, body=None, **more):
        try:
            cluster.request(method, at, body, token=bearer, **more)
        except ApiError as error:
            assert error.status == 422 and "only its own ResourceClaimTemplates" in str(error), error
            return False
        return True

    wait_until(lambda: not may("POST", path, make("allot-0", {}), query="?dryRun=All"), what="the policy")
    assert may("POST", path, make("allot-1", own)) and not may("POST", path, make("other", own))
    cluster.request("POST", path, make("other", {}))
    for name in ("allot-1", "other"):
        change = {"metadata": {"annotations": {"a": "b"}, "labels": own}}
        assert may("PATCH", f"{path}/{name}", change, kind="application/merge-patch+json") == (name == "allot-1")
        assert may("DELETE", f"{path}/{name}") == (name == "allot-1")
    cluster.request("DELETE", f"{path}/other")


def test_policy_lets_a_daemon_change_only_its_node_and_pods(helm, accounts, cluster):
    """The chart's policy reads the node from the token that a kubelet gives a pod."""
    where, pods = "rights-policy", "/api/v1/namespaces/default/pods"
    made = accounts([], where)
    account = of_kind(made, "ServiceAccount", f"{where}-allotd")["metadata"]["name"]
    for name in ("policy-mine", "policy-other"):
        cluster.make_node(name)
        cluster.make_pod(f"on-{name}", name, containers=("main",))
    daemon = cluster.make_pod("daemon", "policy-mine", in_namespace=where, more={"serviceAccountName": account})
    bound = cluster.request("POST", f"/api/v1/namespaces/{where}/serviceaccounts/{account}/token", {"spec": {
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "daemon",
                           "uid": daemon["metadata"]["uid"]}}})["status"]["token"]

    def may(path, body, bearer=bound):
        """Whether a dry run of this patch is accepted."""
        try:
            cluster.request("PATCH", path, body, kind="application/merge-patch+json", query="?dryRun=All", token=bearer)
        except ApiError as error:
            assert error.status == 422 and "allotd may" in str(error), error
            return False
        return True

    noted = {"metadata": {"annotations": {"a": "b"}}}
    mine, other = "/api/v1/nodes/policy-mine", "/api/v1/nodes/policy-other"
    assert may(other, noted)
    for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
        one = of_kind(made, kind, account)
        cluster.request("POST", path_of(one), one)
    wait_until(lambda: not may(other, noted), 60, "the policy")
    assert may(mine, noted) and may(mine, {"metadata": {"labels": {"gpu": "on"}}})
    assert not may(mine, {"spec": {"unschedulable": True}})
    assert may(f"{pods}/on-policy-mine", noted) and not may(f"{pods}/on-policy-other", noted)
    assert not may(f"{pods}/on-policy-mine", {"metadata": {"labels": {"a": "b"}}})
    assert not may(f"{pods}/on-policy-mine", {"metadata": {"finalizers": ["a/b"]}})
    image = {"spec": {"containers": [{"name": "main", "image": "another"}]}}
    assert not may(f"{pods}/on-policy-mine", image)
    # A token that is bound to no pod is refused too.
    assert not may(mine, noted, token(cluster, where, account))
    assert not [one for one in helm.render(["daemon.admissionPolicy=false"]) if "AdmissionPolicy" in one["kind"] and
                one["metadata"]["name"].endswith("allotd")]


def protocol_annotations():
    """The annotations that the webhook removes from a new pod, read from its source."""
    texts = dict(re.findall(r'#define (\w+) "([^"]+)"', "".join(
        (ROOT / "src/kube" / name).read_text() for name in ("hami/annotations.h", "own/live.h", "gpu_manager/vcuda.h"))))
    table = re.search(r"written_by_us\[\] = {(.*?)};", (ROOT / "src/scheduler/webhook/webhook_strip.c").read_text(), re.S)[1]
    names = [("allot.dev/" if own else "") + texts[name] for own, name in re.findall(r"(OWN\()?(\b[A-Z_]{5,})", table)]
    assert len(names) >= 11
    return [*names, texts["VCUDA_INDEX"] + "0"]


def test_only_scheduler_and_daemon_write_protocol_annotations(helm, accounts, cluster):
    where, path = "rights-pods", "/api/v1/namespaces/default/pods"
    made = accounts([], where)
    writers = [token(cluster, where, one["metadata"]["name"]) for one in made if one["kind"] == "ServiceAccount"]
    assert len(writers) == 2
    policy = [one for one in made if "AdmissionPolicy" in one["kind"] and one["metadata"]["name"].endswith("-pods")]
    cluster.make_node("rights-refusal-node")
    cluster.make_pod("rights-plain", "rights-refusal-node", containers=("main",))
    cluster.make_pod("rights-refusal", "rights-refusal-node", containers=("main",),
                     annotations={name: "x" for name in protocol_annotations()})

    def refused(method, at, body, bearer=None, **more):
        try:
            cluster.request(method, at, body, query="?dryRun=All", token=bearer or ADMIN_TOKEN, **more)
        except ApiError as error:
            assert error.status == 403 and "only the GPU scheduler and the node may write annotation" in str(error), error
            return str(error)
        return None

    def annotate(pod, annotations, bearer=None, part=""):
        return refused("PATCH", f"{path}/{pod}{part}", {"metadata": {"annotations": annotations}}, bearer,
                       kind="application/merge-patch+json")

    def create(annotations):
        return refused("POST", path, {"metadata": {"name": "fresh", "annotations": annotations},
                                      "spec": {"containers": [{"name": "main", "image": "none"}]}})

    assert len(policy) == 2
    try:
        for one in policy:
            cluster.request("POST", path_of(one), one)
        wait_until(lambda: annotate("rights-plain", {"hami.io/vgpu-node": "n"}), 60, what="the policy")
        for name in protocol_annotations():
            assert name in annotate("rights-plain", {name: "1"}), "added"
            assert name in annotate("rights-plain", {name: "1"}, part="/status"), "added to its status"
            assert name in annotate("rights-refusal", {name: "2"}), "changed"
            assert name in annotate("rights-refusal", {name: None}), "removed"
            assert name in create({name: "1"}), "created with"
            binding = {"metadata": {"name": "rights-plain", "annotations": {name: "1"}},
                       "target": {"kind": "Node", "name": "rights-refusal-node"}}
            assert name in refused("POST", f"{path}/rights-plain/binding", binding), "bound with"
            for bearer in writers:
                assert not annotate("rights-plain", {name: "1"}, bearer)
        # Other changes are accepted, also of pods that have such annotations.
        for pod in ("rights-plain", "rights-refusal"):
            assert not annotate(pod, {"allot.dev/cores": "20", "team": "a"})
            assert not refused("PATCH", f"{path}/{pod}/status", {"status": {"phase": "Running"}},
                               kind="application/merge-patch+json")
        assert not create({"nvidia.com/use-gputype": "A100"}) and not create(None)
    finally:
        for one in policy:
            cluster.request("DELETE", f"{path_of(one)}/{one['metadata']['name']}")
    wait_until(lambda: not annotate("rights-plain", {"hami.io/vgpu-node": "n"}), 60, what="the policy's end")
    for pod in ("rights-plain", "rights-refusal"):
        cluster.delete_pod(pod)
    for off in ("podPolicy.enabled=false", "vocabulary=slices"):
        more = ["scheduler.enabled=false"] if off.startswith("v") else []
        assert not [one for one in helm.render([off, *more]) if one["metadata"]["name"].endswith("-pods")]


@pytest.mark.parametrize("values, is_own_served", [([], True), (VALUES["claims-of-limits"], False)],
                         ids=["extender", "claims"])
def test_policy_refuses_gpu_pods_that_bypassed_the_webhook(helm, cluster, values, is_own_served):
    """The webhook does not run here. Without the policy, a scheduler that chooses no GPUs would bind such pods."""
    policy = [one for one in helm.render(values, release="unseen-allot", namespace="unseen")
              if "AdmissionPolicy" in one["kind"] and one["metadata"]["name"].endswith("-unseen")]
    assert len(policy) == 2

    def refused(resources=None, part="limits", kind="containers", labels=None, namespace="default", **spec):
        container = {"name": "main", "image": "none"}
        asking = {**container, "name": "asks", "resources": {part: resources or {}}}
        body = {"metadata": {"name": "unseen", "labels": labels or {}},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}}
        body["spec"][kind] = [*body["spec"].get(kind, []), asking]
        try:
            cluster.request("POST", f"/api/v1/namespaces/{namespace}/pods", body, query="?dryRun=All")
        except ApiError as error:
            assert error.status == 403 and "webhook of allot-scheduler" in str(error), error
            return True
        return False

    gpu = {"nvidia.com/gpu": "1"}
    try:
        for one in policy:
            cluster.request("POST", path_of(one), one)
        wait_until(lambda: refused(gpu), 60, what="the policy")
        for name in ("nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores",
                     "tencent.com/vcuda-core", "tencent.com/vcuda-memory"):
            assert refused({name: "1"}), name
            assert not refused({name: "0"}), name
        assert refused(gpu, kind="initContainers") and refused(gpu, schedulerName="default-scheduler")
        assert not refused() and not refused({"cpu": "1"}) and not refused({"nvidia.com/priority": "1"})
        assert refused(gpu, schedulerName="allot-scheduler") != is_own_served
        assert not refused(gpu, schedulerName="volcano") and not refused(gpu, nodeName="a-node")
        assert not refused(gpu, labels={"allot.dev/webhook": "ignore"})
        assert not refused(gpu, labels={"hami.io/webhook": "ignore"}) and not refused(gpu, namespace="kube-system")
    finally:
        for one in policy:
            cluster.request("DELETE", f"{path_of(one)}/{one['metadata']['name']}")
    wait_until(lambda: not refused(gpu), 60, what="the policy's end")
    for off in ("webhook.refuseUnseen=false", "webhook.enabled=false", "scheduler.settings.scheduler_name=default-scheduler"):
        assert not [one for one in helm.render([off]) if one["metadata"]["name"].endswith("-unseen")], off


@pytest.mark.parametrize("values, line", [
    ([], None),
    (["scheduler.settings.place_by_use=off"], None),
    (["scheduler.settings.place_by_use=on"], "kube_use_window = 5m"),
    (["scheduler.settings.place_by_use=true", "daemon.settings.kube_use_window=2m"], "kube_use_window = 2m"),
])
def test_place_by_use_sets_the_daemons_use_window(helm, values, line):
    (settings,) = [one["data"]["allotd.conf"] for one in helm.render(values)
                   if one["kind"] == "ConfigMap" and "allotd.conf" in one["data"]]
    assert [one for one in settings.splitlines() if one.startswith("kube_use_window")] == ([line] if line else [])


def test_roles_have_no_wildcards_and_no_secrets(helm):
    for values in VALUES.values():
        for one in helm.render(values):
            if one["kind"] in ("ClusterRole", "Role"):
                for group, resource, _, verb in flat(one["rules"]):
                    assert "*" not in (group, resource, verb)
                    assert resource != "secrets" and verb not in ("deletecollection", "escalate", "bind", "impersonate")
                    assert verb != "delete" or resource in ("resourceslices", "resourceclaimtemplates")


def test_scheduler_leads_with_the_charts_rights(accounts, cluster, tmp_path):
    made = accounts(["daemon.enabled=false", *VALUES["own-kube-scheduler"]], "rights-lead")
    account = of_kind(made, "ServiceAccount")["metadata"]["name"]
    settings = of_kind(made, "ConfigMap")["data"]["allot-scheduler.conf"]
    (lease,) = re.findall(r"^lease = (\S+)$", settings, re.M)
    kubeconfig = cluster.kubeconfig("rights-lead.conf", user=f"token: {token(cluster, 'rights-lead', account)}")
    scheduler = Scheduler(tmp_path / "s", f"kube_api = {kubeconfig}\nlease = {lease}\n")
    try:
        wait_until(lambda: ask(scheduler.http, "/leaderz") == 200, what="its leadership")
        assert ask(scheduler.http, "/readyz") == 200
    finally:
        scheduler.stop()
    assert "forbidden" not in scheduler.log.read_text()


def ask(where, path):
    connection = http.client.HTTPConnection(where, timeout=20)
    connection.request("GET", path)
    return connection.getresponse().status


class Pair:
    """allot-scheduler and the real kube-scheduler with the settings and the account of the chart's pod."""

    def __init__(self, cluster, made, namespace, folder, programs):
        account = of_kind(made, "ServiceAccount")["metadata"]["name"]
        data = of_kind(made, "ConfigMap")["data"]
        kubeconfig = cluster.kubeconfig(f"{folder.name}.conf",
                                        user=f"token: {token(cluster, namespace, account)}")
        lines = [line for line in data["allot-scheduler.conf"].splitlines()
                 if line.split(" = ")[0] in ("lease", "bind_limit", "scheduler_name")]
        self.allot = Scheduler(folder, "\n".join([f"kube_api = {kubeconfig}", *lines, ""]))
        config = yaml.safe_load(data["kube-scheduler.yaml"])
        config["clientConnection"] = {"kubeconfig": str(kubeconfig)}
        config["extenders"][0]["urlPrefix"] = f"http://{self.allot.http}"
        (folder / "config").write_text(yaml.safe_dump(config))
        (port,) = free_ports(1)
        self.log = folder / "kube-scheduler.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [programs / "kube-scheduler", f"--config={folder / 'config'}", "--authentication-skip-lookup=true",
                 "--v=2", f"--secure-port={port}", "--bind-address=127.0.0.1"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self):
        """Kills both at once, as the loss of their node would."""
        for process in (self.process, self.allot.process):
            process.kill()
            process.wait()

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.allot.stop()


def test_charts_scheduler_pod_places_a_pod(accounts, cluster, build_programs, tmp_path):
    programs = build_programs("kube-scheduler")
    made = accounts(["daemon.enabled=false", "scheduler.settings.scheduler_name=of-the-chart"], "rights-pair")
    cluster.make_gpu_node("chart-node", [{"id": "GPU-chart"}])
    pair = Pair(cluster, made, "rights-pair", tmp_path, programs)
    try:
        cluster.make_pod("chart-pod", limits={"main": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}},
                         more={"schedulerName": "of-the-chart"})
        wait_until(lambda: cluster.pod("chart-pod")["spec"].get("nodeName"), 60, what="the pod's node")
        pod = cluster.pod("chart-pod")
        assert pod["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"].startswith("GPU-")
        lease = cluster.request("GET", "/apis/coordination.k8s.io/v1/namespaces/rights-pair/leases")["items"]
        assert len(lease) == 1 and lease[0]["spec"]["leaseDurationSeconds"] == 20
    finally:
        pair.stop()
        cluster.delete_pod("chart-pod")
        cluster.request("DELETE", "/api/v1/nodes/chart-node")
    assert "forbidden" not in pair.log.read_text() + pair.allot.log.read_text()


def test_second_scheduler_pod_takes_over(accounts, cluster, build_programs, tmp_path):
    programs = build_programs("kube-scheduler")
    kube = "scheduler.kubeScheduler"
    made = accounts(["daemon.enabled=false", "scheduler.settings.scheduler_name=in-pairs", "scheduler.bindSeconds=2",
                     f"{kube}.leaseSeconds=4", f"{kube}.renewSeconds=2", f"{kube}.retrySeconds=1"], "rights-over")
    cluster.make_gpu_node("over-node", [{"id": "GPU-over"}])

    def holder():
        items = cluster.request("GET", "/apis/coordination.k8s.io/v1/namespaces/rights-over/leases")["items"]
        return items and items[0]["spec"].get("holderIdentity")

    def make(name):
        asked = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "40"}
        cluster.make_pod(name, limits={"main": asked}, more={"schedulerName": "in-pairs"})

    def place(name):
        make(name)
        wait_until(lambda: cluster.pod(name)["spec"].get("nodeName"), 60, what=f"the node of {name}")

    first = Pair(cluster, made, "rights-over", tmp_path / "first", programs)
    second = None
    try:
        first_holder = wait_until(holder, 60, what="the first pair's lease")
        second = Pair(cluster, made, "rights-over", tmp_path / "second", programs)
        place("over-one")
        # No daemon runs on the node, so the test removes the lock that the daemon would release.
        cluster.patch("/api/v1/nodes/over-node", {"annotations": {"hami.io/mutex.lock": None}})
        first.kill()
        place("over-two")
        assert holder() != first_holder
        # 20 % are left and the third pod needs 40: the second scheduler knows the shares that the first assigned.
        cluster.patch("/api/v1/nodes/over-node", {"annotations": {"hami.io/mutex.lock": None}})
        make("over-three")
        wait_until(lambda: [event for event in cluster.events() if event["involvedObject"]["name"] == "over-three" and
                            "CardInsufficientCore" in event["message"]], 60, what="the reason of the third pod")
    finally:
        for pair in (first, second):
            if pair and pair.process.poll() is None:
                pair.stop()
        for name in ("over-one", "over-two", "over-three"):
            try:
                cluster.delete_pod(name)
            except ApiError as error:
                assert error.status == 404
        cluster.request("DELETE", "/api/v1/nodes/over-node")
