"""Pods that ask for parts of GPUs, from a real kube-scheduler through allot-scheduler to allotd's part of the binding, on nodes
without a kubelet: pods are placed as HAMi's formulas say, nothing is assigned twice, and a pod that does not fit waits
with the reason."""

import collections
import concurrent.futures
import os
import random
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cluster import SCHEDULER_TOKEN, ApiError, free_ports
from machines import BUILD, wait_until
from door import Door
from plugin import LOCK, DevicePlugin
from test_fillers import would_fit

GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
ALLOCATED = "hami.io/vgpu-devices-allocated"
CARD_MIB = 81920
PROFILE = "cards-of-the-test"  # the schedulerName of this file's pods alone
SLOTS = 10
KILLS = int(os.environ.get("ALLOT_KILLS", "2"))
PODS = int(os.environ.get("ALLOT_PODS", "50"))  # at once

Share = collections.namedtuple("Share", "card mib cores")


class Scheduler:
    def __init__(self, cluster, directory, settings=()):
        self.cluster = cluster
        self.directory = directory
        self.settings = settings
        self.port, = free_ports(1)
        self.door = Door(cluster.port)  # to the API server
        self.process = None

    def launch(self):
        config = self.cluster.kubeconfig("allot-scheduler.conf", self.door.port, f"token: {SCHEDULER_TOKEN}")
        with open(self.directory / "allot-scheduler.log", "ab") as log:
            self.process = subprocess.Popen(
                [BUILD / "allot-scheduler", "--kube-api", config, "--lease", "none", "--http-listen",
                 f"127.0.0.1:{self.port}", *self.settings],
                stdin=subprocess.DEVNULL, stderr=log)
        wait_until(self.is_ready, 60, "allot-scheduler")

    @property
    def log(self):
        return (self.directory / "allot-scheduler.log").read_text(errors="replace")[-4000:]

    def is_ready(self):
        assert self.process.poll() is None, self.log
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=10):
                return True
        except (OSError, urllib.error.HTTPError):
            return False

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=20) == 0, self.log


@pytest.fixture(scope="module")
def scheduler(cluster, build_programs, tmp_path_factory):
    build_programs("etcd", "kube-apiserver", "kube-scheduler")
    scheduler = Scheduler(cluster, tmp_path_factory.mktemp("scheduler"))
    scheduler.launch()
    cluster.launch_scheduler(f"http://127.0.0.1:{scheduler.port}", name=PROFILE)
    yield scheduler
    cluster.end("kube-scheduler")
    scheduler.end()
    scheduler.door.close()


class Nodes:
    """Some that belong to one test."""

    profile = PROFILE

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.nodes = []
        self.plugins = []

    def add(self, cards=2, kind="NVIDIA-H200", mib=CARD_MIB, slots=SLOTS, **more):
        node = f"{self.name}-{len(self.nodes)}"
        self.cluster.make_gpu_node(node, [{"id": f"GPU-{node}-{i}", "devmem": mib, "type": kind}
                                          for i in range(cards)], slices=slots, labels={"of": self.name}, **more)
        self.nodes.append(node)
        self.plugins.append(DevicePlugin(self.cluster, node, self.cluster.kubeconfig(f"{node}.conf")))
        return node

    def ask(self, name, gpus=1, mib=None, cores=None, annotations=None, limits=None, more=None, **rest):
        asked = {GPU: str(gpus)}
        if mib is not None:
            asked[MEMORY] = str(mib)
        if cores is not None:
            asked[CORES] = str(cores)
        return self.cluster.make_pod(name, annotations=annotations, limits=limits or {"main": asked},
                                     more={"schedulerName": self.profile, "nodeSelector": {"of": self.name},
                                           **(more or {})}, **rest)

    def done(self, names):
        """Those that are bound, and whose shares were given to their containers."""
        pods = self.cluster.request("GET", "/api/v1/namespaces/default/pods")["items"]
        return [pod for pod in pods if pod["metadata"]["name"] in names
                and pod["metadata"].get("annotations", {}).get("hami.io/bind-phase") == "success"]

    def place(self, name, *given, **more):
        """(node, [[Share, ...] for each container])"""
        self.ask(name, *given, **more)
        return self.placed(name)

    def place_on(self, card, name, mib, cores):
        """As place(), on that card."""
        _, ((share,),) = self.place(name, mib=mib, cores=cores, annotations={"nvidia.com/use-gpuuuid": card})
        assert share == Share(card, mib, cores)
        return share

    def placed(self, name):
        pod, = wait_until(lambda: self.done([name]), 60, f"the placement of {name}")
        assert pod["metadata"]["annotations"]["hami.io/vgpu-node"] == pod["spec"]["nodeName"]
        return pod["spec"]["nodeName"], shares_of(pod)

    def stop(self):
        assert [plugin.stop() for plugin in self.plugins] == [0] * len(self.plugins)
        for node in self.nodes:
            assert LOCK not in self.cluster.annotations(node)
            self.cluster.request("DELETE", f"/api/v1/nodes/{node}")


