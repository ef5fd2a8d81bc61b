"""allot-scheduler's web page over HTTP, for the cluster of a stand-in API server: what each view shows, how changes are
reported, and who may read it."""

import contextlib
import http.client
import json
import re
import socket
import threading
import time

import pytest

from api_server import ApiServer, node, pod
from machines import ROOT, wait_until
from page import ask, page_in
from page_cost import Watch, resident_bytes
from scheduler import Scheduler, run_scheduler
from test_page import assert_named_at_once

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
TOKEN = "a-token-to-look-at-clusters"
SITES = [ROOT / "src" / page / "site" for page in ("scheduler/page", "http/dashboard")]
LOAD_MAX = 200 << 10


class ClusterPage:
    """allot-scheduler with its page, for the cluster of a stand-in API server."""

    def __init__(self, directory, api, settings=""):
        self.api = api
        kubeconfig = api.kubeconfig(directory / "kubeconfig")
        self.token_file = directory / "web-token"
        self.token_file.write_text(TOKEN + "\n")
        self.scheduler = Scheduler(directory / "s", f"kube_api = {kubeconfig}\nlease = none\nweb_listen = 127.0.0.1:0\n"
                                   f"web_token_file = {self.token_file}\n{settings}", tls=False)
        self.url = wait_until(lambda: page_in(self.scheduler.log.read_text()), what="the page being served")
        self.address = self.url.split("/")[2]
        wait_until(lambda: self.state()["cluster"]["ready"], what="the cluster being known")

    def ask(self, path, method="GET", token=TOKEN, **headers):
        return ask(self.address, path, method, token, **headers)

    def state(self, view="", token=TOKEN):
        status, _, text = self.ask(f"/api/state?{view}", token=token)
        assert status == 200, text
        return json.loads(text)

    def scheduler_explains(self, name):
        connection = http.client.HTTPConnection(self.scheduler.http, timeout=20)
        connection.request("GET", f"/explain/{name}")
        return connection.getresponse().read()

    def until(self, view, condition, what):
        """Returns the first state of that view for which condition(state) is true."""
        def read():
            state = self.state(view)
            return condition(state) and state
        return wait_until(read, what=what)

    @contextlib.contextmanager
    def events(self, view=""):
        host, _, port = self.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(f"GET /events?{view} HTTP/1.1\r\nHost: {self.address}\r\n"
                               f"Authorization: Bearer {TOKEN}\r\n\r\n".encode())
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            assert answer.status == 200

            def next_event():
                line = answer.readline()
                assert line.startswith(b"data: ") and answer.readline() == b"\n", line[:80]
                return json.loads(line[len(b"data: "):])
            yield next_event


@pytest.fixture
def api():
    with ApiServer() as api:
        yield api


@pytest.fixture
def page(tmp_path, api):
    page = ClusterPage(tmp_path, api)
    yield page
    page.scheduler.stop()


def fill(api):
    """Fills a cluster: two teams on three nodes, one with an unhealthy GPU, and a pod that fits on no node."""
    for name, more in (("a-1", {}), ("a-2", {}), ("b-1", {"health": False})):
        api.put(NODES, node(name, gpus=2, **more))
    api.put(PODS, pod("train", "team-a", node="a-1", shares="GPU-a-1-0,NVIDIA,40960,50:;"))
    api.put(PODS, pod("serve", "team-b", node="a-1", shares="GPU-a-1-0,NVIDIA,20480,25:;"))
    api.put(PODS, pod("whole", "team-a", node="b-1", shares="GPU-b-1-1,NVIDIA,81920,100:;"))
    api.put(PODS, pod("large", "team-b", {GPU: "1", MEMORY: "90000"}))


# The largest cluster: nodes with 8 GPUs, a pod on each GPU, and some waiting pods.
LARGE, GPUS_PER_NODE, WAITING = 5000, 8, 40
PODS_IN_ALL = LARGE * GPUS_PER_NODE + WAITING
SECONDS = 4.0


def node_name(i):
    return f"gpu-{i:05}.cluster.example.com"


def fill_large_cluster(api):
    for i in range(LARGE):
        api.put(NODES, node(node_name(i), gpus=GPUS_PER_NODE))
        for p in range(GPUS_PER_NODE):
            api.put(PODS, pod(f"job-{i:05}-{p}", f"team-{p}", node=node_name(i),
                              shares=f"GPU-{node_name(i)}-{p},NVIDIA,{8192 * (1 + p)},{10 + 10 * p}:;"))
    for i in range(WAITING):
        api.put(PODS, pod(f"wait-{i}", "team-x", {GPU: "8"}))


