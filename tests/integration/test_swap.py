"""Memory that is moved off the card on request, and back: contents, addresses and graphs are unchanged."""

import os
import select
import signal
import subprocess
import textwrap
import time

import pytest

from machines import BUILD, stop_process, wait_until
from python_tenant import CONTEXT, MIB, Tenant, card_used

pytest.importorskip("cuda.bindings.driver")

# Buffers of several sizes with bytes of their own, and a check that they are all there.
BUFFERS = """
import hashlib, threading
start()
SIZES = [2 * MIB, 3 * MIB + 5, 33 * MIB, 2 * MIB, 7 * MIB]

def fill(ptr, n, seed):
    data = hashlib.shake_128(str(seed).encode()).digest(n)
    ok0(cu.cuMemcpyHtoD(ptr, data, n))
    return hashlib.sha256(data).hexdigest()

def digest(ptr, n):
    data = bytearray(n)
    ok0(cu.cuMemcpyDtoH(data, ptr, n))
    return hashlib.sha256(data).hexdigest()

def ok0(result):
    assert result[0] == R.CUDA_SUCCESS, result[0]

held = []
for i, n in enumerate(SIZES):
    ptr = ok(cu.cuMemAlloc(n))
    held.append((int(ptr), n, fill(ptr, n, i)))

def check():
    for ptr, n, want in held:
        assert digest(ptr, n) == want, (hex(ptr), n)
"""
# Threads that copy, set, allocate and free all the time, until they are told to stop.
WORKERS = """
stop = False
counts = [0] * 4
def worker(i):
    ok0(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(0))))
    stream = ok(cu.cuStreamCreate(1))
    mine = ok(cu.cuMemAlloc(SIZE))
    while not stop:
        value = counts[i] % 251
        ok0(cu.cuMemsetD8Async(mine, value, SIZE, stream))
        data = bytearray(SIZE)
        ok0(cu.cuStreamSynchronize(stream))
        ok0(cu.cuMemcpyDtoH(data, mine, SIZE))
        assert data == bytes([value]) * (SIZE)
        other = ok(cu.cuMemAlloc(OTHER + i))
        ok0(cu.cuMemFree(other))
        counts[i] += 1
threads = [threading.Thread(target=worker, args=(i,)) for i in range(4)]
for t in threads: t.start()
while min(counts) < 1: time.sleep(0.01)
look()
stop = True
for t in threads: t.join()
check()
assert min(counts) > 1, counts
print(counts, flush=True)
"""
HELD = (2 + 4 + 34 + 2 + 8) * MIB


def swappable(machine, python, code, options=(), environment=None, **more):
    return Tenant(machine, python, BUFFERS + textwrap.dedent(code), options=("--on-full", "swap", *options),
                  environment={"ALLOT_LOG": str(machine.tenants_log), **(environment or {})}, **more)


def swap_of(machine, name="a"):
    return machine.tenants()[name]["swap"]


def stays(machine):
    """What of it stays on its card, by the reason."""
    return swap_of(machine)["devices"][0]["stays"]


def pause(machine, name="a", state="out"):
    done = machine.allot("pause", name, "--swap-out", *machine.sim)
    assert done.returncode == 0, done.stderr
    assert swap_of(machine, name)["state"] == state


def resume(machine, name="a"):
    done = machine.allot("resume", name, *machine.sim)
    assert done.returncode == 0, done.stderr


def test_memory_leaves_and_comes_back_as_it_was(machine, python):
    tenant = swappable(machine, python, """
        small = ok(cu.cuMemAlloc(64 << 10))
        look()
        check()
        look()
        """)
    tenant.line()
    wait_until(lambda: swap_of(machine), what="a swappable process")
    assert swap_of(machine)["state"] == "in"
    assert swap_of(machine)["swappable_bytes"] == HELD
    assert card_used(machine) == CONTEXT + HELD + 2 * MIB
    assert stays(machine) == {"contexts_bytes": CONTEXT, "known_to_others_bytes": 0,
                              "not_movable_bytes": 2 * MIB}
    pause(machine)
    swap = swap_of(machine)
    assert swap["swapped_bytes"] == HELD and swap["failed"] == 0 and swap["moved_s"] > 0
    # What is small stays, and what is out still counts against the quota.
    assert card_used(machine) == CONTEXT + 2 * MIB
    assert tenant.used() == CONTEXT + HELD + 2 * MIB
    assert machine.tenants()["a"]["state"] == "swapped"
    tenant.go()
    assert_waits(tenant)
    resume(machine)
    tenant.line()
    assert swap_of(machine)["state"] == "in" and swap_of(machine)["swapped_bytes"] == 0
    assert card_used(machine) == CONTEXT + HELD + 2 * MIB
    tenant.go()
    tenant.end()


