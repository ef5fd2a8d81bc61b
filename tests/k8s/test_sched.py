"""Pods that request parts of GPUs, from a real kube-scheduler through allot-scheduler to allotd's part of the binding, on nodes
without a kubelet: pods are placed by HAMi's formulas, no share is assigned twice, and a pod that does not fit waits with the
reason."""

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
from api_proxy import ApiProxy
from plugin import LOCK, DevicePlugin
from test_opportunistic import would_fit

GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
ALLOCATED = "hami.io/vgpu-devices-allocated"
GPU_MIB = 81920
PROFILE = "gpus-of-the-test"  # the schedulerName of this file's pods alone
SLOTS = 10
TIMES = collections.Counter()     # how often the nodes of each test were made
KILLS = int(os.environ.get("ALLOT_KILLS", "2"))
PODS = int(os.environ.get("ALLOT_PODS", "50"))  # at once

Share = collections.namedtuple("Share", "gpu mib cores")


class Scheduler:
    def __init__(self, cluster, directory, settings=()):
        self.cluster = cluster
        self.directory = directory
        self.settings = settings
        self.port, = free_ports(1)
        self.proxy = ApiProxy(cluster.port)  # to the API server
        self.process = None

    def launch(self):
        config = self.cluster.kubeconfig("allot-scheduler.conf", self.proxy.port, f"token: {SCHEDULER_TOKEN}")
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
    scheduler.proxy.close()


class Nodes:
    """The nodes of one test; its pods run only on them."""

    profile = PROFILE

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.nodes = []
        self.plugins = []

    def add(self, gpus=2, kind="NVIDIA-H200", mib=GPU_MIB, slots=SLOTS, **more):
        node = f"{self.name}-{len(self.nodes)}"
        self.cluster.make_gpu_node(node, [{"id": f"GPU-{node}-{i}", "devmem": mib, "type": kind}
                                          for i in range(gpus)], slices=slots, labels={"of": self.name}, **more)
        self.nodes.append(node)
        self.plugins.append(DevicePlugin(self.cluster, node, self.cluster.kubeconfig(f"{node}.conf")))
        return node

    def make_pod(self, name, gpus=1, mib=None, cores=None, annotations=None, limits=None, more=None, **rest):
        asked = {GPU: str(gpus)}
        if mib is not None:
            asked[MEMORY] = str(mib)
        if cores is not None:
            asked[CORES] = str(cores)
        return self.cluster.make_pod(name, annotations=annotations, limits=limits or {"main": asked},
                                     more={"schedulerName": self.profile, "nodeSelector": {"of": self.name},
                                           **(more or {})}, **rest)

    def allocated(self, names):
        """Those of the named pods whose containers all have their shares."""
        pods = self.cluster.request("GET", "/api/v1/namespaces/default/pods")["items"]
        return [pod for pod in pods if pod["metadata"]["name"] in names
                and pod["metadata"].get("annotations", {}).get("hami.io/bind-phase") == "success"]

    def place(self, name, *terms, **more):
        """Creates a pod, and waits until its containers have their shares: (node, [[Share, ...] for each container])."""
        self.make_pod(name, *terms, **more)
        return self.placed(name)

    def place_on(self, gpu, name, mib, cores):
        """As place(), on that GPU; returns the share."""
        _, ((share,),) = self.place(name, mib=mib, cores=cores, annotations={"nvidia.com/use-gpuuuid": gpu})
        assert share == Share(gpu, mib, cores)
        return share

    def placed(self, name):
        """Waits until the pod's containers have their shares; returns the same as place()."""
        pod, = wait_until(lambda: self.allocated([name]), 60, f"the placement of {name}")
        assert pod["metadata"]["annotations"]["hami.io/vgpu-node"] == pod["spec"]["nodeName"]
        return pod["spec"]["nodeName"], shares_of(pod)

    def stop(self):
        assert [plugin.stop() for plugin in self.plugins] == [0] * len(self.plugins)
        for node in self.nodes:
            assert LOCK not in self.cluster.annotations(node)
            self.cluster.request("DELETE", f"/api/v1/nodes/{node}")