@contextlib.contextmanager
def changing(api, on):
    """Within this context, a pod of that node gets another share twenty times a second."""
    end = threading.Event()

    def change():
        i = 0
        while not end.wait(0.05):
            i += 1
            api.put(PODS, pod("changing", "team-0", node=on, shares=f"GPU-{on}-0,NVIDIA,{100 + i % 50},{1 + i % 9}:;"))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def names(state, section, key):
    rows = {row["node" if section == "nodes" else "uid"]: row for row in state[section]["rows"]}
    return [rows[one][key] for one in state[section]["keys"]]


# ---- states ----

def test_state_of_a_cluster(page, api):
    fill(api)
    state = page.until("pod_state=all&open=a-1", lambda s: s["cluster"]["pods"] == 4 and s["cluster"]["nodes"] == 3, "the pods")
    cluster = state["cluster"]
    assert (cluster["cards"], cluster["cards_unhealthy"], cluster["shares"]) == (6, 1, 3)
    assert cluster["memory_bytes"] == 6 * 81920 << 20 and cluster["promised_bytes"] == (40960 + 20480 + 81920) << 20
    assert (cluster["cores_pct"], cluster["promised_cores_pct"]) == (600, 175)
    assert (cluster["pods_waiting"], cluster["pods_reserved"]) == (1, 0)
    assert names(state, "nodes", "node") == ["a-1", "a-2", "b-1"]
    assert names(state, "nodes", "state") == ["used", "free", "unhealthy"]
    assert names(state, "nodes", "promised_cores_pct") == [75, 0, 100]
    assert names(state, "pods", "pod") == ["large", "train", "whole", "serve"]
    assert names(state, "pods", "state") == ["waiting", "bound", "bound", "bound"]
    assert names(state, "pods", "node") == [None, "a-1", "b-1", "a-1"]
    first = state["open"]["devices"][0]
    assert (first["promised_bytes"], first["promised_cores_pct"], first["slots_used"]) == (61440 << 20, 75, 2)
    assert [(one["pod"], one["shares"][0]["index"], one["shares"][0]["memory_mib"]) for one in state["open"]["pods"]] == \
        [("train", 0, 40960), ("serve", 0, 20480)]
    assert state["open"]["url"] is None


def test_reasons_of_a_waiting_pod_follow_the_cluster(page, api):
    """The page gives the same reasons as `allot explain`. They change with the cluster, and end when the pod is bound."""
    fill(api)
    with page.events() as next_event:
        state = {}

        def until(condition):
            for _ in range(200):
                state.update(next_event())
                if condition():
                    return
            raise AssertionError(state)

        def why():
            rows = state["pods"]["rows"] if "pods" in state else []
            return rows and rows[0]["pod"] == "large" and rows[0]["why"]

        until(why)
        assert why()["says"] == "none of 3 nodes has the requested GPUs free"
        groups = {group["why"]: group["nodes"] for group in why()["groups"]}
        assert groups == {"2/2 CardInsufficientMemory": 2, "1/2 CardNotHealth, 1/2 CardInsufficientMemory": 1}, groups
        assert why()["nearest"] == []
        explained = json.loads(page.scheduler_explains("team-b/large"))
        assert {one["why"] for one in explained["nodes"]} == set(groups)
        api.put(NODES, node("c-1", gpus=1, memory_mib=143360))
        until(lambda: why() and why()["says"].startswith("1 of 4 nodes have enough free GPUs, but the pod is not placed yet: "))
        api.put(PODS, pod("large", "team-b", {GPU: "1", MEMORY: "90000"}, node="c-1", shares="GPU-c-1-0,NVIDIA,90000,0:;"))
        until(lambda: state["pods"]["keys"] == [])
        assert state["cluster"]["pods_waiting"] == 0


def test_tables_have_pages_of_fifty_rows(page, api):
    """The state has fifty rows of each table; others are sent on request."""
    for i in range(120):
        api.put(NODES, node(f"n-{i:03}", gpus=1))
        api.put(PODS, pod(f"w-{i:03}", "team", {GPU: "4"}))
    state = page.until("", lambda s: s["nodes"]["seen"] == 120 == s["pods"]["seen"], "all of them")
    assert [len(state[part]["keys"]) for part in ("nodes", "pods")] == [50, 50]
    assert len(page.ask("/api/state")[2]) < 64 << 10
    last = page.state("nodes_from=100&pods_from=100")
    assert names(last, "nodes", "node") == [f"n-{i}" for i in range(100, 120)]
    assert names(last, "pods", "pod") == [f"w-{i}" for i in range(100, 120)]