def tenant_says(tenant, seconds):
    """Whether the tenant prints something within so many seconds."""
    return bool(select.select([tenant.process.stdout], [], [], seconds)[0])


def assert_waits(tenant):
    """The tenant's call waits for memory that is out. Without a daemon the library brings the memory back by itself, so it does
    that too if allotd has no processor for 250 ms."""
    assert not tenant_says(tenant, 0.5) or tenant.machine.was_daemon_missed()


def test_again_and_again_with_memory_that_comes_and_goes(machine, python):
    tenant = swappable(machine, python, """
        for step in range(6):
            look()
            check()
            ptr, n, _ = held.pop(step % len(held))
            ok0(cu.cuMemFree(ptr))
            n += 2 * MIB
            ptr = ok(cu.cuMemAlloc(n))
            held.append((int(ptr), n, fill(ptr, n, "again%d" % step)))
        look()
        check()
        """)
    for _ in range(7):
        tenant.line()
        pause(machine)
        tenant.go()
        resume(machine)
    tenant.end()


def test_work_and_threads_wait_while_it_is_out(machine, python):
    """Threads that copy, set, allocate and free all the time see nothing of ten moves."""
    tenant = swappable(machine, python, "SIZE, OTHER = 4 * MIB, 2 * MIB\n" + WORKERS)
    tenant.line()
    for _ in range(10):
        pause(machine)
        resume(machine)
        wait_until(lambda: swap_of(machine)["state"] == "in", what="its return")
    tenant.go()
    tenant.line()
    tenant.end()


def test_a_graph_made_before_runs_after(machine, python):
    tenant = swappable(machine, python, """
        stream = ok(cu.cuStreamCreate(1))
        ptr, n, _ = held[3]
        mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
        ok0(cu.cuStreamBeginCapture(stream, mode))
        ok0(cu.cuMemsetD8Async(ptr, 7, n, stream))
        exec_ = ok(cu.cuGraphInstantiate(ok(cu.cuStreamEndCapture(stream)), 0))
        look()
        ok0(cu.cuGraphLaunch(exec_, stream))
        ok0(cu.cuStreamSynchronize(stream))
        check()
        """)
    tenant.line()
    pause(machine)
    tenant.go()
    resume(machine)
    tenant.end()


def test_a_node_is_made_when_the_memory_is_there(machine, python):
    tenant = swappable(machine, python, """
        ptr, n, _ = held[3]
        graph = ok(cu.cuGraphCreate(0))
        p = cu.CUDA_MEMSET_NODE_PARAMS()
        p.dst, p.value, p.elementSize, p.width, p.height = ptr, 7, 1, n, 1
        look()
        node = ok(cu.cuGraphAddMemsetNode(graph, None, 0, p, ok(cu.cuCtxGetCurrent())))
        print("made", flush=True)
        """)
    tenant.line()
    pause(machine)
    tenant.go()
    assert_waits(tenant)
    resume(machine)
    assert tenant.line() == "made"
    tenant.end()


def test_what_a_pointer_is_does_not_change(machine, python):
    """What is asked of memory that can be moved is answered as for any other, also while it is out."""
    tenant = swappable(machine, python, """
        A = cu.CUpointer_attribute
        asked = (A.CU_POINTER_ATTRIBUTE_CONTEXT, A.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                 A.CU_POINTER_ATTRIBUTE_RANGE_SIZE, A.CU_POINTER_ATTRIBUTE_BUFFER_ID)
        ptr, n, _ = held[1]
        def facts():
            return ([int(ok(cu.cuPointerGetAttribute(a, ptr + 9))) for a in asked],
                    [int(x) for x in ok(cu.cuMemGetAddressRange(ptr + 9))])
        before = facts()
        assert before[0][0] == int(ok(cu.cuCtxGetCurrent())), before
        assert before[0][1:3] == [ptr, n] and before[1] == [ptr, n], before
        look()
        assert facts() == before, (facts(), before)
        look()
        T = A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        assert int(ok(cu.cuPointerGetAttribute(T, ptr))) == 2
        assert facts() == before
        assert cu.cuMemRetainAllocationHandle(ptr)[0] == R.CUDA_ERROR_INVALID_VALUE
        """)
    tenant.line()
    pause(machine)
    tenant.go()
    tenant.line()
    resume(machine)
    tenant.go()
    tenant.end()


