"""Many pods are created at once, and kube-scheduler, configured as in the chart and with the webhook, binds them to many nodes.
All are bound, and a pod that fits nowhere gets the reason. The default size is small. To run a larger one, and to compare its
rate with that of a kube-scheduler alone:

    ALLOT_BIND=500x8x4000 build/venv/bin/python -m pytest -s tests/k8s/test_binding_rate.py     nodes x GPUs x pods
"""

import json
import os
import re
import subprocess
import sys
import threading
import time

import pytest
import yaml

from charts import Helm, of_kind
from cluster import ADMIN_TOKEN, SCHEDULER_TOKEN, Cluster, free_ports
from machines import wait_until
from node_agents import Server
from scheduler import Scheduler, issue

NODES, GPUS, PODS = map(int, os.environ.get("ALLOT_BIND", "110x2x200").split("x"))
PODS_PATH, NODES_PATH = "/api/v1/namespaces/default/pods", "/api/v1/nodes"
SPECIAL = f"node-{NODES - 1}"  # has the only L40S


@pytest.fixture(scope="module")
def own(build_programs, tmp_path_factory):
    """A cluster for this file alone, because kube-scheduler considers all nodes."""
    cluster = Cluster(build_programs("etcd", "kube-apiserver", "kube-scheduler"), tmp_path_factory.mktemp("rate"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def server(own):
    def make():
        return Server(own.url, str(own.path("ca.crt")), ADMIN_TOKEN)

    return make


def in_parallel(make_server, what, count, threads=8):
    """Calls what(server, i) for each i below `count`, with one client a thread. Asserts that no call fails."""
    failed = []

    def work(first):
        server = make_server()
        for i in range(first, count, threads):
            status, answer = what(server, i)
            if status >= 300:
                failed.append(answer)

    workers = [threading.Thread(target=work, args=(first,)) for first in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed, failed[0]


def make_node(server, i):
    name = f"node-{i}"
    gpu = {"count": 10, "devmem": 81920, "devcore": 100, "type": "NVIDIA-H200", "numa": 0, "mode": "hami-core", "health": True}
    gpus = [{"id": f"GPU-{name}-{k}", "index": k, **gpu} for k in range(GPUS)]
    if name == SPECIAL:
        gpus.append({**gpu, "id": f"GPU-{name}-special", "index": GPUS, "type": "NVIDIA-L40S"})
    amounts = {"cpu": "192", "memory": "2Ti", "pods": "500", "nvidia.com/gpu": str(GPUS)}
    status, answer = server.ask("POST", NODES_PATH, {
        "metadata": {"name": name, "labels": {"gpu": "on"},
                     "annotations": {"hami.io/node-nvidia-register": json.dumps(gpus)}}})
    if status >= 300:
        return status, answer
    patch = "application/merge-patch+json"
    server.ask("PATCH", f"{NODES_PATH}/{name}", {"spec": {"taints": None}}, patch)
    return server.ask("PATCH", f"{NODES_PATH}/{name}/status", {"status": {
        "capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}}, patch)


def pod(name, limits, scheduler=None, annotations=None):
    spec = {"containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}]}
    return {"metadata": {"name": name, "annotations": annotations or {}},
            "spec": {**spec, **({"schedulerName": scheduler} if scheduler else {})}}


class Agents:
    """Runs node_agents.py. `bound`: {pod: when its binding was seen}."""

    def __init__(self, cluster):
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(os.path.dirname(__file__), "node_agents.py"), cluster.url,
             str(cluster.path("ca.crt")), ADMIN_TOKEN], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.bound = {}
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            name, when = line.split()
            self.bound[name] = float(when)

    def end(self):
        self.process.kill()
        self.process.wait()


class Pair:
    """allot-scheduler and kube-scheduler, configured as the chart has them, and the webhook."""

    def __init__(self, cluster, made, folder):
        folder.mkdir()
        data = of_kind(made, "ConfigMap", "allot-scheduler")["data"]
        lines = [line for line in data["allot-scheduler.conf"].splitlines()
                 if not re.match("http_listen|https_listen|kube_api|tls_", line)]
        kubeconfig = cluster.kubeconfig("allot-scheduler.conf", user=f"token: {SCHEDULER_TOKEN}")
        bundle = issue(folder, "--names", "localhost,127.0.0.1")
        self.allot = Scheduler(folder, "\n".join([f"kube_api = {kubeconfig}", *lines, ""]))
        wait_until(lambda: self.allot.ask("GET", "/readyz")[0] == 200, 120, what="allot-scheduler knowing all nodes")
        hook = of_kind(made, "MutatingWebhookConfiguration")
        for one in hook["webhooks"]:
            one["clientConfig"] = {"url": f"https://{self.allot.https}/webhook", "caBundle": bundle}
        cluster.request("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", hook)
        config = yaml.safe_load(data["kube-scheduler.yaml"])
        config["extenders"][0]["urlPrefix"] = f"http://{self.allot.http}"
        config["leaderElection"]["resourceNamespace"] = "default"
        self.kube = KubeScheduler(cluster, "with-allot", config)

    def end(self):
        self.kube.end()
        self.allot.stop()


class KubeScheduler:
    def __init__(self, cluster, name, config):
        access = cluster.kubeconfig(f"{name}.conf", user=f"token: {ADMIN_TOKEN}")
        config["clientConnection"] = {"kubeconfig": str(access)}
        cluster.path(f"{name}.yaml").write_text(yaml.safe_dump(config))
        (port,) = free_ports(1)
        self.log = cluster.path(f"{name}.log")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [cluster.programs / "kube-scheduler", f"--config={cluster.path(name + '.yaml')}", "--v=2",
                 "--authentication-skip-lookup=true", f"--secure-port={port}", "--bind-address=127.0.0.1"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def agents(own):
    agents = Agents(own)
    yield agents
    agents.end()


def burst(agents, make_server, name, scheduler=None):
    """Creates all pods and waits until they are bound. Returns (pods a second, the sorted times from creation to binding)."""
    created = {}

    def make(server, i):
        created[f"{name}-{i}"] = time.time()
        return server.ask("POST", PODS_PATH, pod(f"{name}-{i}", {"nvidia.com/gpu": "1"}, scheduler,
                                                {"nvidia.com/use-gputype": "H200"}))

    began = time.time()
    in_parallel(make_server, make, PODS)
    all_there = time.time()
    wait_until(lambda: created.keys() <= agents.bound.keys(), 60 + PODS / 5, what=f"the binding of all {PODS} pods")
    took = max(agents.bound[one] for one in created) - began
    print(f"\n{name}: {PODS} pods created in {all_there - began:.1f} s, bound in {took:.1f} s: {PODS / took:.1f} a second")
    times = sorted(agents.bound[one] - created[one] for one in created)
    print(f"{name}: from creation to binding p50 {times[len(times) // 2]:.1f} s, p99 {times[len(times) * 99 // 100]:.1f} s")
    return PODS / took, times


def clear(make_server):
    server = make_server()
    server.ask("DELETE", f"{PODS_PATH}?gracePeriodSeconds=0", {})
    wait_until(lambda: not server.ask("GET", f"{PODS_PATH}?limit=1")[1]["items"], 300, what="the deletion of all pods")


def why_not(server, name):
    """The scheduler's reason in the pod's condition; None if there is none yet."""
    for one in server.ask("GET", f"{PODS_PATH}/{name}")[1]["status"].get("conditions", []):
        if one["type"] == "PodScheduled" and one["status"] == "False":
            return one["message"]
    return None


def test_many_pods_are_bound(own, server, agents, build_programs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    made = Helm(build_programs("helm", "kustomize") / "helm", folder).render()
    in_parallel(server, make_node, NODES)
    pair = Pair(own, made, folder / "s")
    try:
        rate, times = burst(agents, server, "allot")
        metrics = pair.allot.ask("GET", "/metrics")[1].decode()
        print("\n".join(line for line in metrics.splitlines() if line.startswith("allot_scheduler_bind")))
        one = server()
        # A pod that fits on only one node.
        one.ask("POST", PODS_PATH, pod("special", {"nvidia.com/gpu": "1"}, annotations={"nvidia.com/use-gputype": "L40S"}))
        wait_until(lambda: one.ask("GET", f"{PODS_PATH}/special")[1]["spec"].get("nodeName"), 60, what="its binding")
        assert one.ask("GET", f"{PODS_PATH}/special")[1]["spec"]["nodeName"] == SPECIAL
        # A pod that fits on no node.
        began = time.monotonic()
        one.ask("POST", PODS_PATH, pod("too-large", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "200000"}))
        why = wait_until(lambda: why_not(one, "too-large"), 60, what="its reason")
        print(f"a pod that fits nowhere has its reason after {time.monotonic() - began:.2f} s: {why[:200]}")
        assert "CardInsufficientMemory" in why
        assert pair.kube.process.poll() is None and pair.allot.process.poll() is None
        assert "Leaderelection lost" not in pair.kube.log.read_text(errors="replace")
    finally:
        pair.end()
    own.request("DELETE", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/allot-scheduler")
    clear(server)
    if "ALLOT_BIND" not in os.environ:
        return
    plain = KubeScheduler(own, "plain", {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                                         "leaderElection": {"leaderElect": False}})
    try:
        plain_rate, _ = burst(agents, server, "plain", "default-scheduler")
    finally:
        plain.end()
    print(f"ratio to kube-scheduler alone: {rate / plain_rate:.2f}")
