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
CARD_GIB = 139    # of a simulated H200, less than that
NEED_MIB = 44 << 10  # three fit, not four
# From cuInit to the context: 90 to 190 ms on an H200; the simulated one takes none. More here, because on a loaded machine the
# daemon has been too late for 300.
CONTEXT_MS = 1000
# Between two allocations: the daemon may stand still for a second before it freezes.
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
    return {line.split()[0]: float(line.split()[-1]) for line in process.stdout.read().splitlines()}


def six(boxes, hoard):
    """Gil et al., Figure 4: six containers of equal need, started together, room for three."""
    started = [(box, box.start(hoard, NEED_MIB, 4 << 10, 20, 700, CONTEXT_MS)) for box in
               [boxes.make() for _ in range(6)]]
    return [(box, process.wait(timeout=60), lines_of(process)) for box, process in started]


@pytest.mark.parametrize("version", VERSIONS)
def test_six_containers_with_room_for_three(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="45GiB")
    ended = six(boxes, hoard)
    assert [status for _, status, _ in ended] == [0] * 6, boxes.log.read_text()
    # Some waited, and none of those is thawed before another has settled.
    waited = [boxes.container(box)["frozen_s"] for box, _, _ in ended]
    assert sum(frozen > 0.3 for frozen in waited) >= 3, waited
    assert not any(box.is_frozen() for box, _, _ in ended)


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_without_it_three_of_six_fail(version, make_boxes, hoard):
    boxes = make_boxes(version, freezer="off")
    statuses = [status for _, status, _ in six(boxes, hoard)]
    assert statuses.count(1) >= 2, statuses
    # They are recorded all the same.
    tasks = boxes.tasks()
    assert not tasks["freezer"] and tasks["watch"] == "openings"
    assert sum(task["name"] == "hoard" and task["ended"] for task in tasks["tasks"]) == 6


def hold_the_card(boxes, hoard):
    """A container that has most of the card; and one that waits for it."""
    first, second = boxes.make(), boxes.make()
    holder = first.start(hoard, (CARD_GIB - 10) << 10, 32 << 10, 0, 60000)
    wait_until(lambda: holder.stdout.readline().startswith("full"), what="the holder")
    wait_until(lambda: boxes.state(first) in ("starting", "running"), what="the holder's task")
    waiter = second.start(hoard, 20 << 10, 4 << 10, PAUSE_MS, 300, CONTEXT_MS)
    wait_until(second.is_frozen, what="the waiter to be frozen")
    wait_until(lambda: boxes.state(second) == "waiting", what="the waiter to wait")
    return first, holder, second, waiter


@pytest.mark.alone  # it is frozen within the 100 ms that a context takes
@pytest.mark.parametrize("version", VERSIONS[:1])
def test_room_on_a_card_that_it_did_not_name_is_of_no_use(version, make_boxes, hoard):
    """Two cards, the first one full: who names that one waits, who names none goes on."""
    boxes = make_boxes(version, spec="h200x2", freeze_threshold="45GiB")
    holder = boxes.make().start(hoard, 120 << 10, 4 << 10, 1, 8000)
    wait_until(lambda: any(c["state"] == "running" for c in boxes.tasks()["containers"]),
               what="the holder")
    named, free = boxes.make(), boxes.make()
    boxes.environment["CUDA_VISIBLE_DEVICES"] = "0"
    waits = named.start(hoard, NEED_MIB, 4 << 10, 1, 100, CONTEXT_MS)
    wait_until(lambda: boxes.state(named) == "waiting", what="the one that named the full card")
    boxes.environment["CUDA_VISIBLE_DEVICES"] = "1"
    goes = free.start(hoard, NEED_MIB, 4 << 10, 1, 100, CONTEXT_MS)
    assert goes.wait(timeout=20) == 0
    assert boxes.state(named) == "waiting"
    assert holder.wait(timeout=30) == 0 and waits.wait(timeout=20) == 0


