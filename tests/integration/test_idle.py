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
# Eight: the arbiter's second; the health's question and two waits for faults; the main thread's second, and its look at
# whether the driver is silent; and one more at the window's edge. Nothing of it is any tenant's: with a beat of 20 times a second it was 27.
MOST_A_SECOND = 9
MOST_OF_ARBITER = 2
MOST_OF_CENSUS = 0.5
SWITCHES = re.compile(r"^voluntary_ctxt_switches:\s*(\d+)", re.MULTILINE)


def kernel_waits_for_several():
    return tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (5, 16)


pytestmark = pytest.mark.skipif(not kernel_waits_for_several(),
                                reason="without futex_waitv (Linux 5.16) the daemon looks instead of waiting")


def switches(pid):
    """{thread: (name, voluntary switches)}"""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        found[task.name] = ((task / "comm").read_text().strip(),
                            int(SWITCHES.search((task / "status").read_text())[1]))
    return found


def a_second(pid, seconds):
    """{name: switches a second}"""
    before, begin = switches(pid), time.monotonic()
    time.sleep(seconds)
    passed, sums = time.monotonic() - begin, {}
    for task, (name, count) in switches(pid).items():
        sums[name] = sums.get(name, 0) + (count - before.get(task, (name, 0))[1]) / passed
    return sums


def is_at_rest(pid):
    counts = a_second(pid, 2)
    return counts["allot-arbiter"] <= MOST_OF_ARBITER and counts["allot-census"] == 0


@pytest.fixture
def resting(machine):
    """A machine whose tenants have joined, with a context each, and do nothing; its daemon has come to rest."""
    for i in range(TENANTS):
        machine.start("--name", f"t{i}", "--memory", "2GiB", "--",
                      *machine.load("--burst", "1", "--start-at", f"{time.time() + 3600:.0f}"))
    for i in range(TENANTS):
        machine.wait_for_tenant(f"t{i}", lambda tenant: tenant["devices"][0]["memory_used_bytes"])
    wait_until(lambda: is_at_rest(daemon(machine)), 60, "a daemon at rest")
    return machine


def daemon(machine):
    return next(iter(machine.daemons()))


def test_wakes_seldom(resting):
    counts = a_second(daemon(resting), WINDOW_S)
    assert sum(counts.values()) <= MOST_A_SECOND, counts
    assert counts["allot-arbiter"] <= MOST_OF_ARBITER, counts
    assert counts["allot-census"] <= MOST_OF_CENSUS, counts
    assert not resting.ps()["devices"][0]["foreign_bytes"]


def test_hears_who_begins(resting):
    """Two at once, so that leases are given; and is at rest again when they have ended."""
    loads = [resting.start("--name", f"w{i}", "--memory", "2GiB", "--cores", "50", "--",
                           *resting.load("--seconds", "3")) for i in range(2)]
    for load in loads:
        out, err = load.communicate(timeout=60)
        assert load.returncode == 0 and '"share_pct"' in out, err
    wait_until(lambda: is_at_rest(daemon(resting)), 60, "a daemon at rest again")


def test_sees_memory_of_nobody(resting, python):
    """A process of no tenant takes memory: long before the reading that comes all the same."""
    code = ("import sys; from cuda.bindings import driver as cu; cu.cuInit(0); "
            "cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0)[1]); cu.cuMemAlloc(30 << 30); "
            "print('held', flush=True); sys.stdin.readline()")
    foreign = subprocess.Popen(
        [python, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**resting.environment, "LD_LIBRARY_PATH": str(BUILD / "sim"),
             "ALLOT_SIM_SOCKET": str(resting.run_dir / "sim.sock")})
    resting.started.append(foreign)
    assert foreign.stdout.readline() == "held\n"
    wait_until(lambda: resting.ps()["devices"][0]["foreign_bytes"] > 30 * GIB, 20, "its bytes")
    foreign.communicate("\n", timeout=20)
    wait_until(lambda: not resting.ps()["devices"][0]["foreign_bytes"], 20, "their end")


def test_processes_come_back_to_the_next_daemon(resting):
    """They have no beat to miss for seconds, and know at their next look."""
    resting.kill_daemon()
    wait_until(lambda: all(tenant["processes"] for tenant in resting.ps()["tenants"]), 20, "all processes")
    assert len(resting.ps()["tenants"]) == TENANTS
    wait_until(lambda: is_at_rest(daemon(resting)), 60, "a daemon at rest again")
