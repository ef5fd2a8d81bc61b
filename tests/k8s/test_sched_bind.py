"""allot-scheduler's writes when it binds a pod, with a real API server: HAMi's annotations, the node's lock, the Binding and
events; also if another scheduler writes at the same time, or the API server is unreachable."""

import os
import re
import select
import subprocess
import time

import pytest

from cluster import SCHEDULER_TOKEN, ApiError
from machines import BUILD, wait_until
from api_proxy import ApiProxy

LOCK = "hami.io/mutex.lock"
PHASE = "hami.io/bind-phase"
NODE = "hami.io/vgpu-node"
REGISTER = "hami.io/node-nvidia-register"
REGISTERED = '[{"id": "GPU-a"}, {"id": "GPU-b"}]'
SHARES = "GPU-a,NVIDIA,3000,30:;"


def make_gpu_node(cluster, name):
    cluster.make_node(name, {REGISTER: REGISTERED})


def timestamp_before(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds))


class Binder:
    """Runs kube-sched-bind, which acts as one scheduler of the cluster."""

    def __init__(self, kubeconfig, limit_s=20, lock_expiry_s=300):
        self.process = subprocess.Popen([BUILD / "kube-sched-bind", kubeconfig, str(limit_s), str(lock_expiry_s)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.text = b""
        self.lines = []  # not yet returned by wait_for()

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)).encode() + b"\n")

    def wait_for(self, *beginnings, seconds=40):
        """Removes and returns the first line with one of these beginnings. Other lines are kept for later calls."""
        deadline = time.monotonic() + seconds
        while True:
            for line in self.lines:
                if line.startswith(beginnings):
                    self.lines.remove(line)
                    return line
            assert select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0], (
                f"no line begins with {beginnings}", self.lines)
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, "kube-sched-bind has ended"
            *lines, self.text = (self.text + more).split(b"\n")
            self.lines += [line.decode() for line in lines]

    def begin(self, pod, node, shares=SHARES, uid=None):
        meta = pod["metadata"]
        self.send("bind", meta["namespace"], meta["name"], uid or meta["uid"], node, shares)
        return self.wait_for("begun", "error")

    def bind(self, pod, node, shares=SHARES, uid=None):
        assert self.begin(pod, node, shares, uid) == "begun"
        return self.wait_for("bound", "failed")

    def status(self, pod):
        """[what follows "status" in kube-sched-bind's answer]"""
        self.send("status", pod["metadata"]["uid"])
        return self.wait_for("status").split()[1:]

    def waits_for_lock(self, pod):
        """Whether the pod is the first of its node's queue, and the node has another pod's lock."""
        before, *lock = self.status(pod)
        return before == "0" and lock != ["-"]

    def close(self):
        self.process.stdin.close()
        ended = self.process.wait(timeout=20)
        self.process.stdout.close()
        return ended


@pytest.fixture
def proxy(cluster):
    proxy = ApiProxy(cluster.port)
    yield proxy
    proxy.close()


@pytest.fixture
def make_binder(request, cluster):
    binders = []

    def make(port=None, **more):
        path = cluster.kubeconfig(f"{request.node.name}-{len(binders)}.conf", port, f"token: {SCHEDULER_TOKEN}")
        binders.append(Binder(path, **more))
        return binders[-1]

    yield make
    assert [binder.close() for binder in binders] == [0] * len(binders)


@pytest.fixture
def binder(make_binder, proxy):
    return make_binder(proxy.port)


@pytest.fixture
def node(request, cluster):
    name = "bind-" + re.sub("[^a-z0-9]+", "-", request.node.name).strip("-")
    make_gpu_node(cluster, name)
    return name


def events_of(cluster, pod, count=1):
    def found():
        events = [event for event in cluster.events() if event["involvedObject"]["uid"] == pod["metadata"]["uid"]]
        return events if len(events) >= count else None

    return wait_until(found, what="an event")


def lock_of(cluster, node):
    return cluster.annotations(node).get(LOCK)


