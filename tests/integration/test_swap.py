"""Memory that is moved off the GPU on request, and back: contents, addresses and graphs are unchanged."""

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

# Buffers of several sizes with distinct contents, and check() of all of them.
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
# Threads that copy, set, allocate and free memory until the test sends a line.
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


def unmovable(machine):
    """The bytes of tenant "a" that can't be moved off its GPU, by reason."""
    return swap_of(machine)["devices"][0]["stays"]


def pause(machine, name="a", state="out"):
    """Pauses the tenant and swaps it out; returns once that is complete."""
    done = machine.allot("pause", name, "--swap-out", *machine.sim)
    assert done.returncode == 0, done.stderr
    assert swap_of(machine, name)["state"] == state


def resume(machine, name="a"):
    done = machine.allot("resume", name, *machine.sim)
    assert done.returncode == 0, done.stderr


def test_memory_is_unchanged_after_a_move(machine, python):
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
    assert unmovable(machine) == {"contexts_bytes": CONTEXT, "known_to_others_bytes": 0,
                                  "not_movable_bytes": 2 * MIB}
    pause(machine)
    swap = swap_of(machine)
    assert swap["swapped_bytes"] == HELD and swap["failed"] == 0 and swap["moved_s"] > 0
    # Small allocations are not moved, and memory that is swapped out still counts against the quota.
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
    """The tenant's call waits for memory that is swapped out. If allotd gets no processor for 250 ms, the library takes it for
    dead and moves the memory back itself. A call that returns is no failure then."""
    assert not tenant_says(tenant, 0.5) or tenant.machine.was_daemon_missed()


def test_repeated_moves_with_changing_allocations(machine, python):
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


def test_threads_wait_during_moves(machine, python):
    """Threads that copy, set, allocate and free memory are not disturbed by ten moves."""
    tenant = swappable(machine, python, "SIZE, OTHER = 4 * MIB, 2 * MIB\n" + WORKERS)
    tenant.line()
    for _ in range(10):
        pause(machine)
        resume(machine)
        wait_until(lambda: swap_of(machine)["state"] == "in", what="the memory's return")
    tenant.go()
    tenant.line()
    tenant.end()


def test_a_graph_works_after_a_move(machine, python):
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


def test_adding_a_graph_node_waits_for_the_memory(machine, python):
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


def test_pointer_attributes_do_not_change(machine, python):
    """Queries about movable memory have the same answers as about other memory, even while it is swapped out."""
    tenant = swappable(machine, python, """
        A = cu.CUpointer_attribute
        attributes = (A.CU_POINTER_ATTRIBUTE_CONTEXT, A.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                 A.CU_POINTER_ATTRIBUTE_RANGE_SIZE, A.CU_POINTER_ATTRIBUTE_BUFFER_ID)
        ptr, n, _ = held[1]
        def query():
            return ([int(ok(cu.cuPointerGetAttribute(a, ptr + 9))) for a in attributes],
                    [int(x) for x in ok(cu.cuMemGetAddressRange(ptr + 9))])
        before = query()
        assert before[0][0] == int(ok(cu.cuCtxGetCurrent())), before
        assert before[0][1:3] == [ptr, n] and before[1] == [ptr, n], before
        look()
        assert query() == before, (query(), before)
        look()
        T = A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        assert int(ok(cu.cuPointerGetAttribute(T, ptr))) == 2
        assert query() == before
        assert cu.cuMemRetainAllocationHandle(ptr)[0] == R.CUDA_ERROR_INVALID_VALUE
        """)
    tenant.line()
    pause(machine)
    tenant.go()
    tenant.line()
    resume(machine)
    tenant.go()
    tenant.end()


def test_memory_that_other_devices_use_is_not_moved(machine, python):
    """Memory that other devices may write to (RDMA sets SYNC_MEMOPS) remains on the GPU, and ps reports it."""
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
    shared_bytes = 34 * MIB
    wait_until(lambda: unmovable(machine)["known_to_others_bytes"] == shared_bytes, what="the report of the shared memory")
    pause(machine)
    assert swap_of(machine)["swapped_bytes"] == HELD - shared_bytes
    assert card_used(machine) == CONTEXT + shared_bytes
    resume(machine)
    tenant.go()
    tenant.line()
    wait_until(lambda: unmovable(machine)["known_to_others_bytes"] == 0, what="the report of its release")
    tenant.go()
    tenant.end()