def shares_of(pod):
    def share(text):
        card, _, mib, cores = text.split(",")
        return Share(card, int(mib), int(cores))

    text = pod["metadata"]["annotations"][ALLOCATED]
    return [[share(one) for one in container.split(":") if one] for container in text.split(";")[:-1]]


@pytest.fixture
def nodes(request, cluster, scheduler):
    nodes = Nodes(cluster, re.sub("[^a-z0-9]+", "-", request.node.name).strip("-"))
    yield nodes
    nodes.stop()


def events_of(cluster, name):
    return [event for event in cluster.events() if event["involvedObject"]["name"] == name]


def card_score(used, slots=1, mib=0, cores=0, of_mib=CARD_MIB):
    """HAMi's, of a card with `used` shares, with what is asked for."""
    return 10 * ((slots + len(used)) / SLOTS + (cores + sum(one.cores for one in used)) / 100 +
                 (mib + sum(one.mib for one in used)) / of_mib)


def test_fractions_of_one_node(nodes):
    """By default pods fill a node before the next, and go to that card of it which has the lowest score."""
    nodes.add(cards=3)
    nodes.add(cards=3)
    used = collections.defaultdict(list)
    first = None
    for i, (mib, cores) in enumerate([(30000, 10), (1000, 50), (20000, 20), (8000, 10), (8000, 30)]):
        node, ((share,),) = nodes.place(f"fraction-{i}", mib=mib, cores=cores)
        first = first or node
        assert node == first
        assert (share.mib, share.cores) == (mib, cores)
        scores = {f"GPU-{node}-{k}": card_score(used[f"GPU-{node}-{k}"], 1, mib, cores) for k in range(3)}
        assert scores[share.card] == min(scores.values()), scores
        used[share.card].append(share)


def test_nodes_of_hamis_article(cluster, nodes):
    """Its table of two nodes with four cards, by 19.75 and 10.50."""
    first, second = nodes.add(cards=4, mib=8192, slots=1), nodes.add(cards=4, mib=8192, slots=1)
    for node, card, mib, cores in ((first, 0, 8000, 100), (first, 1, 8000, 100), (first, 2, 4480, 40),
                                   (second, 0, 4096, 60), (second, 3, 4096, 60)):
        nodes.place_on(f"GPU-{node}-{card}", f"seed-{node}-{card}", mib, cores)
    for policy, chosen, score in (("binpack", first, "19.75"), ("spread", second, "10.50")):
        name = f"seed-{policy}"
        node, _ = nodes.place(name, mib=10, annotations={"hami.io/node-scheduler-policy": policy})
        assert node == chosen
        wait_until(lambda name=name, fit=f"fit({chosen}:{score}": any(
            fit in event["message"] for event in events_of(cluster, name)), 20, f"{name}'s event with {score}")
        cluster.delete_pod(name)


