"""Authentication of allot-scheduler's clients, with a real kube-scheduler that has a client certificate and one that has none;
and the rate limit of explanations."""

import json
import time
import urllib.error
import urllib.request

import pytest

from cluster import SCHEDULER_TOKEN
from machines import wait_until
from scheduler import Scheduler

PROFILE = "asked-by-certificate"
LIMITS = {"main": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}}


@pytest.fixture(scope="module")
def scheduler(cluster, build_programs, tmp_path_factory):
    build_programs("etcd", "kube-apiserver", "kube-scheduler")
    folder = tmp_path_factory.mktemp("clients")
    cluster.make_certificate("kube-scheduler", "/O=allot/CN=system:kube-scheduler", "extendedKeyUsage=clientAuth\n")
    kubeconfig = cluster.kubeconfig("clients.conf", user=f"token: {SCHEDULER_TOKEN}")
    s = Scheduler(folder / "s", f"kube_api = {kubeconfig}\nlease = none\nclient_ca = {cluster.path('ca.crt')}\n"
                                "client_names = system:kube-scheduler\nclient_verbs = filter,prioritize,preempt,bind\n"
                                "explain_limit = 200\n")
    wait_until(lambda: s.ask("GET", "/readyz")[0] == 200, what="all nodes and pods being known")
    cluster.make_gpu_node("clients-0", [{"id": "GPU-clients-0"}], labels={"of": "clients"})
    yield s
    cluster.end("kube-scheduler")
    s.stop()
    cluster.request("DELETE", "/api/v1/nodes/clients-0")


def launch(cluster, scheduler, **tls):
    cluster.launch_scheduler(f"https://{scheduler.https}", name=PROFILE, tls={"caFile": str(scheduler.certificate), **tls})


def test_kube_scheduler_needs_a_client_certificate(cluster, scheduler):
    launch(cluster, scheduler)
    cluster.make_pod("shown", limits=LIMITS, more={"schedulerName": PROFILE, "nodeSelector": {"of": "clients"}})
    refusal = "a request for /filter was refused: a client certificate signed by an authority in client_ca is required"
    wait_until(lambda: refusal in scheduler.log.read_text(), 60, "the refusal without a certificate")
    assert not cluster.pod("shown")["spec"].get("nodeName")
    cluster.end("kube-scheduler")
    launch(cluster, scheduler, certFile=str(cluster.path("kube-scheduler.crt")),
           keyFile=str(cluster.path("kube-scheduler.key")))
    pod = wait_until(lambda: one if (one := cluster.pod("shown"))["spec"].get("nodeName") else None, 60, "the binding")
    assert pod["spec"]["nodeName"] == "clients-0"
    assert pod["metadata"]["annotations"]["hami.io/bind-phase"] == "allocating"
    cluster.delete_pod("shown")


def test_explanations_are_rate_limited(cluster, scheduler):
    """The limit is 200 nodes a second, and an explanation of few nodes counts as 100."""
    cluster.make_pod("explained", limits=LIMITS)

    def explain():
        try:
            with urllib.request.urlopen(f"http://{scheduler.http}/explain/default/explained", timeout=20) as answer:
                return answer.status, None
        except urllib.error.HTTPError as error:
            return error.code, error.headers.get("Retry-After")

    wait_until(lambda: explain()[0] == 200, 20, "the pod being known")
    begun, count = time.monotonic(), 0
    while (answer := explain())[0] == 200:
        count += 1
        assert count <= 4 + 2 * (time.monotonic() - begun)
    assert answer == (429, "1")
    # Other requests are answered, and the next explanation is a little later.
    status, text = scheduler.ask("GET", "/metrics")
    assert status == 200 and b"allot_scheduler_nodes " in text
    wait_until(lambda: explain()[0] == 200, 20, "the next explanation")
    assert json.loads(scheduler.ask("GET", "/explain/default/explained")[1])
    cluster.delete_pod("explained")
