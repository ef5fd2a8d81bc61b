"""Gangs with a real kube-scheduler, which has no notion of them: all pods of a gang are placed, or none."""

import random
import re
import time

import pytest

from machines import wait_until
from test_sched import GPU_MIB, KILLS, Nodes, Scheduler, events_of

PROFILE = "gangs-of-the-test"  # the schedulerName of this file's pods alone
NAME, SIZE = "allot.dev/gang", "allot.dev/gang-size"


@pytest.fixture(scope="module")
def scheduler(cluster, build_programs, tmp_path_factory):
    build_programs("etcd", "kube-apiserver", "kube-scheduler")
    scheduler = Scheduler(cluster, tmp_path_factory.mktemp("scheduler"), ["--gang-wait", "3s", "--gang-limit", "5s"])
    scheduler.launch()
    cluster.launch_scheduler(f"http://127.0.0.1:{scheduler.port}", name=PROFILE)
    yield scheduler
    cluster.end("kube-scheduler")
    scheduler.end()
    scheduler.proxy.close()


class GangNodes(Nodes):
    profile = PROFILE

    def gang(self, name, pods, size=None, **more):
        """Creates the pods of a gang, each with a whole GPU, and returns their names. `size`: the annotated size."""
        names = [f"{name}-{i}" for i in range(pods)]
        for one in names:
            self.make_pod(one, annotations={NAME: name, SIZE: str(size or pods)}, **more)
        return names

    def reasons(self, name):
        return [event["message"] for event in events_of(self.cluster, name) if event["type"] == "Warning"]

    def wait_for_reason(self, names, reason):
        for name in names:
            wait_until(lambda name=name: any(reason in why for why in self.reasons(name)), 60, f"{name}: {reason}")

    def bound(self, names):
        pods = self.cluster.request("GET", "/api/v1/namespaces/default/pods")["items"]
        return [pod["metadata"]["name"] for pod in pods
                if pod["metadata"]["name"] in names and pod["spec"].get("nodeName")]

    def wait_until_placed(self, names):
        wait_until(lambda: len(self.allocated(names)) == len(names), 60, f"the placement of {names}")

    def delete(self, *names):
        for name in names:
            self.cluster.delete_pod(name)


@pytest.fixture
def nodes(request, cluster, scheduler):
    nodes = GangNodes(cluster, re.sub("[^a-z0-9]+", "-", request.node.name).strip("-"))
    yield nodes
    nodes.stop()


def test_gang_waits_for_room_for_all_its_pods(nodes):
    nodes.add(gpus=2)
    nodes.add(gpus=2)
    nodes.place("in-the-way", mib=GPU_MIB)
    names = nodes.gang("train", 4)
    nodes.wait_for_reason(names, "gang train: only 3 of its 4 pods have room")
    assert not nodes.bound(names)
    nodes.delete("in-the-way")
    nodes.wait_until_placed(names)
    nodes.delete(*names)


def test_gang_is_placed_when_its_last_pod_exists(nodes):
    nodes.add(gpus=4)
    names = nodes.gang("late", 3, size=4)
    nodes.wait_for_reason(names, "of its 4 pods exist")
    assert not nodes.bound(names)
    nodes.make_pod("late-last", annotations={NAME: "late", SIZE: "4"})
    nodes.wait_until_placed([*names, "late-last"])
    nodes.delete(*names, "late-last")


def test_two_gangs_that_compete_do_not_deadlock(nodes):
    """Two gangs of four compete for five GPUs: one gets four GPUs, the other none, not even the fifth."""
    nodes.add(gpus=3)
    nodes.add(gpus=2)
    gangs = [[f"{gang}-{i}" for i in range(4)] for gang in ("left", "right")]
    for pair in zip(*gangs):
        for name in pair:
            nodes.make_pod(name, annotations={NAME: name.split("-")[0], SIZE: "4"})
    wait_until(lambda: 4 in [len(nodes.allocated(names)) for names in gangs], 60, "the placement of one gang")
    first, second = sorted(gangs, key=lambda names: -len(nodes.bound(names)))
    nodes.wait_for_reason(second, "only 1 of its 4 pods have room")
    assert not nodes.bound(second)
    # The second gang is placed when the first has ended.
    nodes.delete(*first)
    nodes.wait_until_placed(second)
    nodes.delete(*second)


def test_gang_that_kube_scheduler_can_not_place_frees_its_gpus(cluster, nodes):
    """There are GPUs for all four pods, but host memory for three: none is bound, and the reserved GPUs become free again."""
    nodes.add(gpus=5)
    memory = {"memory": "150Gi"}  # of 512
    names = [f"large-{i}" for i in range(4)]
    for name in names:
        nodes.make_pod(name, limits={"main": {"nvidia.com/gpu": "1", **memory}},
                  annotations={NAME: "large", SIZE: "4"})
    wait_until(lambda: [name for name in names if any("are ready to be bound" in why for why in nodes.reasons(name))],
               60, "pods that wait for the rest of their gang")
    assert not nodes.bound(names)
    # Another pod gets the GPUs that were reserved for the gang.
    nodes.place("wide", gpus=2, mib=GPU_MIB)
    assert not nodes.bound(names)
    nodes.delete(*names, "wide")


@pytest.mark.parametrize("kill", range(KILLS))
def test_gang_is_completed_after_the_scheduler_was_killed(nodes, scheduler, kill):
    """Reservations are lost, bindings are not: the other pods of the gang follow those that are bound."""
    draw = random.Random(kill)
    nodes.add(gpus=3)
    nodes.add(gpus=3)
    names = nodes.gang(f"killed-{kill}", 6)
    after = draw.randrange(4)
    wait_until(lambda: len(nodes.bound(names)) >= after, 60, "the first bindings")
    time.sleep(draw.random() * 0.3)
    scheduler.process.kill()
    scheduler.process.wait()
    scheduler.launch()
    nodes.wait_until_placed(names)
    nodes.delete(*names)