def test_binding_writes_annotations_lock_and_event(cluster, binder, node):
    pod = cluster.make_pod("plain", annotations={"nvidia.com/use-gputype": "A100"}, containers=("main", "log"))
    shares = "GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;;"
    before = int(time.time())
    assert binder.bind(pod, node, shares) == "bound plain"
    after = int(time.time())
    bound = cluster.pod("plain")
    assert bound["spec"]["nodeName"] == node
    annotations = bound["metadata"]["annotations"]
    times = [int(annotations.pop(name)) for name in ("hami.io/bind-time", "hami.io/vgpu-time")]
    assert all(before <= when <= after for when in times)
    assert annotations == {NODE: node, PHASE: "allocating", "hami.io/vgpu-devices-to-allocate": shares,
                           "hami.io/vgpu-devices-allocated": shares, "nvidia.com/use-gputype": "A100"}
    assert bound["metadata"]["labels"] == {NODE: node}
    since, *owner = lock_of(cluster, node).split(",")
    assert owner == ["default", "plain"]
    assert timestamp_before(after - before + 5) <= since <= timestamp_before(0)
    event, = events_of(cluster, pod)
    assert (event["type"], event["reason"]) == ("Normal", "BindingSucceed")
    assert event["message"] == f"Successfully binding node [{node}] to default/plain"
    assert event["source"] == {"component": "allot-scheduler"}


@pytest.mark.parametrize("registered", [None, '[{"id": "GPU-b"}]'], ids=["none", "other"])
def test_node_that_has_withdrawn_its_gpus(cluster, binder, node, registered):
    """A daemon withdraws its GPUs when it shuts down, and then waits only for pods that have already locked the node."""
    pod = cluster.make_pod(f"withdrawn-{int(registered is None)}")
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {REGISTER: registered}})
    assert binder.bind(pod, node).startswith("failed ")
    event, = events_of(cluster, pod)
    assert "no longer offers GPU GPU-a" in event["message"]
    assert not lock_of(cluster, node) and "nodeName" not in cluster.pod(pod["metadata"]["name"])["spec"]


def test_pod_without_shares_is_only_bound(cluster, binder, node):
    pod = cluster.make_pod("no-gpus")
    assert binder.bind(pod, node, "-") == "bound no-gpus"
    bound = cluster.pod("no-gpus")
    assert bound["spec"]["nodeName"] == node
    assert not bound["metadata"].get("annotations") and not bound["metadata"].get("labels")
    assert not lock_of(cluster, node)


def test_long_node_name_is_not_written_as_label(cluster, binder):
    name = "n" * 60 + "." + "m" * 60
    make_gpu_node(cluster, name)
    pod = cluster.make_pod("far")
    assert binder.bind(pod, name) == "bound far"
    assert cluster.pod("far")["metadata"]["annotations"][NODE] == name
    assert not cluster.pod("far")["metadata"].get("labels")


def release(cluster, node, pod):
    """Ends an allocation, as the device plugin does when the last container has its shares."""
    cluster.patch(f"/api/v1/namespaces/default/pods/{pod}", {"annotations": {PHASE: "success"}})
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {LOCK: None}})


def test_pods_of_a_node_are_bound_one_after_the_other(cluster, binder, node):
    """The second pod waits until the first has its GPUs. A pod for another node does not wait."""
    make_gpu_node(cluster, f"{node}-2")
    pods = [cluster.make_pod(name) for name in ("queue-1", "queue-2", "queue-3")]
    assert binder.bind(pods[0], node) == "bound queue-1"
    assert binder.begin(pods[1], node) == "begun"
    assert binder.bind(pods[2], f"{node}-2") == "bound queue-3"
    wait_until(lambda: binder.waits_for_lock(pods[1]), what="the wait for the lock")
    assert not cluster.pod("queue-2")["spec"].get("nodeName")
    assert lock_of(cluster, node).endswith("default,queue-1")
    release(cluster, node, "queue-1")
    assert binder.wait_for("bound", "failed") == "bound queue-2"
    assert lock_of(cluster, node).endswith("default,queue-2")