def test_cards_of_hamis_article(cluster, nodes):
    """Its two cards of one node, by 9.75 and 24.75."""
    node = nodes.add(cards=2, mib=8000)
    cards = [f"GPU-{node}-{i}" for i in range(2)]
    used = [[nodes.place_on(cards[0], f"few-{i}", 1000, 5) for i in range(2)],
            [nodes.place_on(cards[1], f"many-{i}", 1000, 12 if i else 10) for i in range(6)]]
    assert [round(card_score(shares, 1, 1000, 20, 8000), 9) for shares in used] == [9.75, 24.75]
    for policy, card in (("binpack", cards[1]), ("spread", cards[0])):
        _, ((share,),) = nodes.place(f"card-{policy}", mib=1000, cores=20,
                                     annotations={"hami.io/gpu-scheduler-policy": policy})
        assert share.card == card
        cluster.delete_pod(f"card-{policy}")


def test_policies_that_pods_ask_for(nodes):
    nodes.add()
    nodes.add()
    packed = {"hami.io/gpu-scheduler-policy": "binpack"}
    node, ((first,),) = nodes.place("policy-1", mib=1000, cores=10)
    assert nodes.place("policy-2", mib=1000, cores=10, annotations=packed) == (node, [[first]])
    other, _ = nodes.place("policy-3", mib=1000, cores=10, annotations={"hami.io/node-scheduler-policy": "spread"})
    assert other != node


def test_fragmentation_keeps_what_few_can_do_without(nodes):
    """The fuller node is of a type whose room is scarce for those who name it: by binpack it is filled, by fragmentation kept."""
    rare, common = nodes.add(kind="NVIDIA-RARE"), nodes.add(kind="NVIDIA-COMMON")
    for i in range(2):
        assert nodes.place(f"rare-{i}", mib=40000, annotations={"nvidia.com/use-gputype": "rare"})[0] == rare
        assert nodes.place(f"common-{i}", mib=10000, annotations={"nvidia.com/use-gputype": "common"})[0] == common

    def placed_by(policy):
        return nodes.place(f"by-{policy}", mib=20000, annotations={
            "hami.io/node-scheduler-policy": policy, "hami.io/gpu-scheduler-policy": policy})[0]

    assert placed_by("fragmentation") == common
    assert placed_by("binpack") == rare


def test_several_cards_and_containers(nodes):
    node = nodes.add(cards=4)
    limits = {"main": {GPU: "2", MEMORY: "40000"}, "side": {GPU: "1", MEMORY: "500", CORES: "5"},
              "early": {GPU: "1", MEMORY: "100"}}
    where, shares = nodes.place("several", limits=limits, containers=("main", "none", "side"), init=("early",))
    assert where == node
    assert [len(container) for container in shares] == [1, 2, 0, 1]
    early, main, _, (side,) = shares
    assert early[0].mib == 100 and (side.mib, side.cores) == (500, 5)
    assert main[0].card != main[1].card and {one.mib for one in main} == {40000}


VCUDA = {"main": {"tencent.com/vcuda-core": "30", "tencent.com/vcuda-memory": "32"}}


