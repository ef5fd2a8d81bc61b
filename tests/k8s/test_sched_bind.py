"""What the scheduler writes when it binds a pod, against a real API server: HAMi's annotations, the node's lock and its owner,
the Binding, and events; also when another scheduler is faster, or the API server can't be reached."""

import os
import re
import select
import subprocess
import time

import pytest

from cluster import SCHEDULER_TOKEN, ApiError
from machines import BUILD, wait_until
from door import Door

LOCK = "hami.io/mutex.lock"
PHASE = "hami.io/bind-phase"
NODE = "hami.io/vgpu-node"
REGISTER = "hami.io/node-nvidia-register"
OFFERED = '[{"id": "GPU-a"}, {"id": "GPU-b"}]'
SHARES = "GPU-a,NVIDIA,3000,30:;"


def offer(cluster, name):
    cluster.make_node(name, {REGISTER: OFFERED})


def ago(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds))


class Binder:
    """kube-sched-bind, as one scheduler of a cluster."""

    def __init__(self, kubeconfig, limit_s=20, lock_expiry_s=300):
        self.process = subprocess.Popen([BUILD / "kube-sched-bind", kubeconfig, str(limit_s), str(lock_expiry_s)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.text = b""
        self.lines = []  # that nobody has waited for yet

    def say(self, *words):
        self.process.stdin.write(" ".join(map(str, words)).encode() + b"\n")

    def hear(self, *beginnings, seconds=40):
        """The next line that begins so; others wait for who asks for them."""
        deadline = time.monotonic() + seconds
        while True:
            for line in self.lines:
                if line.startswith(beginnings):
                    self.lines.remove(line)
                    return line
            assert select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0], (
                f"nothing like {beginnings}", self.lines)
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, "kube-sched-bind has ended"
            *lines, self.text = (self.text + more).split(b"\n")
            self.lines += [line.decode() for line in lines]

    def begin(self, pod, node, shares=SHARES, uid=None):
        meta = pod["metadata"]
        self.say("bind", meta["namespace"], meta["name"], uid or meta["uid"], node, shares)
        return self.hear("begun", "error")

    def bind(self, pod, node, shares=SHARES, uid=None):
        assert self.begin(pod, node, shares, uid) == "begun"
        return self.hear("bound", "failed")

    def counts(self):
        self.say("counts")
        names = ("succeeded", "failed", "cancelled", "conflicts", "waited", "taken_over", "under_way", "waiting")
        return dict(zip(names, map(int, self.hear("counts").split()[1:])))

    def close(self):
        self.process.stdin.close()
        ended = self.process.wait(timeout=20)
        self.process.stdout.close()
        return ended


@pytest.fixture
def door(cluster):
    door = Door(cluster.port)
    yield door
    door.close()


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
def binder(make_binder, door):
    return make_binder(door.port)


@pytest.fixture
def node(request, cluster):
    name = "bind-" + re.sub("[^a-z0-9]+", "-", request.node.name).strip("-")
    offer(cluster, name)
    return name


def events_of(cluster, pod, count=1):
    def found():
        events = [event for event in cluster.events() if event["involvedObject"]["uid"] == pod["metadata"]["uid"]]
        return events if len(events) >= count else None

    return wait_until(found, what="an event")


def lock_of(cluster, node):
    return cluster.annotations(node).get(LOCK)


def test_what_is_written(cluster, binder, node):
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
    since, *whose = lock_of(cluster, node).split(",")
    assert whose == ["default", "plain"]
    assert ago(after - before + 5) <= since <= ago(0)
    event, = events_of(cluster, pod)
    assert (event["type"], event["reason"]) == ("Normal", "BindingSucceed")
    assert event["message"] == f"Successfully binding node [{node}] to default/plain"
    assert event["source"] == {"component": "allot-scheduler"}


@pytest.mark.parametrize("offered", [None, '[{"id": "GPU-b"}]'], ids=["none", "other"])
def test_node_that_has_taken_back_its_cards(cluster, binder, node, offered):
    """A daemon that ends has: after that it waits for nobody who has not locked its node yet."""
    pod = cluster.make_pod(f"withdrawn-{int(offered is None)}")
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {REGISTER: offered}})
    assert binder.bind(pod, node).startswith("failed ")
    event, = events_of(cluster, pod)
    assert "no longer offers GPU GPU-a" in event["message"]
    assert not lock_of(cluster, node) and "nodeName" not in cluster.pod(pod["metadata"]["name"])["spec"]


def test_pod_without_shares_is_only_bound(cluster, binder, node):
    pod = cluster.make_pod("no-cards")
    assert binder.bind(pod, node, "-") == "bound no-cards"
    bound = cluster.pod("no-cards")
    assert bound["spec"]["nodeName"] == node
    assert not bound["metadata"].get("annotations") and not bound["metadata"].get("labels")
    assert not lock_of(cluster, node)


