"""Opportunistic inference pods use the GPU time that trainings leave, and are evicted when the trainings need it again. The
tests have a real API server and kube-scheduler, allot-scheduler with place_by_use, and a node whose containers run kernels on
a simulated GPU."""

import json
import os
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from cluster import SCHEDULER_TOKEN, ApiError, free_ports
from machines import BUILD, wait_until
from test_allocate import make_node  # noqa: F401

ALLOCATED, BORROWED = "hami.io/vgpu-devices-allocated", "allot.dev/borrowed"
USE, COOLDOWN = "allot.dev/node-use", "allot.dev/node-shut"
BY_USE = {"allot.dev/placement": "use"}
PROFILE = "opportunistic-of-the-test"
PATIENCE_S = 2
TRAINING = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "81920", "nvidia.com/gpucores": "80"}
INFERENCE = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8192", "nvidia.com/gpucores": "20"}


class Schedulers:
    """allot-scheduler and kube-scheduler, for pods of this file's schedulerName."""

    def __init__(self, cluster, directory):
        self.cluster = cluster
        self.port, = free_ports(1)
        self.log_path = directory / "log"
        self.audit = directory / "audit.log"
        self.config = cluster.kubeconfig("opportunistic.conf", user=f"token: {SCHEDULER_TOKEN}")
        self.start()
        cluster.launch_scheduler(f"http://127.0.0.1:{self.port}", name=PROFILE)

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [BUILD / "allot-scheduler", "--kube-api", self.config, "--lease", "none", "--http-listen",
                 f"127.0.0.1:{self.port}", "--place-by-use", "on", "--filler-patience", f"{PATIENCE_S}s",
                 "--audit-log", self.audit],
                stdin=subprocess.DEVNULL, stderr=log)
        wait_until(lambda: self.get("/readyz") is not None, what="allot-scheduler")

    def kill(self):
        """Kills allot-scheduler and starts another in its place."""
        self.process.kill()
        self.process.wait()
        self.start()

    def would_fit(self, node, cores, annotations):
        """Whether a pod with these annotations would fit on that node; the pod is not created."""
        return would_fit(self.port, node, cores, annotations)

    def cooldown_s(self, node):
        """For how many seconds that node's only GPU accepts no opportunistic pods; None while its use is not known."""
        name = f'allot_scheduler_card_shut_seconds{{device_index="0",node="{node}"'
        lines = [line for line in (self.get("/metrics") or "").splitlines() if line.startswith(name)]
        return float(lines[0].split()[-1]) if lines else None

    def audited(self, event, pod):
        lines = [json.loads(line) for line in self.audit.read_text().splitlines()]
        return [line for line in lines if line["event"] == event and line.get("pod") == pod]

    @property
    def log(self):
        return self.log_path.read_text(errors="replace")[-4000:]

    def get(self, path):
        assert self.process.poll() is None, self.log
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.read().decode()
        except (OSError, urllib.error.HTTPError):
            return None

    def close(self):
        self.cluster.end("kube-scheduler")
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=20) == 0, self.log