def test_vocabulary_of_gpu_manager(nodes):
    nodes.add(serves={"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "640"})
    _, ((share,),) = nodes.place("vcuda", limits=VCUDA)
    assert (share.mib, share.cores) == (32 * 256, 30)


def reasons_of(cluster, name):
    return [event["message"] for event in events_of(cluster, name) if event["reason"] == "FailedScheduling"]


def test_words_that_the_kubelet_does_not_serve(cluster, nodes):
    """Else the container would start without a GPU."""
    nodes.add()
    nodes.ask("foreign-words", limits=VCUDA)
    wait_until(lambda: [why for why in reasons_of(cluster, "foreign-words") if "Insufficient tencent.com/vcuda-core" in why],
               what="the reason")
    assert not cluster.pod("foreign-words")["spec"].get("nodeName")
    cluster.delete_pod("foreign-words")


def test_words_of_hami_where_gpu_managers_are_served(cluster, nodes):
    nodes.add(serves={"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "640"})
    nodes.ask("hami-words", mib=1000)
    wait_until(lambda: [why for why in reasons_of(cluster, "hami-words") if "2/2 CardNotServed" in why], what="the reason")
    assert not cluster.pod("hami-words")["spec"].get("nodeName")
    cluster.delete_pod("hami-words")


def test_a_node_whose_device_plugin_is_gone(cluster, scheduler, nodes):
    """Its annotation is still there; the kubelet has nothing to give. It comes back: so do pods."""
    node = nodes.add()
    nodes.place("while-it-is-there", mib=1000)
    cluster.set_status(node, {"allocatable": {GPU: "0"}})
    # Until allot-scheduler hears of it a pod is placed there.
    wait_until(lambda: not would_fit(scheduler.port, node, 1, {}), what="allot-scheduler hearing of it")
    nodes.ask("while-it-is-gone", mib=1000)
    wait_until(lambda: [why for why in reasons_of(cluster, "while-it-is-gone") if "2/2 CardNotServed" in why],
               what="the reason")
    assert not cluster.pod("while-it-is-gone")["spec"].get("nodeName")
    cluster.set_status(node, {"allocatable": {GPU: "20"}})
    nodes.placed("while-it-is-gone")


def test_preemption_by_kube_scheduler(cluster, nodes):
    """With the chart's configuration, in words that the kubelet counts whole: the end of one of four makes room."""
    urgent(cluster)
    nodes.add(cards=1, serves={"tencent.com/vcuda-core": "100", "tencent.com/vcuda-memory": "320"})
    quarter = {"main": {"tencent.com/vcuda-core": "25", "tencent.com/vcuda-memory": "80"}}
    low = [f"low-{i}" for i in range(4)]
    for name in low:
        nodes.ask(name, limits=quarter, more={"terminationGracePeriodSeconds": 0})
    wait_until(lambda: len(nodes.done(low)) == 4, what="four that fill the node")
    nodes.ask("preempts-a-part", limits=quarter, more={"priorityClassName": "urgent-of-the-test"})
    nodes.placed("preempts-a-part")
    assert len(nodes.done(low)) == 3


def test_preemption_where_memory_is_what_lacks(cluster, nodes):
    """kube-scheduler sees six parts of ten free: allot-scheduler evicts one of four itself, and the pod that was made for it in
    its place waits."""
    urgent(cluster)
    nodes.add(cards=1)
    low = [f"less-{i}" for i in range(4)]
    for name in low:
        nodes.ask(name, mib=CARD_MIB // 4, more={"terminationGracePeriodSeconds": 0})
    wait_until(lambda: len(nodes.done(low)) == 4, what="four that fill the node")
    nodes.ask("preempts-memory", mib=CARD_MIB // 4, more={"priorityClassName": "urgent-of-the-test"})
    nodes.ask("in-its-place", mib=CARD_MIB // 4)
    _, ((share,),) = nodes.placed("preempts-memory")
    assert share.mib == CARD_MIB // 4
    assert len(nodes.done(low)) == 3 and not nodes.done(["in-its-place"])
    gone, = set(low) - {pod["metadata"]["name"] for pod in nodes.done(low)}
    wait_until(lambda: any(event["reason"] == "Preempted" for event in events_of(cluster, gone)), what="its event")
    cluster.delete_pod("in-its-place")


def urgent(cluster):
    """A PriorityClass above all others of these tests."""
    try:
        cluster.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
                        {"metadata": {"name": "urgent-of-the-test"}, "value": 1000})
    except ApiError as error:
        assert error.status == 409


def test_what_never_fits_waits_with_its_reason(cluster, nodes):
    nodes.add()
    nodes.ask("too-much", mib=CARD_MIB + 1)

    def reason():
        return [event["message"] for event in events_of(cluster, "too-much")
                if event["type"] == "Warning" and "2/2 CardInsufficientMemory" in event["message"]]

    wait_until(reason, what="the event")
    pod = cluster.pod("too-much")
    assert pod["status"]["phase"] == "Pending" and not pod["spec"].get("nodeName")
    assert not pod["metadata"].get("annotations")
    cluster.delete_pod("too-much")


def test_told_no_too_early(cluster, scheduler, nodes):
    """kube-scheduler hears of a pod's end and tries again while allot-scheduler does not know of it yet."""
    nodes.add(cards=1)
    nodes.place("held-for-long", mib=60000)
    nodes.ask("told-no", mib=60000)

    def refused():
        """How often, since kube-scheduler counts what it says again."""
        return sum((event.get("series") or {}).get("count") or event.get("count") or 1
                   for event in events_of(cluster, "told-no") if "CardInsufficientMemory" in event["message"])

    wait_until(refused, what="the event")
    before = refused()
    scheduler.door.shut()
    try:
        cluster.delete_pod("held-for-long")
        wait_until(lambda: refused() > before, what="another try")
    finally:
        scheduler.door.unshut()
    assert nodes.placed("told-no")


def test_metrics_have_what_was_given(cluster, scheduler, nodes):
    """By Prometheus' own parser, under HAMi's names."""
    node = nodes.add(cards=2)
    _, ((share,),) = nodes.place("measured", mib=20480, cores=30)
    with urllib.request.urlopen(f"http://127.0.0.1:{scheduler.port}/metrics", timeout=10) as answer:
        page = list(text_string_to_metric_families(answer.read().decode()))
    samples = {(sample.name, sample.labels.get("device_uuid"), sample.labels.get("pod")): sample
               for family in page for sample in family.samples if sample.labels.get("node") == node}
    assert samples["hami_gpu_memory_allocated_bytes", share.card, None].value == 20480 << 20
    assert samples["hami_node_gpu_memory_allocated_ratio", share.card, None].value == 20480 / CARD_MIB
    assert samples["hami_gpu_core_allocated_ratio", share.card, None].value == 30
    assert samples["hami_vgpu_memory_allocated_bytes", share.card, "measured"].labels["namespace"] == "default"
    (other,) = {card for name, card, _ in samples if name == "hami_gpu_shared_count"} - {share.card}
    assert samples["hami_gpu_shared_count", other, None].value == 0


def test_end_of_a_pod_makes_room(cluster, nodes):
    nodes.add(cards=1)
    nodes.place("in-the-way", mib=60000)
    nodes.ask("waits", mib=60000)
    wait_until(lambda: [event for event in events_of(cluster, "waits") if "CardInsufficientMemory" in event["message"]],
               what="the event")
    cluster.delete_pod("in-the-way")
    _, ((share,),) = nodes.placed("waits")
    assert share.mib == 60000


def ask_at_once(nodes, names, **more):
    """As many clients at a time as the API server takes."""
    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        list(clients.map(lambda name: nodes.ask(name, **more), names))


@pytest.mark.parametrize("count", [50] + ([PODS] if PODS > 50 else []))
def test_many_at_once(cluster, nodes, count):
    """Some 64 % fit, to the last percent and MiB; no card has more than it has, and all are placed that can be."""
    room = count * 16 // 25
    for _ in range(room // 8):
        nodes.add(cards=2)
    names = [f"many-{count}-{i}" for i in range(count)]
    began = time.monotonic()
    ask_at_once(nodes, names, mib=CARD_MIB // 4, cores=25)
    created = time.monotonic()
    wait_until(lambda: len(nodes.done(names)) == room, 60 + count, f"{room} pods")
    print(f"{count} pods created in {created - began:.1f} s, {room} placed {time.monotonic() - created:.1f} s later")
    done = nodes.done(names)
    waiting = set(names) - {pod["metadata"]["name"] for pod in done}
    wait_until(lambda: waiting <= {event["involvedObject"]["name"] for event in cluster.events()
                                   if event["type"] == "Warning" and "Card" in event["message"]},
               60, "a reason for each other")
    check_full_cards(done, cards=room // 4)
    assert len(nodes.done(names)) == room
    # Those that wait first: none is to be bound by then.
    for name in sorted(names, key=lambda name: name not in waiting):
        cluster.delete_pod(name)


def check_full_cards(pods, cards):
    """Four pods with a quarter each on every card."""
    used = collections.defaultdict(list)
    for pod in pods:
        (share,), = shares_of(pod)
        assert share.card.startswith(f"GPU-{pod['spec']['nodeName']}-")
        used[share.card].append(share)
    assert len(pods) == 4 * cards and len(used) == cards
    for shares in used.values():
        assert sum(share.cores for share in shares) == 100
        assert sum(share.mib for share in shares) == CARD_MIB


@pytest.mark.parametrize("kill", range(KILLS))
def test_scheduler_killed_meanwhile(cluster, nodes, scheduler, kill):
    """What it had begun is ended by the next, and no card is given twice."""
    draw = random.Random(kill)
    nodes.add(cards=2)
    nodes.add(cards=2)
    names = [f"killed-{kill}-{i}" for i in range(16)]
    for name in names:
        nodes.ask(name, mib=CARD_MIB // 4, cores=25)
    after = draw.randrange(12)
    wait_until(lambda: len(nodes.done(names)) >= after, what="some of them")
    time.sleep(draw.random() * 0.05)
    scheduler.process.kill()
    scheduler.process.wait()
    scheduler.launch()
    wait_until(lambda: len(nodes.done(names)) == len(names), 60, "all of them")
    check_full_cards(nodes.done(names), cards=4)
    for name in names:
        cluster.delete_pod(name)


def test_watch_broken_meanwhile(cluster, nodes, scheduler):
    """Connections to the API server are cut while pods are placed: nothing is lost, and no card is given twice."""
    draw = random.Random(1)
    nodes.add(cards=2)
    nodes.add(cards=2)
    names = [f"cut-{i}" for i in range(16)]
    passed = scheduler.door.passed
    ask_at_once(nodes, names, mib=CARD_MIB // 4, cores=25)
    for _ in range(8):
        scheduler.door.cut()
        time.sleep(draw.random() * 0.3)
    assert scheduler.door.passed > passed
    wait_until(lambda: len(nodes.done(names)) == len(names), 60, "all of them")
    check_full_cards(nodes.done(names), cards=4)
    for name in names:
        cluster.delete_pod(name)


def test_news_that_the_server_has_forgotten(cluster, nodes, scheduler):
    """What happened while the scheduler was cut off is in no watch any more (410): it lists anew."""
    node = nodes.add(cards=1)
    nodes.place("unseen", mib=60000)
    scheduler.door.shut()
    try:
        cluster.delete_pod("unseen")
        for beat in range(5):
            changed = cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {"beat": str(beat)}})
        cluster.compact(int(changed["metadata"]["resourceVersion"]))
    finally:
        scheduler.door.unshut()
    _, ((share,),) = nodes.place("seen", mib=60000)
    assert share.mib == 60000


def test_server_restarted_meanwhile(cluster, nodes):
    """Last, as others would wait for the server."""
    nodes.add(cards=2)
    nodes.add(cards=2)
    names = [f"restarted-{i}" for i in range(16)]
    for name in names:
        nodes.ask(name, mib=CARD_MIB // 4, cores=25)
    wait_until(lambda: nodes.done(names), what="the first of them")
    cluster.restart_apiserver()
    wait_until(lambda: len(nodes.done(names)) == len(names), 90, "all of them")
    check_full_cards(nodes.done(names), cards=4)
    for name in names:
        cluster.delete_pod(name)
