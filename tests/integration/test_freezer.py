"""Containers without liballot.so: the daemon sees them when they start, freezes them while memory is short, thaws them one by
one, and never leaves one frozen. Cgroups are real; the GPU is simulated, and there is no container engine."""

import json
import os
import signal

import pytest
from boxes import Boxes, why_not
from machines import BUILD, read_of_processes, wait_until
from held import compile_c, link_with_driver
from page import ask, page_in
from scrape import address_in, wait_for_page
from sim_peers import start_sim  # noqa: F401

GIB = 1 << 30
CARD_GIB = 139    # a simulated H200 has a little more
NEED_MIB = 44 << 10  # three fit, not four
# From cuInit to the context: 90 to 190 ms on an H200, and none on the simulated GPU. More here, because on a loaded machine the
# daemon was too late with 300 ms.
CONTEXT_MS = 1000
# Between two allocations, so that a daemon that is late by a second still freezes the container in time.
PAUSE_MS = 500

VERSIONS = [pytest.param(v, marks=pytest.mark.skipif(why_not(v) is not None,
                                                     reason=f"{v}: {why_not(v)}"))
            for v in ("v2", "v1")]


@pytest.fixture(scope="session")
def hoard(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("hoard") / "hoard", *link_with_driver(), "hoard.c")


@pytest.fixture
def make_boxes(start_sim, tmp_path):  # noqa: F811
    made = []

    def make(version, spec="h200", **settings):
        made.append(Boxes(version, start_sim(spec), tmp_path, **settings))
        return made[-1]

    yield make
    for boxes in made:
        boxes.close()


def lines_of(process):
    """Returns {first word: last number} of the lines that a process printed."""
    return {line.split()[0]: float(line.split()[-1]) for line in process.stdout.read().splitlines()}


def run_six(boxes, hoard):
    """Gil et al., Figure 4: six containers of equal need, started together, with memory for three. Returns (box, status,
    lines_of()) of each."""
    started = [(box, box.start(hoard, NEED_MIB, 4 << 10, 20, 700, CONTEXT_MS)) for box in
               [boxes.make() for _ in range(6)]]
    return [(box, process.wait(timeout=60), lines_of(process)) for box, process in started]


@pytest.mark.parametrize("version", VERSIONS)
def test_six_containers_with_room_for_three(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="45GiB")
    ended = run_six(boxes, hoard)
    assert [status for _, status, _ in ended] == [0] * 6, boxes.log.read_text()
    # Half of them had to wait.
    waited = [boxes.container(box)["frozen_s"] for box, _, _ in ended]
    assert sum(frozen > 0.3 for frozen in waited) >= 3, waited
    assert not any(box.is_frozen() for box, _, _ in ended)


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_without_the_freezer_some_of_six_fail(version, make_boxes, hoard):
    boxes = make_boxes(version, freezer="off")
    statuses = [status for _, status, _ in run_six(boxes, hoard)]
    assert statuses.count(1) >= 2, statuses
    # The daemon records their tasks all the same.
    tasks = boxes.tasks()
    assert not tasks["freezer"] and tasks["watch"] == "openings"
    assert sum(task["name"] == "hoard" and task["ended"] for task in tasks["tasks"]) == 6


def fill_the_gpu(boxes, hoard):
    """Starts a container that holds most of the GPU, and one that waits for memory. Returns box and process of each."""
    first, second = boxes.make(), boxes.make()
    holder = first.start(hoard, (CARD_GIB - 10) << 10, 32 << 10, 0, 60000)
    wait_until(lambda: holder.stdout.readline().startswith("full"), what="the holder")
    wait_until(lambda: boxes.state(first) in ("starting", "running"), what="the holder's task")
    waiter = second.start(hoard, 20 << 10, 4 << 10, PAUSE_MS, 300, CONTEXT_MS)
    wait_until(second.is_frozen, what="the waiter to be frozen")
    wait_until(lambda: boxes.state(second) == "waiting", what="the waiter to wait")
    return first, holder, second, waiter