def test_what_others_know_stays(machine, python):
    """What other devices may write to (RDMA asks for SYNC_MEMOPS) is on the card, and ps says so."""
    tenant = swappable(machine, python, """
        yes = ctypes.c_uint(1)
        ok0(cu.cuPointerSetAttribute(ctypes.addressof(yes), cu.CUpointer_attribute.
                                     CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, held[2][0]))
        look()
        check()
        ok0(cu.cuMemFree(held[2][0]))
        look()
        """)
    tenant.line()
    kept = 34 * MIB
    wait_until(lambda: stays(machine)["known_to_others_bytes"] == kept, what="it is told")
    pause(machine)
    assert swap_of(machine)["swapped_bytes"] == HELD - kept
    assert card_used(machine) == CONTEXT + kept
    resume(machine)
    tenant.go()
    tenant.line()
    wait_until(lambda: stays(machine)["known_to_others_bytes"] == 0, what="it is gone")
    tenant.go()
    tenant.end()


def test_what_has_no_room_in_the_arena_stays(machine, python):
    tenant = swappable(machine, python, "look(); check()", options=("--swap-arena", "40MiB"))
    tenant.line()
    # Three fit: 2, 4 and 34; the last two are as they always were.
    wait_until(lambda: swap_of(machine), what="a swappable process")
    # The helper may just be telling what was tried.
    wait_until(lambda: swap_of(machine)["swappable_bytes"] == 40 * MIB, what="only what fits")
    pause(machine)
    assert swap_of(machine)["swapped_bytes"] == 40 * MIB
    assert card_used(machine) == CONTEXT + 10 * MIB
    resume(machine)
    tenant.go()
    tenant.end()


def test_a_capture_under_way_ends_first(machine, python):
    """It would be spoilt by a move: after two seconds the order is given up, and nothing has moved."""
    tenant = swappable(machine, python, """
        stream = ok(cu.cuStreamCreate(1))
        mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        ok0(cu.cuStreamBeginCapture(stream, mode))
        ok0(cu.cuMemsetD8Async(held[0][0], 7, 64, stream))
        look()
        ok(cu.cuStreamEndCapture(stream))
        check()
        look()
        check()
        """)
    tenant.line()
    done = machine.allot("pause", "a", "--swap-out", *machine.sim)
    assert done.returncode == 1 and "a graph capture does not end" in done.stderr, done.stderr
    assert swap_of(machine)["failed"] == 1 and swap_of(machine)["swapped_bytes"] == 0
    assert machine.tenants()["a"]["state"] == "paused"
    resume(machine)
    tenant.go()
    tenant.line()
    pause(machine)
    tenant.go()
    resume(machine)
    tenant.end()


def test_killed_while_it_is_out(machine, python):
    tenant = swappable(machine, python, "look()")
    tenant.line()
    pause(machine)
    machine.allot("resume", "a", *machine.sim)
    pause(machine)
    process = machine.tenants()["a"]["processes"][0]["pid"]
    os.kill(process, signal.SIGKILL)
    tenant.process.wait(timeout=10)
    wait_until(lambda: "a" not in machine.tenants(), what="the end of the tenant")
    machine.wait_until_gone()


def test_states_say_where_the_memory_is(machine, python):
    """One that stands still neither leaves nor returns, whatever was asked for."""
    tenant = swappable(machine, python, """
        look()
        check()
        """)
    tenant.line()
    process = machine.tenants()["a"]["processes"][0]["pid"]
    stop_process(process)
    done = machine.allot("pause", "a", "--swap-out", "--no-wait", *machine.sim)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert machine.tenants()["a"]["state"] == "leaving"
    assert "leaving" in machine.allot("ps", *machine.sim).stdout
    assert card_used(machine) == CONTEXT + HELD
    os.kill(process, signal.SIGCONT)
    machine.wait_for_tenant("a", lambda t: t["state"] == "swapped")
    assert card_used(machine) == CONTEXT
    stop_process(process)
    resume(machine)
    machine.wait_for_tenant("a", lambda t: t["state"] == "returning")
    assert card_used(machine) == CONTEXT
    os.kill(process, signal.SIGCONT)
    machine.wait_for_tenant("a", lambda t: t["state"] == "idle")
    assert card_used(machine) == CONTEXT + HELD
    tenant.go()
    tenant.end()