def test_watch_reports_the_release_of_a_lock(cluster, binder, node):
    """With a watch the next pod is bound at once, without waiting for the next poll. The test prints how long it takes."""
    pods = [cluster.make_pod(name) for name in ("seen-1", "seen-2")]
    binder.send("feed")
    binder.wait_for("ready")
    assert binder.bind(pods[0], node) == "bound seen-1"
    binder.begin(pods[1], node)
    wait_until(lambda: binder.waits_for_lock(pods[1]))
    time.sleep(3)  # polls are two seconds apart by now
    release(cluster, node, "seen-1")
    began = time.monotonic()
    assert binder.wait_for("bound", "failed") == "bound seen-2"
    print(f"bound {time.monotonic() - began:.3f} s after the release")


def test_two_binders_contend(cluster, make_binder, node):
    """Two schedulers bind pods to one node. At any time only one pod is being allocated."""
    binders = [make_binder(), make_binder()]
    names = [f"contend-{i}" for i in range(8)]
    for i, name in enumerate(names):
        assert binders[i % 2].begin(cluster.make_pod(name), node) == "begun"
    for _ in names:
        holder = wait_until(lambda: lock_of(cluster, node), what="a lock").split(",")[2]
        wait_until(lambda: cluster.pod(holder)["spec"].get("nodeName"), what=f"the binding of {holder}")
        allocating = [name for name in names
                      if cluster.pod(name)["metadata"].get("annotations", {}).get(PHASE) == "allocating"]
        assert allocating == [holder]
        release(cluster, node, holder)
    answers = sorted(binder.wait_for("bound", "failed") for binder in binders for _ in range(4))
    assert answers == sorted(f"bound {name}" for name in names)


def test_binding_fails_if_the_lock_is_not_released(cluster, make_binder, node):
    """A binding that does not get the lock within its limit writes nothing to the pod."""
    holder = cluster.make_pod("holder")
    waiting = [cluster.make_pod("late-1"), cluster.make_pod("late-2")]
    binder = make_binder(limit_s=2)
    text = f"{timestamp_before(10)},default,holder"
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {LOCK: text}})
    for pod in waiting:
        binder.begin(pod, node)
    first, second = sorted(binder.wait_for("failed", "bound") for _ in waiting)
    assert first.startswith(f"failed late-1 EBUSY node {node}: pod default/holder holds the node's lock "
                            f"(hami.io/mutex.lock is '{text}')")
    assert second.startswith("failed late-2 EBUSY node " + node)
    assert lock_of(cluster, node) == text
    event, = events_of(cluster, waiting[0])
    assert (event["type"], event["reason"]) == ("Warning", "BindingFailed")
    assert event["message"].startswith(f"node {node}: pod default/holder holds the node's lock")
    assert not cluster.pod("late-1")["metadata"].get("annotations")
    assert cluster.pod("holder")["metadata"]["uid"] == holder["metadata"]["uid"]


@pytest.mark.parametrize("case", ["expired", "pod-gone", "pod-on-other-node", "allocated", "ended", "time-alone"])
def test_stale_lock_is_taken_over(cluster, make_binder, case):
    name = f"left-{case}"
    make_gpu_node(cluster, name)
    holder = f"holder-{case}"
    if case == "pod-on-other-node":
        cluster.make_pod(holder, node="elsewhere")
    elif case == "allocated":
        cluster.make_pod(holder, node=name, annotations={PHASE: "success"})
    elif case != "pod-gone":
        cluster.make_pod(holder, node=name)
    if case == "ended":
        path = f"/api/v1/namespaces/default/pods/{holder}/status"
        cluster.request("PATCH", path, {"status": {"phase": "Failed"}}, kind="application/merge-patch+json")
    old = case in ("expired", "time-alone")
    text = timestamp_before(400 if old else 1) + ("" if case == "time-alone" else f",default,{holder}")
    cluster.patch(f"/api/v1/nodes/{name}", {"annotations": {LOCK: text}})
    binder = make_binder()
    assert binder.bind(cluster.make_pod(f"heir-{case}"), name) == f"bound heir-{case}"
    assert lock_of(cluster, name).endswith(f",default,heir-{case}")


