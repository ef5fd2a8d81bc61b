"""allot explain as a cluster's user runs it, through the service proxy of a real API server: with only the rights that its
manual names, and without each of them."""

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

# What allot-explain(1) says that a user needs.
PROXY_RULES = [{"apiGroups": [""], "resources": ["services/proxy"], "resourceNames": ["https:allot-scheduler:https"],
                "verbs": ["get"]}]
POD_RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
             {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]}]


def own_address():
    """Of this machine, that is not loopback: an API server sends nobody there. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
            return s.getsockname()[0]
        except OSError:
            return None


@pytest.fixture(scope="module")
def scheduler(cluster, tmp_path_factory):
    """Behind a Service; its certificate is of its own making, as the API server's proxy looks at none."""
    address = own_address()
    if not address:
        pytest.skip("no address but loopback's, where an API server's proxy sends nobody")
    folder = tmp_path_factory.mktemp("explained")
    issue(folder, "--names", f"localhost,127.0.0.1,{address}")
    kubeconfig = cluster.kubeconfig("explained.conf", user=f"token: {SCHEDULER_TOKEN}")
    scheduler = Scheduler(folder, f"https_listen = {address}:0\ntls_certificate = {folder}/tls.crt\n"
                          f"tls_key = {folder}/tls.key\nkube_api = {kubeconfig}\nlease = none\n", tls=False)
    scheduler.https = scheduler.address("https")
    wait_until(lambda: scheduler.ask("GET", "/readyz")[0] == 200, what="all nodes and pods being known")
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
    make_service(cluster, "nobody-behind")
    serve(cluster, "allot-scheduler", scheduler)
    yield scheduler
    scheduler.stop()


def make_service(cluster, name):
    cluster.request("POST", f"/api/v1/namespaces/{SPACE}/services", {
        "metadata": {"name": name}, "spec": {"ports": [{"name": "https", "port": 443}]}})


def serve(cluster, name, *replicas):
    make_service(cluster, name)
    # Controllers make these where pods are behind a Service; the server wants to see the pods, too.
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
    """account(RIGHTS): the kubeconfig of one that may do this, in the namespaces where it is of use."""
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
    """What --json says; rights that were just given may not hold yet."""
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


def test_why_a_pod_waits(cluster, scheduler, account):
    for name, mib in (("explain-a", 40960), ("explain-b", 8192)):
        cluster.make_gpu_node(name, [{"id": f"GPU-{name}-{i}", "devmem": mib, "type": "NVIDIA-why"} for i in range(2)])
    # Of a type that no other test's nodes have: these may still be there.
    cluster.make_gpu_node("explain-other", [{"id": "GPU-explain-other", "devmem": 143771}])
    cluster.make_pod("why", annotations={"nvidia.com/use-gputype": "why"}, init=("early",),
                     limits={"main": {GPU: "1", MEMORY: "65536", CORES: "30"}})
    wait_until_known(scheduler, "why")
    # Nodes are watched by themselves.
    for name in ("explain-a", "explain-b", "explain-other"):
        wait_until(lambda name=name: scheduler.ask("GET", f"/explain/default/why/{name}")[0] == 200, what=f"{name} being known")
    config = account(default=POD_RULES, explain_system=PROXY_RULES)
    said = explain("why", kubeconfig=config)
    assert said["state"] == "waiting" and said["leads"] is True
    assert said["containers"] == ["early", "main"]
    assert said["asks"] == [{"container": 1, "kind": "app", "cards": 1, "cores_pct": 30, "memory_mib": 65536}]
    nodes = {node["node"]: node for node in said["nodes"]}
    assert nodes["explain-a"]["why"] == "2/2 CardInsufficientMemory"
    assert nodes["explain-a"]["most_free_mib"] == 40960 and "lacks" not in nodes["explain-a"]
    # The same for people.
    done = run("why", "--service", f"{SPACE}/allot-scheduler", kubeconfig=config)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("default/why waits: none of ")
    assert "main requests 1 GPU with 64.0 GiB and 30 % of the time" in done.stdout
    assert "CardInsufficientMemory: at most 40.0 GiB free on any of these GPUs, 64.0 GiB requested" in done.stdout
    # Card by card; and what filter says of the same pod and nodes.
    said = explain("why", "--node", "explain-b", kubeconfig=config)
    assert [card["free_mib"] for card in said["nodes"][0]["card"]] == [8192, 8192]
    _, filtered = scheduler.post("/filter", {"Pod": cluster.pod("why"), "NodeNames": sorted(nodes)})
    reasons = {**(filtered["FailedNodes"] or {}), **(filtered["FailedAndUnresolvableNodes"] or {})}
    assert reasons == {name: node["why"] for name, node in nodes.items() if "why" in node}
    done = run("why", "--node", "none", "--service", f"{SPACE}/allot-scheduler", kubeconfig=config)
    assert done.returncode == 1 and done.stderr == "allot: explain: allot-scheduler: node none: not found: it does not exist, or has no GPUs\n"
    for name in ("explain-a", "explain-b", "explain-other"):
        cluster.request("DELETE", f"/api/v1/nodes/{name}")
    cluster.delete_pod("why")