def test_pause_waits_for_a_busy_tenant(machine, python):
    """Until all is off; and says how much that is, and how much stays."""
    tenant = swappable(machine, python, "SIZE, OTHER = 4 * MIB, 2 * MIB\n" + WORKERS)
    tenant.line()
    done = machine.allot("pause", "a", "--swap-out", *machine.sim)
    assert done.returncode == 0 and not done.stdout, done
    listed = machine.tenants()["a"]
    assert listed["state"] == "swapped" and listed["swap"]["swapped_bytes"] >= HELD
    assert card_used(machine) == CONTEXT
    # On a busy machine all may be off by the first look: then only the end is told.
    *first, last = done.stderr.splitlines()
    assert len(first) <= 1 and all("moved to host memory" in line for line in first)
    assert " MiB moved to host memory; 518.0 MiB cannot be moved" in last
    # Nothing is left to do.
    done = machine.allot("pause", "a", "--swap-out", *machine.sim)
    assert done.returncode == 0 and done.stderr.splitlines() == [last], done
    resume(machine)
    tenant.go()
    assert tenant.line()
    tenant.end()


@pytest.fixture
def waiting(machine, python):
    """A pause that waits, as the process of its tenant stands still; that process."""
    tenant = swappable(machine, python, """
        look()
        check()
        """)
    tenant.line()
    process = machine.tenants()["a"]["processes"][0]["pid"]
    stop_process(process)
    pausing = subprocess.Popen([BUILD / "allot", "pause", "a", "--swap-out", *machine.sim],
                               env=machine.environment, stderr=subprocess.PIPE, text=True)
    machine.started.append(pausing)
    assert "0 B of 50.0 MiB moved" in pausing.stderr.readline()
    assert pausing.poll() is None
    return tenant, process, pausing


def test_the_waiting_can_be_interrupted(machine, waiting):
    """The request stays in force."""
    tenant, process, pausing = waiting
    pausing.send_signal(signal.SIGINT)
    said = pausing.communicate(timeout=20)[1]
    assert pausing.returncode == 128 + signal.SIGINT
    assert "'a' stays paused" in said and "allot resume a" in said, said
    assert machine.tenants()["a"]["state"] == "leaving"
    os.kill(process, signal.SIGCONT)
    machine.wait_for_tenant("a", lambda t: t["state"] == "swapped")
    resume(machine)
    tenant.go()
    tenant.end()


def test_the_tenant_ends_while_it_is_waited_for(machine, waiting):
    tenant, process, pausing = waiting
    os.kill(process, signal.SIGKILL)
    said = pausing.communicate(timeout=20)[1]
    assert pausing.returncode == 1 and "'a' has ended meanwhile" in said, said
    tenant.process.wait(timeout=10)


@pytest.mark.parametrize("words", [("resume", "a"), ("pause", "a")])
def test_the_tenant_is_resumed_while_it_is_waited_for(machine, waiting, words):
    tenant, process, pausing = waiting
    assert machine.allot(*words, *machine.sim).returncode == 0
    said = pausing.communicate(timeout=20)[1]
    assert pausing.returncode == 1 and "swapping out was cancelled" in said, said
    os.kill(process, signal.SIGCONT)
    resume(machine)
    tenant.go()
    tenant.end()


@pytest.mark.parametrize("after_ms", [0, 2, 5, 10, 20, 50])
def test_killed_while_it_leaves_or_returns(machine, python, after_ms):
    """Whatever it was doing: its memory is given back, and another's is as it was."""
    other = swappable(machine, python, "look(); check()", name="other")
    other.line()
    tenant = swappable(machine, python, "look()")
    tenant.line()
    if after_ms % 20:
        pause(machine)
    process = machine.tenants()["a"]["processes"][0]["pid"]
    command = "resume" if after_ms % 20 else "pause"
    options = ["--swap-out", "--no-wait"] if command == "pause" else []
    done = machine.allot(command, "a", *options, *machine.sim)
    assert done.returncode == 0, done.stderr
    time.sleep(after_ms / 1000)
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: "a" not in machine.tenants(), what="the end of the tenant")
    wait_until(lambda: card_used(machine) == CONTEXT + HELD, what="its memory on the card")
    other.go()
    other.end()