@pytest.mark.alone  # a container must be frozen before it has a context
@pytest.mark.parametrize("version", VERSIONS[:1])
def test_only_memory_of_visible_gpus_counts(version, make_boxes, hoard):
    """Two GPUs, the first one full: a container that names the first waits, and one that names the second runs."""
    boxes = make_boxes(version, spec="h200x2", freeze_threshold="45GiB")
    holder = boxes.make().start(hoard, 120 << 10, 4 << 10, 1, 8000)
    wait_until(lambda: any(c["state"] == "running" for c in boxes.tasks()["containers"]),
               what="the holder")
    blocked, unblocked = boxes.make(), boxes.make()
    boxes.environment["CUDA_VISIBLE_DEVICES"] = "0"
    blocked_process = blocked.start(hoard, NEED_MIB, 4 << 10, 1, 100, CONTEXT_MS)
    wait_until(lambda: boxes.state(blocked) == "waiting", what="the container with the full GPU")
    boxes.environment["CUDA_VISIBLE_DEVICES"] = "1"
    unblocked_process = unblocked.start(hoard, NEED_MIB, 4 << 10, 1, 100, CONTEXT_MS)
    assert unblocked_process.wait(timeout=20) == 0
    assert boxes.state(blocked) == "waiting"
    assert holder.wait(timeout=30) == 0 and blocked_process.wait(timeout=20) == 0