@pytest.mark.alone  # it is frozen within the 100 ms that a context takes
@pytest.mark.parametrize("version", VERSIONS)
def test_waits_until_the_holder_ends(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, holder, second, waiter = hold_the_card(boxes, hoard)
    table = boxes.allot("tasks")
    assert table.returncode == 0, table.stderr
    assert f"{second.id[:12]}  docker      waiting" in table.stdout
    # Once running it is let be.
    assert not first.is_frozen()
    holder.kill()
    assert waiter.wait(timeout=20) == 0
    found = wait_until(lambda: boxes.state(second) == "ended" and boxes.container(second),
                       what="its end")
    assert found["frozen_s"] > 0
    assert 20 * GIB <= found["devices"][0]["memory_most_bytes"] < 22 * GIB


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_the_page_tells_who_stands_still(version, make_boxes, hoard, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-that-only-reads")
    boxes = make_boxes(version, freeze_threshold="25GiB", web_listen="127.0.0.1:0", web_token_file=token)
    first, holder, second, waiter = hold_the_card(boxes, hoard)
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
def test_metrics_tell_of_containers(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="25GiB", metrics_listen="127.0.0.1:0")
    first, holder, second, waiter = hold_the_card(boxes, hoard)
    address = address_in(boxes.log.read_text())
    page = wait_for_page(address, lambda p: p.value("allot_containers", state="waiting") == 1)
    tasks = boxes.tasks()
    assert page.value("allot_gpu_tasks") == sum(not task["ended"] for task in tasks["tasks"]) == 2
    assert page.value("allot_containers_without_library") == 2
    assert page.value("allot_container_frozen", container=second.id, engine="docker") == 1
    assert page.value("allot_container_frozen", container=first.id) == 0
    # Either may have stood still while the card was read.
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
    first, holder, second, waiter = hold_the_card(boxes, hoard)
    boxes.end_daemon(how)
    wait_until(lambda: not second.is_frozen(), what="the thaw")
    # As it would be without any freezer.
    assert waiter.wait(timeout=20) == 1


def find_watchdog(boxes):
    """The daemon's child of that name."""
    for pid, text in read_of_processes("stat"):
        name, _, rest = text.partition("(")[2].rpartition(")")
        if name == "allot-thaw" and int(rest.split()[1]) == boxes.daemon.pid:
            return pid
    return pytest.fail("no watchdog")


@pytest.mark.parametrize("version", VERSIONS)
def test_frozen_without_watchdog_and_daemon(version, make_boxes, hoard):
    """Both killed at once, as a service manager can: the next daemon thaws what the file names."""
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, holder, second, waiter = hold_the_card(boxes, hoard)
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
def test_watchdog_alone_is_killed(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, holder, second, waiter = hold_the_card(boxes, hoard)
    os.kill(find_watchdog(boxes), signal.SIGKILL)
    wait_until(lambda: not second.is_frozen(), what="the thaw")
    assert "watchdog process has died" in boxes.log.read_text()


@pytest.mark.parametrize("version", VERSIONS)
def test_by_hand(version, make_boxes, hoard):
    boxes = make_boxes(version, freezer="off")
    box = boxes.make()
    process = box.start(hoard, 100, 100, 0, 60000)
    wait_until(lambda: process.stdout.readline().startswith("full"), what="its memory")
    wait_until(lambda: boxes.state(box) == "running", what="its task")

    def used():
        # On a busy machine a look may come before the card tells of a process.
        return sum(device["memory_used_bytes"] for device in boxes.container(box)["devices"])

    wait_until(lambda: used() > 100 << 20, what="its memory to be told")
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
    assert unknown.returncode == 1 and "no container with GPU work" in unknown.stderr
    assert process.poll() is None


@pytest.mark.parametrize("version", VERSIONS)
def test_killed_while_it_waits(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, holder, second, waiter = hold_the_card(boxes, hoard)
    waiter.kill()
    # Version 1 keeps the killed until they are thawed.
    assert waiter.wait(timeout=5) == -signal.SIGKILL
    wait_until(lambda: boxes.state(second) == "ended", what="its end")
    second.remove()
    # A cgroup that is gone is in nobody's way.
    third = boxes.make()
    waiter = third.start(hoard, 20 << 10, 4 << 10, PAUSE_MS, 100, CONTEXT_MS)
    wait_until(third.is_frozen, what="the next one to be frozen")
    holder.kill()
    assert waiter.wait(timeout=20) == 0


def start_tenant(boxes, box, *arguments):
    """`allot run`, of which this daemon and its card are found where that looks for them."""
    base = boxes.directory / "base"
    if not base.exists():
        base.mkdir(mode=0o700)
        (base / "sim-h200").symlink_to(boxes.run_dir)
        for end in ("", ".uvm"):
            (boxes.run_dir / f"sim.sock{end}").symlink_to(boxes.sim.socket + end)
    box.environment = {**boxes.environment, "ALLOT_RUN_DIR": str(base)}
    return box.start(BUILD / "allot", "run", "--sim", "h200", "--name", "governed", *arguments)


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_what_was_granted_is_not_free(version, make_boxes, hoard):
    """A tenant that waits for memory has been granted all that it declared, and holds little of it yet."""
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, second = boxes.make(), boxes.make()
    tenant = start_tenant(boxes, first, "--memory", "120GiB", "--on-full", "wait", "--", hoard, 100,
                          100, 1, 60000)
    # It is granted memory when it first asks for some, which is after its task is seen.
    wait_until(lambda: tenant.stdout.readline().startswith("full"), what="the tenant's memory")
    wait_until(lambda: boxes.state(first) == "running" and boxes.container(first)["library"],
               what="the tenant")
    told, = boxes.request("list")["tenants"]
    assert [(c["id"], c["engine"]) for c in told["containers"]] == [(first.id, "docker")]
    waiter = second.start(hoard, 1 << 10, 1 << 10, 1, 100, CONTEXT_MS)
    wait_until(lambda: boxes.state(second) == "waiting", what="the container to wait")
    tenant.terminate()
    assert waiter.wait(timeout=20) == 0


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_a_tenant_is_never_frozen(version, make_boxes, hoard):
    """It has the library, and a quota; whether it waits is said by its --on-full."""
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, holder, second, waiter = hold_the_card(boxes, hoard)
    third = boxes.make()
    tenant = start_tenant(boxes, third, "--memory", "4GiB", "--", hoard, 100, 10, 1, 300)
    assert tenant.wait(timeout=20) == 0
    found = boxes.container(third)
    assert found["frozen_s"] < 0.3 and second.is_frozen()
    task = [t for t in boxes.tasks()["tasks"] if t["container"] == third.id]
    assert [t["tenant"] for t in task] == ["governed"]
    assert found["devices"][0]["used_s"] == 0


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_who_runs_is_let_be_by_the_next_daemon(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="25GiB")
    first, holder, second, waiter = hold_the_card(boxes, hoard)
    third = boxes.make()
    boxes.end_daemon()
    small = third.start(hoard, 1 << 10, 1 << 10, 1, 60000)
    wait_until(lambda: small.stdout.readline().startswith("full"), what="its memory")
    boxes.start_daemon()
    wait_until(lambda: boxes.state(third) in ("starting", "running"), what="the next daemon")
    assert boxes.container(third)["frozen_s"] == 0


@pytest.mark.skipif(why_not("no freezer") is not None, reason=str(why_not("no freezer")))
def test_no_freezer(make_boxes, hoard):
    """A container whose cgroup can't be frozen starts as it would without one; that is said once."""
    boxes = make_boxes("no freezer", freeze_threshold="130GiB")
    started = [boxes.make().start(hoard, 10 << 10, 1 << 10, 1, 100) for _ in range(3)]
    assert [process.wait(timeout=20) for process in started] == [0, 0, 0]
    assert boxes.log.read_text().count("there is no freezer for its cgroup") == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_freezer_that_is_read_only(version, make_boxes, hoard):
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
def test_lists_of_containers(version, make_boxes, hoard):
    boxes = make_boxes(version, freeze_threshold="130GiB", freeze_never="*/docker/a1100001*")
    first, second = boxes.make(), boxes.make()
    one = first.start(hoard, 20 << 10, 4 << 10, 1, 1000)
    wait_until(lambda: boxes.state(first) == "starting", what="the first")
    two = second.start(hoard, 20 << 10, 4 << 10, 1, 100)
    assert two.wait(timeout=20) == 0 and one.wait(timeout=20) == 0
    assert boxes.container(second)["frozen_s"] == 0


@pytest.mark.parametrize("defects", ["", "loses-busy-process", "no-process-utilization"])
@pytest.mark.parametrize("version", VERSIONS[:1])
def test_gpu_time(version, defects, make_boxes, tmp_path):
    """A process at work all the time, and one that holds memory alone: by the driver's samples; where
    those leave the busy one out, by what is left of the card's use; without any, by presence."""
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
    # Samples come after their 0.2 s, and the machine may be busy with other things.
    if not defects:
        assert 2.0 < used < 5.5 and other < 0.3 * used, (used, other)
    elif defects == "loses-busy-process":
        # What is left is shared by the two that are in no sample.
        assert 0.8 < used < 3.5, (used, other)
    else:
        assert 3.0 < used < 6.0 and other > 3.0, (used, other)
    assert 0 < boxes.container(busy)["faded_use_s"] <= used


def wait_recorded(boxes, condition):
    """Until the state file says it: what is newer is lost when the daemon is killed."""
    path = boxes.run_dir / "use.json"
    wait_until(lambda: path.exists() and condition(json.loads(path.read_text())),
               what="the state file")


def work(boxes, box, seconds):
    box.start(BUILD / "allot-load", "--seconds", seconds, "--iters", 1000).wait(timeout=60)
    wait_until(lambda: boxes.state(box) == "ended", what="its end")


@pytest.mark.parametrize("version", VERSIONS[:1])
def test_use_outlives_a_daemon_that_was_killed(version, make_boxes, hoard):
    """Who has used more waits longer, and tasks stay recorded, as if there had been one daemon."""
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
    # The first that comes has used most, and goes last.
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
def test_a_state_file_that_is_torn(version, text, make_boxes):
    boxes = make_boxes(version)
    boxes.end_daemon(signal.SIGKILL)
    path = boxes.run_dir / "use.json"
    path.write_text(text)
    boxes.start_daemon()
    assert boxes.log.read_text().count("renamed to use.json.bad") == 1
    assert (boxes.run_dir / "use.json.bad").read_text() == text
    assert boxes.tasks()["containers"] == []
