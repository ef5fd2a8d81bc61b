"""--on-full wait: allocations wait for memory in order. Also the events that can end such a wait."""

import os
import re
import signal
import subprocess
import time

import pytest

from machines import BUILD, GIB, wait_until
from python_tenant import PREAMBLE, Tenant, card_used

cuda = pytest.importorskip("cuda.bindings.driver")

WAIT = ("--on-full", "wait")
# Allocates {gib} GiB besides its context, and ends when it gets a line.
HOLD = """
start()
p = ok(cu.cuMemAlloc({gib} << 30))
look("held")
"""


def start_holder(machine, python, name, gib, *options, code=HOLD):
    """Starts a tenant with a quota of gib + 1 GiB, which prints "held" once it has allocated gib GiB."""
    return Tenant(machine, python, code.format(gib=gib), f"{gib + 1}GiB", name,
                  (*WAIT, *options))


def state_of(machine, name):
    return machine.tenants()[name]["state"]


def wait_queued(machine, name, place=None):
    """Waits until the tenant waits for memory, at that place in the queue if given; returns the tenant."""
    return machine.wait_for_tenant(
        name, lambda t: t["state"] == "queued" and
        (place is None or t["memory_wait"]["place"] == place))


def expect_line(tenant, text="held"):
    assert tenant.line() == text


def granted_in_order(machine):
    """The names of tenants in the order in which the daemon granted memory, from its log."""
    log = (machine.run_dir / "allotd.log").read_text()
    return re.findall(r"tenant '(\w+)': granted", log)


def process_of(machine, name):
    return machine.tenants()[name]["processes"][0]["pid"]


def test_six_tenants_end_with_memory_for_three(machine, python):
    """In Gil et al., Table 1, three of six tenants that were started together failed."""
    idle = machine.start("--name", "idle", "--memory", "1GiB", "--", "sleep", "60")
    machine.wait_for_tenant("idle")
    tenants = []
    for i in range(6):
        tenants.append(start_holder(machine, python, f"t{i}", 44))
        if i < 3:
            expect_line(tenants[i])
        else:
            wait_queued(machine, f"t{i}", i - 2)
    assert card_used(machine) <= 141 * GIB
    for i, tenant in enumerate(tenants):
        tenant.go()
        tenant.end()
        if i + 3 < 6:
            expect_line(tenants[i + 3])
    assert granted_in_order(machine) == [f"t{i}" for i in range(6)]
    idle.terminate()


def test_growing_tenants_do_not_deadlock(machine, python):
    """Each tenant allocates 30 GiB three times. If each allocation waited by itself, two tenants would wait for each other."""
    grow = """
    start()
    for i in range(3):
        p = ok(cu.cuMemAlloc(30 << 30))
        time.sleep(0.1)
    print("done", flush=True)
    """
    tenants = [Tenant(machine, python, grow, "91GiB", f"t{i}", WAIT) for i in range(4)]
    for tenant in tenants:
        tenant.end()


def test_the_tenant_with_the_least_use_comes_first(machine, python):
    """`used` has used the GPU before, under the same name. So `fresh`, which comes later, is ahead of it."""
    first = start_holder(machine, python, "first", 10)
    expect_line(first)
    worked = machine.run("--name", "used", "--memory", "2GiB", *WAIT, "--",
                         *machine.load("--seconds", 0.5, "--iters", 1000))
    assert worked.returncode == 0, worked.stderr
    big = start_holder(machine, python, "big", 120)
    expect_line(big)
    used = start_holder(machine, python, "used", 100)
    wait_queued(machine, "used", 1)
    assert machine.tenants()["used"]["use_s"] > 0.1
    fresh = start_holder(machine, python, "fresh", 100)
    wait_queued(machine, "fresh", 1)
    wait_queued(machine, "used", 2)
    big.go()
    big.end()
    expect_line(fresh)
    assert state_of(machine, "used") == "queued"
    fresh.go()
    fresh.end()
    expect_line(used)
    used.go()
    used.end()
    first.go()
    first.end()


def test_a_killed_holder_makes_room(machine, python):
    holder, waiter = start_holder(machine, python, "holder", 100), None
    expect_line(holder)
    waiter = start_holder(machine, python, "waiter", 100)
    wait_queued(machine, "waiter")
    os.kill(process_of(machine, "holder"), signal.SIGKILL)
    expect_line(waiter)
    waiter.go()
    waiter.end()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_tenant_that_ends_leaves_the_queue(machine, python, number):
    holder = start_holder(machine, python, "holder", 100)
    expect_line(holder)
    waiter = start_holder(machine, python, "waiter", 100)
    wait_queued(machine, "waiter", 1)
    next_one = start_holder(machine, python, "next", 100)
    wait_queued(machine, "next", 2)
    os.kill(process_of(machine, "waiter"), number)
    assert waiter.process.wait(timeout=10) == 128 + number
    wait_queued(machine, "next", 1)
    holder.go()
    holder.end()
    expect_line(next_one)
    next_one.go()
    next_one.end()


