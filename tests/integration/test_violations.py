"""A process that bypasses the library is found and reported; settings can also freeze or end it. Others are left alone."""

import json
import os
import signal
import subprocess
import time

import pytest

from boxes import Boxes, why_not
from machines import BUILD, ROOT, kill_servers, wait_until
from held import SIM, compile_c, link_with_driver
from scrape import address_in, scrape
from servers import start_servers
from sim_peers import start_sim  # noqa: F401
from test_freezer import start_tenant

V2 = pytest.mark.skipif(why_not("v2") is not None, reason=str(why_not("v2")))
# allot run's command has a cgroup of its own if these tests do not run in a container or a service.
OWN_CGROUP = "in the cgroup of the tenant's command"
SETTINGS = "census_interval = 50ms\nlog_level = debug\n"
HOLD = (100, 100, 0, 60000)  # MiB, chunk, gap and how long, of hoard.c


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """A folder of programs: hoard is linked with the driver, other with a renamed copy of it; wire is static and uses none."""
    folder = tmp_path_factory.mktemp("bypasses")
    hoard = compile_c(folder / "hoard", *link_with_driver(), "hoard.c")
    # The program's own copy of the driver, under a name that nothing recognizes.
    (folder / "libmine.so.1").write_bytes(
        (SIM / "libcuda.so.1").read_bytes().replace(b"libcuda.so.1", b"libmine.so.1"))
    (folder / "other").write_bytes(hoard.read_bytes().replace(b"libcuda.so.1", b"libmine.so.1"))
    (folder / "other").chmod(0o755)
    compile_c(folder / "wire", "-static", f"-I{ROOT}/src", "wire.c")
    return folder


def start_with_settings(machine, tmp_path, **settings):
    """Starts the machine's daemon with these settings; returns its log so far."""
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
    return start_servers(machine, tmp_path, SETTINGS + lines)


def log_of(machine):
    return (machine.run_dir / "allotd.log").read_text()


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def find_offender(machine, name="bypassing", **wanted):
    """Waits until the tenant has one offender with these fields; returns it."""
    tenant = machine.wait_for_tenant(name, lambda t: any(
        wanted.items() <= o.items() for o in t["offenders"]))
    found, = tenant["offenders"]
    assert tenant["violations"] == 1
    return found


def wait_for_censuses(machine, number=12):
    """Waits for about so many censuses; returns the output of ps before and after."""
    before = machine.ps()
    for _ in range(number):
        time.sleep(0.06)
    return before, machine.ps()


# ---- ways to bypass the library ----

def bypasses(programs):
    """{name: command of a process that uses the GPU without the library}"""
    return {
        "without preload": ["env", "-u", "LD_PRELOAD", programs / "hoard", *HOLD],
        "own driver": ["env", "-u", "LD_PRELOAD", f"LD_LIBRARY_PATH={programs}:{SIM}",
                       programs / "other", *HOLD],
        "static": [programs / "wire", 100],
        # It leads a session of its own; its parent is still a process of the tenant.
        "own session": ["sh", "-c", f"env -u LD_PRELOAD setsid {programs}/hoard 100 100 0 60000 & "
                                    "sleep 0.2; exec sleep 60"],
    }


@pytest.mark.parametrize("bypass", ["without preload", "own driver", "static", "own session"])
def test_processes_that_never_register_are_reported(machine, tmp_path, programs, bypass):
    start_with_settings(machine, tmp_path)
    machine.start("--name", "bypassing", "--memory", "1GiB", "--", *bypasses(programs)[bypass])
    found = find_offender(machine, reason="unregistered")
    assert found["action"] == "reported" and found["memory_bytes"] > 600 << 20
    assert found["sign"] in (OWN_CGROUP, "started by a process of the tenant")
    assert state_of(found["pid"]) in "SR"
    before, after = wait_for_censuses(machine)
    assert before["tenants"][0]["violations"] == after["tenants"][0]["violations"] == 1
    said = [line for line in log_of(machine).splitlines() if "never registered" in line]
    assert len(said) == 1 and f"process {found['pid']} ({found['name']})" in said[0]
    assert "tenant 'bypassing'" in said[0] and " MiB of GPU memory" in said[0]
    table = machine.allot("ps", *machine.sim).stdout
    assert "VIOLATIONS" in table and "1 reported" in table


