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
SETTINGS = "census_interval = 50ms\nlog_level = debug\n"
HOLD = (100, 100, 0, 60000)  # MiB, chunk, gap and how long, of hoard.c


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """hoard, linked with the driver; other: the same with a driver of another name; wire: static, with none."""
    folder = tmp_path_factory.mktemp("ways_round")
    hoard = compile_c(folder / "hoard", *link_with_driver(), "hoard.c")
    # Its own copy of the driver, which nobody knows by name.
    (folder / "libmine.so.1").write_bytes(
        (SIM / "libcuda.so.1").read_bytes().replace(b"libcuda.so.1", b"libmine.so.1"))
    (folder / "other").write_bytes(hoard.read_bytes().replace(b"libcuda.so.1", b"libmine.so.1"))
    (folder / "other").chmod(0o755)
    compile_c(folder / "wire", "-static", f"-I{ROOT}/src", "wire.c")
    return folder


def settle(machine, tmp_path, **settings):
    """The machine's daemon, with these settings. Returns what it said at its start."""
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
    return start_servers(machine, tmp_path, SETTINGS + lines)


def log_of(machine):
    return (machine.run_dir / "allotd.log").read_text()


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def find_offender(machine, name="round", **wanted):
    """Waits for the one offender of the tenant that is as wanted."""
    tenant = machine.wait_for_tenant(name, lambda t: any(
        wanted.items() <= o.items() for o in t["offenders"]))
    found, = tenant["offenders"]
    assert tenant["violations"] == 1
    return found


def looks(machine, number=12):
    """Waits until so many censuses have been made; each is told of by what a page is made from."""
    before = machine.ps()
    for _ in range(number):
        time.sleep(0.06)
    return before, machine.ps()


# ---- by which way ----

def ways(programs):
    return {
        "without preload": ["env", "-u", "LD_PRELOAD", programs / "hoard", *HOLD],
        "own driver": ["env", "-u", "LD_PRELOAD", f"LD_LIBRARY_PATH={programs}:{SIM}",
                       programs / "other", *HOLD],
        "static": [programs / "wire", 100],
        # Its parent ends and it leads a session: only the environment tells.
        "orphan": ["sh", "-c", f"env -u LD_PRELOAD setsid {programs}/hoard 100 100 0 60000 & "
                               "sleep 0.2; exec sleep 60"],
    }


@pytest.mark.parametrize("way", ["without preload", "own driver", "static", "orphan"])
def test_who_never_registers_is_told_of(machine, tmp_path, programs, way):
    settle(machine, tmp_path)
    machine.start("--name", "round", "--memory", "1GiB", "--", *ways(programs)[way])
    found = find_offender(machine, reason="unregistered")
    assert found["action"] == "reported" and found["memory_bytes"] > 600 << 20
    assert found["sign"] == "started by a process of the tenant"
    assert state_of(found["pid"]) in "SR"
    before, after = looks(machine)
    assert before["tenants"][0]["violations"] == after["tenants"][0]["violations"] == 1
    said = [line for line in log_of(machine).splitlines() if "never registered" in line]
    assert len(said) == 1 and f"process {found['pid']} ({found['name']})" in said[0]
    assert "tenant 'round'" in said[0] and " MiB of GPU memory" in said[0]
    table = machine.allot("ps", *machine.sim).stdout
    assert "VIOLATIONS" in table and "1 reported" in table


def test_double_fork_is_known_by_its_environment(machine, tmp_path, programs):
    """`allot run` is no subreaper: who leaves its parents is the first process's child."""
    settle(machine, tmp_path)
    machine.start("--name", "round", "--memory", "1GiB", "--", "sh", "-c",
                  f"(env -u LD_PRELOAD setsid {programs}/hoard 100 100 0 60000 >&2 &) ; exec sleep 60")
    found = find_offender(machine, reason="unregistered")
    assert found["sign"] in ("its environment names the tenant's socket",
                             "started by a process of the tenant")
    os.kill(found["pid"], signal.SIGKILL)
    machine.wait_for_tenant("round", lambda t: not t["offenders"] and t["violations"] == 1)


# ---- who does nothing wrong ----

def test_who_registers_is_let_be(machine, tmp_path, programs):
    settle(machine, tmp_path, on_violation="end")
    good = machine.start("--name", "good", "--memory", "2GiB", "--", "sh", "-c",
                         f"for i in 1 2 3 4 5; do {programs}/hoard 100 50 20 100 || exit 1; done")
    # Nobody's: started beside the tenants, by no command of theirs.
    run_dir = machine.run_dir
    other = subprocess.Popen([programs / "hoard", *map(str, HOLD)], stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "LD_LIBRARY_PATH": str(SIM),
                                  "ALLOT_SIM_SOCKET": str(run_dir / "sim.sock")})
    machine.started.append(other)
    assert good.wait(timeout=30) == 0
    assert other.poll() is None
    assert "never registered" not in log_of(machine)


