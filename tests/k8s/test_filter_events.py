"""Events that `filter` writes to a real API server. They have HAMi's reasons and texts. Repeated requests for a pod increase
the count of the same event, and few writes result, however many requests there are."""

import pytest

from cluster import SCHEDULER_TOKEN
from machines import wait_until
from scheduler import Scheduler

GPU, MEMORY = "nvidia.com/gpu", "nvidia.com/gpumem"
NODES = [f"events-{i}" for i in range(3)]


@pytest.fixture(scope="module")
def scheduler(cluster, tmp_path_factory):
    kubeconfig = cluster.kubeconfig("filter-events.conf", user=f"token: {SCHEDULER_TOKEN}")
    s = Scheduler(tmp_path_factory.mktemp("events") / "s", f"kube_api = {kubeconfig}\nlease = none\n")
    wait_until(lambda: s.ask("GET", "/readyz")[0] == 200, what="all nodes and pods being known")
    for i, name in enumerate(NODES):
        cluster.make_gpu_node(name, [{"id": f"GPU-{name}", "devmem": 10000, "health": i != 2}])
    yield s
    s.stop()
    for name in NODES:
        cluster.request("DELETE", f"/api/v1/nodes/{name}")


def events_of(cluster, pod, reason):
    """{message: (type, count)} of the pod's events with this reason."""
    return {event["message"]: (event["type"], event["count"]) for event in cluster.events()
            if event["involvedObject"]["name"] == pod and event["reason"] == reason}


def ask(scheduler, pod, path="/filter", **more):
    status, answer = scheduler.post(path, {"Pod": pod, "NodeNames": NODES, **more})
    assert status == 200, answer
    return answer


def filter_events(scheduler, result):
    text = scheduler.ask("GET", "/metrics")[1].decode()
    return int(text.split(f'filter_events_total{{result="{result}"}} ')[1].split()[0])


def test_pod_without_room_gets_few_events(cluster, scheduler):
    pod = cluster.make_pod("no-room", limits={"main": {GPU: "1", MEMORY: "20000"}})
    wait_until(lambda: len(ask(scheduler, pod).get("FailedNodes") or {}) +
               len(ask(scheduler, pod).get("FailedAndUnresolvableNodes") or {}) == 3, what="the nodes being known")
    expected = {"2 nodes CardInsufficientMemory(events-0,events-1)", "1 nodes CardNotHealth(events-2)",
                "no available node, 3 nodes do not meet"}

    def events():
        found = events_of(cluster, "no-room", "FilteringFailed")
        return found if expected <= set(found) else None

    first = wait_until(events, 20, "the events")
    assert all(kind == "Warning" for kind, _ in first.values())
    written = filter_events(scheduler, "sent")
    # Many requests at once: nothing is written until the interval is over; then the same events get higher counts.
    for _ in range(100):
        ask(scheduler, pod)

    def counted():
        ask(scheduler, pod)
        found = events()
        return found if found and found["no available node, 3 nodes do not meet"][1] >= 100 else None

    last = wait_until(counted, 20, "the counts")
    assert set(last) == set(first)
    assert filter_events(scheduler, "sent") - written <= 3 * 2 and filter_events(scheduler, "kept_back") >= 99
    cluster.delete_pod("no-room")


def test_placed_pod_gets_one_event(cluster, scheduler):
    pod = cluster.make_pod("has-room", limits={"main": {GPU: "1", MEMORY: "1000"}})
    wait_until(lambda: "events-0" in ask(scheduler, pod)["NodeNames"] and not scheduler.bind(pod, "events-0"), 20,
               "the binding")
    text = "find fit node(events-0), 1 nodes not fit, 2 nodes fit(events-0:0.00,...)"
    wait_until(lambda: events_of(cluster, "has-room", "FilteringSucceed") == {text: ("Normal", 1)}, 20, "the event")
    assert not events_of(cluster, "has-room", "FilteringFailed")
    cluster.delete_pod("has-room")


def test_dry_runs_write_no_events(cluster, scheduler):
    """An autoscaler's requests contain whole nodes."""
    pod = cluster.make_pod("dry-run", limits={"main": {GPU: "1", MEMORY: "20000"}})
    wait_until(lambda: scheduler.ask("GET", "/explain/default/dry-run")[0] == 200, what="the pod being known")
    before = filter_events(scheduler, "sent"), filter_events(scheduler, "kept_back")
    nodes = [cluster.node(name) for name in NODES]
    answer = ask(scheduler, pod, NodeNames=None, Nodes={"items": nodes})
    assert not answer["Nodes"]["items"]
    assert (filter_events(scheduler, "sent"), filter_events(scheduler, "kept_back")) == before
    cluster.delete_pod("dry-run")