def test_a_double_fork_is_attributed_to_its_tenant(machine, tmp_path, programs):
    """As `allot run` is no subreaper, the orphan becomes a child of init. Its environment reveals the tenant, or its first
    parent if the daemon saw that."""
    start_with_settings(machine, tmp_path)
    machine.start("--name", "bypassing", "--memory", "1GiB", "--", "sh", "-c",
                  f"(env -u LD_PRELOAD setsid {programs}/hoard 100 100 0 60000 >&2 &) ; exec sleep 60")
    found = find_offender(machine, reason="unregistered")
    assert found["sign"] in (OWN_CGROUP, "its environment names the tenant's socket",
                             "started by a process of the tenant")
    os.kill(found["pid"], signal.SIGKILL)
    machine.wait_for_tenant("bypassing", lambda t: not t["offenders"] and t["violations"] == 1)


# ---- processes that are no offenders ----

def test_registered_and_unrelated_processes_are_left_alone(machine, tmp_path, programs):
    start_with_settings(machine, tmp_path, on_violation="end")
    governed = machine.start("--name", "governed", "--memory", "2GiB", "--", "sh", "-c",
                             f"for i in 1 2 3 4 5; do {programs}/hoard 100 50 20 100 || exit 1; done")
    # A process of no tenant.
    run_dir = machine.run_dir
    other = subprocess.Popen([programs / "hoard", *map(str, HOLD)], stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "LD_LIBRARY_PATH": str(SIM),
                                  "ALLOT_SIM_SOCKET": str(run_dir / "sim.sock")})
    machine.started.append(other)
    assert governed.wait(timeout=30) == 0
    assert other.poll() is None
    assert "never registered" not in log_of(machine)


def test_a_stopped_process_is_reported(machine, tmp_path, programs):
    """A process registers before it has a context, so a process that holds memory is not about to register."""
    start_with_settings(machine, tmp_path, census_interval="700ms")
    machine.start("--name", "bypassing", "--memory", "1GiB", "--", "env", "-u", "LD_PRELOAD",
                  programs / "hoard", *HOLD)
    pid = wait_until(lambda: next((p for p in holders(machine)), None), what="its memory")
    os.kill(pid, signal.SIGSTOP)
    machine.wait_for_tenant("bypassing", lambda t: t["violations"] == 1)


def test_a_stopped_process_with_the_library_is_left_alone(machine, tmp_path, programs):
    """Also after a restart of the daemon, when it can't register again."""
    start_with_settings(machine, tmp_path, on_violation="end")
    governed = machine.start("--name", "governed", "--memory", "2GiB", "--", programs / "hoard", *HOLD)
    machine.wait_for_tenant("governed", lambda t: t["devices"][0]["memory_used_bytes"] > 600 << 20)
    pid = wait_until(lambda: next((p for p in holders(machine)), None), what="its memory")
    os.kill(pid, signal.SIGSTOP)
    wait_for_censuses(machine)
    kill_servers(*machine.daemons())
    # `allot run` starts the next daemon, with the default census_interval.
    machine.wait_for_tenant("governed", lambda t: True)
    time.sleep(6)
    assert machine.tenants()["governed"]["violations"] == 0
    os.kill(pid, signal.SIGCONT)
    assert governed.poll() is None


def holders(machine):
    """The pids that hold memory of the GPU, from the simulator's server."""
    done = subprocess.run([BUILD / "allot-sim", "--ctl", "--socket", machine.run_dir / "sim.sock",
                           "stats"], capture_output=True, text=True, check=True)
    return [c["pid"] for c in json.loads(done.stdout)["clients"]
            if any(card["held_bytes"] for card in c["cards"])]


# ---- actions ----

def start_offender(machine, programs, *options, command=None):
    machine.start("--name", "bypassing", "--memory", "1GiB", *options, "--", "sh", "-c", command or
                  f"env -u LD_PRELOAD {programs}/hoard 100 100 0 60000 & exec sleep 60")


def test_a_stopped_offender_is_stopped_again_until_resumed(machine, tmp_path, programs):
    start_with_settings(machine, tmp_path, on_violation="freeze")
    start_offender(machine, programs)
    found = find_offender(machine, action="stopped")
    wait_until(lambda: state_of(found["pid"]) == "T", what="the stop")
    # The tenant can't continue it ...
    os.kill(found["pid"], signal.SIGCONT)
    wait_until(lambda: "is stopped again" in log_of(machine), what="the second stop")
    # ... but its owner or an administrator can, and then it is left alone.
    done = machine.allot("resume", "bypassing", *machine.sim)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: state_of(found["pid"]) != "T", what="the process to continue")
    _, after = wait_for_censuses(machine)
    assert after["tenants"][0]["offenders"][0]["action"] == "resumed"
    assert state_of(found["pid"]) != "T"