def test_who_is_stopped_by_the_operator_is_not_judged(machine, tmp_path, programs):
    settle(machine, tmp_path, census_interval="700ms")
    machine.start("--name", "round", "--memory", "1GiB", "--", "env", "-u", "LD_PRELOAD",
                  programs / "hoard", *HOLD)
    pid = wait_until(lambda: next((p for p in holders(machine)), None), what="its memory")
    os.kill(pid, signal.SIGSTOP)
    time.sleep(3.5)
    assert machine.tenants()["round"]["violations"] == 0
    os.kill(pid, signal.SIGCONT)
    machine.wait_for_tenant("round", lambda t: t["violations"] == 1)


def holders(machine):
    """Pids that hold memory of the card, as its server says."""
    done = subprocess.run([BUILD / "allot-sim", "--ctl", "--socket", machine.run_dir / "sim.sock",
                           "stats"], capture_output=True, text=True, check=True)
    return [c["pid"] for c in json.loads(done.stdout)["clients"]
            if any(card["held_bytes"] for card in c["cards"])]


# ---- what is done ----

def start_offender(machine, programs, *options, command=None):
    machine.start("--name", "round", "--memory", "1GiB", *options, "--", "sh", "-c", command or
                  f"env -u LD_PRELOAD {programs}/hoard 100 100 0 60000 & exec sleep 60")


def test_it_is_stopped_and_stays_so(machine, tmp_path, programs):
    settle(machine, tmp_path, on_violation="freeze")
    start_offender(machine, programs)
    found = find_offender(machine, action="stopped")
    wait_until(lambda: state_of(found["pid"]) == "T", what="the stop")
    # The tenant can't let it go on by itself ...
    os.kill(found["pid"], signal.SIGCONT)
    wait_until(lambda: "is stopped again" in log_of(machine), what="the second stop")
    # ... its owner or an administrator can, and then it is let be.
    done = machine.allot("resume", "round", *machine.sim)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: state_of(found["pid"]) != "T", what="its going on")
    _, after = looks(machine)
    assert after["tenants"][0]["offenders"][0]["action"] == "resumed"
    assert state_of(found["pid"]) != "T"


def test_it_is_ended_and_nobody_else(machine, tmp_path, programs):
    said = settle(machine, tmp_path, on_violation="end", metrics_listen="127.0.0.1:0")
    start_offender(machine, programs)
    machine.wait_for_tenant("round", lambda t: t["violations"] == 1 and not t["offenders"])
    assert "is sent SIGTERM" in log_of(machine)
    page = scrape(address_in(said))
    assert page.value("allot_tenant_violations_total", tenant="round", reason="unregistered") == 1
    assert page.value("allot_tenant_violations_total", tenant="round", reason="over_ledger") == 0
    assert page.value("allot_violation_actions_total", action="told_to_end") == 1
    assert machine.started[-1].poll() is None


def test_who_does_not_end_is_killed(machine, tmp_path, programs):
    settle(machine, tmp_path)
    start_offender(machine, programs, "--on-violation", "end", command=(
        f"trap '' TERM; env -u LD_PRELOAD {programs}/hoard 100 100 0 60000 & exec sleep 60"))
    machine.wait_for_tenant("round", lambda t: t["on_violation"] == "end")
    wait_until(lambda: "and is killed" in log_of(machine), seconds=20, what="the kill")
    machine.wait_for_tenant("round", lambda t: not t["offenders"])


def test_the_stricter_of_tenant_and_setting_counts(machine, tmp_path, programs):
    settle(machine, tmp_path, on_violation="freeze")
    start_offender(machine, programs, "--on-violation", "report")
    found = find_offender(machine, action="stopped")
    assert machine.tenants()["round"]["on_violation"] == "freeze"
    done = machine.allot("set", "round", "--on-violation", "end", *machine.sim)
    assert done.returncode == 0, done.stderr
    # It has a pending SIGTERM, which a stopped process does not take: it is killed.
    wait_until(lambda: not os.path.exists(f"/proc/{found['pid']}") or state_of(found["pid"]) in "ZX",
               seconds=20, what="its end")
    wrong = machine.allot("run", *machine.sim, "--on-violation", "shoot", "--", "true")
    assert wrong.returncode == 125 and "must be report, freeze or end" in wrong.stderr


def test_a_killed_daemon_leaves_nobody_stopped(machine, tmp_path, programs):
    settle(machine, tmp_path, on_violation="freeze")
    start_offender(machine, programs)
    found = find_offender(machine, action="stopped")
    wait_until(lambda: state_of(found["pid"]) == "T", what="the stop")
    daemon, = [pid for pid, line in machine.servers().items() if "allotd" in line]
    kill_servers(daemon)
    # `allot run` starts the next one, which has no such setting.
    wait_until(lambda: state_of(found["pid"]) != "T", what="the next daemon")
    machine.wait_for_tenant("round", lambda t: t["offenders"] and
                            t["offenders"][0]["action"] == "reported")


# ---- in containers ----

@pytest.fixture
def make_boxes(start_sim, tmp_path):  # noqa: F811
    made = []

    def make(version, **settings):
        made.append(Boxes(version, start_sim(), tmp_path, freezer="off", **settings))
        return made[-1]

    yield make
    for boxes in made:
        boxes.end_daemon()
        for procs in boxes.top.glob("**/cgroup.procs"):
            for pid in procs.read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        boxes.close()