def shares_of(pod):
    def share(text):
        gpu, _, mib, cores = text.split(",")
        return Share(gpu, int(mib), int(cores))

    text = pod["metadata"]["annotations"][ALLOCATED]
    return [[share(one) for one in container.split(":") if one] for container in text.split(";")[:-1]]


@pytest.fixture
def nodes(request, cluster, scheduler):
    name = re.sub("[^a-z0-9]+", "-", request.node.name).strip("-")
    # A test that is run again must not get the nodes of its first run.
    nodes = Nodes(cluster, name + f"-{TIMES[name]}" * bool(TIMES[name]))
    TIMES[name] += 1
    yield nodes
    nodes.stop()


def events_of(cluster, name):
    return [event for event in cluster.events() if event["involvedObject"]["name"] == name]


def gpu_score(used, slots=1, mib=0, cores=0, of_mib=GPU_MIB):
    """HAMi's score of a GPU with the shares `used`, for a request."""
    return 10 * ((slots + len(used)) / SLOTS + (cores + sum(one.cores for one in used)) / 100 +
                 (mib + sum(one.mib for one in used)) / of_mib)


def test_pods_fill_a_node_and_spread_over_its_gpus(nodes):
    """By default pods fill one node before the next, on the GPU with the lowest score."""
    nodes.add(gpus=3)
    nodes.add(gpus=3)
    used = collections.defaultdict(list)
    first = None
    for i, (mib, cores) in enumerate([(30000, 10), (1000, 50), (20000, 20), (8000, 10), (8000, 30)]):
        node, ((share,),) = nodes.place(f"fraction-{i}", mib=mib, cores=cores)
        first = first or node
        assert node == first
        assert (share.mib, share.cores) == (mib, cores)
        scores = {f"GPU-{node}-{k}": gpu_score(used[f"GPU-{node}-{k}"], 1, mib, cores) for k in range(3)}
        assert scores[share.gpu] == min(scores.values()), scores
        used[share.gpu].append(share)


def test_nodes_of_hamis_article(cluster, nodes):
    """The article's table: two nodes with four GPUs and the scores 19.75 and 10.50."""
    first, second = nodes.add(gpus=4, mib=8192, slots=1), nodes.add(gpus=4, mib=8192, slots=1)
    for node, gpu, mib, cores in ((first, 0, 8000, 100), (first, 1, 8000, 100), (first, 2, 4480, 40),
                                   (second, 0, 4096, 60), (second, 3, 4096, 60)):
        nodes.place_on(f"GPU-{node}-{gpu}", f"seed-{node}-{gpu}", mib, cores)
    for policy, chosen, score in (("binpack", first, "19.75"), ("spread", second, "10.50")):
        name = f"seed-{policy}"
        node, _ = nodes.place(name, mib=10, annotations={"hami.io/node-scheduler-policy": policy})
        assert node == chosen
        wait_until(lambda name=name, fit=f"fit({chosen}:{score}": any(
            fit in event["message"] for event in events_of(cluster, name)), 20, f"{name}'s event with {score}")
        cluster.delete_pod(name)


def test_gpus_of_hamis_article(cluster, nodes):
    """The article's two GPUs of one node, with the scores 9.75 and 24.75."""
    node = nodes.add(gpus=2, mib=8000)
    gpus = [f"GPU-{node}-{i}" for i in range(2)]
    used = [[nodes.place_on(gpus[0], f"few-{i}", 1000, 5) for i in range(2)],
            [nodes.place_on(gpus[1], f"many-{i}", 1000, 12 if i else 10) for i in range(6)]]
    assert [round(gpu_score(shares, 1, 1000, 20, 8000), 9) for shares in used] == [9.75, 24.75]
    for policy, gpu in (("binpack", gpus[1]), ("spread", gpus[0])):
        _, ((share,),) = nodes.place(f"gpu-{policy}", mib=1000, cores=20,
                                     annotations={"hami.io/gpu-scheduler-policy": policy})
        assert share.gpu == gpu
        cluster.delete_pod(f"gpu-{policy}")