def test_only_the_offender_is_ended(machine, tmp_path, programs):
    said = start_with_settings(machine, tmp_path, on_violation="end", metrics_listen="127.0.0.1:0")
    start_offender(machine, programs)
    machine.wait_for_tenant("bypassing", lambda t: t["violations"] == 1 and not t["offenders"])
    assert "is sent SIGTERM" in log_of(machine)
    page = scrape(address_in(said))
    assert page.value("allot_tenant_violations_total", tenant="bypassing", reason="unregistered") == 1
    assert page.value("allot_tenant_violations_total", tenant="bypassing", reason="over_ledger") == 0
    assert page.value("allot_violation_actions_total", action="told_to_end") == 1
    assert machine.started[-1].poll() is None


def test_an_offender_that_ignores_sigterm_is_killed(machine, tmp_path, programs):
    start_with_settings(machine, tmp_path)
    start_offender(machine, programs, "--on-violation", "end", command=(
        f"trap '' TERM; env -u LD_PRELOAD {programs}/hoard 100 100 0 60000 & exec sleep 60"))
    machine.wait_for_tenant("bypassing", lambda t: t["on_violation"] == "end")
    wait_until(lambda: "and is killed" in log_of(machine), seconds=20, what="the kill")
    machine.wait_for_tenant("bypassing", lambda t: not t["offenders"])


def test_the_stricter_action_of_tenant_and_setting_applies(machine, tmp_path, programs):
    start_with_settings(machine, tmp_path, on_violation="freeze")
    start_offender(machine, programs, "--on-violation", "report")
    found = find_offender(machine, action="stopped")
    assert machine.tenants()["bypassing"]["on_violation"] == "freeze"
    done = machine.allot("set", "bypassing", "--on-violation", "end", *machine.sim)
    assert done.returncode == 0, done.stderr
    # A stopped process does not take a pending SIGTERM, so it is killed.
    wait_until(lambda: not os.path.exists(f"/proc/{found['pid']}") or state_of(found["pid"]) in "ZX",
               seconds=20, what="the offender's end")
    wrong = machine.allot("run", *machine.sim, "--on-violation", "shoot", "--", "true")
    assert wrong.returncode == 125 and "must be report, freeze or end" in wrong.stderr


def test_the_next_daemon_continues_stopped_offenders(machine, tmp_path, programs):
    start_with_settings(machine, tmp_path, on_violation="freeze")
    start_offender(machine, programs)
    found = find_offender(machine, action="stopped")
    wait_until(lambda: state_of(found["pid"]) == "T", what="the stop")
    daemon, = [pid for pid, line in machine.servers().items() if "allotd" in line]
    kill_servers(daemon)
    # `allot run` starts the next daemon, which does not have the setting.
    wait_until(lambda: state_of(found["pid"]) != "T", what="the next daemon")
    machine.wait_for_tenant("bypassing", lambda t: t["offenders"] and
                            t["offenders"][0]["action"] == "reported")


# ---- in containers ----

@pytest.fixture
def make_boxes(start_sim, tmp_path):  # noqa: F811
    created = []

    def make(version, **settings):
        created.append(Boxes(version, start_sim(), tmp_path, freezer="off", **settings))
        return created[-1]

    yield make
    for boxes in created:
        boxes.end_daemon()
        for procs in boxes.top.glob("**/cgroup.procs"):
            for pid in procs.read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        boxes.close()


def offenders_of(boxes, name="governed"):
    return [o for t in boxes.request("list")["tenants"] if t["name"] == name for o in t["offenders"]]


def start_governed_and_bypassing(boxes, programs, subgroup=None):
    """Starts a governed tenant in a container, and a bypassing process as by `exec`, in the child cgroup `where` if given.
    Returns (container, tenant's process, bypassing process)."""
    box = boxes.make()
    governed = start_tenant(boxes, box, "--memory", "4GiB", "--", programs / "hoard", *HOLD)
    wait_until(lambda: boxes.state(box) == "running" and boxes.container(box)["library"],
               what="the tenant")
    box.environment = boxes.environment
    if subgroup:
        (box.directory / subgroup).mkdir()
        inner = str(box.directory / subgroup / "cgroup.procs")
        bypassing = subprocess.Popen(["sh", "-c", f'echo $$ >{inner}; exec "$@"', "sh", programs / "hoard",
                                      *map(str, HOLD)], env=boxes.environment, stdout=subprocess.PIPE,
                                     text=True)
        box.processes.append(bypassing)
    else:
        bypassing = box.start(programs / "hoard", *HOLD)
    return box, governed, bypassing