def test_memory_beyond_the_arena_is_not_moved(machine, python):
    tenant = swappable(machine, python, "look(); check()", options=("--swap-arena", "40MiB"))
    tenant.line()
    # The arena has room for the first three: 2, 4 and 34 MiB. The other two are ordinary allocations.
    wait_until(lambda: swap_of(machine), what="a swappable process")
    # The helper thread may still report an allocation that it tried.
    wait_until(lambda: swap_of(machine)["swappable_bytes"] == 40 * MIB, what="only the memory that fits")
    pause(machine)
    assert swap_of(machine)["swapped_bytes"] == 40 * MIB
    assert card_used(machine) == CONTEXT + 10 * MIB
    resume(machine)
    tenant.go()
    tenant.end()


def test_a_move_waits_for_a_graph_capture(machine, python):
    """A move would invalidate the capture. After two seconds the request fails, and nothing has moved."""
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


def test_a_tenant_killed_while_swapped_out_ends(machine, python):
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


def test_states_during_moves(machine, python):
    """A stopped process neither leaves nor returns, so its state remains `leaving` or `returning`."""
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
    """`allot pause` waits until all movable memory is off the GPU. It reports that amount, and the unmovable amount."""
    tenant = swappable(machine, python, "SIZE, OTHER = 4 * MIB, 2 * MIB\n" + WORKERS)
    tenant.line()
    done = machine.allot("pause", "a", "--swap-out", *machine.sim)
    assert done.returncode == 0 and not done.stdout, done
    listed = machine.tenants()["a"]
    assert listed["state"] == "swapped" and listed["swap"]["swapped_bytes"] >= HELD
    assert card_used(machine) == CONTEXT
    # On a busy machine all may be off at the first report; then only the last line is printed.
    *first, last = done.stderr.splitlines()
    assert len(first) <= 1 and all("moved to host memory" in line for line in first)
    assert " MiB moved to host memory; 518.0 MiB cannot be moved" in last
    # A second pause returns at once.
    done = machine.allot("pause", "a", "--swap-out", *machine.sim)
    assert done.returncode == 0 and done.stderr.splitlines() == [last], done
    resume(machine)
    tenant.go()
    assert tenant.line()
    tenant.end()


@pytest.fixture
def waiting(machine, python):
    """(tenant, its stopped process, a running `allot pause` that waits for that process)."""
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


def test_an_interrupted_pause_remains_in_force(machine, waiting):
    """SIGINT ends the wait, but not the pause."""
    tenant, process, pausing = waiting
    pausing.send_signal(signal.SIGINT)
    errors = pausing.communicate(timeout=20)[1]
    assert pausing.returncode == 128 + signal.SIGINT
    assert "'a' stays paused" in errors and "allot resume a" in errors, errors
    assert machine.tenants()["a"]["state"] == "leaving"
    os.kill(process, signal.SIGCONT)
    machine.wait_for_tenant("a", lambda t: t["state"] == "swapped")
    resume(machine)
    tenant.go()
    tenant.end()


def test_pause_fails_when_the_tenant_ends(machine, waiting):
    tenant, process, pausing = waiting
    os.kill(process, signal.SIGKILL)
    errors = pausing.communicate(timeout=20)[1]
    # The tenant may outlive its only process for a moment, in which it has no memory to move.
    assert (pausing.returncode == 1 and "'a' has ended meanwhile" in errors or
            pausing.returncode == 0 and "'a': it has no memory on its GPUs" in errors), errors
    tenant.process.wait(timeout=10)


@pytest.mark.parametrize("arguments", [("resume", "a"), ("pause", "a")])
def test_pause_fails_when_the_move_is_cancelled(machine, waiting, arguments):
    tenant, process, pausing = waiting
    assert machine.allot(*arguments, *machine.sim).returncode == 0
    errors = pausing.communicate(timeout=20)[1]
    assert pausing.returncode == 1 and "swapping out was cancelled" in errors, errors
    os.kill(process, signal.SIGCONT)
    resume(machine)
    tenant.go()
    tenant.end()


@pytest.mark.parametrize("after_ms", [0, 2, 5, 10, 20, 50])
def test_a_tenant_killed_during_a_move_releases_its_memory(machine, python, after_ms):
    """The kill comes at different moments; another tenant's memory is unchanged."""
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
    wait_until(lambda: card_used(machine) == CONTEXT + HELD, what="the release of the killed tenant's memory")
    other.go()
    other.end()