@pytest.mark.parametrize("name", ["broken", "ahead"])
def test_lock_without_a_usable_time_expires(cluster, make_binder, name):
    """A malformed lock, or one with a time in the future, expires by the time for which this scheduler has seen it."""
    text = "broken" if name == "broken" else f"{timestamp_before(-100000)},default,holder-ahead"
    make_gpu_node(cluster, name)
    cluster.make_pod(f"holder-{name}")
    cluster.patch(f"/api/v1/nodes/{name}", {"annotations": {LOCK: text}})
    binder = make_binder(lock_expiry_s=1)
    began = time.monotonic()
    assert binder.bind(cluster.make_pod(f"heir-of-{name}"), name) == f"bound heir-of-{name}"
    assert time.monotonic() - began > 1


def test_lock_that_the_pod_already_has(cluster, binder, node):
    """A scheduler that was killed after it had written the lock leaves such a lock."""
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {LOCK: f"{timestamp_before(20)},default,again"}})
    assert binder.bind(cluster.make_pod("again"), node) == "bound again"
    assert lock_of(cluster, node) > timestamp_before(15), "the lock must have the time of the new binding"


def test_owner_of_the_lock_is_bound_first(cluster, binder, node):
    """After a restart of the scheduler, the pod that has the lock may be tried behind others that wait for it."""
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {LOCK: f"{timestamp_before(5)},default,behind-3"}})
    pods = [cluster.make_pod(f"behind-{i}") for i in range(1, 4)]
    binder.begin(pods[0], node)
    binder.begin(pods[1], node)
    wait_until(lambda: binder.waits_for_lock(pods[0]))
    assert binder.status(pods[1])[0] == "1"
    binder.begin(pods[2], node)
    assert binder.wait_for("bound", "failed") == "bound behind-3"
    for name, after in (("behind-3", "behind-1"), ("behind-1", "behind-2")):
        release(cluster, node, name)
        assert binder.wait_for("bound", "failed") == f"bound {after}"


def test_concurrent_changes_are_kept(cluster, binder, node):
    """Other clients change the node and the pod during the binding: their changes are kept."""
    pod = cluster.make_pod("bind-busy")
    binder.begin(pod, node)
    for beat in range(20):
        cluster.patch("/api/v1/namespaces/default/pods/bind-busy", {"annotations": {"beat": str(beat)}})
        cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {"beat": str(beat)}})
    assert binder.wait_for("bound", "failed") == "bound bind-busy"
    annotations = cluster.pod("bind-busy")["metadata"]["annotations"]
    assert annotations["beat"] == "19" and annotations[PHASE] == "allocating"
    assert cluster.annotations(node)["beat"] == "19"


def test_pod_that_another_scheduler_has_bound(cluster, binder, node):
    pod = cluster.make_pod("bound-elsewhere")
    cluster.request("POST", "/api/v1/namespaces/default/pods/bound-elsewhere/binding",
                    {"metadata": {"name": "bound-elsewhere"}, "target": {"kind": "Node", "name": "elsewhere"}})
    answer = binder.bind(pod, node)
    assert answer == ("failed bound-elsewhere ESTALE pod default/bound-elsewhere: "
                      f"is already bound to node elsewhere, not to {node}")
    assert not cluster.pod("bound-elsewhere")["metadata"].get("annotations")
    assert not lock_of(cluster, node)


def test_new_pod_of_the_same_name_is_not_bound(cluster, binder, node):
    pod = cluster.make_pod("twin")
    answer = binder.bind(pod, node, uid="11111111-2222-3333-4444-555555555555")
    assert answer.startswith("failed twin ESTALE pod default/twin: was deleted and created again")
    assert not lock_of(cluster, node)