def offenders_of(boxes, name="governed"):
    return [o for t in boxes.request("list")["tenants"] if t["name"] == name for o in t["offenders"]]


def governed_and_round(boxes, programs, where=None):
    """A tenant that works in a container as it should, and a program that came by `exec`."""
    box = boxes.make()
    good = start_tenant(boxes, box, "--memory", "4GiB", "--", programs / "hoard", *HOLD)
    wait_until(lambda: boxes.state(box) == "running" and boxes.container(box)["library"],
               what="the tenant")
    box.environment = boxes.environment
    if where:
        (box.directory / where).mkdir()
        inner = str(box.directory / where / "cgroup.procs")
        bad = subprocess.Popen(["sh", "-c", f'echo $$ >{inner}; exec "$@"', "sh", programs / "hoard",
                                *map(str, HOLD)], env=boxes.environment, stdout=subprocess.PIPE,
                               text=True)
        box.processes.append(bad)
    else:
        bad = box.start(programs / "hoard", *HOLD)
    return box, good, bad


@V2
def test_exec_into_a_container(make_boxes, programs):
    boxes = make_boxes("v2", on_violation="report")
    box, good, bad = governed_and_round(boxes, programs)
    found = wait_until(lambda: offenders_of(boxes), what="the offender")
    assert [(o["pid"], o["reason"], o["sign"]) for o in found] == \
        [(bad.pid, "unregistered", "in a container of the tenant")]
    task, = [t for t in boxes.tasks()["tasks"] if t["pid"] == bad.pid]
    assert task["violation"] == {"tenant": "governed", "reason": "unregistered",
                                 "action": "reported"}
    assert "unregistered: reported" in boxes.allot("tasks").stdout


@V2
def test_its_container_is_frozen_and_resumed(make_boxes, programs):
    boxes = make_boxes("v2", on_violation="freeze")
    box, good, bad = governed_and_round(boxes, programs)
    wait_until(box.is_frozen, what="the freeze")
    assert [o["action"] for o in offenders_of(boxes)] == ["frozen"]
    assert boxes.state(box) == "paused"
    done = boxes.allot("resume", "governed")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: not box.is_frozen(), what="the thaw")
    before = len(boxes.log.read_text())
    wait_until(lambda: [o["action"] for o in offenders_of(boxes)] == ["resumed"], what="the pardon")
    time.sleep(1)
    assert not box.is_frozen() and "is frozen" not in boxes.log.read_text()[before:]
    assert good.poll() is None and bad.poll() is None


@V2
def test_thaw_by_the_containers_id_is_a_pardon(make_boxes, programs):
    boxes = make_boxes("v2", on_violation="freeze")
    box, good, bad = governed_and_round(boxes, programs)
    wait_until(box.is_frozen, what="the freeze")
    assert boxes.allot("resume", box.id).returncode == 0
    wait_until(lambda: [o["action"] for o in offenders_of(boxes)] == ["resumed"], what="the pardon")
    assert not box.is_frozen()


@V2
def test_the_thaw_when_the_offender_is_gone(make_boxes, programs):
    boxes = make_boxes("v2", on_violation="freeze")
    box, good, bad = governed_and_round(boxes, programs)
    wait_until(box.is_frozen, what="the freeze")
    bad.kill()
    wait_until(lambda: not offenders_of(boxes), what="its end")
    wait_until(lambda: not box.is_frozen(), what="the thaw")
    assert good.poll() is None


@V2
@pytest.mark.parametrize("where", ["inner", "docker-" + "f" * 64 + ".scope"])
def test_a_container_in_the_container(make_boxes, programs, where):
    boxes = make_boxes("v2", on_violation="end")
    box, good, bad = governed_and_round(boxes, programs, where)
    try:
        assert bad.wait(timeout=20) == -signal.SIGTERM
        assert good.poll() is None
        assert "in a container of the tenant" in boxes.log.read_text()
    finally:
        bad.kill()
        bad.wait()
        wait_until(lambda: not (box.directory / where / "cgroup.procs").read_text(), what="its end")
        (box.directory / where).rmdir()


@V2
@pytest.mark.parametrize("op", ["create", "claim"])
def test_the_mounted_socket_tells(op, make_boxes, programs, tmp_path):
    """A container without any registered process, into which the tenant's directory is mounted."""
    boxes = make_boxes("v2", on_violation="report")
    made = boxes.request(op, name="mounted", devices=[{"index": 0, "memory_bytes": 1 << 30}])
    target = tmp_path / "mnt"
    target.mkdir()
    directory = os.path.dirname(made["socket"])
    box = boxes.make()
    box.start("unshare", "--mount", "sh", "-c", f"mount --bind {directory} {target} && exec \"$@\"",
              "sh", programs / "hoard", *HOLD)
    found = wait_until(lambda: offenders_of(boxes, made["name"]), what="the offender")
    assert found[0]["sign"] == "the tenant's socket is mounted in its file system"
