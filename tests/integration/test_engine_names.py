"""Finding containers by name: with real podman, docker and containerd, and with stand-ins for CRI-O and for an engine that does
not answer."""

import signal
import time

import pytest
from boxes import why_not
from machines import BUILD, wait_until
from engines import Containerd, Docker, Podman, field, pairs
from sim_peers import start_sim  # noqa: F401
from test_freezer import hoard, make_boxes  # noqa: F401

pytestmark = pytest.mark.skipif(why_not("v2") is not None, reason=f"cgroups: {why_not('v2')}")

ENGINES = {engine.kind: engine for engine in (Podman, Docker, Containerd)}


@pytest.fixture(scope="module")
def engine_of(tmp_path_factory):
    """Returns get(kind), which starts an engine of that kind once. It skips the test, with the engine's message, if it can't
    run here."""
    started, reasons = {}, {}

    def get(kind):
        engine = ENGINES[kind]
        if kind not in started and kind not in reasons:
            reasons[kind] = engine.why_not()
            try:
                if not reasons[kind]:
                    made = engine(tmp_path_factory.mktemp(kind) / "e")
                    started[kind] = made
                    made.start()
                    made.run("probe", ["/bin/sleep", "0"])
            except RuntimeError as error:
                started.pop(kind).__exit__()
                reasons[kind] = str(error)
            except Exception as error:  # an error of grpcio
                if kind != "containerd" or "StatusCode" not in str(error):
                    raise
                started.pop(kind).__exit__()
                reasons[kind] = str(error)[-300:]
        if reasons[kind]:
            pytest.skip(f"{kind}: {reasons[kind]}")
        return started[kind]

    yield get
    for engine in started.values():
        engine.__exit__()


@pytest.fixture
def start(hoard, request):  # noqa: F811
    """Starts a program that holds memory on the boxes' GPU, in a container of an engine."""
    ended = []

    def begin(engine, name, boxes, **more):
        socket_folder = boxes.sim.socket.rpartition("/")[0]
        environment = [("LD_LIBRARY_PATH", BUILD / "sim"), ("ALLOT_SIM_SOCKET", boxes.sim.socket)]
        found = engine.run(name, [hoard, 100, 100, 0, 60000], environment,
                           [BUILD, socket_folder, str(hoard).rpartition("/")[0]], **more)
        ended.append((engine, engine.made[-1]))
        return found

    yield begin
    for engine, name in ended:
        engine.remove(name)
        engine.made.remove(name)


def find(boxes, container):
    return next((c for c in boxes.tasks()["containers"] if c["id"] == container), None)


def wait_named(boxes, container, seconds=15):
    return wait_until(lambda: (found := find(boxes, container)) and found["name"] and found,
                      seconds=seconds, what="the name")


def is_running(boxes, container):
    found = find(boxes, container)
    return found and found["state"] == "running"


@pytest.mark.parametrize("kind", ["podman", "docker"])
def test_a_container_is_found_by_its_name(kind, engine_of, make_boxes, start):  # noqa: F811
    engine = engine_of(kind)
    boxes = make_boxes("v2", freezer="off", container_engines=engine.setting())
    container = start(engine, f"trainer-{kind}", boxes)
    found = wait_named(boxes, container)
    assert found["engine"] == kind and found["name"] == f"trainer-{kind}"
    assert found["pod"] is None and found["namespace"] is None
    assert found["image"] == getattr(engine, "image", None)
    table = boxes.allot("tasks").stdout
    line = next(line for line in table.splitlines() if line.startswith(container[:12]))
    assert line.endswith(f"  trainer-{kind}")
    # `allot pause` and `allot resume` accept the name.
    assert boxes.allot("pause", f"trainer-{kind}").returncode == 0
    assert find(boxes, container)["state"] == "paused"
    assert boxes.allot("resume", f"trainer-{kind}").returncode == 0
    wait_until(lambda: is_running(boxes, container), what="the thaw")
    unknown = boxes.allot("pause", "trainer")
    assert unknown.returncode == 1 and "nor a container with GPU work" in unknown.stderr
    # The next daemon reads the name from the state file, even if no engine answers.
    wait_until(lambda: f"trainer-{kind}" in (boxes.run_dir / "use.json").read_text()
               if (boxes.run_dir / "use.json").exists() else False, what="the state file")
    boxes.end_daemon(signal.SIGKILL)
    boxes.config.write_text(boxes.config.read_text().replace(engine.setting(), "none"))
    boxes.start_daemon()
    assert find(boxes, container)["name"] == f"trainer-{kind}"


