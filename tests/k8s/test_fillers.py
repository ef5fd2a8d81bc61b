"""Inference pods use the GPU time that trainings leave, and make room when the trainings need it again: with a real API
server and kube-scheduler, allot-scheduler with place_by_use, and one node whose allotd has programs that work on a simulated
card."""

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
USE, SHUT = "allot.dev/node-use", "allot.dev/node-shut"
BY_USE = {"allot.dev/placement": "use"}
PROFILE = "fills"
PATIENCE_S = 2
TRAINING = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "81920", "nvidia.com/gpucores": "80"}
INFERENCE = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8192", "nvidia.com/gpucores": "20"}


class Placing:
    """allot-scheduler and kube-scheduler, for pods of this file's schedulerName."""

    def __init__(self, cluster, directory):
        self.cluster = cluster
        self.port, = free_ports(1)
        self.log_path = directory / "log"
        self.audit = directory / "audit.log"
        self.config = cluster.kubeconfig("fills.conf", user=f"token: {SCHEDULER_TOKEN}")
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
        """And another in its place."""
        self.process.kill()
        self.process.wait()
        self.start()

    def would_fit(self, node, cores, annotations):
        """Whether a pod that nobody makes would find room there."""
        return would_fit(self.port, node, cores, annotations)

    def shut_for(self, node):
        """The seconds for which that node's only card takes nobody by use; None: what is used of it is not known."""
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
def placing(cluster, build_programs, tmp_path_factory):
    build_programs("etcd", "kube-apiserver", "kube-scheduler")
    placing = Placing(cluster, tmp_path_factory.mktemp("fills"))
    yield placing
    placing.close()


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

    def fill(self, name, **more):
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

    def notes(self, name):
        return self.get(name)["metadata"]["annotations"]

    def events(self, reason):
        return {event["involvedObject"]["name"]: event["message"] for event in self.cluster.events()
                if event["reason"] == reason}

    def event(self, reason, name):
        """The message of a pod's event, once it is written: what it tells of is seen before."""
        return wait_until(lambda: self.events(reason).get(name), 30, f"{name}'s event {reason}")


# ---- one node whose containers compute ----

class Load:
    """A container's program: kernels of 5 ms, one after the other, counted while it runs."""

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


class Worked:
    """How much each has worked between two looks: of kernels of one length, ratios need no clock."""

    def __init__(self, loads):
        self.loads = loads
        self.before = self.kernels()

    def kernels(self):
        return {name: load.kernels for name, load in self.loads.items()}

    def since(self):
        return {name: kernels - self.before[name] for name, kernels in self.kernels().items()}

    def part(self, name):
        since = self.since()
        return since[name] / max(1, sum(since.values()))

    def wait(self, kernels):
        wait_until(lambda: sum(self.since().values()) >= kernels, what=f"{kernels} kernels")
        return self


class Running:
    """A node of a kubelet's stand-in: what is bound is allocated, and started when it is told to."""

    def __init__(self, node, pods):
        self.node = node
        self.pods = pods
        self.loads = {}
        self.answers = {}

    def allocate(self, name):
        wait_until(lambda: self.pods.is_bound(name), 30, f"{name} being bound")
        card, = self.node.uuids()
        self.answers[name], = self.node.plugin.allocate([f"{card}-{len(self.answers)}"])

    def start(self, name):
        self.loads[name] = Load(self.answers[name])

    def end(self, name):
        """As a kubelet does whose pod is gone."""
        if name in self.loads:
            self.loads.pop(name).end()

    def use(self):
        text = self.node.cluster.annotations(self.node.name).get(USE)
        return json.loads(text)["cards"][0] if text else None