def test_long_node_name_is_no_label(cluster, binder):
    name = "n" * 60 + "." + "m" * 60
    offer(cluster, name)
    pod = cluster.make_pod("far")
    assert binder.bind(pod, name) == "bound far"
    assert cluster.pod("far")["metadata"]["annotations"][NODE] == name
    assert not cluster.pod("far")["metadata"].get("labels")


def release(cluster, node, pod):
    """As the device plugin does when the last container has its shares."""
    cluster.patch(f"/api/v1/namespaces/default/pods/{pod}", {"annotations": {PHASE: "success"}})
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {LOCK: None}})


def test_one_pod_after_the_other(cluster, binder, node):
    """The second waits until the first has its cards; another node's does not."""
    offer(cluster, f"{node}-2")
    pods = [cluster.make_pod(name) for name in ("queue-1", "queue-2", "queue-3")]
    assert binder.bind(pods[0], node) == "bound queue-1"
    assert binder.begin(pods[1], node) == "begun"
    assert binder.bind(pods[2], f"{node}-2") == "bound queue-3"
    wait_until(lambda: binder.counts()["waited"] == 1, what="the wait for the lock")
    assert not cluster.pod("queue-2")["spec"].get("nodeName")
    assert lock_of(cluster, node).endswith("default,queue-1")
    release(cluster, node, "queue-1")
    assert binder.hear("bound", "failed") == "bound queue-2"
    assert lock_of(cluster, node).endswith("default,queue-2")


def test_release_is_seen_by_the_watch(cluster, binder, node):
    """No look at the lock is needed: the watch tells of its end."""
    pods = [cluster.make_pod(name) for name in ("seen-1", "seen-2")]
    binder.say("feed")
    binder.hear("ready")
    assert binder.bind(pods[0], node) == "bound seen-1"
    binder.begin(pods[1], node)
    wait_until(lambda: binder.counts()["waited"] == 1)
    time.sleep(3)  # looks are two seconds apart by now
    release(cluster, node, "seen-1")
    began = time.monotonic()
    assert binder.hear("bound", "failed") == "bound seen-2"
    print(f"bound {time.monotonic() - began:.3f} s after the release")


def test_two_binders_contend(cluster, make_binder, node):
    """Each binds its pods; at every moment the node has one pod that waits for its cards."""
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
    heard = sorted(binder.hear("bound", "failed") for binder in binders for _ in range(4))
    assert heard == sorted(f"bound {name}" for name in names)


def test_lock_that_is_not_released(cluster, make_binder, node):
    """A binding that can't have the lock in its time leaves nothing behind."""
    holder = cluster.make_pod("holder")
    waiting = [cluster.make_pod("late-1"), cluster.make_pod("late-2")]
    binder = make_binder(limit_s=2)
    text = f"{ago(10)},default,holder"
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {LOCK: text}})
    for pod in waiting:
        binder.begin(pod, node)
    first, second = sorted(binder.hear("failed", "bound") for _ in waiting)
    assert first.startswith(f"failed late-1 EBUSY node {node}: pod default/holder holds the node's lock (hami.io/mutex.lock is '{text}')")
    assert second.startswith("failed late-2 EBUSY node " + node)
    assert lock_of(cluster, node) == text
    event, = events_of(cluster, waiting[0])
    assert (event["type"], event["reason"]) == ("Warning", "BindingFailed")
    assert event["message"].startswith(f"node {node}: pod default/holder holds the node's lock")
    assert not cluster.pod("late-1")["metadata"].get("annotations")
    assert cluster.pod("holder")["metadata"]["uid"] == holder["metadata"]["uid"]


@pytest.mark.parametrize("case", ["expired", "pod-gone", "pod-on-other-node", "allocated", "ended", "time-alone"])
def test_lock_that_was_left(cluster, make_binder, case):
    name = f"left-{case}"
    offer(cluster, name)
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
    text = ago(400 if old else 1) + ("" if case == "time-alone" else f",default,{holder}")
    cluster.patch(f"/api/v1/nodes/{name}", {"annotations": {LOCK: text}})
    binder = make_binder()
    assert binder.bind(cluster.make_pod(f"heir-{case}"), name) == f"bound heir-{case}"
    assert lock_of(cluster, name).endswith(f",default,heir-{case}")
    assert binder.counts()["taken_over"] == 1