def test_ctrl_c_ends_a_waiting_program(machine, python):
    """As at a terminal, the whole process group gets the signal. Python's handler runs after the call, so the call must
    fail."""
    holder = start_holder(machine, python, "holder", 100)
    expect_line(holder)
    code = PREAMBLE + """
try:
    ok(cu.cuInit(0))
    print(cu.cuDevicePrimaryCtxRetain(0)[0] == R.CUDA_ERROR_OUT_OF_MEMORY, flush=True)
    time.sleep(10)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    waiter = machine.start("--name", "waiter", "--memory", "100GiB", *WAIT, "--", python, "-c", code,
                           start_new_session=True)
    wait_queued(machine, "waiter")
    os.killpg(waiter.pid, signal.SIGINT)
    out, err = waiter.communicate(timeout=10)
    assert (out.split()[-1], waiter.returncode) == ("interrupted", 0), out + err
    holder.go()
    holder.end()


def test_a_signal_handler_runs_and_the_wait_goes_on(machine, python):
    holder = start_holder(machine, python, "holder", 100)
    expect_line(holder)
    code = """
import signal
r, w = os.pipe2(os.O_NONBLOCK)
signal.set_wakeup_fd(w)
signal.signal(signal.SIGUSR1, lambda *_: None)
""" + HOLD + """
print(len(os.read(r, 100)), flush=True)
"""
    waiter = Tenant(machine, python, code.format(gib=100), "101GiB", "waiter", WAIT)
    wait_queued(machine, "waiter")
    for _ in range(3):
        os.kill(process_of(machine, "waiter"), signal.SIGUSR1)
        time.sleep(0.1)
    assert state_of(machine, "waiter") == "queued"
    holder.go()
    holder.end()
    expect_line(waiter)
    waiter.go()
    expect_line(waiter, "3")
    waiter.end()


def test_a_timeout_ends_in_out_of_memory(machine, python):
    holder = start_holder(machine, python, "holder", 100)
    expect_line(holder)
    code = """
    ok(cu.cuInit(0))
    begin = time.monotonic()
    refused(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(0))))
    waited = time.monotonic() - begin
    assert waited > 0.9, waited
    look("refused")
    """
    waiter = Tenant(machine, python, code, "101GiB", "waiter", (*WAIT, "--wait-timeout", "1s"))
    expect_line(waiter, "refused")
    assert waiter.device()["denied"] == 1
    machine.wait_for_tenant("waiter", lambda t: t["state"] == "idle" and not t["memory_wait"])
    waiter.go()
    waiter.end()
    holder.go()
    holder.end()


def test_requests_that_can_never_be_met_are_refused_at_once(machine, python):
    over = machine.run("--memory", "500GiB", *WAIT, "--", "true")
    assert over.returncode == 125 and "more than the GPU has" in over.stderr
    code = """
    start()
    refused(cu.cuMemAlloc(2 << 30))
    """
    Tenant(machine, python, code, "2GiB", "a", WAIT).end()


@pytest.mark.parametrize("options, text", [
    (["--on-full", "wait"], "needs --memory"),
    (["--on-full", "wait", "--memory", "1GiB", "--reserve", "2GiB"], "more than --memory"),
    (["--memory", "1GiB", "--reserve", "1GiB"], "--reserve: only with --on-full wait"),
    (["--wait-timeout", "1s"], "--wait-timeout: only with --on-full wait"),
    (["--on-full", "wait", "--memory", "1GiB", "--wait-timeout", "1x"], "unit unknown"),
])
def test_bad_options(machine, options, text):
    done = machine.run(*options, "--", "true")
    assert done.returncode == 125 and text in done.stderr, done.stderr
    assert not machine.servers()


def test_growth_past_the_reservation_does_not_wait(machine, python):
    code = """
    start()
    first = ok(cu.cuMemAlloc(40 << 30))
    look("first")
    refused(cu.cuMemAlloc(50 << 30))
    small = ok(cu.cuMemAlloc(20 << 30))
    ok(cu.cuMemFree(first))
    again = ok(cu.cuMemAlloc(40 << 30))
    look("grown")
    """
    grower = Tenant(machine, python, code, "120GiB", "grower", (*WAIT, "--reserve", "10GiB"))
    expect_line(grower, "first")
    assert grower.device()["memory_granted_bytes"] < 42 * GIB
    other = start_holder(machine, python, "other", 60)
    expect_line(other)
    grower.go()
    expect_line(grower, "grown")
    other.go()
    other.end()
    grower.go()
    grower.end()


def test_other_calls_pass_while_a_thread_waits(machine2, python):
    holder = start_holder(machine2, python, "holder", 100, "--gpu", "0")
    expect_line(holder)
    code = """
    import threading
    ok(cu.cuInit(0))
    thread = threading.Thread(target=start)
    thread.start()
    look("waiting")
    assert ok(cu.cuDeviceGetCount()) == 1
    ok(cu.cuDevicePrimaryCtxGetState(0))
    assert cu.cuDevicePrimaryCtxRelease(0)[0] != R.CUDA_SUCCESS
    ok(cu.cuDeviceTotalMem(0))
    look("passed")
    thread.join()
    """
    waiter = Tenant(machine2, python, code, "101GiB", "waiter", (*WAIT, "--gpu", "0"))
    expect_line(waiter, "waiting")
    wait_queued(machine2, "waiter")
    waiter.go()
    expect_line(waiter, "passed")
    assert state_of(machine2, "waiter") == "queued"
    holder.go()
    holder.end()
    waiter.go()
    waiter.end()


def test_memory_of_two_gpus_is_granted_together(machine2, python):
    one = start_holder(machine2, python, "one", 100, "--gpu", "1")
    expect_line(one)
    both = start_holder(machine2, python, "both", 100, "--gpu", "0,1")
    wait_queued(machine2, "both")
    zero = start_holder(machine2, python, "zero", 100, "--gpu", "0")
    expect_line(zero)
    tenant = wait_queued(machine2, "both")
    assert [d["memory_granted_bytes"] for d in tenant["devices"]] == [0, 0]
    assert tenant["memory_wait"]["passed"] == 1
    one.go()
    one.end()
    time.sleep(0.3)
    assert state_of(machine2, "both") == "queued"
    zero.go()
    zero.end()
    expect_line(both)
    both.go()
    both.end()


def test_the_next_daemon_knows_holders_and_waiters(machine, python):
    holder = start_holder(machine, python, "holder", 100)
    expect_line(holder)
    waiter = start_holder(machine, python, "waiter", 100)
    wait_queued(machine, "waiter")
    late = start_holder(machine, python, "late", 100)
    wait_queued(machine, "late", 2)
    machine.kill_daemon()
    wait_queued(machine, "waiter", 1)
    wait_queued(machine, "late", 2)
    assert machine.tenants()["holder"]["devices"][0]["memory_granted_bytes"] == 101 * GIB
    time.sleep(1.5)
    assert state_of(machine, "waiter") == "queued"
    holder.go()
    holder.end()
    expect_line(waiter)
    assert state_of(machine, "late") == "queued"
    waiter.go()
    waiter.end()
    expect_line(late)
    late.go()
    late.end()


def test_memory_of_other_processes_counts(machine, python):
    """Memory of a process without a tenant, and memory that is promised, delay a waiter; a waiter's grant refuses a promise."""
    promised = machine.start("--name", "promised", "--memory", "60GiB", "--", "sleep", "60")
    machine.wait_for_tenant("promised")
    foreign = subprocess.Popen(
        [python, "-c", PREAMBLE + "start(); p = ok(cu.cuMemAlloc(30 << 30)); look('held')"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**machine.environment, "LD_LIBRARY_PATH": str(BUILD / "sim"),
             "ALLOT_SIM_SOCKET": str(machine.run_dir / "sim.sock")})
    machine.started.append(foreign)
    assert foreign.stdout.readline() == "held\n"
    wait_until(lambda: machine.ps()["devices"][0]["foreign_bytes"] > 30 * GIB, what="the foreign process's bytes")
    waiter = start_holder(machine, python, "waiter", 60)
    wait_queued(machine, "waiter")
    foreign.communicate("\n", timeout=20)
    expect_line(waiter)
    late = machine.run("--memory", "60GiB", "--", "true")
    assert late.returncode == 125 and "granted to tenants with on_full wait or swap" in late.stderr
    waiter.go()
    waiter.end()
    promised.terminate()