def test_deleted_node_and_deleted_pod(cluster, binder, node):
    pod = cluster.make_pod("bind-brief")
    assert binder.bind(pod, "no-such-node") == "failed bind-brief ENOENT node no-such-node: no longer exists"
    cluster.delete_pod("bind-brief")
    assert binder.bind(pod, node) == "failed bind-brief ENOENT pod default/bind-brief: no longer exists"
    assert not lock_of(cluster, node)


def test_failure_is_undone(cluster, binder, node):
    """A policy of the server refuses the Binding, when the lock and the annotations are already written."""
    policy = {"metadata": {"name": "no-binding"}, "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                                                "resources": ["pods/binding"]}]},
        "validations": [{"expression": f"object.target.name != '{node}'", "message": "not there"}]}}
    group = "/apis/admissionregistration.k8s.io/v1"
    cluster.request("POST", f"{group}/validatingadmissionpolicies", policy)
    cluster.request("POST", f"{group}/validatingadmissionpolicybindings", {
        "metadata": {"name": "no-binding"}, "spec": {"policyName": "no-binding", "validationActions": ["Deny"]}})
    try:
        def refused():
            try:
                cluster.request("POST", "/api/v1/namespaces/default/pods/none/binding",
                                {"metadata": {"name": "none"}, "target": {"kind": "Node", "name": node}})
            except ApiError as error:
                return error.status == 422

        wait_until(refused, what="the policy")
        pod = cluster.make_pod("refused")
        answer = binder.bind(pod, node)
        assert answer.startswith("failed refused EINVAL pod default/refused: POST ") and "not there" in answer
        annotations = cluster.pod("refused")["metadata"]["annotations"]
        assert annotations[PHASE] == "failed"
        assert not lock_of(cluster, node)
        event, = events_of(cluster, pod)
        assert event["reason"] == "BindingFailed" and "not there" in event["message"]
    finally:
        cluster.request("DELETE", f"{group}/validatingadmissionpolicybindings/no-binding")
        cluster.request("DELETE", f"{group}/validatingadmissionpolicies/no-binding")


def test_same_pod_twice_at_once(cluster, binder, proxy, node):
    pod = cluster.make_pod("twice-asked")
    proxy.refuse()
    assert binder.begin(pod, node) == "begun"
    assert binder.begin(pod, node) == "error EALREADY"
    proxy.accept()
    assert binder.wait_for("bound", "failed") == "bound twice-asked"


def test_binding_waits_for_an_unreachable_server(cluster, binder, proxy, node):
    pod = cluster.make_pod("bind-patient")
    proxy.refuse()
    binder.begin(pod, node)
    time.sleep(0.5)
    proxy.accept()
    assert binder.wait_for("bound", "failed") == "bound bind-patient"
    assert cluster.pod("bind-patient")["spec"]["nodeName"] == node


def test_pods_are_bound_while_connections_are_cut(cluster, make_binder, proxy):
    """Answers are lost at any step. Every pod is bound once, with its annotations."""
    binder = make_binder(proxy.port, limit_s=30)
    names = [f"cut-{i}" for i in range(12)]
    for name in names:
        make_gpu_node(cluster, name)
        assert binder.begin(cluster.make_pod(name), name) == "begun"
    for _ in range(25):
        time.sleep(0.02)
        proxy.cut()
    answers = sorted(binder.wait_for("bound", "failed") for _ in names)
    assert answers == sorted(f"bound {name}" for name in names)
    for name in names:
        pod = cluster.pod(name)
        assert pod["spec"]["nodeName"] == name == pod["metadata"]["annotations"][NODE]
        assert lock_of(cluster, name).endswith(f",default,{name}")