def test_a_program_goes_on_while_the_arena_is_locked(machine, python):
    """However long that takes: here for ever."""
    tenant = swappable(machine, python, """
        look()
        for step in range(300):
            ok0(cu.cuMemFree(ok(cu.cuMemAlloc(64 << 10))))
            time.sleep(0.005)
        look()
        """, environment={"ALLOT_SIM_FAULT": "hang=cuMemHostRegister_v2"})
    tenant.line()
    done = machine.allot("pause", "a", "--swap-out", "--no-wait", *machine.sim)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: swap_of(machine)["state"] == "leaving", what="leaving")
    tenant.go()
    tenant.line()
    assert swap_of(machine)["state"] == "leaving" and swap_of(machine)["swapped_bytes"] == 0
    resume(machine)
    tenant.go()
    tenant.process.kill()
    tenant.process.wait()


def test_a_copy_that_fails_leaves_all_where_it_is(machine, python):
    tenant = swappable(machine, python, """
        look()
        check()
        """, environment={"ALLOT_SIM_FAULT": "fail=cuMemcpyDtoHAsync_v2:999:2"})
    tenant.line()
    for failed in (1, 2):
        done = machine.allot("pause", "a", "--swap-out", *machine.sim)
        assert done.returncode == 1 and "copying failed" in done.stderr, done.stderr
        # The same request again tries again.
        assert swap_of(machine)["failed"] == failed
        assert swap_of(machine)["swapped_bytes"] == 0
        assert card_used(machine) == CONTEXT + HELD
    resume(machine)
    tenant.go()
    tenant.end()


def test_without_room_to_return_to_calls_are_told(machine, python):
    """The card has no memory any more, for whatever reason: what is out stays there, as it is."""
    tenant = swappable(machine, python, """
        look()
        data = bytearray(8)
        for i in range(100):
            result = cu.cuMemcpyDtoH(data, held[0][0], 8)[0]
            if result == R.CUDA_ERROR_OUT_OF_MEMORY:
                break
            time.sleep(0.1)
        assert result == R.CUDA_ERROR_OUT_OF_MEMORY, result
        for ptr, n, _ in held:
            ok0(cu.cuMemFree(ptr))
        """, environment={"ALLOT_SIM_FAULT": "fail=cuMemCreate:2:7"})
    tenant.line()
    pause(machine)
    tenant.go()
    resume(machine)
    tenant.end()


def test_ends_while_it_is_out(machine, python):
    """A program that is told to end does so, with its memory where it is."""
    tenant = swappable(machine, python, """
        look()
        sys.exit(0)
        """)
    tenant.line()
    pause(machine)
    tenant.go()
    tenant.end()


def test_the_daemon_dies_while_it_is_out(machine, python):
    """The library brings the memory back by itself; the next daemon sends it out again."""
    tenant = swappable(machine, python, """
        look()
        check()
        look()
        check()
        """)
    tenant.line()
    pause(machine)
    tenant.go()
    machine.kill_daemon()
    # Back by itself, or out and resumed by the next daemon: either way with its contents.
    wait_until(lambda: machine.tenants().get("a", {}).get("swap"), what="its adoption")
    wait_until(lambda: swap_of(machine)["state"] in ("out", "in"), what="the order from before")
    resume(machine)
    tenant.line()
    pause(machine)
    tenant.go()
    resume(machine)
    tenant.end()


def test_a_daemon_that_stood_still_is_heard_again(machine, python):
    """It was missed for so long that the memory came back by itself; what it asks for is what it asked for before."""
    tenant = swappable(machine, python, """
        look()
        check()
        """)
    tenant.line()
    pause(machine)
    (daemon,) = machine.daemons()
    os.kill(daemon, signal.SIGSTOP)
    try:
        wait_until(lambda: card_used(machine) == CONTEXT + HELD, what="its memory on the card")
    finally:
        os.kill(daemon, signal.SIGCONT)
    wait_until(lambda: swap_of(machine)["state"] == "out", what="its memory off the card again")
    tenant.go()
    resume(machine)
    tenant.end()


@pytest.mark.parametrize("options, said", [
    (("--on-full", "swap"), "needs --memory"),
    (("--swap-arena", "1GiB", "--memory", "1GiB"), "only with --on-full swap"),
])
def test_bad_options(machine, options, said):
    done = machine.run(*options, "--", "true")
    assert done.returncode == 125 and said in done.stderr, done.stderr


def test_an_arena_beyond_the_budget_is_refused(machine):
    done = machine.run("--on-full", "swap", "--memory", "130GiB", "--", "true")
    total = next(int(line.split()[1]) << 10 for line in open("/proc/meminfo", encoding="ascii")
                 if line.startswith("MemTotal"))
    if total // 2 >= 130 << 30:
        pytest.skip("the machine has room for it")
    assert done.returncode == 125 and "needs 130 GiB of host memory" in done.stderr, done.stderr