@V2
def test_a_process_from_exec_into_a_container_is_reported(make_boxes, programs):
    boxes = make_boxes("v2", on_violation="report")
    box, governed, bypassing = start_governed_and_bypassing(boxes, programs)
    found = wait_until(lambda: offenders_of(boxes), what="the offender")
    assert [(o["pid"], o["reason"], o["sign"]) for o in found] == \
        [(bypassing.pid, "unregistered", "in a container of the tenant")]
    task, = [t for t in boxes.tasks()["tasks"] if t["pid"] == bypassing.pid]
    assert task["violation"] == {"tenant": "governed", "reason": "unregistered",
                                 "action": "reported"}
    assert "unregistered: reported" in boxes.allot("tasks").stdout


@V2
def test_the_container_is_frozen_until_resumed(make_boxes, programs):
    boxes = make_boxes("v2", on_violation="freeze")
    box, governed, bypassing = start_governed_and_bypassing(boxes, programs)
    wait_until(box.is_frozen, what="the freeze")
    assert [o["action"] for o in offenders_of(boxes)] == ["frozen"]
    assert boxes.state(box) == "paused"
    done = boxes.allot("resume", "governed")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: not box.is_frozen(), what="the thaw")
    before = len(boxes.log.read_text())
    wait_until(lambda: [o["action"] for o in offenders_of(boxes)] == ["resumed"], what="the end of the action")
    time.sleep(1)
    assert not box.is_frozen() and "is frozen" not in boxes.log.read_text()[before:]
    assert governed.poll() is None and bypassing.poll() is None


@V2
def test_resume_by_the_containers_id_ends_the_action(make_boxes, programs):
    boxes = make_boxes("v2", on_violation="freeze")
    box, governed, bypassing = start_governed_and_bypassing(boxes, programs)
    wait_until(box.is_frozen, what="the freeze")
    assert boxes.allot("resume", box.id).returncode == 0
    wait_until(lambda: [o["action"] for o in offenders_of(boxes)] == ["resumed"], what="the end of the action")
    assert not box.is_frozen()


@V2
def test_the_container_is_thawed_when_the_offender_has_ended(make_boxes, programs):
    boxes = make_boxes("v2", on_violation="freeze")
    box, governed, bypassing = start_governed_and_bypassing(boxes, programs)
    wait_until(box.is_frozen, what="the freeze")
    bypassing.kill()
    wait_until(lambda: not offenders_of(boxes), what="the offender's end")
    wait_until(lambda: not box.is_frozen(), what="the thaw")
    assert governed.poll() is None


@V2
@pytest.mark.parametrize("subgroup", ["inner", "docker-" + "f" * 64 + ".scope"])
def test_an_offender_in_a_nested_container_is_ended(make_boxes, programs, subgroup):
    boxes = make_boxes("v2", on_violation="end")
    box, governed, bypassing = start_governed_and_bypassing(boxes, programs, subgroup)
    try:
        assert bypassing.wait(timeout=20) == -signal.SIGTERM
        assert governed.poll() is None
        assert "in a container of the tenant" in boxes.log.read_text()
    finally:
        bypassing.kill()
        bypassing.wait()
        wait_until(lambda: not (box.directory / subgroup / "cgroup.procs").read_text(), what="an empty cgroup")
        (box.directory / subgroup).rmdir()


@V2
@pytest.mark.parametrize("op", ["create", "claim"])
def test_a_mounted_socket_reveals_the_tenant(op, make_boxes, programs, tmp_path):
    """The container has no registered process, but the tenant's directory is mounted in it."""
    boxes = make_boxes("v2", on_violation="report")
    created = boxes.request(op, name="mounted", devices=[{"index": 0, "memory_bytes": 1 << 30}])
    target = tmp_path / "mnt"
    target.mkdir()
    directory = os.path.dirname(created["socket"])
    box = boxes.make()
    box.start("unshare", "--mount", "sh", "-c", f"mount --bind {directory} {target} && exec \"$@\"",
              "sh", programs / "hoard", *HOLD)
    found = wait_until(lambda: offenders_of(boxes, created["name"]), what="the offender")
    assert found[0]["sign"] == "the tenant's socket is mounted in its file system"