def test_a_program_works_while_the_arena_is_page_locked(machine, python):
    """Here page-locking never ends, and the program still works."""
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
    wait_until(lambda: swap_of(machine)["state"] == "leaving", what="the state `leaving`")
    tenant.go()
    tenant.line()
    assert swap_of(machine)["state"] == "leaving" and swap_of(machine)["swapped_bytes"] == 0
    resume(machine)
    tenant.go()
    tenant.process.kill()
    tenant.process.wait()


def test_a_failed_copy_moves_nothing(machine, python):
    tenant = swappable(machine, python, """
        look()
        check()
        """, environment={"ALLOT_SIM_FAULT": "fail=cuMemcpyDtoHAsync_v2:999:2"})
    tenant.line()
    for failed in (1, 2):
        done = machine.allot("pause", "a", "--swap-out", *machine.sim)
        assert done.returncode == 1 and "copying failed" in done.stderr, done.stderr
        # A repeated request tries again.
        assert swap_of(machine)["failed"] == failed
        assert swap_of(machine)["swapped_bytes"] == 0
        assert card_used(machine) == CONTEXT + HELD
    resume(machine)
    tenant.go()
    tenant.end()


@pytest.mark.parametrize("fault, reason", [
    ("fail=cuMemCreate:2:7", "the GPU has no room for the return"),
    ("fail=cuMemcpyHtoDAsync_v2:999", "the driver could not move this process's memory back to the GPU (CUDA error 999)"),
])
def test_calls_fail_without_the_return(machine, python, fault, reason):
    """The GPU has no free memory any more, for whatever reason, or the copies fail. The memory remains swapped out, and calls
    get an error."""
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
        """, environment={"ALLOT_SIM_FAULT": fault})
    tenant.line()
    pause(machine)
    tenant.go()
    resume(machine)
    tenant.end()
    assert [line for line in machine.tenants_log.read_text().splitlines() if "CUDA calls that need it fail" in line
            and reason in line]


def test_a_program_can_exit_while_swapped_out(machine, python):
    """The exit does not wait for the memory's return."""
    tenant = swappable(machine, python, """
        look()
        sys.exit(0)
        """)
    tenant.line()
    pause(machine)
    tenant.go()
    tenant.end()


def test_the_next_daemon_continues_the_swap_out(machine, python):
    """Without a daemon the library moves the memory back itself; the next daemon moves it out again."""
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
    # Either the library has moved it back, or the next daemon resumes it: its contents are right in both cases.
    wait_until(lambda: machine.tenants().get("a", {}).get("swap"), what="the adoption of the tenant")
    wait_until(lambda: swap_of(machine)["state"] in ("out", "in"), what="the end of the move")
    resume(machine)
    tenant.line()
    pause(machine)
    tenant.go()
    resume(machine)
    tenant.end()


def test_a_stopped_daemon_is_obeyed_again_when_it_continues(machine, python):
    """The library took the daemon for dead and moved the memory back. When the daemon continues, its request is in force
    again."""
    tenant = swappable(machine, python, """
        look()
        check()
        """)
    tenant.line()
    pause(machine)
    (daemon,) = machine.daemons()
    os.kill(daemon, signal.SIGSTOP)
    try:
        wait_until(lambda: card_used(machine) == CONTEXT + HELD, what="the memory's return to the GPU")
    finally:
        os.kill(daemon, signal.SIGCONT)
    wait_until(lambda: swap_of(machine)["state"] == "out", what="the second move out")
    tenant.go()
    resume(machine)
    tenant.end()


@pytest.mark.parametrize("options, message", [
    (("--on-full", "swap"), "needs --memory"),
    (("--swap-arena", "1GiB", "--memory", "1GiB"), "only with --on-full swap"),
])
def test_bad_options(machine, options, message):
    done = machine.run(*options, "--", "true")
    assert done.returncode == 125 and message in done.stderr, done.stderr


def test_an_arena_beyond_the_budget_is_refused(machine):
    done = machine.run("--on-full", "swap", "--memory", "130GiB", "--", "true")
    total = next(int(line.split()[1]) << 10 for line in open("/proc/meminfo", encoding="ascii")
                 if line.startswith("MemTotal"))
    if total // 2 >= 130 << 30:
        pytest.skip("the machine has room for it")
    assert done.returncode == 125 and "needs 130 GiB of host memory" in done.stderr, done.stderr