def test_the_largest_cluster(page, api):
    """Of 40,000 pods on 5,000 nodes, a reader gets a page of each table, and then the changes. That costs the thread that
    places pods little time, and little memory compared with the model."""
    fill_large_cluster(api)
    view = "pod_state=bound"
    page.until(view, lambda s: s["cluster"]["pods"] == PODS_IN_ALL and s["cluster"]["nodes"] == LARGE, "all of it")
    pid = page.scheduler.process.pid
    with changing(api, node_name(0)):
        time.sleep(1)
        kept = resident_bytes(pid)
        watch = Watch(pid, pid)
        time.sleep(SECONDS)
        used_s, seconds = watch.end()
        without = used_s / seconds
        with contextlib.ExitStack() as stack:
            next_event, *others = [stack.enter_context(page.events(view)) for _ in range(4)]
            for reader in others:
                reader()
            state = next_event()
            assert state["pods"]["seen"] == LARGE * GPUS_PER_NODE + 1
            assert [len(state[part]["keys"]) for part in ("nodes", "pods")] == [50, 50]
            watch, sizes = Watch(pid, pid), []
            while time.monotonic() - watch.begun < 2 * SECONDS or len(sizes) < 3:
                sizes.append(len(json.dumps(next_event())))
            used_s, seconds = watch.end()
            grown = resident_bytes(pid) - kept
    share = used_s / seconds - without
    print(f"whole {len(json.dumps(state))} bytes, then {max(sizes)} at most; {len(sizes) / seconds:.1f} states a second for "
          f"{100 * share:.2f} % of the thread; {kept >> 10} KiB, and {grown >> 10} more")
    assert len(json.dumps(state)) < 64 << 10
    # An event has one row of each table, the cluster's sums, and the keys if the order of pods changes.
    assert max(sizes) < 6 << 10
    # Four readers of the most expensive view. The pause between events grows with their cost (EVENTS_SHARE).
    assert share < 0.05
    assert grown < kept / 8


def test_reasons_without_an_event_stream(page, api):
    fill(api)
    # At first, no node may have reported its GPUs.
    page.until("", lambda s: s["pods"]["rows"] and (s["pods"]["rows"][0]["why"] or {}).get("says", "").startswith("none of "),
               "why it waits")


def test_differences_add_up_to_the_whole_state(page, api):
    """A reader of the stream ends with the same state as a request at the end, whatever happened in between."""
    fill(api)
    view = "pod_state=all&open=a-1"
    page.until(view, lambda s: s["cluster"]["pods"] == 4, "the pods")
    with page.events(view) as next_event:
        rows, state = {"nodes": {}, "pods": {}}, {}

        def take(event):
            state.update({key: value for key, value in event.items() if key not in rows})
            for part, known in rows.items():
                if part in event:
                    state[part] = event[part]["keys"]
                    known.update({row["node" if part == "nodes" else "uid"]: row for row in event[part]["rows"]})
            return event

        assert take(next_event())["version"] == 1
        for i in range(20):
            if i % 3 == 0:
                api.put(NODES, node(f"x-{i:02}", gpus=1))
            api.put(PODS, pod(f"new-{i % 7}", "team-c", node="a-2", shares=f"GPU-a-2-{i % 2},NVIDIA,{100 * i + 100},{i}:;"))
            if i % 5 == 4:
                api.drop(PODS, "new-0" if i == 4 else f"new-{i % 7}", "team-c")
                api.put(PODS, pod(f"new-{i % 7}", "team-c", node="a-1", shares=f"GPU-a-1-1,NVIDIA,{i},1:;"))
            event = take(next_event())
            assert "version" not in event and len(json.dumps(event)) < len(json.dumps(page.state(view)))
        wanted = page.until(view, lambda s: "x-18" in s["nodes"]["keys"] and all(
            row["why"] for row in s["pods"]["rows"] if row["state"] == "waiting"), "the last node")

        def is_same():
            return state["cluster"] == wanted["cluster"] and state["open"] == wanted["open"] and all(
                [rows[part].get(key) for key in state[part]] == wanted[part]["rows"] for part in rows)

        # No event follows once all is sent, so a missing one fails by the socket's timeout.
        while not is_same():
            take(next_event())