@pytest.mark.parametrize("text", ["broken", f"{ago(-100000)},default,holder-ahead"])
def test_lock_that_never_expires_by_its_text(cluster, make_binder, text):
    """A broken one, and one of a clock that goes wrong, end by our own."""
    name = "ahead" if "," in text else "broken"
    offer(cluster, name)
    cluster.make_pod(f"holder-{name}")
    cluster.patch(f"/api/v1/nodes/{name}", {"annotations": {LOCK: text}})
    binder = make_binder(lock_expiry_s=1)
    began = time.monotonic()
    assert binder.bind(cluster.make_pod(f"heir-of-{name}"), name) == f"bound heir-of-{name}"
    assert time.monotonic() - began > 1


def test_lock_is_the_pods_own(cluster, binder, node):
    """Of a scheduler that was killed after it had written the lock."""
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {LOCK: f"{ago(20)},default,again"}})
    assert binder.bind(cluster.make_pod("again"), node) == "bound again"
    assert lock_of(cluster, node) > ago(15), "it is as new as the binding"
    assert binder.counts()["waited"] == 0


def test_lock_of_one_that_waits_behind(cluster, binder, node):
    """As after a scheduler's end: who has the lock comes again, behind others that wait for it. It goes first."""
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {LOCK: f"{ago(5)},default,behind-3"}})
    pods = [cluster.make_pod(f"behind-{i}") for i in range(1, 4)]
    binder.begin(pods[0], node)
    binder.begin(pods[1], node)
    wait_until(lambda: binder.counts()["waited"] == 1)
    binder.begin(pods[2], node)
    assert binder.hear("bound", "failed") == "bound behind-3"
    for name, after in (("behind-3", "behind-1"), ("behind-1", "behind-2")):
        release(cluster, node, name)
        assert binder.hear("bound", "failed") == f"bound {after}"


def test_somebody_is_faster(cluster, binder, node):
    """Node and pod change all the time: what others write stays."""
    pod = cluster.make_pod("bind-busy")
    binder.begin(pod, node)
    for beat in range(20):
        cluster.patch("/api/v1/namespaces/default/pods/bind-busy", {"annotations": {"beat": str(beat)}})
        cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {"beat": str(beat)}})
    assert binder.hear("bound", "failed") == "bound bind-busy"
    annotations = cluster.pod("bind-busy")["metadata"]["annotations"]
    assert annotations["beat"] == "19" and annotations[PHASE] == "allocating"
    assert cluster.annotations(node)["beat"] == "19"


def test_other_scheduler_bound_it(cluster, binder, node):
    pod = cluster.make_pod("bound-elsewhere")
    cluster.request("POST", "/api/v1/namespaces/default/pods/bound-elsewhere/binding",
                    {"metadata": {"name": "bound-elsewhere"}, "target": {"kind": "Node", "name": "elsewhere"}})
    answer = binder.bind(pod, node)
    assert answer == (f"failed bound-elsewhere ESTALE pod default/bound-elsewhere: is already bound to node elsewhere, not to {node}")
    assert not cluster.pod("bound-elsewhere")["metadata"].get("annotations")
    assert not lock_of(cluster, node)


def test_another_pod_of_that_name(cluster, binder, node):
    pod = cluster.make_pod("twin")
    answer = binder.bind(pod, node, uid="11111111-2222-3333-4444-555555555555")
    assert answer.startswith("failed twin ESTALE pod default/twin: was deleted and created again")
    assert not lock_of(cluster, node)


def test_what_is_gone(cluster, binder, node):
    pod = cluster.make_pod("bind-brief")
    assert binder.bind(pod, "no-such-node") == "failed bind-brief ENOENT node no-such-node: no longer exists"
    cluster.delete_pod("bind-brief")
    assert binder.bind(pod, node) == "failed bind-brief ENOENT pod default/bind-brief: no longer exists"
    assert not lock_of(cluster, node)


def test_failure_is_undone(cluster, binder, node):
    """The server refuses the Binding when all else is written: by a policy, here."""
    policy = {"metadata": {"name": "no-binding"}, "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                                                "resources": ["pods/binding"]}]},
        "validations": [{"expression": "object.target.name != 'bind-test-failure-is-undone'", "message": "not there"}]}}
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


def test_same_pod_twice_at_once(cluster, binder, door, node):
    pod = cluster.make_pod("twice-asked")
    door.shut()
    assert binder.begin(pod, node) == "begun"
    assert binder.begin(pod, node) == "error EALREADY"
    door.unshut()
    assert binder.hear("bound", "failed") == "bound twice-asked"


def test_server_is_away(cluster, binder, door, node):
    pod = cluster.make_pod("bind-patient")
    door.shut()
    binder.begin(pod, node)
    time.sleep(0.5)
    door.unshut()
    assert binder.hear("bound", "failed") == "bound bind-patient"
    assert cluster.pod("bind-patient")["spec"]["nodeName"] == node