def test_a_wait_is_shown_on_a_terminal(machine, python):
    holder = start_holder(machine, python, "holder", 100)
    expect_line(holder)
    ours, theirs = os.openpty()
    try:
        waiter = machine.start("--name", "waiter", "--memory", "101GiB", *WAIT, "--",
                               *machine.load("--seconds", 0.1, "--iters", 1000), stderr=theirs)
        wait_queued(machine, "waiter")
        text = os.read(ours, 1000).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert "waiting for 101.0 GiB of GPU memory (place 1 in the queue)" in text
    table = machine.allot("ps", *machine.sim).stdout
    assert re.search(r"waiter +0 +queued #1 ", table) and "USE" in table
    holder.go()
    holder.end()
    assert waiter.wait(timeout=20) == 0


def test_a_paused_waiter_gets_nothing_until_resumed(machine, python):
    holder = start_holder(machine, python, "holder", 100)
    expect_line(holder)
    waiter = start_holder(machine, python, "waiter", 100)
    wait_queued(machine, "waiter")
    assert machine.allot("pause", "waiter", *machine.sim).returncode == 0
    holder.go()
    holder.end()
    time.sleep(0.5)
    tenant = machine.tenants()["waiter"]
    assert tenant["state"] == "paused" and not tenant["devices"][0]["memory_granted_bytes"]
    assert machine.allot("resume", "waiter", *machine.sim).returncode == 0
    expect_line(waiter)
    waiter.go()
    waiter.end()