@pytest.fixture
def running(make_node, cluster):  # noqa: F811
    # Use is measured over five seconds, so that a moment more than its cap is none.
    node = make_node("kube_use_window = 5s\n", cards="h200")
    path = f"/api/v1/nodes/{node.name}"
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "50", "nvidia.com/gpu": "10"}
    cluster.request("PATCH", f"{path}/status", {"status": {
        "capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}},
        kind="application/merge-patch+json")
    cluster.request("PATCH", path, {"metadata": {"labels": {"of": node.name}}, "spec": {"taints": None}},
                    kind="application/merge-patch+json")
    running = Running(node, Pods(cluster, node.name))
    yield running
    for name in list(running.loads):
        running.end(name)


def test_inference_fills_what_training_leaves(placing, running):
    """Section 25 of the article on gpu-manager (docs/reference/seeds.md), in HAMi's words: 80 % and 80 GiB of a card, 20 % and 8 GiB."""
    pods, node = running.pods, running.node
    pods.make("training", TRAINING)
    running.allocate("training")
    # It is idle, and has been for as long as is looked back.
    wait_until(lambda: running.use() and running.use()["held"] == 80, what=f"its use; {node.daemon.log[-2000:]}")
    names = [f"inference-{i}" for i in range(5)]
    for name in names[:4]:
        pods.fill(name)
        running.allocate(name)
        assert pods.notes(name)[ALLOCATED].endswith(",NVIDIA,8192,0:;")
        assert pods.notes(name)[BORROWED].endswith(",NVIDIA,8192,20:;")
    # 10 % are kept for the training's sake.
    pods.fill(names[4])
    assert "1/1 CardInsufficientCore" in pods.event("FailedScheduling", names[4])
    tenants = node.tenants()
    for name in names[:4]:
        tenant = tenants[f"default.{name}.main"]
        assert tenant["priority"] == -100
        assert (tenant["devices"][0]["cores_pct"], tenant["devices"][0]["cores_limit_pct"]) == (0, 20)
    assert f'allot_scheduler_card_borrowed_ratio{{device_index="0",node="{node.name}"' in placing.get("/metrics")
    # They have the card among themselves.
    for name in names[:4]:
        running.start(name)
    alone = Worked(running.loads).wait(200).since()
    assert all(alone.values()), alone
    # The training works again: it has what it was promised at once, while they are all there.
    began = time.monotonic()
    running.start("training")
    wait_until(lambda: running.loads["training"].kernels, what="the training's first kernel")
    part = Worked(running.loads).wait(300).part("training")
    assert part > 0.72, f"{100 * part:.1f} % of the work, of 80 that were promised"
    # And those go for whom too little is left, the youngest first.
    gone = names[1:4]
    for name in gone:
        wait_until(lambda: pods.get(name) is None, 30, f"the end of {name}; {placing.log}")
        running.end(name)
    seconds = time.monotonic() - began
    assert pods.is_bound(names[0])
    assert "which leaves too little of the 80 %" in [pods.event("FillerEvicted", name) for name in gone][0]
    both = Worked(running.loads).wait(200)
    print(f"training: {100 * part:.1f} % of the work beside four, {100 * both.part('training'):.1f} % beside one; "
          f"three were gone {seconds:.1f} s after its start")
    assert both.since()[names[0]] and pods.is_bound(names[0])
    # Nobody comes in their place.
    assert not pods.is_bound(names[4])
    assert "allot_scheduler_fillers_evicted_total 3" in placing.get("/metrics")


# ---- nodes of which only the use is said ----

class Said:
    """A node without a daemon: its one card's use is what the test says; pods that are bound run."""

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.pods = Pods(cluster, name)
        self.said = 0
        cluster.make_gpu_node(name, [{"id": f"GPU-{name}"}], labels={"of": name})

    def say(self, peak, now, held=80):
        self.said += 1
        self.cluster.patch(f"/api/v1/nodes/{self.name}", {"annotations": {USE: json.dumps(
            {"t": self.said, "cards": [{"id": f"GPU-{self.name}", "peak": peak, "now": now, "held": held, "mem": 0}]})}})

    def run(self, name):
        """As its kubelet and daemon would."""
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
def said(request, cluster):
    said = Said(cluster, request.node.name.replace("_", "-"))
    yield said
    said.close()


def keep_by_budget(cluster, name, allowed):
    """A budget, and what its controller would have made of it."""
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    made = cluster.request("POST", path, {"metadata": {"name": name}, "spec": {
        "minAvailable": 1, "selector": {"matchLabels": {"app": name}}}})
    cluster.request("PATCH", f"{path}/{name}/status", {"status": {
        "observedGeneration": made["metadata"]["generation"], "disruptionsAllowed": allowed, "currentHealthy": 1,
        "desiredHealthy": 1, "expectedPods": 1}}, kind="application/merge-patch+json")
    return f"{path}/{name}"


def test_a_budget_is_kept_to(placing, said, cluster):
    """Who may not be evicted stays, and that is said; another one goes."""
    said.say(0, 0)
    said.pods.make("said-training", {**TRAINING, "nvidia.com/gpumem": "40000"})
    said.run("said-training")
    said.say(0, 0)
    for name in ("said-free", "said-kept"):
        said.pods.fill(name, labels={"app": name})
        said.run(name)
    budget = keep_by_budget(cluster, "said-kept", 0)
    try:
        said.say(80, 80)
        # The youngest would go.
        assert "PodDisruptionBudget" in said.pods.event("FillerEvictionRefused", "said-kept")
        # Another goes in its place.
        wait_until(lambda: said.pods.get("said-free") is None, 30, f"the end of the other; {placing.log}")
        assert said.pods.event("FillerEvicted", "said-free") and said.pods.is_bound("said-kept")
        # Both are in the audit log, which is written before the events.
        refused, = placing.audited("evict", "said-kept")
        assert refused["node"] == said.name and "disruption budget" in refused["refused"]
        gone, = placing.audited("evict", "said-free")
        assert gone["by"] == {"kind": "scheduler"} and "refused" not in gone
        assert "which leaves too little of the 40 %" in gone["reason"]
    finally:
        cluster.request("DELETE", budget)


def test_what_was_decided_outlives_the_scheduler(placing, said, cluster, build_programs):
    """One that starts anew counts promises and what is lent as the one before it did."""
    said.say(0, 0)
    said.pods.make("kept-training", {**TRAINING, "nvidia.com/gpumem": "10000"})
    said.run("kept-training")
    said.say(0, 0)
    said.pods.fill("kept-filler")
    said.run("kept-filler")
    # Another one, that asks the same API; nobody binds by it.
    port, = free_ports(1)
    config = cluster.kubeconfig("again.conf", user=f"token: {SCHEDULER_TOKEN}")
    process = subprocess.Popen([BUILD / "allot-scheduler", "--kube-api", config, "--lease", "none", "--http-listen",
                                f"127.0.0.1:{port}", "--place-by-use", "on"], stdin=subprocess.DEVNULL)

    def ask(cores, annotations):
        return would_fit(port, said.name, cores, annotations)

    def is_ready():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10):
                return True
        except (OSError, urllib.error.HTTPError):
            return False

    try:
        wait_until(is_ready, what="the other one")
        # By promises there are 20 left, whatever is lent of them; what the node has said before counts for nothing yet.
        assert ask(20, {}) and not ask(21, {})
        assert not ask(1, BY_USE)
        said.say(0, 0)
        wait_until(lambda: ask(70, BY_USE), what="the use being known")
        assert not ask(71, BY_USE)
    finally:
        process.terminate()
        assert process.wait(timeout=20) == 0


def test_a_card_stays_shut_past_a_restart(placing, said, cluster):
    """Who was sent away does not come back because the scheduler was killed: the node says which cards are shut."""
    path = f"/api/v1/nodes/{said.name}"
    said.say(0, 0)
    said.pods.make("shut-training", {**TRAINING, "nvidia.com/gpumem": "10000"})
    said.run("shut-training")
    said.say(0, 0)
    said.pods.fill("shut-filler")
    said.run("shut-filler")
    assert SHUT not in cluster.annotations(said.name)
    before_s = time.time()
    said.say(95, 95)
    wait_until(lambda: said.pods.get("shut-filler") is None, 30, f"the filler's end; {placing.log}")
    wait_until(lambda: SHUT in cluster.annotations(said.name), what="the node saying so")
    card, = json.loads(cluster.annotations(said.name)[SHUT])["cards"]
    assert card["id"] == f"GPU-{said.name}" and card["rounds"] == 1
    assert before_s + 590 < card["until"] < time.time() + 610
    said.say(0, 0)
    assert not placing.would_fit(said.name, 1, BY_USE)
    placing.kill()
    # What the node has said before counts for nothing yet; twice, and the card's use is known.
    said.say(0, 0)
    said.say(0, 0)
    wait_until(lambda: placing.shut_for(said.name) is not None, what="its use being known")
    assert 500 < placing.shut_for(said.name) <= 600
    assert not placing.would_fit(said.name, 1, BY_USE)
    assert placing.would_fit(said.name, 20, {})
    # It is the annotation that did it: without it the card is open.
    cluster.request("PATCH", path, {"metadata": {"annotations": {SHUT: None}}}, kind="application/merge-patch+json")
    wait_until(lambda: placing.would_fit(said.name, 1, BY_USE), what="the card being open")


def test_who_wants_a_promise_goes_first(placing, said, cluster):
    """Memory that a filler has is had back for a pod that is not placed by use, without any priorities."""
    said.say(0, 0, 0)
    wait_until(lambda: "allot_scheduler_nodes" in (placing.get("/metrics") or ""), what="the node")
    said.say(0, 0, 0)
    said.pods.make("ahead-filler", {**INFERENCE, "nvidia.com/gpumem": "70000"}, {"allot.dev/placement": "use"})
    said.run("ahead-filler")
    assert said.pods.notes("ahead-filler")[BORROWED].endswith(",70000,20:;")
    said.pods.make("ahead-pod", {**TRAINING, "nvidia.com/gpumem": "40000"})
    wait_until(lambda: said.pods.get("ahead-filler") is None, 30, f"the filler's end; {placing.log}")
    assert "a pod with a guaranteed share needs" in said.pods.event("FillerEvicted", "ahead-filler")
    said.run("ahead-pod")
    assert said.pods.notes("ahead-pod")[ALLOCATED].endswith(",NVIDIA,40000,80:;")