def test_connections_are_cut_all_the_time(cluster, make_binder, door):
    """Answers get lost at any step: every pod is bound, with its annotations, once."""
    binder = make_binder(door.port, limit_s=30)
    names = [f"cut-{i}" for i in range(12)]
    for name in names:
        offer(cluster, name)
        assert binder.begin(cluster.make_pod(name), name) == "begun"
    for _ in range(25):
        time.sleep(0.02)
        door.cut()
    heard = sorted(binder.hear("bound", "failed") for _ in names)
    assert heard == sorted(f"bound {name}" for name in names)
    for name in names:
        pod = cluster.pod(name)
        assert pod["spec"]["nodeName"] == name == pod["metadata"]["annotations"][NODE]
        assert lock_of(cluster, name).endswith(f",default,{name}")


def test_server_away_for_too_long(cluster, make_binder, door, node):
    """Nobody knows what became of it; nothing is said that is not so."""
    binder = make_binder(door.port, limit_s=1)
    pod = cluster.make_pod("lost")
    door.shut()
    assert binder.bind(pod, node).startswith("failed lost E")
    door.unshut()
    assert not cluster.pod("lost")["spec"].get("nodeName")
    assert binder.bind(pod, node) == "bound lost"


def test_leadership_lost(cluster, binder, node):
    """Not one more write: what was begun is the next leader's."""
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {LOCK: f"{ago(1)},default,leader-holder"}})
    cluster.make_pod("leader-holder")
    first, second = cluster.make_pod("cut-off-1"), cluster.make_pod("cut-off-2")
    binder.begin(first, node)
    binder.begin(second, node)
    wait_until(lambda: binder.counts()["waited"] == 1)
    binder.say("follow", "on")
    cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {LOCK: None}})
    answers = [binder.hear("failed", "bound") for _ in range(2)]
    assert [answer.split()[:3] for answer in answers] == [["failed", "cut-off-1", "ECANCELED"], ["failed", "cut-off-2", "ECANCELED"]]
    assert not lock_of(cluster, node)
    assert not cluster.pod("cut-off-1")["metadata"].get("annotations")
    binder.say("follow", "off")
    binder.begin(first, node)
    binder.say("cancel")
    assert binder.hear("bound", "failed").startswith(("failed cut-off-1 ECANCELED", "bound cut-off-1"))
    counts = binder.counts()
    assert counts["under_way"] == counts["waiting"] == 0 and counts["cancelled"] >= 2


def test_many_nodes_at_once(cluster, make_binder):
    """More nodes than may have calls under way: all have their turn."""
    binder = make_binder(limit_s=60)
    names = [f"at-once-{i}" for i in range(60)]
    pods = []
    for name in names:
        offer(cluster, name)
        pods.append(cluster.make_pod(name))
    began = time.monotonic()
    for name, pod in zip(names, pods):
        assert binder.begin(pod, name) == "begun"
    heard = sorted(binder.hear("bound", "failed") for _ in names)
    print(f"{len(names)} pods bound in {time.monotonic() - began:.2f} s")
    assert heard == sorted(f"bound {name}" for name in names)


def test_feed(cluster, binder):
    """Lists, then changes; pods that have ended are gone; what can't be read does not hold up the rest."""
    cluster.make_node("fed-1")
    cluster.make_node("fed-2", labels={"unreadable": "yes"})
    cluster.make_pod("fed-pod")
    binder.say("feed")
    for line in ("begin nodes", "begin pods", "node fed-1", "node fed-2", "pod fed-pod", "synced nodes", "synced pods",
                 "ready"):
        binder.hear(line)
    cluster.make_node("fed-3")
    binder.hear("node fed-3")
    cluster.request("DELETE", "/api/v1/nodes/fed-3")
    binder.hear("node-gone fed-3")
    cluster.request("PATCH", "/api/v1/namespaces/default/pods/fed-pod/status", {"status": {"phase": "Succeeded"}},
                    kind="application/merge-patch+json")
    binder.hear("pod-gone fed-pod")


def test_server_restarted_in_mid_bind(cluster, make_binder):
    """Last, as others would wait for the server."""
    binder = make_binder(limit_s=60)
    names = [f"restart-{i}" for i in range(10)]
    pods = []
    for name in names:
        offer(cluster, name)
        pods.append(cluster.make_pod(name))
    for name, pod in zip(names, pods):
        assert binder.begin(pod, name) == "begun"
    wait_until(lambda: binder.counts()["succeeded"], what="the first binding")
    cluster.restart_apiserver()
    heard = sorted(binder.hear("bound", "failed", seconds=70) for _ in names)
    assert heard == sorted(f"bound {name}" for name in names)
    for name in names:
        pod = cluster.pod(name)
        assert pod["spec"]["nodeName"] == name == pod["metadata"]["annotations"][NODE]
