"""Ways to get more than a quota or a share, one row each. None gains anything: the attacker is refused, or ended, or gets what it
may have. Ways that still gain something are marked, with their cause."""

import contextlib
import json
import os
import pathlib
import pwd
import re
import subprocess
import sys
import time

import pytest

from held import PROGRAMS, SIM, compile_c, link_with_driver
from machines import BUILD, ROOT, UNPAID, make_machine, wait_until
from servers import start, start_servers
from test_violations import log_of

sys.path.append(str(ROOT / "bench"))
from cases import over_time     # noqa: E402

SOURCES = pathlib.Path(__file__).resolve().parent / "programs"
SETTINGS = "census_interval = 50ms\non_violation = end\n"
SLACK_MIB = 512  # of CENSUS_SLACK_BYTES (census_policy.h)
NOBODY = pwd.getpwnam("nobody")
USER = {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []}


def gains(cause):
    """The way still gains something. The mark goes with the cause."""
    return pytest.mark.xfail(reason=cause, strict=False)


class Programs:
    def __init__(self, folder):
        self.copy = folder / "libmine.so.1"
        self.copy.write_bytes((SIM / "libcuda.so.1").read_bytes().replace(b"libcuda.so.1", b"libmine.so.1"))
        self.further = compile_c(folder / "further", f"-I{ROOT}/src", SOURCES / "further.c", "-ldl")
        self.pretender = compile_c(folder / "pretender", f"-I{ROOT}/src", SOURCES / "pretender.c")
        self.wire = compile_c(folder / "wire", "-static", f"-I{ROOT}/src", "wire.c")
        self.grab = compile_c(folder / "grab", SOURCES / "grab.c", *link_with_driver())
        self.blocks = compile_c(folder / "blocks", f"-I{PROGRAMS}", SOURCES / "blocks.c", *link_with_driver())
        self.blocked = compile_c(folder / "blocked", f"-I{PROGRAMS}", SOURCES / "blocked.c", *link_with_driver())
        # A name that would forge a line of the log.
        self.forged = folder / "a\nallotd: x"
        self.forged.write_bytes(self.wire.read_bytes())
        self.forged.chmod(0o755)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return Programs(tmp_path_factory.mktemp("further"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One machine for the rows of a table, with a tenant "victim" that does not work."""
    machine = make_machine(tmp_path_factory, "h200")
    machine.has_thief = True
    start_servers(machine, tmp_path_factory.mktemp("settings"), SETTINGS)
    yield machine
    machine.clean()


def held_mib(machine):
    """GPU memory that is held now, by all processes, as the simulated GPU counts it."""
    done = subprocess.run([BUILD / "allot-sim", "--ctl", "--socket", machine.run_dir / "sim.sock", "stats"],
                          capture_output=True, text=True, check=True)
    return sum(card["memory_used_bytes"] for card in json.loads(done.stdout)["cards"]) >> 20


def command_of(way, programs):
    return [getattr(programs, str(word)[1:]) if str(word).startswith("@") else word for word in way]


def clean_environment(machine):
    return ["env", "-i", f"ALLOT_SIM_SOCKET={machine.run_dir / 'sim.sock'}", f"LD_LIBRARY_PATH={SIM}"]


# ---- memory ----

MEMORY = {
    "below many processes, without environment": (True, ["@further", "deep", 70, "@wire", 20000]),
    "not dumpable, without environment": (True, ["@further", "undumpable", 20000]),
    "with a newline in its name": (True, ["@forged", 20000]),
    "with all ledgers at zero": (False, ["@further", "zero", 3500]),
}


@pytest.mark.parametrize("way", MEMORY)
def test_memory_beyond_the_quota_is_taken_back(shared, programs, way):
    is_clean, words = MEMORY[way]
    before = len(log_of(shared))
    tenant = shared.start("--name", "thief", "--memory", "4GiB", "--",
                          *(clean_environment(shared) if is_clean else []), *command_of(words, programs))
    wait_until(lambda: held_mib(shared) > 0 or tenant.poll() is not None, what="the memory")
    try:
        wait_until(lambda: "is sent SIGTERM" in log_of(shared)[before:], seconds=20, what="the violation")
        wait_until(lambda: held_mib(shared) == 0, seconds=20, what="the end of the process")
        assert "\nallotd: x" not in log_of(shared)
    finally:
        end(shared, tenant)


def end(machine, tenant):
    """Ends processes that hold memory of the GPU, and then the tenant. `allot run` waits for a process that is stopped."""
    done = subprocess.run([BUILD / "allot-sim", "--ctl", "--socket", machine.run_dir / "sim.sock", "stats"],
                          capture_output=True, text=True, check=True)
    for client in json.loads(done.stdout)["clients"]:
        if any(card["held_bytes"] for card in client["cards"]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(client["pid"], 9)
    tenant.terminate()
    tenant.wait(timeout=20)
    wait_until(lambda: held_mib(machine) == 0 and not machine.tenants(), what="the end of the tenant")


def check_quota(machine, tenant):
    """The tenant, of 4 GiB, holds no more after many censuses. Ends it."""
    try:
        for _ in range(20):
            machine.ps()  # each connection causes a census
        assert held_mib(machine) <= 4096 + SLACK_MIB
    finally:
        end(machine, tenant)


def test_memory_of_a_stopped_process_is_taken_back(shared, programs):
    """It takes no SIGTERM, so it is killed."""
    tenant = shared.start("--name", "thief", "--memory", "4GiB", "--", *clean_environment(shared),
                          programs.further, "stopped", 20000)
    wait_until(lambda: held_mib(shared) > 20000, what="the memory")
    try:
        wait_until(lambda: held_mib(shared) == 0, seconds=20, what="the end of the process")
    finally:
        end(shared, tenant)


def test_a_relay_of_short_processes_is_taken_back(shared, programs):
    """None of them lives for the two census intervals after which a process is an offender."""
    before = len(log_of(shared))
    tenant = shared.start("--name", "thief", "--memory", "4GiB", "--", *clean_environment(shared), "sh", "-c",
                          f"while :; do timeout 0.08 {programs.wire} 20000; done")
    try:
        wait_until(lambda: log_of(shared)[before:].count("is sent SIGTERM for a violation (unregistered)") >= 3,
                   seconds=20, what="three ended processes")
        # The command has a cgroup of its own if the daemon is root's and runs in a session or the root cgroup.
        if "all processes of its command" in log_of(shared)[before:]:
            tenant.wait(timeout=20)
    finally:
        end(shared, tenant)


@gains("memory of which only an exported descriptor is left is charged to nobody (vmm_add_reference() in hook_vmm.c), and NVML "
       "lists it for no process")
def test_memory_behind_exported_descriptors_is_charged(shared, programs):
    tenant = shared.start("--name", "thief", "--memory", "4GiB", "--", programs.further, "export", 20)
    assert tenant.stdout.readline() == "begun\n", tenant.stderr.read()
    check_quota(shared, tenant)


def test_no_way_to_page_lock_memory_passes_its_quota(shared, programs):
    done = shared.run("--host-memory", "32MiB", "--memory", "2GiB", "--", programs.further, "host")
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


# ---- what the library needs ----

@pytest.mark.parametrize("call", ["threads", "madvise", "socket"])
def test_a_process_in_which_the_library_cannot_work_gets_no_context(shared, programs, call):
    done = shared.run("--memory", "2GiB", "--", programs.further, "without", call)
    assert "begun" not in done.stdout and done.returncode != 0
    assert "no GPU for this process" in done.stderr


# ---- several tenants of one user ----

@pytest.fixture
def system(machine, programs, tmp_path):
    """The daemon of a machine, which serves all users."""
    if os.geteuid() != 0:
        pytest.skip("the daemon is root's, the attacker's tenants are not")
    (tmp_path / "settings").write_text(SETTINGS + "watch_tasks = off\n")
    (tmp_path / "cards").write_text("[gpu]\n")
    machine.run_dir.mkdir(parents=True, mode=0o755)
    start("allot-sim", "--socket", machine.run_dir / "sim.sock", "--spec", tmp_path / "cards")
    start("allotd", "--run-dir", machine.run_dir, "--sim-socket", machine.run_dir / "sim.sock", "--nvml",
          BUILD / "sim" / "libnvidia-ml.so.1", "--config", tmp_path / "settings")
    (machine.run_dir / "sim.sock").chmod(0o666)
    for path in (machine.run_dir, programs.pretender):
        for folder in [path, *path.parents]:
            if folder.stat().st_mode & 0o777 == 0o700:
                folder.chmod(0o711)
    if subprocess.run(["test", "-x", BUILD / "allot"], check=False, **USER).returncode != 0:
        pytest.skip("other users can't reach the build's directory")
    return machine


def test_two_tenants_of_a_user_do_not_lower_the_cost_of_contexts(system, programs):
    for name in "one", "two":
        tenant = system.start("--name", name, "--memory", "1GiB", "--", programs.pretender, "low", 70,
                              environment={"HOME": "/"}, cwd="/", **USER)
        assert tenant.stdout.readline() == "begun\n", tenant.stderr.read()
    for _ in range(30):
        system.ps()
    honest = system.start("--name", "honest", "--memory", "1GiB", "--", programs.grab, stdin=subprocess.PIPE)
    assert honest.stdout.readline() == "ready\n", honest.stderr.read()
    [device] = system.tenants()["honest"]["devices"]
    assert device["memory_used_bytes"] >> 20 == 518


# ---- time ----

def gpu_time(machine):
    """(the simulated GPU's clock in us, {pid: time that it worked for the process})."""
    done = subprocess.run([BUILD / "allot-sim", "--ctl", "--socket", machine.run_dir / "sim.sock", "stats"],
                          capture_output=True, text=True, check=True)
    stats, sums = json.loads(done.stdout), {}
    for client in stats["clients"]:
        busy = sum(card["busy_us"] for card in client["cards"])
        sums[client["pid"]] = sums.get(client["pid"], 0) + busy
    return stats["now_us"], sums


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A machine with a tenant that always works, and its pid."""
    machine = make_machine(tmp_path_factory, "h200")
    machine.has_thief = True
    start_servers(machine, tmp_path_factory.mktemp("settings"), "on_violation = end\nlog_level = debug\n")
    machine.start("--name", "victim", "--cores", 50, "--cores-limit", 100, "--memory", "10GiB", "--",
                  *machine.load("--seconds", 300, "--blocks", 264))
    tenant = machine.wait_for_tenant("victim", lambda t: t["devices"][0]["got_1s_pct"] > 80)
    yield machine, tenant["processes"][0]["pid"]
    machine.clean()


CAP = "--cores", 10, "--cores-limit", 10, "--memory", "4GiB"
TIME = {
    "destroyed streams": ["@further", "churn", 30],
    "the library's thread blocked": ["@further", "deaf", 30],
    "launches that all differ": ["@blocks", 30],
}
# Ways that are found after a while. The processes are ended.
FOUND = {
    "paid": ["@further", "paid", "@copy", 60],
    "paid for a fifth of each second": ["@further", "burst", "@copy", 60],
    "own control page": ["@further", "page", 60],
}
FOUND_WITHIN_S = 20


def start_thief(machine, programs, way, words):
    # Root's tenants of other names have other debts.
    name = re.sub("[^a-z]", "-", way)
    thief = machine.start("--name", name, *CAP, "--", *command_of(words, programs))
    assert thief.stdout.readline() == "begun\n", thief.stderr.read()
    return name, thief


def used_pct(machine, victim, seconds, meanwhile):
    """The part of the time in which the GPU works for others than the victim, while meanwhile() is called again and again."""
    begin, before = gpu_time(machine)
    now, times, end = begin, dict(before), time.monotonic() + seconds
    while time.monotonic() < end:
        meanwhile()
        now, latest = gpu_time(machine)
        times.update(latest)  # processes that have ended keep their latest time
    return 100 * sum(t - before.get(pid, 0) for pid, t in times.items() if pid != victim) / (now - begin)


def accused(machine):
    return [line.split("'")[1] for line in log_of(machine).splitlines() if UNPAID in line]


def test_the_bench_over_time_finds_readings_in_this_log(busy):
    machine, _ = busy
    wait_until(lambda: "victim" in [name for name, *_ in over_time.READING.findall(log_of(machine))], what="a reading")


@pytest.mark.alone  # shares
@pytest.mark.parametrize("way", FOUND)
def test_work_beyond_the_cap_is_found_and_ended(busy, programs, way):
    machine, victim = busy
    name, thief = start_thief(machine, programs, way, FOUND[way])
    begin = time.monotonic()

    def wait_for_end():
        nonlocal ended
        if thief.poll() is not None and not ended:
            ended = time.monotonic() - begin
        time.sleep(0.1)

    ended = None
    used = used_pct(machine, victim, FOUND_WITHIN_S, wait_for_end)
    print(f"{way}: ended after {ended} s; it used {used:.1f} %")
    thief.terminate()
    thief.wait(timeout=20)
    assert ended and name in accused(machine)
    assert used < 20, "not the tenant's 10 %"
    assert "victim" not in accused(machine)


@pytest.mark.alone  # shares
def test_a_tenant_that_is_made_anew_is_refused_for_a_while(busy, programs):
    """Each would work past the library for a second and a half. The first are perhaps ended, and the next ones are refused."""
    machine, victim = busy

    def come_and_go():
        nonlocal thief, refusals
        if thief and thief.poll() is not None:
            results.append(thief.returncode)
            refusals += "(violation over_time): try again in " in thief.stderr.read()
            thief = None
        thief = thief or machine.start("--name", "made-anew", *CAP, "--", programs.further, "past", programs.copy, 1.5)
        time.sleep(0.05)

    thief, results, refusals = None, [], 0
    used = used_pct(machine, victim, FOUND_WITHIN_S, come_and_go)
    print(f"made anew: results {results}; they used {used:.1f} %")
    thief.wait(timeout=20)
    assert refusals > 10
    assert used < 20, "not the tenant's 10 %"
    assert "victim" not in accused(machine)


@pytest.mark.alone  # shares
@pytest.mark.parametrize("way", TIME)
def test_a_capped_tenant_gets_no_more_than_its_cap(busy, programs, way):
    machine, victim = busy
    _, thief = start_thief(machine, programs, way, TIME[way])
    try:
        begin, before = gpu_time(machine)
        time.sleep(3.5)
        now, after = gpu_time(machine)
        of_others = sum(time - before.get(pid, 0) for pid, time in after.items() if pid != victim)
        assert 100 * of_others / (now - begin) < 20, "not the tenant's 10 %"
    finally:
        thief.terminate()
        thief.wait(timeout=20)


@pytest.mark.alone  # shares
def test_tenants_with_blocked_work_do_not_starve_another(busy, programs):
    """Each of them may be stuck until it gets a lease, whatever its share."""
    machine, victim = busy
    tenants = [machine.start("--name", f"blocked{i}", "--cores", 1, "--cores-limit", 1, "--memory", "1GiB", "--",
                             programs.blocked, 30) for i in range(8)]
    try:
        for tenant in tenants:
            assert tenant.stdout.readline() == "begun\n", tenant.stderr.read()
        begin, before = gpu_time(machine)
        time.sleep(3.5)
        now, after = gpu_time(machine)
        assert 100 * (after[victim] - before[victim]) / (now - begin) > 20, "nearly nothing"
    finally:
        for tenant in tenants:
            tenant.terminate()
        for tenant in tenants:
            tenant.wait(timeout=20)


def test_tenants_that_come_and_go_do_not_accuse_another(busy, programs):
    """Each claims to work for a moment, so the victim is charged for a part of its own work only."""
    machine, _ = busy
    tenants = [machine.start("--name", f"moment{i}", "--cores", 1, "--memory", "64MiB", "--", programs.pretender, "busy", 0.5)
               for i in range(20) if time.sleep(0.15) is None]
    for tenant in tenants:
        assert tenant.wait(timeout=20) == 0, tenant.stderr.read()
    assert machine.tenants()["victim"]["violations"] == 0


# ---- the daemon ----

@pytest.mark.parametrize("way", ["ring", "rejoin", "fuzz"])
def test_the_daemon_serves_others_meanwhile(shared, programs, way):
    tenant = shared.start("--name", "thief", "--memory", "1GiB", "--", programs.pretender, way, 1.5)
    assert tenant.stdout.readline() == "begun\n", tenant.stderr.read()
    served = 0
    while tenant.poll() is None:
        assert shared.run("--memory", "64MiB", "--", "true").returncode == 0
        served += 1
    assert served > 1 and tenant.returncode == 0, tenant.stderr.read()
    assert "corrupt" not in log_of(shared)