def test_a_container_is_found_by_its_pod(engine_of, make_boxes, start):  # noqa: F811
    engine = engine_of("containerd")
    boxes = make_boxes("v2", freezer="off", container_engines=engine.setting())
    first = start(engine, "main", boxes, pod="job-0", namespace="team")
    second = start(engine, "main", boxes, pod="job-1", namespace="team")
    for container, pod in ((first, "job-0"), (second, "job-1")):
        found = wait_named(boxes, container)
        assert (found["namespace"], found["pod"], found["name"]) == ("team", pod, "main")
        assert found["image"] == engine.image
    assert "team/job-1/main" in boxes.allot("tasks").stdout
    several = boxes.allot("pause", "main")
    assert several.returncode == 1
    assert first[:12] in several.stderr and second[:12] in several.stderr
    for name in ("team/job-1/main", "job-1/main", second[:8]):
        assert boxes.allot("pause", name).returncode == 0
        assert find(boxes, second)["state"] == "paused"
        assert boxes.allot("resume", name).returncode == 0
    assert find(boxes, first)["frozen_s"] == 0


def test_a_name_in_two_engines_is_ambiguous(engine_of, make_boxes, start):  # noqa: F811
    engines = [engine_of("podman"), engine_of("docker")]
    boxes = make_boxes("v2", freezer="off",
                       container_engines=",".join(engine.setting() for engine in engines))
    ids = [start(engine, "web", boxes) for engine in engines]
    for container in ids:
        assert wait_named(boxes, container)["name"] == "web"
    refused = boxes.allot("pause", "web")
    assert refused.returncode == 1 and "2 containers match" in refused.stderr
    assert all(container[:12] in refused.stderr for container in ids)
    assert boxes.allot("pause", ids[0]).returncode == 0
    assert boxes.allot("resume", ids[0][:12]).returncode == 0


def test_an_engine_that_does_not_answer(engine_of, make_boxes, start):  # noqa: F811
    """Its containers are found, and can be paused by their ids, all the same. Their names follow when the engine continues."""
    engine = engine_of("podman")
    boxes = make_boxes("v2", freezer="off", container_engines=engine.setting())
    boxes.end_daemon()
    container = start(engine, "later", boxes)
    engine.daemon.send_signal(signal.SIGSTOP)
    try:
        boxes.start_daemon()
        wait_until(lambda: find(boxes, container), what="the container")
        slowest = 0
        until = time.monotonic() + 3
        while time.monotonic() < until:
            begun = time.monotonic()
            assert find(boxes, container)["name"] is None
            slowest = max(slowest, time.monotonic() - begun)
            time.sleep(0.02)
        assert slowest < 2, "allotd waited for the engine"
        assert boxes.allot("pause", container[:12]).returncode == 0
        assert boxes.allot("resume", container[:12]).returncode == 0
        assert boxes.log.read_text().count("can't be asked for the names of containers") == 1
        boxes.end_daemon()
        boxes.start_daemon()
    finally:
        engine.daemon.send_signal(signal.SIGCONT)
    assert wait_named(boxes, container)["name"] == "later"


class Answers:
    """A gRPC server in place of CRI-O. It answers from `known` ({id: message of the reply}), or with NOT_FOUND."""

    def __init__(self, path):
        grpc = pytest.importorskip("grpc")
        from concurrent import futures  # noqa: PLC0415

        class Handler(grpc.GenericRpcHandler):
            def service(handler, details):  # noqa: N805
                if details.method != "/runtime.v1.RuntimeService/ContainerStatus":
                    return None
                return grpc.unary_unary_rpc_method_handler(self.answer)

        self.known, self.asked, self.not_found = {}, [], grpc.StatusCode.NOT_FOUND
        self.server = grpc.server(futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers((Handler(),))
        self.server.add_insecure_port(f"unix://{path}")
        self.server.start()

    def answer(self, request, context):
        container = request[2:].decode()
        self.asked.append(container)
        if container not in self.known:
            context.abort(self.not_found, "no such container")
        return self.known[container]


def test_names_of_crio_containers(make_boxes, hoard, tmp_path):  # noqa: F811
    crio = Answers(tmp_path / "crio.sock")
    boxes = make_boxes("v2", freezer="off", container_engines=f"cri-o:{tmp_path}/crio.sock")
    box = boxes.make()
    box.directory.rmdir()
    box.directory = boxes.top / f"crio-{box.id}.scope"
    box.directory.mkdir()
    box.start(hoard, 100, 100, 0, 60000)
    wait_until(lambda: box.id in crio.asked, what="the question")
    assert boxes.container(box)["engine"] == "cri-o" and boxes.container(box)["name"] is None
    status = field(1, box.id) + field(2, field(1, "main")) + field(3, 1) + \
        field(8, field(1, "quay.io/a/b:1")) + pairs(12, {"io.kubernetes.pod.name": "p\x1b[2J",
                                                        "io.kubernetes.pod.namespace": "n" * 100})
    crio.known[box.id] = field(1, status)
    # The daemon repeats the request by itself.
    found = wait_named(boxes, box.id)
    assert found["name"] == "main" and found["image"] == "quay.io/a/b:1"
    assert found["pod"] == "p?[2J" and found["namespace"] == "n" * 63
    asked = len(crio.asked)
    time.sleep(1)
    assert len(crio.asked) == asked
    crio.server.stop(0)