@pytest.mark.alone  # a container must be frozen before it has a context
@pytest.mark.parametrize("version", VERSIONS)
def test_a_container_waits_until_the_holder_ends(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, holder, second, waiter = fill_the_gpu(boxes, hoard)
    table = boxes.allot("tasks")
    assert table.returncode == 0, table.stderr
    assert f"{second.id[:12]}  docker      waiting" in table.stdout
    # A running container is not frozen.
    assert not first.is_frozen()
    holder.kill()
    assert waiter.wait(timeout=20) == 0
    found = wait_until(lambda: boxes.state(second) == "ended" and boxes.container(second),
                       what="its end")
    assert found["frozen_s"] > 0
    assert 20 * GIB <= found["devices"][0]["memory_most_bytes"] < 22 * GIB


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_the_page_shows_frozen_containers(version, make_boxes, hoard, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-that-only-reads")
    boxes = make_boxes(version, freeze_threshold="25GiB", web_listen="127.0.0.1:0", web_token_file=token)
    first, holder, second, waiter = fill_the_gpu(boxes, hoard)
    address = page_in(boxes.log.read_text()).split("/")[2]

    def containers():
        state = json.loads(ask(address, "/api/state", token=token.read_text())[2])
        assert state["freezer"]
        return {container["id"]: container for container in state["containers"]}

    shown = containers()
    assert shown[second.id]["state"] == "waiting"
    assert shown[first.id]["state"] in ("starting", "running")
    assert shown[first.id]["devices"][0]["memory_used_bytes"] > 100 * GIB
    wait_until(lambda: containers()[second.id]["frozen_now_s"] > shown[second.id]["frozen_now_s"], what="its wait to grow")
    holder.kill()
    assert waiter.wait(timeout=20) == 0
    wait_until(lambda: second.id not in containers(), what="its end")


@pytest.mark.parametrize("version", VERSIONS)
def test_metrics_of_containers(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="25GiB", metrics_listen="127.0.0.1:0")
    first, holder, second, waiter = fill_the_gpu(boxes, hoard)
    address = address_in(boxes.log.read_text())
    page = wait_for_page(address, lambda p: p.value("allot_containers", state="waiting") == 1)
    tasks = boxes.tasks()
    assert page.value("allot_gpu_tasks") == sum(not task["ended"] for task in tasks["tasks"]) == 2
    assert page.value("allot_containers_without_library") == 2
    assert page.value("allot_container_frozen", container=second.id, engine="docker") == 1
    assert page.value("allot_container_frozen", container=first.id) == 0
    # Either may have been frozen for a moment while the GPU's memory was read.
    assert page.value("allot_freezer_freezes_total") == page.value("allot_freezer_thaws_total") + 1
    held = page.value("allot_container_memory_used_bytes", container=first.id, device="0")
    assert held == boxes.container(first)["devices"][0]["memory_used_bytes"] > 100 * GIB
    assert page.value("allot_device_memory_foreign_bytes") == held
    frozen = page.value("allot_container_frozen_seconds_total", container=second.id)
    later = wait_for_page(address, lambda p: p.value(
        "allot_container_frozen_seconds_total", container=second.id) > frozen + 0.2)
    assert later.value("allot_freezer_frozen_seconds_total") >= frozen + 0.2
    holder.kill()
    assert waiter.wait(timeout=20) == 0
    page = wait_for_page(address, lambda p: p.value("allot_containers", state="ended") == 2)
    assert page.value("allot_freezer_freezes_total") == page.value("allot_freezer_thaws_total")
    assert page.value("allot_freezer_frozen_seconds_total") > frozen + 0.2
    assert page.value("allot_freezer_failures_total") == 0
    assert not page.all("allot_container_frozen")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_stays_frozen_after_the_daemon(version, how, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, holder, second, waiter = fill_the_gpu(boxes, hoard)
    boxes.end_daemon(how)
    wait_until(lambda: not second.is_frozen(), what="the thaw")
    # It runs out of memory, as without a freezer.
    assert waiter.wait(timeout=20) == 1


def find_watchdog(boxes):
    """Returns the pid of the daemon's child allot-thaw."""
    for pid, text in read_of_processes("stat"):
        name, _, fields = text.partition("(")[2].rpartition(")")
        if name == "allot-thaw" and int(fields.split()[1]) == boxes.daemon.pid:
            return pid
    return pytest.fail("no watchdog")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_next_daemon_thaws_if_the_watchdog_died_too(version, make_boxes, hoard):
    """Daemon and watchdog are killed at once, as a service manager can. The next daemon thaws the containers in its file."""
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, holder, second, waiter = fill_the_gpu(boxes, hoard)
    watchdog = find_watchdog(boxes)
    boxes.daemon.send_signal(signal.SIGSTOP)
    os.kill(watchdog, signal.SIGKILL)
    boxes.end_daemon(signal.SIGKILL)
    assert second.is_frozen()
    boxes.start_daemon()
    assert "left frozen were thawed" in boxes.log.read_text()
    holder.kill()
    assert waiter.wait(timeout=20) in (0, 1)


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_containers_are_thawed_if_the_watchdog_dies(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, holder, second, waiter = fill_the_gpu(boxes, hoard)
    os.kill(find_watchdog(boxes), signal.SIGKILL)
    wait_until(lambda: not second.is_frozen(), what="the thaw")
    assert "watchdog process has died" in boxes.log.read_text()


@pytest.mark.parametrize("version", VERSIONS)
def test_pause_and_resume_by_hand(version, make_boxes, hoard):
    boxes = make_boxes(version, freezer="off")
    box = boxes.make()
    process = box.start(hoard, 100, 100, 0, 60000)
    wait_until(lambda: process.stdout.readline().startswith("full"), what="its memory")
    wait_until(lambda: boxes.state(box) == "running", what="its task")

    def used():
        # On a busy machine, a reading may come before the GPU lists the process.
        return sum(device["memory_used_bytes"] for device in boxes.container(box)["devices"])

    wait_until(lambda: used() > 100 << 20, what="its memory in the list")
    assert boxes.allot("pause", box.id[:63]).returncode == 0
    wait_until(box.is_frozen, what="the freeze")
    assert boxes.state(box) == "paused"
    frozen = wait_until(used, what="its memory, frozen")
    assert boxes.allot("resume", box.id).returncode == 0
    wait_until(lambda: not box.is_frozen(), what="the thaw")
    assert wait_until(used, what="its memory, thawed") == frozen > 100 << 20
    again = boxes.allot("resume", box.id)
    assert again.returncode == 1 and "is not paused" in again.stderr
    unknown = boxes.allot("pause", "nobody")
    assert unknown.returncode == 1 and "nor a container with GPU work" in unknown.stderr
    assert process.poll() is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_container_killed_while_it_waits(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, holder, second, waiter = fill_the_gpu(boxes, hoard)
    waiter.kill()
    # With version 1, a killed process ends only when it is thawed.
    assert waiter.wait(timeout=5) == -signal.SIGKILL
    wait_until(lambda: boxes.state(second) == "ended", what="its end")
    second.remove()
    # A removed cgroup delays no other container.
    third = boxes.make()
    waiter = third.start(hoard, 20 << 10, 4 << 10, PAUSE_MS, 100, CONTEXT_MS)
    wait_until(third.is_frozen, what="the next one to be frozen")
    holder.kill()
    assert waiter.wait(timeout=20) == 0


def start_tenant(boxes, box, *arguments):
    """Starts `allot run` in a box, with links by which it finds this daemon and its simulated GPU. Returns the process."""
    base = boxes.directory / "base"
    if not base.exists():
        base.mkdir(mode=0o700)
        (base / "sim-h200").symlink_to(boxes.run_dir)
        for end in ("", ".uvm"):
            (boxes.run_dir / f"sim.sock{end}").symlink_to(boxes.sim.socket + end)
    box.environment = {**boxes.environment, "ALLOT_RUN_DIR": str(base)}
    return box.start(BUILD / "allot", "run", "--sim", "h200", "--name", "governed", *arguments)


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_granted_memory_is_not_free(version, make_boxes, hoard):
    """A tenant with --on-full wait is granted all memory that it declared, though it holds little of it yet."""
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, second = boxes.make(), boxes.make()
    tenant = start_tenant(boxes, first, "--memory", "120GiB", "--on-full", "wait", "--", hoard, 100,
                          100, 1, 60000)
    # It is granted memory when it first asks for some, which is after its task is seen.
    wait_until(lambda: tenant.stdout.readline().startswith("full"), what="the tenant's memory")
    wait_until(lambda: boxes.state(first) == "running" and boxes.container(first)["library"],
               what="the tenant")
    listed, = boxes.request("list")["tenants"]
    assert [(c["id"], c["engine"]) for c in listed["containers"]] == [(first.id, "docker")]
    waiter = second.start(hoard, 1 << 10, 1 << 10, 1, 100, CONTEXT_MS)
    wait_until(lambda: boxes.state(second) == "waiting", what="the container to wait")
    tenant.terminate()
    assert waiter.wait(timeout=20) == 0


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_a_tenant_is_never_frozen(version, make_boxes, hoard):
    """It has the library and a quota, so its --on-full decides whether it waits."""
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, holder, second, waiter = fill_the_gpu(boxes, hoard)
    third = boxes.make()
    tenant = start_tenant(boxes, third, "--memory", "4GiB", "--", hoard, 100, 10, 1, 300)
    assert tenant.wait(timeout=20) == 0
    found = boxes.container(third)
    assert found["frozen_s"] < 0.3 and second.is_frozen()
    task = [t for t in boxes.tasks()["tasks"] if t["container"] == third.id]
    assert [t["tenant"] for t in task] == ["governed"]
    assert found["devices"][0]["used_s"] == 0


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_the_next_daemon_does_not_freeze_running_containers(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, holder, second, waiter = fill_the_gpu(boxes, hoard)
    third = boxes.make()
    boxes.end_daemon()
    small = third.start(hoard, 1 << 10, 1 << 10, 1, 60000)
    wait_until(lambda: small.stdout.readline().startswith("full"), what="its memory")
    boxes.start_daemon()
    wait_until(lambda: boxes.state(third) in ("starting", "running"), what="the next daemon")
    assert boxes.container(third)["frozen_s"] == 0


@pytest.mark.skipif(why_not("no freezer") is not None, reason=str(why_not("no freezer")))
def test_no_freezer(make_boxes, hoard):
    """A container whose cgroup can't be frozen starts as it would without a freezer. The log says so once."""
    boxes = make_boxes("no freezer", freeze_threshold="130GiB")
    started = [boxes.make().start(hoard, 10 << 10, 1 << 10, 1, 100) for _ in range(3)]
    assert [process.wait(timeout=20) for process in started] == [0, 0, 0]
    assert boxes.log.read_text().count("there is no freezer for its cgroup") == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_a_read_only_freezer(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="130GiB")
    boxes.end_daemon()
    mount = boxes.top.parent
    boxes.wrapper = ["unshare", "--mount", "sh", "-c",
                     f'mount -o remount,bind,ro {mount} || exit 1; exec "$@"', "sh"]
    boxes.start_daemon()
    started = [boxes.make().start(hoard, 10 << 10, 1 << 10, 1, 100) for _ in range(3)]
    assert [process.wait(timeout=20) for process in started] == [0, 0, 0]
    assert boxes.log.read_text().count("Read-only file system; such containers start") == 1
    assert not boxes.boxes[0].is_frozen()


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_freeze_never_excludes_containers(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="130GiB", freeze_never="*/docker/a1100001*")
    first, second = boxes.make(), boxes.make()
    one = first.start(hoard, 20 << 10, 4 << 10, 1, 1000)
    wait_until(lambda: boxes.state(first) == "starting", what="the first")
    two = second.start(hoard, 20 << 10, 4 << 10, 1, 100)
    assert two.wait(timeout=20) == 0 and one.wait(timeout=20) == 0
    assert boxes.container(second)["frozen_s"] == 0


@pytest.mark.parametrize("defects", ["", "loses-busy-process", "no-process-utilization"])
@pytest.mark.parametrize("version", VERSIONS[:1])
def test_gpu_time_of_containers(version, defects, make_boxes, tmp_path):
    """One process works all the time, one only holds memory. Their time is taken from the driver's samples; if these lack the
    busy process, from the remaining use of the GPU; without samples, from presence."""
    spec = tmp_path / "spec"
    spec.write_text(f"[gpu]\ndefects = {defects}\n" if defects else "[gpu]\n")
    boxes = make_boxes(version, spec=str(spec), freezer="off")
    busy, idle = boxes.make(), boxes.make()
    idle.start(BUILD / "allot-load", "--seconds", 60, "--mib", 64, "--iters", 1000,
               "--burst", 1, "--period-ms", 30000)
    wait_until(lambda: boxes.state(idle) == "running", what="the idle one")
    process = busy.start(BUILD / "allot-load", "--seconds", 4, "--iters", 1000)
    assert process.wait(timeout=60) == 0
    wait_until(lambda: boxes.state(busy) == "ended", what="its end")
    used = boxes.container(busy)["devices"][0]["used_s"]
    other = boxes.container(idle)["devices"][0]["used_s"]
    # A sample arrives after its 0.2 s, and the machine may be busy.
    if not defects:
        assert 2.0 < used < 5.5 and other < 0.3 * used, (used, other)
    elif defects == "loses-busy-process":
        # The remaining use is divided between the two processes without samples.
        assert 0.8 < used < 3.5, (used, other)
    else:
        assert 3.0 < used < 6.0 and other > 3.0, (used, other)
    assert 0 < boxes.container(busy)["faded_use_s"] <= used


def wait_recorded(boxes, condition):
    """Waits until condition(state file) is true, because newer state is lost when the daemon is killed."""
    path = boxes.run_dir / "use.json"
    wait_until(lambda: path.exists() and condition(json.loads(path.read_text())),
               what="the state file")


def work(boxes, box, seconds):
    """Runs a load in a box to its end."""
    box.start(BUILD / "allot-load", "--seconds", seconds, "--iters", 1000).wait(timeout=60)
    wait_until(lambda: boxes.state(box) == "ended", what="its end")


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_recorded_use_outlives_a_killed_daemon(version, make_boxes, hoard):
    """Tasks are still recorded, and a container that has used the GPU more waits longer, as with a single daemon."""
    boxes = make_boxes(version, freeze_threshold="25GiB")
    much, little, third = boxes.make(), boxes.make(), boxes.make()
    work(boxes, much, 3)
    work(boxes, little, 0.5)
    holder = third.start(hoard, (CARD_GIB - 10) << 10, 32 << 10, 0, 60000)
    wait_until(lambda: holder.stdout.readline().startswith("full"), what="the holder")
    wait_until(lambda: boxes.state(third) == "running", what="the holder's task")
    before = boxes.tasks()
    wait_recorded(boxes, lambda state: len(state["tasks"]) == 3 and len(state["containers"]) == 3)
    boxes.end_daemon(signal.SIGKILL)
    boxes.start_daemon()
    after = boxes.tasks()
    assert [(t["pid"], t["container"], t["ended"]) for t in after["tasks"]] == \
        [(t["pid"], t["container"], t["ended"]) for t in before["tasks"]]
    for old, new in zip(before["tasks"], after["tasks"]):
        assert abs(old["begun_s"] - new["begun_s"]) < 0.001
        assert abs(old["lasted_s"] - new["lasted_s"]) < (0.001 if old["ended"] else 10)
        assert old["devices"][0]["used_s"] <= new["devices"][0]["used_s"] + 0.001
    used = [boxes.container(box)["faded_use_s"] for box in (much, little)]
    assert used[0] > 1.5 > 0.9 > used[1] > 0, used
    # The first to arrive has used the GPU most, and is thawed last.
    waiters = []
    for box in (much, little):
        waiters.append(box.start(hoard, 120 << 10, 60 << 10, 1, 1500, CONTEXT_MS))
        wait_until(lambda box=box: boxes.state(box) == "waiting", what="its waiting")
    holder.kill()
    wait_until(lambda: not little.is_frozen(), what="the thaw")
    assert much.is_frozen()
    assert [waiter.wait(timeout=30) for waiter in reversed(waiters)] == [0, 0]


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_a_task_that_ends_while_there_is_no_daemon(version, make_boxes, hoard):
    boxes = make_boxes(version, freezer="off")
    box = boxes.make()
    process = box.start(hoard, 100, 100, 0, 60000)
    wait_until(lambda: boxes.state(box) == "running", what="its task")
    wait_recorded(boxes, lambda state: len(state["tasks"]) == 1)
    boxes.end_daemon(signal.SIGKILL)
    process.kill()
    process.wait()
    boxes.start_daemon()
    task, = boxes.tasks()["tasks"]
    assert task["ended"] and task["pid"] == process.pid and task["container"] == box.id
    assert boxes.state(box) == "ended"


@pytest.mark.parametrize("text", ["", '{"version":1,"writ', '{"version":2}', "\0" * 4096])
@pytest.mark.parametrize("version", VERSIONS[:1])
def test_a_damaged_state_file_is_renamed(version, text, make_boxes):
    boxes = make_boxes(version)
    boxes.end_daemon(signal.SIGKILL)
    path = boxes.run_dir / "use.json"
    path.write_text(text)
    boxes.start_daemon()
    assert boxes.log.read_text().count("renamed to use.json.bad") == 1
    assert (boxes.run_dir / "use.json.bad").read_text() == text
    assert boxes.tasks()["containers"] == []