def would_fit(port, node, cores, annotations):
    pod = {"metadata": {"name": "probe", "namespace": "default", "uid": "probe", "resourceVersion": "1",
                        "annotations": annotations},
           "spec": {"containers": [{"name": "main", "resources": {"limits": {
               "nvidia.com/gpumem": "1000", "nvidia.com/gpucores": str(cores)}}}]}, "status": {"phase": "Pending"}}
    body = json.dumps({"Pod": pod, "NodeNames": [node]}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/filter", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        found = json.load(answer)
    assert not found["Error"], found
    return found["NodeNames"] == [node]


@pytest.fixture(scope="module")
def schedulers(cluster, build_programs, tmp_path_factory):
    build_programs("etcd", "kube-apiserver", "kube-scheduler")
    schedulers = Schedulers(cluster, tmp_path_factory.mktemp("opportunistic"))
    yield schedulers
    schedulers.close()


class Pods:
    """Pods for one node."""

    def __init__(self, cluster, node):
        self.cluster = cluster
        self.node = node

    def make(self, name, limits, annotations=None, labels=None, **more):
        body = {"metadata": {"name": name, "annotations": annotations or {}, "labels": labels or {}},
                "spec": {"schedulerName": PROFILE, "nodeSelector": {"of": self.node},
                         "terminationGracePeriodSeconds": 0,
                         "containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}], **more}}
        self.cluster.request("POST", "/api/v1/namespaces/default/pods", body)

    def make_inference(self, name, **more):
        self.make(name, INFERENCE, {"allot.dev/workload": "inference"}, **more)

    def get(self, name):
        try:
            return self.cluster.pod(name)
        except ApiError as error:
            assert error.status == 404
            return None

    def is_bound(self, name):
        pod = self.get(name)
        return pod is not None and pod["spec"].get("nodeName") == self.node

    def annotations_of(self, name):
        return self.get(name)["metadata"]["annotations"]

    def events(self, reason):
        return {event["involvedObject"]["name"]: event["message"] for event in self.cluster.events()
                if event["reason"] == reason}

    def event(self, reason, name):
        """The message of a pod's event. Waits for it, because an event is written after the change that it reports."""
        return wait_until(lambda: self.events(reason).get(name), 30, f"{name}'s event {reason}")


# ---- a node whose containers run kernels ----

class Load:
    """A container's program: kernels of 5 ms, one after the other. `kernels` counts them while it runs."""

    def __init__(self, answer):
        host = {inside: outside for inside, outside, _ in answer.mounts}
        environment = {**os.environ, **answer.env, "ALLOT_SOCKET": f"{host['/run/allot/tenant']}/allot.sock",
                       "ALLOT_SIM_SOCKET": host["/run/allot/sim.sock"], "LD_LIBRARY_PATH": host["/run/allot/sim"],
                       "LD_PRELOAD": str(BUILD / "liballot.so")}
        self.process = subprocess.Popen(
            [BUILD / "allot-load", "--kernel-us", "5000", "--seconds", "600", "--report-every", "0.1", "--json"],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.kernels = 0
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            report = json.loads(line)
            if "t_s" in report:
                self.kernels += report["kernels"]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()


class WorkShare:
    """Counts the kernels of each load since a moment. All kernels have the same length, so ratios need no clock."""

    def __init__(self, loads):
        self.loads = loads
        self.before = self.kernels()

    def kernels(self):
        return {name: load.kernels for name, load in self.loads.items()}

    def since(self):
        return {name: kernels - self.before[name] for name, kernels in self.kernels().items()}

    def fraction(self, name):
        since = self.since()
        return since[name] / max(1, sum(since.values()))

    def wait(self, kernels):
        wait_until(lambda: sum(self.since().values()) >= kernels, what=f"{kernels} kernels")
        return self


class RunningNode:
    """A node with a test kubelet: a bound pod gets its devices, and its program is started by the test."""

    def __init__(self, node, pods):
        self.node = node
        self.pods = pods
        self.loads = {}
        self.answers = {}

    def allocate(self, name):
        wait_until(lambda: self.pods.is_bound(name), 30, f"{name} being bound")
        gpu, = self.node.uuids()
        self.answers[name], = self.node.plugin.allocate([f"{gpu}-{len(self.answers)}"])

    def start(self, name):
        self.loads[name] = Load(self.answers[name])

    def end(self, name):
        """Ends a pod's program, as a kubelet does when the pod is deleted."""
        if name in self.loads:
            self.loads.pop(name).end()

    def use(self):
        text = self.node.cluster.annotations(self.node.name).get(USE)
        return json.loads(text)["cards"][0] if text else None


@pytest.fixture
def running(make_node, cluster):  # noqa: F811
    # Use is averaged over five seconds, so that a short burst above a tenant's cap does not count.
    node = make_node("kube_use_window = 5s\n", cards="h200")
    path = f"/api/v1/nodes/{node.name}"
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "50", "nvidia.com/gpu": "10"}
    cluster.request("PATCH", f"{path}/status", {"status": {
        "capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}},
        kind="application/merge-patch+json")
    cluster.request("PATCH", path, {"metadata": {"labels": {"of": node.name}}, "spec": {"taints": None}},
                    kind="application/merge-patch+json")
    running = RunningNode(node, Pods(cluster, node.name))
    yield running
    for name in list(running.loads):
        running.end(name)


def test_inference_uses_the_time_that_training_leaves(schedulers, running):
    """Section 25 of the article on gpu-manager (docs/reference/seeds.md), with HAMi's resource names: a training with 80 % and
    80 GiB of a GPU, and inference pods with 20 % and 8 GiB."""
    pods, node = running.pods, running.node
    pods.make("training", TRAINING)
    running.allocate("training")
    # It has been idle for the whole window.
    wait_until(lambda: running.use() and running.use()["held"] == 80, what=f"its use; {node.daemon.log[-2000:]}")
    names = [f"inference-{i}" for i in range(5)]
    for name in names[:4]:
        pods.make_inference(name)
        running.allocate(name)
        assert pods.annotations_of(name)[ALLOCATED].endswith(",NVIDIA,8192,0:;")
        assert pods.annotations_of(name)[BORROWED].endswith(",NVIDIA,8192,20:;")
    # 10 % are kept free for the training.
    pods.make_inference(names[4])
    assert "1/1 CardInsufficientCore" in pods.event("FailedScheduling", names[4])
    tenants = node.tenants()
    for name in names[:4]:
        tenant = tenants[f"default.{name}.main"]
        assert tenant["priority"] == -100
        assert (tenant["devices"][0]["cores_pct"], tenant["devices"][0]["cores_limit_pct"]) == (0, 20)
    assert f'allot_scheduler_card_borrowed_ratio{{device_index="0",node="{node.name}"' in schedulers.get("/metrics")
    # They share the whole GPU.
    for name in names[:4]:
        running.start(name)
    alone = WorkShare(running.loads).wait(200).since()
    assert all(alone.values()), alone
    # The training starts: it gets its guaranteed share at once, while all of them still run.
    began = time.monotonic()
    running.start("training")
    wait_until(lambda: running.loads["training"].kernels, what="the training's first kernel")
    fraction = WorkShare(running.loads).wait(300).fraction("training")
    assert fraction > 0.72, f"{100 * fraction:.1f} % of the work, of 80 that are guaranteed"
    # The pods for which too little is left are evicted, the youngest first.
    gone = names[1:4]
    for name in gone:
        wait_until(lambda: pods.get(name) is None, 30, f"the eviction of {name}; {schedulers.log}")
        running.end(name)
    seconds = time.monotonic() - began
    assert pods.is_bound(names[0])
    assert "which leaves too little of the 80 %" in [pods.event("FillerEvicted", name) for name in gone][0]
    both = WorkShare(running.loads).wait(200)
    print(f"training: {100 * fraction:.1f} % of the work beside four, {100 * both.fraction('training'):.1f} % beside one; "
          f"three were evicted {seconds:.1f} s after its start")
    assert both.since()[names[0]] and pods.is_bound(names[0])
    # No other pod takes their place.
    assert not pods.is_bound(names[4])
    assert "allot_scheduler_fillers_evicted_total 3" in schedulers.get("/metrics")


# ---- nodes whose use the test reports ----

class ReportedNode:
    """A node without a daemon: the test reports the use of its one GPU, and the state of its pods."""

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.pods = Pods(cluster, name)
        self.reports = 0
        cluster.make_gpu_node(name, [{"id": f"GPU-{name}"}], labels={"of": name})

    def report(self, peak, now, held=80):
        self.reports += 1
        self.cluster.patch(f"/api/v1/nodes/{self.name}", {"annotations": {USE: json.dumps(
            {"t": self.reports, "cards": [{"id": f"GPU-{self.name}", "peak": peak, "now": now, "held": held, "mem": 0}]})}})

    def run(self, name):
        """Marks a pod as running, as its kubelet and daemon would."""
        wait_until(lambda: self.pods.is_bound(name), 30, f"{name} being bound")
        path = f"/api/v1/namespaces/default/pods/{name}"
        self.cluster.patch(path, {"annotations": {"hami.io/bind-phase": "success",
                                                  "hami.io/vgpu-devices-to-allocate": ";"}})
        self.cluster.request("PATCH", f"{path}/status", {"status": {
            "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
            kind="application/merge-patch+json")
        self.cluster.patch(f"/api/v1/nodes/{self.name}", {"annotations": {"hami.io/mutex.lock": None}})

    def close(self):
        for pod in self.cluster.request("GET", "/api/v1/namespaces/default/pods")["items"]:
            if pod["spec"].get("nodeSelector", {}).get("of") == self.name:
                self.cluster.delete_pod(pod["metadata"]["name"])
        self.cluster.request("DELETE", f"/api/v1/nodes/{self.name}")


@pytest.fixture
def node(request, cluster):
    node = ReportedNode(cluster, request.node.name.replace("_", "-"))
    yield node
    node.close()


def make_budget(cluster, name, allowed):
    """Creates a PodDisruptionBudget with the status that its controller would write; returns its path."""
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    made = cluster.request("POST", path, {"metadata": {"name": name}, "spec": {
        "minAvailable": 1, "selector": {"matchLabels": {"app": name}}}})
    cluster.request("PATCH", f"{path}/{name}/status", {"status": {
        "observedGeneration": made["metadata"]["generation"], "disruptionsAllowed": allowed, "currentHealthy": 1,
        "desiredHealthy": 1, "expectedPods": 1}}, kind="application/merge-patch+json")
    return f"{path}/{name}"


def test_disruption_budget_is_respected(schedulers, node, cluster):
    """A pod that may not be evicted keeps running, an event says so, and another pod is evicted instead."""
    node.report(0, 0)
    node.pods.make("budget-training", {**TRAINING, "nvidia.com/gpumem": "40000"})
    node.run("budget-training")
    node.report(0, 0)
    for name in ("budget-free", "budget-kept"):
        node.pods.make_inference(name, labels={"app": name})
        node.run(name)
    budget = make_budget(cluster, "budget-kept", 0)
    try:
        node.report(80, 80)
        # The youngest would be evicted first.
        assert "PodDisruptionBudget" in node.pods.event("FillerEvictionRefused", "budget-kept")
        # The other pod is evicted in its place.
        wait_until(lambda: node.pods.get("budget-free") is None, 30, f"the eviction of the other; {schedulers.log}")
        assert node.pods.event("FillerEvicted", "budget-free") and node.pods.is_bound("budget-kept")
        # The audit log has both; it is written before the events.
        refused, = schedulers.audited("evict", "budget-kept")
        assert refused["node"] == node.name and "disruption budget" in refused["refused"]
        gone, = schedulers.audited("evict", "budget-free")
        assert gone["by"] == {"kind": "scheduler"} and "refused" not in gone
        assert "which leaves too little of the 40 %" in gone["reason"]
    finally:
        cluster.request("DELETE", budget)


def test_new_scheduler_counts_guaranteed_and_lent_shares(schedulers, node, cluster, build_programs):
    """A scheduler that starts later reads guaranteed and lent shares from the pods' annotations."""
    node.report(0, 0)
    node.pods.make("kept-training", {**TRAINING, "nvidia.com/gpumem": "10000"})
    node.run("kept-training")
    node.report(0, 0)
    node.pods.make_inference("kept-inference")
    node.run("kept-inference")
    # A second scheduler with the same API server; no kube-scheduler uses it.
    port, = free_ports(1)
    config = cluster.kubeconfig("again.conf", user=f"token: {SCHEDULER_TOKEN}")
    process = subprocess.Popen([BUILD / "allot-scheduler", "--kube-api", config, "--lease", "none", "--http-listen",
                                f"127.0.0.1:{port}", "--place-by-use", "on"], stdin=subprocess.DEVNULL)

    def ask(cores, annotations):
        return would_fit(port, node.name, cores, annotations)

    def is_ready():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10):
                return True
        except (OSError, urllib.error.HTTPError):
            return False

    try:
        wait_until(is_ready, what="the second scheduler")
        # 20 % are not guaranteed to a pod, even if they are lent. The node's report from before the start does not count yet.
        assert ask(20, {}) and not ask(21, {})
        assert not ask(1, BY_USE)
        node.report(0, 0)
        wait_until(lambda: ask(70, BY_USE), what="the node's use being known")
        assert not ask(71, BY_USE)
    finally:
        process.terminate()
        assert process.wait(timeout=20) == 0


def test_cooldown_survives_a_restart_of_the_scheduler(schedulers, node, cluster):
    """An evicted pod does not return because the scheduler was killed: the node's annotation has the cooldown of its GPUs."""
    path = f"/api/v1/nodes/{node.name}"
    node.report(0, 0)
    node.pods.make("cooldown-training", {**TRAINING, "nvidia.com/gpumem": "10000"})
    node.run("cooldown-training")
    node.report(0, 0)
    node.pods.make_inference("cooldown-inference")
    node.run("cooldown-inference")
    assert COOLDOWN not in cluster.annotations(node.name)
    before_s = time.time()
    node.report(95, 95)
    wait_until(lambda: node.pods.get("cooldown-inference") is None, 30, f"the eviction; {schedulers.log}")
    wait_until(lambda: COOLDOWN in cluster.annotations(node.name), what="the annotation")
    gpu, = json.loads(cluster.annotations(node.name)[COOLDOWN])["cards"]
    assert gpu["id"] == f"GPU-{node.name}" and gpu["rounds"] == 1
    assert before_s + 590 < gpu["until"] < time.time() + 610
    node.report(0, 0)
    assert not schedulers.would_fit(node.name, 1, BY_USE)
    schedulers.kill()
    # The report from before the restart does not count. After two more, the GPU's use is known.
    node.report(0, 0)
    node.report(0, 0)
    wait_until(lambda: schedulers.cooldown_s(node.name) is not None, what="its use being known")
    assert 500 < schedulers.cooldown_s(node.name) <= 600
    assert not schedulers.would_fit(node.name, 1, BY_USE)
    assert schedulers.would_fit(node.name, 20, {})
    # Without the annotation the GPU accepts opportunistic pods again.
    cluster.request("PATCH", path, {"metadata": {"annotations": {COOLDOWN: None}}}, kind="application/merge-patch+json")
    wait_until(lambda: schedulers.would_fit(node.name, 1, BY_USE), what="the end of the cooldown")


def test_guaranteed_pod_evicts_an_opportunistic_one(schedulers, node, cluster):
    """Memory of an opportunistic pod is reclaimed for a pod with a guaranteed share, without any priority classes."""
    node.report(0, 0, 0)
    wait_until(lambda: "allot_scheduler_nodes" in (schedulers.get("/metrics") or ""), what="the node")
    node.report(0, 0, 0)
    node.pods.make("ahead-inference", {**INFERENCE, "nvidia.com/gpumem": "70000"}, {"allot.dev/placement": "use"})
    node.run("ahead-inference")
    assert node.pods.annotations_of("ahead-inference")[BORROWED].endswith(",70000,20:;")
    node.pods.make("ahead-pod", {**TRAINING, "nvidia.com/gpumem": "40000"})
    wait_until(lambda: node.pods.get("ahead-inference") is None, 30, f"the eviction; {schedulers.log}")
    assert "a pod with a guaranteed share needs" in node.pods.event("FillerEvicted", "ahead-inference")
    node.run("ahead-pod")
    assert node.pods.annotations_of("ahead-pod")[ALLOCATED].endswith(",NVIDIA,40000,80:;")