@pytest.fixture
def replica(cluster, scheduler, tmp_path):
    """replica(SETTINGS): one more allot-scheduler, at the address of the first."""
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
    """A Service sends each call to any of them, and one alone knows what is reserved."""
    lease = "lease = default/explain-two\n"
    first = replica(lease)
    wait_until(lambda: first.ask("GET", "/leaderz")[0] == 200, what="the first to lead")
    second = replica(lease)
    serve(cluster, "two-replicas", first, second)
    cluster.make_pod("which", limits={"main": {GPU: "1"}})
    for one, leads in ((first, True), (second, False)):
        wait_until_known(one, "which")
        assert json.loads(one.ask("GET", "/explain/default/which")[1])["leads"] is leads
    config = cluster.kubeconfig("explain-admin.conf", user="token: admin-of-the-test")
    for _ in range(12):
        assert explain("which", kubeconfig=config, service="two-replicas")["leads"] is True
    # Nobody leads behind it: that is said.
    done = run("which", "--server", f"https://{second.https}", "--ca", second.certificate)
    assert done.returncode == 0 and "is not the leader" in done.stderr
    cluster.delete_pod("which")


def test_the_replica_whose_kube_scheduler_leads(cluster, replica):
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    one = replica("lease = none\nkube_scheduler_lease = default/kube-explain\n")
    cluster.make_pod("beside", limits={"main": {GPU: "1"}})
    wait_until_known(one, "beside")

    def leads():
        return json.loads(one.ask("GET", "/explain/default/beside")[1])["leads"]

    assert not leads()
    cluster.request("POST", leases, {"metadata": {"name": "kube-explain"},
                                     "spec": {"holderIdentity": f"{socket.gethostname()}_of-a-uuid"}})
    wait_until(leads, what="its kube-scheduler's leading")
    cluster.request("PATCH", f"{leases}/kube-explain", {"spec": {"holderIdentity": "another_of-a-uuid"}},
                    kind="application/merge-patch+json")
    wait_until(lambda: not leads(), what="another's leading")
    cluster.delete_pod("beside")


def test_where_a_pod_is(cluster, scheduler, account):
    share = "GPU-explain-c,NVIDIA,3000,30:;"
    cluster.make_pod("there", node="explain-c", limits={"main": {GPU: "1"}}, annotations={
        "hami.io/vgpu-node": "explain-c", "hami.io/bind-phase": "allocating",
        "hami.io/vgpu-devices-to-allocate": share, "hami.io/vgpu-devices-allocated": share})
    wait_until_known(scheduler, "there")
    said = explain("there", kubeconfig=account(default=POD_RULES, explain_system=PROXY_RULES))
    assert said["state"] == "bound" and said["on"] == "explain-c" and said["bind_phase"] == "allocating"
    assert said["shares"] == [{"container": 0, "card": "GPU-explain-c", "memory_mib": 3000, "cores_pct": 30}]
    cluster.delete_pod("there")


def test_asked_directly(cluster, scheduler):
    """Its certificate has to be known; then no API server is needed."""
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
    assert done.stderr == "allot: explain: allot-scheduler: pod default/gone: not found: it requests no GPU, or does not exist\n"
    cluster.delete_pod("direct")


def test_one_that_wants_a_token(cluster, scheduler, tmp_path):
    """Through the API server, which keeps its users' own to itself, and directly."""
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
        serve(cluster, "guarded", guarded)
        admin = cluster.kubeconfig("explain-admin.conf", user="token: admin-of-the-test")
        missing = run("guarded", "--service", f"{SPACE}/guarded", "--token-file", tmp_path / "missing", kubeconfig=admin)
        assert missing.returncode == 1 and "--token-file" in missing.stderr and not missing.stdout
        said = explain("guarded", "--token-file", token, kubeconfig=admin, service="guarded")
        assert said["state"] == "waiting" and "not_asked" not in said
        done = run("guarded", "--service", f"{SPACE}/guarded", kubeconfig=admin)
        assert done.returncode == 0 and "allot-scheduler: the bearer token of token_file is required" in done.stderr
        direct = ("guarded", "--server", f"https://{guarded.https}", "--ca", scheduler.certificate)
        assert run(*direct, "--token-file", token).stdout.startswith("default/guarded waits")
        done = run(*direct)
        assert done.returncode == 1 and "the bearer token of token_file is required" in done.stderr
    finally:
        guarded.stop()
        cluster.delete_pod("guarded")


def test_the_scheduler_can_not_be_asked(cluster, scheduler, account):
    """It is said why, and what the pod tells; nothing else is claimed."""
    cluster.make_pod("alone", limits={"main": {GPU: "1"}})
    config = account(default=POD_RULES)

    def fallen(service):
        done = wait_until(lambda: one if (one := run("alone", "--json", "--service", service, kubeconfig=config)
                                          ).returncode == 0 else None, what="the rights")
        return json.loads(done.stdout), done.stderr

    said, heard = fallen(f"{SPACE}/allot-scheduler")
    assert "403" in heard and "services/proxy" not in said and "only the pod's annotations and events are shown" in heard
    assert said["state"] == "waiting" and "403" in said["not_asked"] and "nodes" not in said and "asks" not in said
    assert said["events"] == [] and said["containers"] == ["main"]
    done = run("alone", "--service", f"{SPACE}/allot-scheduler", kubeconfig=config)
    assert done.returncode == 0 and done.stdout == "default/alone waits\n"
    # Nobody behind the service; no such service.
    config = cluster.kubeconfig("explain-admin.conf", user="token: admin-of-the-test")
    assert "nobody-behind" in fallen(f"{SPACE}/nobody-behind")[1]
    assert "404" in fallen(f"{SPACE}/no-such")[1]
    cluster.delete_pod("alone")


def test_pods_that_are_not_there(cluster, account):
    config = account(default=POD_RULES)
    done = wait_until(lambda: one if "403" not in (one := run("none", kubeconfig=config)).stderr else None,
                      what="the rights")
    assert done.returncode == 1 and done.stderr == "allot: explain: pod default/none: no such pod; kubectl get pods lists them\n"
    done = run("none", "-n", "kube-system", kubeconfig=config)
    assert done.returncode == 1 and "403" in done.stderr