def test_policies_of_pods(nodes):
    nodes.add()
    nodes.add()
    packed = {"hami.io/gpu-scheduler-policy": "binpack"}
    node, ((first,),) = nodes.place("policy-1", mib=1000, cores=10)
    assert nodes.place("policy-2", mib=1000, cores=10, annotations=packed) == (node, [[first]])
    other, _ = nodes.place("policy-3", mib=1000, cores=10, annotations={"hami.io/node-scheduler-policy": "spread"})
    assert other != node


def test_fragmentation_policy_keeps_scarce_gpus_free(nodes):
    """The fuller node has the GPU type with the least room for pods that request it: binpack fills it, fragmentation avoids
    it."""
    rare, common = nodes.add(kind="NVIDIA-RARE"), nodes.add(kind="NVIDIA-COMMON")
    for i in range(2):
        assert nodes.place(f"rare-{i}", mib=40000, annotations={"nvidia.com/use-gputype": "rare"})[0] == rare
        assert nodes.place(f"common-{i}", mib=10000, annotations={"nvidia.com/use-gputype": "common"})[0] == common

    def placed_by(policy):
        return nodes.place(f"by-{policy}", mib=20000, annotations={
            "hami.io/node-scheduler-policy": policy, "hami.io/gpu-scheduler-policy": policy})[0]

    assert placed_by("fragmentation") == common
    assert placed_by("binpack") == rare


def test_several_gpus_and_containers(nodes):
    node = nodes.add(gpus=4)
    limits = {"main": {GPU: "2", MEMORY: "40000"}, "side": {GPU: "1", MEMORY: "500", CORES: "5"},
              "early": {GPU: "1", MEMORY: "100"}}
    where, shares = nodes.place("several", limits=limits, containers=("main", "none", "side"), init=("early",))
    assert where == node
    assert [len(container) for container in shares] == [1, 2, 0, 1]
    early, main, _, (side,) = shares
    assert early[0].mib == 100 and (side.mib, side.cores) == (500, 5)
    assert main[0].gpu != main[1].gpu and {one.mib for one in main} == {40000}


VCUDA = {"main": {"tencent.com/vcuda-core": "30", "tencent.com/vcuda-memory": "32"}}