def test_binding_fails_at_its_limit_without_a_server(cluster, make_binder, proxy, node):
    """The binding fails at its limit, and succeeds when it is tried again."""
    binder = make_binder(proxy.port, limit_s=1)
    pod = cluster.make_pod("lost")
    proxy.refuse()
    assert binder.bind(pod, node).startswith("failed lost E")
    proxy.accept()
    assert not cluster.pod("lost")["spec"].get("nodeName")
    assert binder.bind(pod, node) == "bound lost"


def test_nothing_is_written_after_leadership_is_lost(cluster, binder, node):
    """Unfinished bindings are cancelled without a write: the next leader takes them over."""
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {LOCK: f"{timestamp_before(1)},default,leader-holder"}})
    cluster.make_pod("leader-holder")
    first, second = cluster.make_pod("cut-off-1"), cluster.make_pod("cut-off-2")
    binder.begin(first, node)
    binder.begin(second, node)
    wait_until(lambda: binder.waits_for_lock(first))
    binder.send("follow", "on")
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {LOCK: None}})
    answers = [binder.wait_for("failed", "bound") for _ in range(2)]
    assert [answer.split()[:3] for answer in answers] == [["failed", "cut-off-1", "ECANCELED"],
                                                          ["failed", "cut-off-2", "ECANCELED"]]
    assert not lock_of(cluster, node)
    assert not cluster.pod("cut-off-1")["metadata"].get("annotations")
    binder.send("follow", "off")
    binder.begin(first, node)
    binder.send("cancel")
    assert binder.wait_for("bound", "failed").startswith(("failed cut-off-1 ECANCELED", "bound cut-off-1"))
    assert binder.status(first) == binder.status(second) == ["none"]


def test_many_nodes_at_once(cluster, make_binder):
    """There are more nodes than calls in flight are allowed; all pods are bound."""
    binder = make_binder(limit_s=60)
    names = [f"at-once-{i}" for i in range(60)]
    pods = []
    for name in names:
        make_gpu_node(cluster, name)
        pods.append(cluster.make_pod(name))
    began = time.monotonic()
    for name, pod in zip(names, pods):
        assert binder.begin(pod, name) == "begun"
    answers = sorted(binder.wait_for("bound", "failed") for _ in names)
    print(f"{len(names)} pods bound in {time.monotonic() - began:.2f} s")
    assert answers == sorted(f"bound {name}" for name in names)


def test_feed_reports_lists_and_changes(cluster, binder):
    """A pod that has ended is reported as removed. An object that can't be read does not stop the feed."""
    cluster.make_node("fed-1")
    cluster.make_node("fed-2", labels={"unreadable": "yes"})
    cluster.make_pod("fed-pod")
    binder.send("feed")
    for line in ("begin nodes", "begin pods", "node fed-1", "node fed-2", "pod fed-pod", "synced nodes", "synced pods",
                 "ready"):
        binder.wait_for(line)
    cluster.make_node("fed-3")
    binder.wait_for("node fed-3")
    cluster.request("DELETE", "/api/v1/nodes/fed-3")
    binder.wait_for("node-gone fed-3")
    cluster.request("PATCH", "/api/v1/namespaces/default/pods/fed-pod/status", {"status": {"phase": "Succeeded"}},
                    kind="application/merge-patch+json")
    binder.wait_for("pod-gone fed-pod")


def test_server_restarted_during_bindings(cluster, make_binder):
    """This test is the last one, because others would have to wait for the server."""
    binder = make_binder(limit_s=60)
    names = [f"restart-{i}" for i in range(10)]
    pods = []
    for name in names:
        make_gpu_node(cluster, name)
        pods.append(cluster.make_pod(name))
    for name, pod in zip(names, pods):
        assert binder.begin(pod, name) == "begun"
    first = binder.wait_for("bound")
    cluster.restart_apiserver()
    answers = sorted([first, *(binder.wait_for("bound", "failed", seconds=70) for _ in names[1:])])
    assert answers == sorted(f"bound {name}" for name in names)
    for name in names:
        pod = cluster.pod(name)
        assert pod["spec"]["nodeName"] == name == pod["metadata"]["annotations"][NODE]
