"""A daemon with idle tenants: how often it wakes, counted as context switches of its threads, which does not depend on the
machine's speed; and that it still notices events."""

import os
import pathlib
import re
import subprocess
import time

import pytest
from machines import BUILD, GIB, wait_until

TENANTS = 8
WINDOW_S = 6
# Each second the arbiter wakes, the health thread asks for each GPU's memory and busy time and waits twice for faults, and the
# main thread wakes and checks whether the driver answers. Each question to the simulated driver is a message, so the health
# thread switches about seven times. The remainder is a margin. None of these wake-ups is for a tenant.
MOST_A_SECOND = 12
MOST_OF_ARBITER = 2
MOST_OF_CENSUS = 0.5
SWITCHES = re.compile(r"^voluntary_ctxt_switches:\s*(\d+)", re.MULTILINE)


def kernel_waits_for_several():
    return tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (5, 16)


pytestmark = pytest.mark.skipif(not kernel_waits_for_several(),
                                reason="without futex_waitv (Linux 5.16) the daemon polls instead of waiting")


def switches(pid):
    """Returns {thread: (name, voluntary context switches so far)}."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        found[task.name] = ((task / "comm").read_text().strip(),
                            int(SWITCHES.search((task / "status").read_text())[1]))
    return found


def switches_a_second(pid, seconds):
    """Returns {name of thread: voluntary context switches a second}, measured for so many seconds."""
    before, begin = switches(pid), time.monotonic()
    time.sleep(seconds)
    passed, sums = time.monotonic() - begin, {}
    for task, (name, count) in switches(pid).items():
        sums[name] = sums.get(name, 0) + (count - before.get(task, (name, 0))[1]) / passed
    return sums


def is_idle(pid):
    """Counts for longer than the 3 s that allot-time waits at most between two readings."""
    counts = switches_a_second(pid, 4)
    return counts["allot-arbiter"] <= MOST_OF_ARBITER and counts["allot-census"] == 0 == counts["allot-time"]


@pytest.fixture
def idle_machine(machine):
    """A machine whose tenants have joined, with a context each, and do nothing; its daemon has become idle."""
    for i in range(TENANTS):
        machine.start("--name", f"t{i}", "--memory", "2GiB", "--",
                      *machine.load("--burst", "1", "--start-at", f"{time.time() + 3600:.0f}"))
    for i in range(TENANTS):
        machine.wait_for_tenant(f"t{i}", lambda tenant: tenant["devices"][0]["memory_used_bytes"])
    wait_until(lambda: is_idle(daemon(machine)), 60, "an idle daemon")
    return machine


def daemon(machine):
    return next(iter(machine.daemons()))


def test_an_idle_daemon_wakes_seldom(idle_machine):
    counts = switches_a_second(daemon(idle_machine), WINDOW_S)
    assert sum(counts.values()) <= MOST_A_SECOND, counts
    assert counts["allot-arbiter"] <= MOST_OF_ARBITER, counts
    assert counts["allot-census"] <= MOST_OF_CENSUS, counts
    assert counts["allot-time"] <= MOST_OF_CENSUS, counts
    assert not idle_machine.ps()["devices"][0]["foreign_bytes"]


def test_notices_tenants_that_begin_work(idle_machine):
    """Two loads at once, so that leases are granted. The daemon is idle again when they have ended."""
    loads = [idle_machine.start("--name", f"w{i}", "--memory", "2GiB", "--cores", "50", "--",
                                *idle_machine.load("--seconds", "3")) for i in range(2)]
    for load in loads:
        out, err = load.communicate(timeout=60)
        assert load.returncode == 0 and '"share_pct"' in out, err
    wait_until(lambda: is_idle(daemon(idle_machine)), 60, "an idle daemon again")


def test_notices_foreign_memory(idle_machine, python):
    """A process of no tenant allocates memory. The daemon notices it, and its end."""
    code = ("import sys; from cuda.bindings import driver as cu; cu.cuInit(0); "
            "cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0)[1]); cu.cuMemAlloc(30 << 30); "
            "print('held', flush=True); sys.stdin.readline()")
    foreign = subprocess.Popen(
        [python, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**idle_machine.environment, "LD_LIBRARY_PATH": str(BUILD / "sim"),
             "ALLOT_SIM_SOCKET": str(idle_machine.run_dir / "sim.sock")})
    idle_machine.started.append(foreign)
    assert foreign.stdout.readline() == "held\n"
    wait_until(lambda: idle_machine.ps()["devices"][0]["foreign_bytes"] > 30 * GIB, 20, "its bytes")
    foreign.communicate("\n", timeout=20)
    wait_until(lambda: not idle_machine.ps()["devices"][0]["foreign_bytes"], 20, "their end")


def test_processes_join_the_next_daemon(idle_machine):
    """They miss no heartbeat for seconds, and notice the new daemon at their next check."""
    idle_machine.kill_daemon()
    wait_until(lambda: all(tenant["processes"] for tenant in idle_machine.ps()["tenants"]), 20, "all processes")
    assert len(idle_machine.ps()["tenants"]) == TENANTS
    wait_until(lambda: is_idle(daemon(idle_machine)), 60, "an idle daemon again")
