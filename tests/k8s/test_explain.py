"""allot explain as a user of the cluster runs it, through the service proxy of a real API server: with only the rights that
its manual names, and without some of them."""

import json
import os
import socket
import subprocess

import pytest

from cluster import SCHEDULER_TOKEN
from machines import BUILD, wait_until
from scheduler import Scheduler, issue

SPACE = "explain-system"
GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
RBAC = "/apis/rbac.authorization.k8s.io/v1"

# The rights that a user needs according to allot-explain(1).
PROXY_RULES = [{"apiGroups": [""], "resources": ["services/proxy"], "resourceNames": ["https:allot-scheduler:https"],
                "verbs": ["get"]}]
POD_RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
             {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]}]


def own_address():
    """An address of this machine other than loopback, to which an API server does not proxy; None if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:  # connecting sends no packet
        try:
            s.connect(("192.0.2.1", 9))
            return s.getsockname()[0]
        except OSError:
            return None


@pytest.fixture(scope="module")
def scheduler(cluster, tmp_path_factory):
    """allot-scheduler behind a Service. Its certificate is self-signed, because the API server's proxy checks none."""
    address = own_address()
    if not address:
        pytest.skip("this machine has only a loopback address, to which an API server does not proxy")
    folder = tmp_path_factory.mktemp("explained")
    issue(folder, "--names", f"localhost,127.0.0.1,{address}")
    kubeconfig = cluster.kubeconfig("explained.conf", user=f"token: {SCHEDULER_TOKEN}")
    scheduler = Scheduler(folder, f"https_listen = {address}:0\ntls_certificate = {folder}/tls.crt\n"
                          f"tls_key = {folder}/tls.key\nkube_api = {kubeconfig}\nlease = none\n", tls=False)
    scheduler.https = scheduler.address("https")
    wait_until(lambda: scheduler.ask("GET", "/readyz")[0] == 200, what="all nodes and pods being known")
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
    make_service(cluster, "no-endpoints")
    make_endpoints(cluster, "allot-scheduler", scheduler)
    yield scheduler
    scheduler.stop()


def make_service(cluster, name):
    cluster.request("POST", f"/api/v1/namespaces/{SPACE}/services", {
        "metadata": {"name": name}, "spec": {"ports": [{"name": "https", "port": 443}]}})