def test_gpu_managers_vocabulary(nodes):
    nodes.add(serves={"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "640"})
    _, ((share,),) = nodes.place("vcuda", limits=VCUDA)
    assert (share.mib, share.cores) == (32 * 256, 30)


def reasons_of(cluster, name):
    return [event["message"] for event in events_of(cluster, name) if event["reason"] == "FailedScheduling"]


def test_resources_that_the_node_does_not_have(cluster, nodes):
    """Such a pod must wait, because its container would start without a GPU."""
    nodes.add()
    nodes.make_pod("foreign-resources", limits=VCUDA)
    wait_until(lambda: [why for why in reasons_of(cluster, "foreign-resources")
                        if "Insufficient tencent.com/vcuda-core" in why], what="the reason")
    assert not cluster.pod("foreign-resources")["spec"].get("nodeName")
    cluster.delete_pod("foreign-resources")


def test_hamis_resources_on_a_node_with_gpu_managers(cluster, nodes):
    nodes.add(serves={"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "640"})
    nodes.make_pod("hami-resources", mib=1000)
    wait_until(lambda: [why for why in reasons_of(cluster, "hami-resources") if "2/2 CardNotServed" in why], what="the reason")
    assert not cluster.pod("hami-resources")["spec"].get("nodeName")
    cluster.delete_pod("hami-resources")


def test_node_without_a_device_plugin_gets_no_pods(cluster, scheduler, nodes):
    """Its annotation is still there, but no resource is allocatable: pods wait until the device plugin is back."""
    node = nodes.add()
    nodes.place("while-it-is-there", mib=1000)
    cluster.set_status(node, {"allocatable": {GPU: "0"}})
    # Until allot-scheduler has seen the change, it would place a pod there.
    wait_until(lambda: not would_fit(scheduler.port, node, 1, {}), what="allot-scheduler seeing the change")
    nodes.make_pod("while-it-is-gone", mib=1000)
    wait_until(lambda: [why for why in reasons_of(cluster, "while-it-is-gone") if "2/2 CardNotServed" in why],
               what="the reason")
    assert not cluster.pod("while-it-is-gone")["spec"].get("nodeName")
    cluster.set_status(node, {"allocatable": {GPU: "20"}})
    nodes.placed("while-it-is-gone")


def test_preemption_by_kube_scheduler(cluster, nodes):
    """With the chart's configuration and resources that kube-scheduler counts itself: it evicts one of four pods."""
    make_priority_class(cluster)
    nodes.add(gpus=1, serves={"tencent.com/vcuda-core": "100", "tencent.com/vcuda-memory": "320"})
    quarter = {"main": {"tencent.com/vcuda-core": "25", "tencent.com/vcuda-memory": "80"}}
    low = [f"low-{i}" for i in range(4)]
    for name in low:
        nodes.make_pod(name, limits=quarter, more={"terminationGracePeriodSeconds": 0})
    wait_until(lambda: len(nodes.allocated(low)) == 4, what="four that fill the node")
    nodes.make_pod("preempts-a-part", limits=quarter, more={"priorityClassName": "urgent-of-the-test"})
    nodes.placed("preempts-a-part")
    assert len(nodes.allocated(low)) == 3


def test_preemption_for_gpu_memory(cluster, nodes):
    """kube-scheduler sees six of ten slots free, so allot-scheduler itself evicts one of four pods. A pod that was created
    later does not get the memory."""
    make_priority_class(cluster)
    nodes.add(gpus=1)
    low = [f"less-{i}" for i in range(4)]
    for name in low:
        nodes.make_pod(name, mib=GPU_MIB // 4, more={"terminationGracePeriodSeconds": 0})
    wait_until(lambda: len(nodes.allocated(low)) == 4, what="four that fill the node")
    nodes.make_pod("preempts-memory", mib=GPU_MIB // 4, more={"priorityClassName": "urgent-of-the-test"})
    nodes.make_pod("in-its-place", mib=GPU_MIB // 4)
    _, ((share,),) = nodes.placed("preempts-memory")
    assert share.mib == GPU_MIB // 4
    assert len(nodes.allocated(low)) == 3 and not nodes.allocated(["in-its-place"])
    gone, = set(low) - {pod["metadata"]["name"] for pod in nodes.allocated(low)}
    wait_until(lambda: any(event["reason"] == "Preempted" for event in events_of(cluster, gone)), what="its event")
    cluster.delete_pod("in-its-place")


def make_priority_class(cluster):
    """Makes sure that there is a PriorityClass above those of other pods."""
    try:
        cluster.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
                        {"metadata": {"name": "urgent-of-the-test"}, "value": 1000})
    except ApiError as error:
        assert error.status == 409


def test_pod_that_never_fits_waits_with_the_reason(cluster, nodes):
    nodes.add()
    nodes.make_pod("too-much", mib=GPU_MIB + 1)

    def reason():
        return [event["message"] for event in events_of(cluster, "too-much")
                if event["type"] == "Warning" and "2/2 CardInsufficientMemory" in event["message"]]

    wait_until(reason, what="the event")
    pod = cluster.pod("too-much")
    assert pod["status"]["phase"] == "Pending" and not pod["spec"].get("nodeName")
    assert not pod["metadata"].get("annotations")
    cluster.delete_pod("too-much")


def test_pod_that_was_tried_too_early_is_placed(cluster, scheduler, nodes):
    """kube-scheduler learns of a pod's end first, and tries again before allot-scheduler knows of it."""
    nodes.add(gpus=1)
    nodes.place("held-for-long", mib=60000)
    nodes.make_pod("tried-early", mib=60000)

    def refused():
        """How often kube-scheduler has reported the reason: it counts repetitions in one event."""
        return sum((event.get("series") or {}).get("count") or event.get("count") or 1
                   for event in events_of(cluster, "tried-early") if "CardInsufficientMemory" in event["message"])

    wait_until(refused, what="the event")
    before = refused()
    scheduler.proxy.refuse()
    try:
        cluster.delete_pod("held-for-long")
        wait_until(lambda: refused() > before, what="another try")
    finally:
        scheduler.proxy.accept()
    assert nodes.placed("tried-early")


def test_metrics_show_assigned_shares(cluster, scheduler, nodes):
    """They have HAMi's names, and Prometheus' own parser reads them."""
    node = nodes.add(gpus=2)
    _, ((share,),) = nodes.place("measured", mib=20480, cores=30)
    with urllib.request.urlopen(f"http://127.0.0.1:{scheduler.port}/metrics", timeout=10) as answer:
        page = list(text_string_to_metric_families(answer.read().decode()))
    samples = {(sample.name, sample.labels.get("device_uuid"), sample.labels.get("pod")): sample
               for family in page for sample in family.samples if sample.labels.get("node") == node}
    assert samples["hami_gpu_memory_allocated_bytes", share.gpu, None].value == 20480 << 20
    assert samples["hami_node_gpu_memory_allocated_ratio", share.gpu, None].value == 20480 / GPU_MIB
    assert samples["hami_gpu_core_allocated_ratio", share.gpu, None].value == 30
    assert samples["hami_vgpu_memory_allocated_bytes", share.gpu, "measured"].labels["namespace"] == "default"
    (other,) = {gpu for name, gpu, _ in samples if name == "hami_gpu_shared_count"} - {share.gpu}
    assert samples["hami_gpu_shared_count", other, None].value == 0


def test_deleted_pod_makes_room(cluster, nodes):
    nodes.add(gpus=1)
    nodes.place("in-the-way", mib=60000)
    nodes.make_pod("waits", mib=60000)
    wait_until(lambda: [event for event in events_of(cluster, "waits") if "CardInsufficientMemory" in event["message"]],
               what="the event")
    cluster.delete_pod("in-the-way")
    _, ((share,),) = nodes.placed("waits")
    assert share.mib == 60000


def make_at_once(nodes, names, **more):
    """Creates these pods with 16 clients at once."""
    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        list(clients.map(lambda name: nodes.make_pod(name, **more), names))


@pytest.mark.parametrize("count", [50] + ([PODS] if PODS > 50 else []))
def test_many_pods_at_once(cluster, nodes, count):
    """64 % of the pods fit exactly. All of these are placed, no GPU is overcommitted, and the others have a reason."""
    room = count * 16 // 25
    for _ in range(room // 8):
        nodes.add(gpus=2)
    names = [f"many-{count}-{i}" for i in range(count)]
    began = time.monotonic()
    make_at_once(nodes, names, mib=GPU_MIB // 4, cores=25)
    created = time.monotonic()
    wait_until(lambda: len(nodes.allocated(names)) == room, 60 + count, f"{room} pods")
    print(f"{count} pods created in {created - began:.1f} s, {room} placed {time.monotonic() - created:.1f} s later")
    done = nodes.allocated(names)
    waiting = set(names) - {pod["metadata"]["name"] for pod in done}
    wait_until(lambda: waiting <= {event["involvedObject"]["name"] for event in cluster.events()
                                   if event["type"] == "Warning" and "Card" in event["message"]},
               60, "a reason for each pod that waits")
    check_full_gpus(done, gpus=room // 4)
    assert len(nodes.allocated(names)) == room
    # Pending pods are deleted first, so that none of them is bound in place of a deleted one.
    for name in sorted(names, key=lambda name: name not in waiting):
        cluster.delete_pod(name)


def check_full_gpus(pods, gpus):
    """Asserts that these pods are four on each GPU, with a quarter each."""
    used = collections.defaultdict(list)
    for pod in pods:
        (share,), = shares_of(pod)
        assert share.gpu.startswith(f"GPU-{pod['spec']['nodeName']}-")
        used[share.gpu].append(share)
    assert len(pods) == 4 * gpus and len(used) == gpus
    for shares in used.values():
        assert sum(share.cores for share in shares) == 100
        assert sum(share.mib for share in shares) == GPU_MIB


@pytest.mark.parametrize("kill", range(KILLS))
def test_scheduler_killed_while_pods_are_placed(cluster, nodes, scheduler, kill):
    """The next scheduler finishes the bindings that were begun, and no share is assigned twice."""
    draw = random.Random(kill)
    nodes.add(gpus=2)
    nodes.add(gpus=2)
    names = [f"killed-{kill}-{i}" for i in range(16)]
    for name in names:
        nodes.make_pod(name, mib=GPU_MIB // 4, cores=25)
    after = draw.randrange(12)
    wait_until(lambda: len(nodes.allocated(names)) >= after, what="the first pods")
    time.sleep(draw.random() * 0.05)
    scheduler.process.kill()
    scheduler.process.wait()
    scheduler.launch()
    wait_until(lambda: len(nodes.allocated(names)) == len(names), 60, "all pods")
    check_full_gpus(nodes.allocated(names), gpus=4)
    for name in names:
        cluster.delete_pod(name)


def test_connections_cut_while_pods_are_placed(cluster, nodes, scheduler):
    """Connections to the API server are cut while pods are placed: all pods are placed, and no share is assigned twice."""
    draw = random.Random(1)
    nodes.add(gpus=2)
    nodes.add(gpus=2)
    names = [f"cut-{i}" for i in range(16)]
    passed = scheduler.proxy.passed
    make_at_once(nodes, names, mib=GPU_MIB // 4, cores=25)
    for _ in range(8):
        scheduler.proxy.cut()
        time.sleep(draw.random() * 0.3)
    assert scheduler.proxy.passed > passed
    wait_until(lambda: len(nodes.allocated(names)) == len(names), 60, "all pods")
    check_full_gpus(nodes.allocated(names), gpus=4)
    for name in names:
        cluster.delete_pod(name)


def test_changes_that_the_watch_can_not_report(cluster, nodes, scheduler):
    """etcd has compacted the changes of an outage, so the watch is refused with 410, and the scheduler lists again."""
    node = nodes.add(gpus=1)
    nodes.place("unseen", mib=60000)
    scheduler.proxy.refuse()
    try:
        cluster.delete_pod("unseen")
        for beat in range(5):
            changed = cluster.patch(f"/api/v1/nodes/{node}", {"annotations": {"beat": str(beat)}})
        cluster.compact(int(changed["metadata"]["resourceVersion"]))
    finally:
        scheduler.proxy.accept()
    _, ((share,),) = nodes.place("seen", mib=60000)
    assert share.mib == 60000


def test_server_restarted_while_pods_are_placed(cluster, nodes):
    """This test is the last one, because others would have to wait for the server."""
    nodes.add(gpus=2)
    nodes.add(gpus=2)
    names = [f"restarted-{i}" for i in range(16)]
    for name in names:
        nodes.make_pod(name, mib=GPU_MIB // 4, cores=25)
    wait_until(lambda: nodes.allocated(names), what="the first pods")
    cluster.restart_apiserver()
    wait_until(lambda: len(nodes.allocated(names)) == len(names), 90, "all pods")
    check_full_gpus(nodes.allocated(names), gpus=4)
    for name in names:
        cluster.delete_pod(name)