# ---- access ----

def test_a_token_is_needed(page):
    for path in ("/api/state", "/events", "/api/history"):
        assert page.ask(path, token=None)[0] == 401 and page.ask(path, token="another-token-than-that")[0] == 401
        assert page.ask(path, "HEAD")[0] == 200
    assert json.loads(page.ask("/api/rights", token=None)[2]) == {"read": False, "change": False}
    assert json.loads(page.ask("/api/rights")[2]) == {"read": True, "change": False}
    # No path changes anything, and the extender's paths do not exist.
    for path in ("/api/state", "/api/set", "/bind", "/filter", "/"):
        assert page.ask(path, "POST")[0] == 405
    for path in ("/metrics", "/explain/a/b", "/..", "/api"):
        assert page.ask(path)[0] == 404
    page.token_file.write_text("short")
    assert page.ask("/api/state")[0] == 503
    assert "web_token_file" in page.scheduler.log.read_text()


def test_bad_queries_are_refused(page):
    for view, why in (("node=A", "node: 'A': must be made of a-z"), ("order=size", "order: 'size': must be name, memory"),
                      ("nodes_from=x", "nodes_from: 'x': must be 0 to 20000"), ("open=%0a", "open: '?': must be made of a-z")):
        for path in ("/api/state", "/events"):
            status, _, text = page.ask(f"{path}?{view}")
            assert status == 400 and text.startswith(why) and text.count("\n") == 1, text


def test_sixteen_readers_at_most_and_a_slow_one_delays_none(page, api):
    """Sixteen readers are served at a time. One that does not read delays no other."""
    fill(api)
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(page.events()) for _ in range(16)]
        assert page.ask("/events")[0] == 503
        for next_event in readers[1:]:
            assert next_event()["version"] == 1
        api.put(NODES, node("z", gpus=1))
        for next_event in readers[1:]:
            while "z" not in next_event().get("nodes", {"keys": []})["keys"]:
                pass
    wait_until(lambda: page.ask("/events", "HEAD")[0] == 200, what="room for another")


def test_files_are_local_and_small(page):
    """All files to which the page refers exist on its server, and their total size is small."""
    wanted, seen, total = ["/"], set(), 0
    while wanted:
        path = wanted.pop()
        seen.add(path)
        status, headers, text = page.ask(path, token=None)
        assert status == 200, path
        assert headers["Content-Security-Policy"].startswith("default-src 'self';") and headers["Cache-Control"] == "no-store"
        total += int(headers["Content-Length"])
        for name in re.findall(r'(?:src|href)="(/[^"]*)"', text) + re.findall(r'from "\./([^"]*)"', text):
            name = f"/{name.lstrip('/')}"
            if name not in seen and name not in wanted:
                wanted.append(name)
    assert total < LOAD_MAX, total
    assert_named_at_once(page)
    for path in [path for site in SITES for path in site.glob("*.*")]:
        assert ("/" if path.name == "index.html" else f"/{path.name}") in seen, f"{path}: no file of the page refers to it"


@pytest.mark.parametrize("settings,why", [
    ("web_listen = 127.0.0.1:1\n", "web_listen: '127.0.0.1:1': needs kube_api, since the page shows the cluster"),
    ("kube_api = in-cluster\nweb_listen = 0.0.0.0:1\n", "web_listen: '0.0.0.0:1' can be reached from other machines: name a web_token_file"),
    ("web_listen = here\n", "web_listen: 'here'"),
    ("web_token_file = x\n", "web_token_file: 'x': must be none, or a full path"),
    ("web_tls_key = /x\n", "web_tls_certificate: must be set too, since web_tls_key is set"),
    ("web_node_url = ftp://{node}/\n", "web_node_url: 'ftp://{node}/': must be none, or a URL such as http://{node}:9401/"),
    ("web_node_url = http://node/\n", "web_node_url: 'http://node/': must be none"),
])
def test_bad_settings_are_refused(tmp_path, settings, why):
    (tmp_path / "settings").write_text(settings)
    done = run_scheduler("--check-config", tmp_path / "settings")
    assert done.returncode == 1 and why in done.stderr and done.stderr.count("\n") == 1, done.stderr