def make_endpoints(cluster, name, *replicas):
    """A Service of that name with these replicas behind it. Creates the objects that controllers create for a real Service, and
    the pods, which the API server checks."""
    make_service(cluster, name)
    pods, subsets = f"/api/v1/namespaces/{SPACE}/pods", []
    for i, scheduler in enumerate(replicas):
        address, _, port = scheduler.https.rpartition(":")
        cluster.make_pod(f"{name}-{i}", node="explain-system", in_namespace=SPACE)
        cluster.request("PATCH", f"{pods}/{name}-{i}/status", {"status": {
            "phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}}, kind="application/merge-patch+json")
        target = {"kind": "Pod", "namespace": SPACE, "name": f"{name}-{i}"}
        ports = [{"name": "https", "port": int(port)}]
        subsets.append({"addresses": [{"ip": address, "targetRef": target}], "ports": ports})
        cluster.request("POST", f"/apis/discovery.k8s.io/v1/namespaces/{SPACE}/endpointslices", {
            "metadata": {"name": f"{name}-{i}", "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4", "ports": ports, "endpoints": [{"addresses": [address], "targetRef": target}]})
    cluster.request("POST", f"/api/v1/namespaces/{SPACE}/endpoints", {"metadata": {"name": name}, "subsets": subsets})


@pytest.fixture
def account(request, cluster, tmp_path):
    """account(NAMESPACE=RULES...) makes a service account with these rights; returns its kubeconfig. "_" stands for "-"."""
    def make(**rights):
        name = request.node.name.replace("_", "-").lower()
        cluster.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        for space, rules in rights.items():
            space = space.replace("_", "-")
            cluster.request("POST", f"{RBAC}/namespaces/{space}/roles", {"metadata": {"name": name}, "rules": rules})
            cluster.request("POST", f"{RBAC}/namespaces/{space}/rolebindings", {
                "metadata": {"name": name}, "subjects": [subject],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}})
        token = cluster.request("POST", f"/api/v1/namespaces/default/serviceaccounts/{name}/token",
                                {"spec": {}})["status"]["token"]
        return cluster.kubeconfig(f"{name}.conf", user=f"token: {token}")

    return make


def run(*arguments, kubeconfig=None, **environment):
    known = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "HOME")}
    if kubeconfig:
        known["KUBECONFIG"] = str(kubeconfig)
    return subprocess.run([BUILD / "allot", "explain", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          check=False, env={**known, **environment})


def explain(pod, *arguments, kubeconfig, service="allot-scheduler"):
    """The output of --json. Tries again for a while, because new rights may not be in force yet."""
    last = None

    def ask():
        nonlocal last
        last = run(pod, "--json", "--service", f"{SPACE}/{service}", *arguments, kubeconfig=kubeconfig)
        return last.returncode == 0 and "not_asked" not in json.loads(last.stdout)

    try:
        wait_until(ask, 20, "the explanation")
    finally:
        print(last.stderr)
    return json.loads(last.stdout)


def wait_until_known(scheduler, pod):
    wait_until(lambda: scheduler.ask("GET", f"/explain/default/{pod}")[0] == 200, what=f"{pod} being known")


def test_explains_why_a_pod_waits(cluster, scheduler, account):
    for name, mib in (("explain-a", 40960), ("explain-b", 8192)):
        cluster.make_gpu_node(name, [{"id": f"GPU-{name}-{i}", "devmem": mib, "type": "NVIDIA-why"} for i in range(2)])
    # Nodes of other tests may still exist, so the pod asks for a GPU type that they do not have.
    cluster.make_gpu_node("explain-other", [{"id": "GPU-explain-other", "devmem": 143771}])
    cluster.make_pod("why", annotations={"nvidia.com/use-gputype": "why"}, init=("early",),
                     limits={"main": {GPU: "1", MEMORY: "65536", CORES: "30"}})
    wait_until_known(scheduler, "why")
    # Nodes have a watch of their own.
    for name in ("explain-a", "explain-b", "explain-other"):
        wait_until(lambda name=name: scheduler.ask("GET", f"/explain/default/why/{name}")[0] == 200, what=f"{name} being known")
    config = account(default=POD_RULES, explain_system=PROXY_RULES)
    report = explain("why", kubeconfig=config)
    assert report["state"] == "waiting" and report["leads"] is True
    assert report["containers"] == ["early", "main"]
    assert report["asks"] == [{"container": 1, "kind": "app", "cards": 1, "cores_pct": 30, "memory_mib": 65536}]
    nodes = {node["node"]: node for node in report["nodes"]}
    assert nodes["explain-a"]["why"] == "2/2 CardInsufficientMemory"
    assert nodes["explain-a"]["most_free_mib"] == 40960 and "lacks" not in nodes["explain-a"]
    # The same as text.
    done = run("why", "--service", f"{SPACE}/allot-scheduler", kubeconfig=config)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("default/why waits: none of ")
    assert "main requests 1 GPU with 64.0 GiB and 30 % of the time" in done.stdout
    assert "CardInsufficientMemory: at most 40.0 GiB free on any of these GPUs, 64.0 GiB requested" in done.stdout
    # One node, GPU by GPU. /filter gives the same reasons for the same pod and nodes.
    report = explain("why", "--node", "explain-b", kubeconfig=config)
    assert [card["free_mib"] for card in report["nodes"][0]["card"]] == [8192, 8192]
    _, filtered = scheduler.post("/filter", {"Pod": cluster.pod("why"), "NodeNames": sorted(nodes)})
    reasons = {**(filtered["FailedNodes"] or {}), **(filtered["FailedAndUnresolvableNodes"] or {})}
    assert reasons == {name: node["why"] for name, node in nodes.items() if "why" in node}
    done = run("why", "--node", "none", "--service", f"{SPACE}/allot-scheduler", kubeconfig=config)
    assert done.returncode == 1
    assert done.stderr == "allot: explain: allot-scheduler: node none: not found: it does not exist, or has no GPUs\n"
    for name in ("explain-a", "explain-b", "explain-other"):
        cluster.request("DELETE", f"/api/v1/nodes/{name}")
    cluster.delete_pod("why")


@pytest.fixture
def replica(cluster, scheduler, tmp_path):
    """replica(SETTINGS) starts another allot-scheduler at the address of the first."""
    made = []

    def make(settings):
        kubeconfig = cluster.kubeconfig("replica.conf", user=f"token: {SCHEDULER_TOKEN}")
        one = Scheduler(tmp_path / f"replica-{len(made)}", f"https_listen = {scheduler.https.rpartition(':')[0]}:0\n"
                        f"tls_certificate = {scheduler.certificate}\ntls_key = {scheduler.key}\n"
                        f"kube_api = {kubeconfig}\n{settings}", tls=False)
        made.append(one)
        one.https = one.address("https")
        one.certificate = scheduler.certificate
        wait_until(lambda: one.ask("GET", "/readyz")[0] == 200, what="all nodes and pods being known")
        return one

    yield make
    for one in made:
        one.stop()


def test_of_two_replicas_the_leader_answers(cluster, replica):
    """A Service sends a call to any replica, but only the leader knows the reservations."""
    lease = "lease = default/explain-two\n"
    first = replica(lease)
    wait_until(lambda: first.ask("GET", "/leaderz")[0] == 200, what="the first to lead")
    second = replica(lease)
    make_endpoints(cluster, "two-replicas", first, second)
    cluster.make_pod("which", limits={"main": {GPU: "1"}})
    for one, leads in ((first, True), (second, False)):
        wait_until_known(one, "which")
        assert json.loads(one.ask("GET", "/explain/default/which")[1])["leads"] is leads
    config = cluster.kubeconfig("explain-admin.conf", user="token: admin-of-the-test")
    for _ in range(12):
        assert explain("which", kubeconfig=config, service="two-replicas")["leads"] is True
    # Asked directly, the other replica warns that it is not the leader.
    done = run("which", "--server", f"https://{second.https}", "--ca", second.certificate)
    assert done.returncode == 0 and "is not the leader" in done.stderr
    cluster.delete_pod("which")


def test_replica_leads_if_its_kube_scheduler_does(cluster, replica):
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    one = replica("lease = none\nkube_scheduler_lease = default/kube-explain\n")
    cluster.make_pod("beside", limits={"main": {GPU: "1"}})
    wait_until_known(one, "beside")

    def leads():
        return json.loads(one.ask("GET", "/explain/default/beside")[1])["leads"]

    assert not leads()
    cluster.request("POST", leases, {"metadata": {"name": "kube-explain"},
                                     "spec": {"holderIdentity": f"{socket.gethostname()}_of-a-uuid"}})
    wait_until(leads, what="the leadership of its kube-scheduler")
    cluster.request("PATCH", f"{leases}/kube-explain", {"spec": {"holderIdentity": "another_of-a-uuid"}},
                    kind="application/merge-patch+json")
    wait_until(lambda: not leads(), what="the leadership of another")
    cluster.delete_pod("beside")


def test_explains_where_a_bound_pod_is(cluster, scheduler, account):
    share = "GPU-explain-c,NVIDIA,3000,30:;"
    cluster.make_pod("there", node="explain-c", limits={"main": {GPU: "1"}}, annotations={
        "hami.io/vgpu-node": "explain-c", "hami.io/bind-phase": "allocating",
        "hami.io/vgpu-devices-to-allocate": share, "hami.io/vgpu-devices-allocated": share})
    wait_until_known(scheduler, "there")
    report = explain("there", kubeconfig=account(default=POD_RULES, explain_system=PROXY_RULES))
    assert report["state"] == "bound" and report["on"] == "explain-c" and report["bind_phase"] == "allocating"
    assert report["shares"] == [{"container": 0, "card": "GPU-explain-c", "memory_mib": 3000, "cores_pct": 30}]
    cluster.delete_pod("there")


def test_scheduler_can_be_asked_directly(cluster, scheduler):
    """No API server is needed, but --ca must name the scheduler's certificate."""
    cluster.make_pod("direct", limits={"main": {GPU: "1", MEMORY: "100"}})
    wait_until_known(scheduler, "direct")
    server = f"https://{scheduler.https}"
    done = run("direct", "--server", server, "--ca", scheduler.certificate, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "waiting"
    done = run("direct", "--server", server)
    assert done.returncode == 1 and "certificate" in done.stderr, done.stderr
    done = run("gone", "--server", server, "--ca", scheduler.certificate)
    assert done.returncode == 1
    assert done.stderr == ("allot: explain: allot-scheduler: pod default/gone: not found: it requests no GPU, "
                           "or does not exist\n")
    cluster.delete_pod("direct")


def test_scheduler_that_requires_a_token(cluster, scheduler, tmp_path):
    """The scheduler's token is sent through the API server, which does not forward the user's own, and directly."""
    cluster.make_pod("guarded", limits={"main": {GPU: "1"}})
    token, kubeconfig = tmp_path / "token", cluster.kubeconfig("guarded.conf", user=f"token: {SCHEDULER_TOKEN}")
    token.write_text("a-token-of-the-test\n")
    guarded = Scheduler(tmp_path / "guarded", f"https_listen = {scheduler.https.rpartition(':')[0]}:0\n"
                        f"tls_certificate = {scheduler.certificate}\ntls_key = {scheduler.key}\n"
                        f"kube_api = {kubeconfig}\nlease = none\ntoken_file = {token}\n", tls=False)
    try:
        guarded.https = guarded.address("https")
        wait_until(lambda: guarded.ask("GET", "/readyz", certificate=scheduler.certificate)[0] == 200,
                   what="all nodes and pods being known")
        make_endpoints(cluster, "guarded", guarded)
        admin = cluster.kubeconfig("explain-admin.conf", user="token: admin-of-the-test")
        missing = run("guarded", "--service", f"{SPACE}/guarded", "--token-file", tmp_path / "missing", kubeconfig=admin)
        assert missing.returncode == 1 and "--token-file" in missing.stderr and not missing.stdout
        report = explain("guarded", "--token-file", token, kubeconfig=admin, service="guarded")
        assert report["state"] == "waiting" and "not_asked" not in report
        done = run("guarded", "--service", f"{SPACE}/guarded", kubeconfig=admin)
        assert done.returncode == 0 and "allot-scheduler: the bearer token of token_file is required" in done.stderr
        direct = ("guarded", "--server", f"https://{guarded.https}", "--ca", scheduler.certificate)
        assert run(*direct, "--token-file", token).stdout.startswith("default/guarded waits")
        done = run(*direct)
        assert done.returncode == 1 and "the bearer token of token_file is required" in done.stderr
    finally:
        guarded.stop()
        cluster.delete_pod("guarded")


def test_without_the_scheduler_only_the_pod_is_shown(cluster, scheduler, account):
    """The output says why the scheduler was not asked, and shows only the pod's annotations and events."""
    cluster.make_pod("alone", limits={"main": {GPU: "1"}})
    config = account(default=POD_RULES)

    def without_scheduler(service):
        done = wait_until(lambda: one if (one := run("alone", "--json", "--service", service, kubeconfig=config)
                                          ).returncode == 0 else None, what="the rights")
        return json.loads(done.stdout), done.stderr

    report, errors = without_scheduler(f"{SPACE}/allot-scheduler")
    assert "403" in errors and "services/proxy" not in report and "only the pod's annotations and events are shown" in errors
    assert report["state"] == "waiting" and "403" in report["not_asked"] and "nodes" not in report and "asks" not in report
    assert report["events"] == [] and report["containers"] == ["main"]
    done = run("alone", "--service", f"{SPACE}/allot-scheduler", kubeconfig=config)
    assert done.returncode == 0 and done.stdout == "default/alone waits\n"
    # A service without endpoints, and a missing service.
    config = cluster.kubeconfig("explain-admin.conf", user="token: admin-of-the-test")
    assert "no-endpoints" in without_scheduler(f"{SPACE}/no-endpoints")[1]
    assert "404" in without_scheduler(f"{SPACE}/no-such")[1]
    cluster.delete_pod("alone")


def test_missing_pods(cluster, account):
    config = account(default=POD_RULES)
    done = wait_until(lambda: one if "403" not in (one := run("none", kubeconfig=config)).stderr else None,
                      what="the rights")
    assert done.returncode == 1
    assert done.stderr == "allot: explain: pod default/none: no such pod; kubectl get pods lists them\n"
    done = run("none", "-n", "kube-system", kubeconfig=config)
    assert done.returncode == 1 and "403" in done.stderr
