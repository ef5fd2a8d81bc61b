"""Tenants whose memory does not fit on the GPU together take turns on it, and lose no data."""

import os
import pty
import signal
import subprocess
import textwrap
import time

import pytest

from machines import BUILD, make_machine, wait_until
from python_tenant import MIB, Tenant

pytest.importorskip("cuda.bindings.driver")

# Each tenant's context needs 518 MiB of this.
GPU_BYTES = 2560 * MIB
SPEC = f"""
[gpu]
name = small
memory = {GPU_BYTES}
"""

# Holds blocks with distinct contents. Each step increments a counter in each block, by way of the host; at the end all
# counters and contents are checked. The ballast only makes the tenant large: it has no contents.
WORKER = """
import hashlib, select, struct
start()
def ok0(result):
    assert result[0] == R.CUDA_SUCCESS, result[0]

def take(mib):
    p = int(ok(cu.cuMemAlloc(mib * MIB)))
    data = hashlib.shake_128(b"%d" % p).digest(mib * MIB - 8) + struct.pack("<Q", 0)
    ok0(cu.cuMemcpyHtoD(p, data, len(data)))
    return p, mib * MIB, hashlib.sha256(data[:-8]).digest()

def ballast(mib):
    return int(ok(cu.cuMemAlloc(mib * MIB)))

def step(blocks, n):
    for p, size, _ in blocks:
        counter = bytearray(8)
        ok0(cu.cuMemcpyDtoH(counter, p + size - 8, 8))
        assert struct.unpack("<Q", counter)[0] == n, (n, counter)
        ok0(cu.cuMemcpyHtoD(p + size - 8, struct.pack("<Q", n + 1), 8))

def check(blocks, n):
    for p, size, want in blocks:
        data = bytearray(size)
        ok0(cu.cuMemcpyDtoH(data, p, size))
        assert hashlib.sha256(data[:-8]).digest() == want, hex(p)
        assert struct.unpack("<Q", data[-8:])[0] == n

# Works until the test sends a line.
def work(blocks):
    n = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        step(blocks, n)
        n += 1
    check(blocks, n)
    return n
"""


@pytest.fixture
def small(tmp_path_factory):
    """A machine with a GPU of GPU_BYTES."""
    spec = tmp_path_factory.mktemp("spec") / "small.sim"
    spec.write_text(SPEC)
    machine = make_machine(tmp_path_factory, str(spec))
    yield machine
    machine.clean()


def start_tenant(machine, python, name, code):
    """Starts a tenant whose quota is 60 % of the GPU."""
    return Tenant(machine, python, WORKER + textwrap.dedent(code), name=name, memory="1536MiB",
                  options=("--on-full", "swap", "--swap-arena", "1024MiB"))


def swap_states(machine):
    """{name: the field `swap` of `allot ps`} of the swappable tenants."""
    return {name: t["swap"] for name, t in machine.tenants().items() if t["swap"]}


def test_two_tenants_of_sixty_percent_take_turns(small, python):
    """Each works for some seconds, in turns; both end with the right contents."""
    code = """
        blocks = [take(m) for m in (40, 40, 30)]
        big = ballast(800)
        look()
        print(work(blocks), flush=True)
        """
    a = start_tenant(small, python, "a", code)
    a.line()
    b = start_tenant(small, python, "b", code)
    b.line()
    # b has its memory, so a's was moved out.
    wait_until(lambda: swap_states(small)["a"]["swapped_bytes"] == 910 * MIB, what="all of a's memory to be out")
    a.go()
    b.go()
    wait_until(lambda: all(s["moved_s"] > 0 for s in swap_states(small).values()), what="moves of both")
    a.go()
    b.go()
    assert int(a.line()) > 0 and int(b.line()) > 0
    a.end()
    b.end()


def test_a_slow_move_out_is_awaited(tmp_path_factory, python):
    """The move out takes longer than the timeout for a tenant that does not answer, and another tenant grows meanwhile. Neither
    fails."""
    spec = tmp_path_factory.mktemp("spec") / "slow.sim"
    spec.write_text(SPEC + "copy_bytes_s = 70MiB\n")
    machine = make_machine(tmp_path_factory, str(spec))
    code = """
        look("here")
        blocks = [take(2)]
        big = [ballast(100) for _ in range({count})]
        look()
        print("works", flush=True) # the test sends the next line only now, as readline() would buffer it
        print(work(blocks), flush=True)
        """
    a = start_tenant(machine, python, "a", code.format(count=8))
    b = start_tenant(machine, python, "b", code.format(count=9))
    for t in (a, b):
        t.line()
        # Memory for which the arena has no room yet would remain on the GPU.
        wait_until(lambda: swap_states(machine).get(t.name, {}).get("arena_ready_bytes") == 1024 * MIB, 10,
                   "the arena")
    for _ in range(2):
        a.go()
        a.line()
    b.go()
    wait_until(lambda: swap_states(machine)["a"]["state"] == "leaving", what="the start of a's move")
    begin = time.monotonic()
    wait_until(lambda: swap_states(machine)["a"]["swapped_bytes"] == 802 * MIB, what="the end of a's move")
    assert time.monotonic() - begin > 10.5
    b.line()
    b.go()
    b.line()
    b.go()
    assert int(b.line()) >= 0
    b.end()
    wait_until(lambda: swap_states(machine)["a"]["state"] == "in", what="a's return")
    assert swap_states(machine)["a"]["failed"] == 0
    a.go()
    assert int(a.line()) > 0
    a.end()
    machine.clean()


def test_memory_of_all_tenants_never_exceeds_the_gpu(small, python):
    """While three tenants take turns, their memory that is not swapped out never exceeds the GPU's."""
    code = """
        blocks = [take(m) for m in (20, 20, 20, 20)]
        big = ballast(800)
        look()
        work(blocks)
        """
    tenants = []
    for name in "abc":
        tenants.append(start_tenant(small, python, name, code))
        tenants[-1].line()
    for t in tenants:
        t.go()
    for _ in range(40):
        now = small.tenants().values()
        on_gpu = sum(t["devices"][0]["memory_used_bytes"] - t["swap"]["swapped_bytes"]
                     for t in now if t["swap"])
        assert on_gpu <= GPU_BYTES, now
    for t in tenants:
        t.go()
    for t in tenants:
        t.end()


def test_tenants_that_fit_together_never_move(small, python):
    code = """
        blocks = [take(40), take(40)]
        big = ballast(300)
        look()
        step(blocks, 0)
        print("works", flush=True)
        for p, size, _ in blocks:
            ok0(cu.cuMemcpyHtoD(p + size - 8, bytes(8), 8))
        print(work(blocks), flush=True)
        """
    tenants = [start_tenant(small, python, name, code) for name in "ab"]
    for t in tenants:
        t.line()
        t.go()
        assert t.line() == "works"
    time.sleep(3)
    assert len(swap_states(small)) == 2
    assert all(s["moved_s"] == 0 and s["failed"] == 0 for s in swap_states(small).values()), swap_states(small)
    for t in tenants:
        t.go()
        assert int(t.line()) > 0
        t.end()


def test_the_arena_is_page_locked_only_when_memory_may_be_short(small, python, tmp_path):
    """Page-locking delays a program, so it is not done for tenants that fit together."""
    log = tmp_path / "log"
    a = Tenant(small, python, WORKER + textwrap.dedent("""
        blocks = [take(40)]
        look()
        check(blocks, 0)
        """), name="a", memory="1536MiB", environment={"ALLOT_LOG": str(log)},
        options=("--on-full", "swap", "--swap-arena", "1024MiB"))
    a.line()
    wait_until(lambda: swap_states(small)["a"]["arena_ready_bytes"] == 1024 * MIB, what="the arena")
    time.sleep(0.3)
    assert "page-locked" not in log.read_text()
    b = start_tenant(small, python, "b", "look()")
    b.line()
    wait_until(lambda: "page-locked" in log.read_text(), what="page-locking")
    for one in (a, b):
        one.go()
        one.end()


def test_an_allocation_waits_for_an_idle_tenant_to_leave(small, python):
    idle = start_tenant(small, python, "idle", """
        blocks = [take(70), take(70)]
        big = ballast(750)
        look()
        check(blocks, 0)
        """)
    idle.line()
    newcomer = start_tenant(small, python, "newcomer", """
        free, total = ok(cu.cuMemGetInfo())
        assert (free, total) == ((1536 - 518) * MIB, 1536 * MIB), (free, total)
        blocks = [take(30), take(50)]
        big = ballast(800)
        blocks.append(take(50))
        look()
        check(blocks, 0)
        """)
    newcomer.line()
    # The newcomer got its last bytes before it printed its line.
    wait_until(lambda: swap_states(small)["idle"]["state"] == "out", what="idle to be out")
    assert small.tenants()["idle"]["state"] == "swapped"
    assert small.tenants()["newcomer"]["devices"][0]["denied"] == 0
    # The idle tenant's memory returns when it is used, although the other tenant still runs.
    idle.go()
    idle.end()
    newcomer.go()
    newcomer.end()


# Calls that allocate unmovable memory, by kind. The GPU is filled by another tenant.
UNMOVABLE_ALLOCATIONS = {
    "context": "",
    "array": """
        d = cu.CUDA_ARRAY_DESCRIPTOR()
        d.Width, d.Height, d.NumChannels = 8192, 8192, 1
        d.Format = cu.CUarray_format.CU_AD_FORMAT_FLOAT
        allocation = ok(cu.cuArrayCreate(d))
        """,
    "async": """
        allocation = ok(cu.cuMemAllocAsync(256 * MIB, cu.CUstream(0)))
        ok0(cu.cuStreamSynchronize(cu.CUstream(0)))
        """,
    "vmm": """
        prop = cu.CUmemAllocationProp()
        prop.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        prop.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        prop.location.id = 0
        allocation = ok(cu.cuMemCreate(256 * MIB, prop, 0))
        """,
    "pitch": """
        allocation, pitch = ok(cu.cuMemAllocPitch(1 << 19, 512, 4))
        """,
}


@pytest.mark.parametrize("kind", UNMOVABLE_ALLOCATIONS)
def test_calls_that_allocate_unmovable_memory_wait_for_room(small, python, kind):
    """The driver has no memory left, and the call waits instead of failing."""
    large = Tenant(small, python, WORKER + textwrap.dedent(f"""
        blocks = [take(20)]
        big = ballast({1900 if kind == "context" else 1340})
        look()
        check(blocks, 0)
        """), name="large", memory="2500MiB",
        options=("--on-full", "swap", "--swap-arena", "2000MiB"))
    large.line()
    assert swap_states(small)["large"]["state"] == "in"
    newcomer = start_tenant(small, python, "newcomer", UNMOVABLE_ALLOCATIONS[kind] + """
        look()
        """)
    newcomer.line()
    wait_until(lambda: swap_states(small)["large"]["state"] == "out", what="large to be out")
    assert small.tenants()["newcomer"]["devices"][0]["denied"] == 0
    newcomer.go()
    newcomer.end()
    large.go()
    large.end()


def test_allocations_over_the_quota_do_not_wait(small, python):
    """An allocation over the quota is refused at once, and so is a further context."""
    one = Tenant(small, python, """
        import time
        start()
        begin = time.monotonic()
        result, _ = cu.cuCtxCreate(None, 0, ok(cu.cuDeviceGet(0)))
        assert result == R.CUDA_ERROR_OUT_OF_MEMORY, result
        result, _ = cu.cuMemAlloc(600 * MIB)
        assert result == R.CUDA_ERROR_OUT_OF_MEMORY, result
        assert time.monotonic() - begin < 10
        look()
        """, name="one", memory="800MiB", options=("--on-full", "swap", "--swap-arena", "512MiB"))
    one.line()
    one.go()
    one.end()


def test_memory_of_a_killed_tenant_is_free_for_others(small, python):
    code = """
        blocks = [take(m) for m in (40, 40, 30)]
        big = ballast(800)
        look()
        check(blocks, 0)
        """
    a = start_tenant(small, python, "a", code)
    a.line()
    b = start_tenant(small, python, "b", code)
    b.line()
    wait_until(lambda: swap_states(small)["a"]["state"] == "out", what="a to be out")
    os.kill(small.tenants()["b"]["processes"][0]["pid"], signal.SIGKILL)
    # There is room for a again.
    wait_until(lambda: swap_states(small)["a"]["state"] == "in", what="the return of a")
    a.go()
    a.end()


def test_turns_continue_after_the_daemon_is_killed(small, python):
    code = """
        blocks = [take(m) for m in (40, 40, 30)]
        big = ballast(800)
        look()
        print(work(blocks), flush=True)
        """
    a = start_tenant(small, python, "a", code)
    a.line()
    b = start_tenant(small, python, "b", code)
    b.line()
    a.go()
    b.go()
    for _ in range(3):
        small.kill_daemon()
        wait_until(lambda: len(swap_states(small)) == 2, what="both tenants")
    a.go()
    b.go()
    assert int(a.line()) > 0 and int(b.line()) > 0
    a.end()
    b.end()


SLOW_BYTES_S = 80 * MIB


@pytest.fixture
def slow(tmp_path_factory):
    """A machine on which the move of 800 MiB takes ten seconds."""
    spec = tmp_path_factory.mktemp("spec") / "slow.sim"
    spec.write_text(SPEC + f"copy_bytes_s = {SLOW_BYTES_S}\n")
    machine = make_machine(tmp_path_factory, str(spec))
    yield machine
    machine.clean()


HOLDER = """
    blocks = [take(2)]
    big = ballast(798)
    look()
    check(blocks, 0)
    """


def run_command(machine, *arguments):
    done = machine.allot(*arguments, *machine.sim)
    assert done.returncode == 0, done.stderr


def wait_for_state(machine, state):
    wait_until(lambda: swap_states(machine)["a"]["state"] == state, what=state)


def test_a_cancelled_move_ends_at_once(slow, python):
    """The cancelled move does not copy the rest first."""
    a = start_tenant(slow, python, "a", HOLDER)
    a.line()
    for _ in range(3):
        run_command(slow, "pause", "a", "--swap-out", "--no-wait")
        wait_for_state(slow, "leaving")
        begin = time.monotonic()
        run_command(slow, "resume", "a")
        wait_for_state(slow, "in")
        assert time.monotonic() - begin < 800 * MIB / SLOW_BYTES_S / 2
    assert swap_states(slow)["a"]["failed"] == 0 and swap_states(slow)["a"]["swapped_bytes"] == 0
    a.go()
    a.end()


def test_progress_is_updated_in_place_on_a_terminal(slow, python):
    a = start_tenant(slow, python, "a", HOLDER)
    a.line()
    master, slave = pty.openpty()
    pausing = subprocess.Popen([BUILD / "allot", "pause", "a", "--swap-out", *slow.sim],
                               env=slow.environment, stderr=slave)
    slow.started.append(pausing)
    os.close(slave)
    shown = b""
    while b": 0 B of 800.0 MiB moved" not in shown or b": 256.0 MiB of 800.0 MiB moved" not in shown:
        shown += os.read(master, 4096)
    assert b"\n" not in shown and shown.count(b"\r\x1b[K") > 2, shown
    assert swap_states(slow)["a"]["state"] == "leaving" and swap_states(slow)["a"]["swapped_bytes"] == 0
    run_command(slow, "resume", "a")
    assert pausing.wait(timeout=20) == 1
    os.close(master)
    a.go()
    a.end()


def stop_daemon(machine, seconds=0.6):
    """Stops the daemon for so long that its tenants take it for dead; then continues it."""
    daemons = machine.daemons()
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in daemons:
            os.kill(pid, number)
        time.sleep(seconds)


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_a_move_survives_two_daemons(slow, python, end):
    """The copying thread does not notice that daemons were replaced. There are two, since the pages of the third's shared
    memory may lie where those of the first did."""
    a = start_tenant(slow, python, "a", HOLDER)
    a.line()
    run_command(slow, "pause", "a", "--swap-out")
    wait_for_state(slow, "out")
    run_command(slow, "resume", "a")
    wait_for_state(slow, "returning")
    for _ in range(2):
        slow.kill_daemon() if end == "killed" else stop_daemon(slow)
        wait_until(lambda: swap_states(slow), what="the tenant's adoption")
    assert swap_states(slow)["a"]["state"] == "returning"
    wait_for_state(slow, "in")
    a.go()
    a.end()


def test_a_copying_call_survives_two_daemons(slow, python):
    """A program's own copy survives too: it leaves the barrier through the same mapping by which it entered."""
    a = Tenant(slow, python, WORKER + textwrap.dedent("""
        p = ballast(400)
        data = bytes(400 * MIB)
        print("begins", flush=True)
        ok0(cu.cuMemcpyHtoD(p, data, len(data)))
        look()
        """), memory="1GiB")
    a.line()
    begin = time.monotonic()
    for _ in range(2):
        slow.kill_daemon()
        wait_until(lambda: slow.tenants()["a"]["processes"], what="the process")
    assert time.monotonic() - begin < 400 * MIB / SLOW_BYTES_S
    a.line()
    a.go()
    a.end()


def test_only_quotas_of_swappable_tenants_may_overlap(small):
    movable = ("--on-full", "swap", "--swap-arena", "64MiB")

    def run(*options, name):
        return small.start("--name", name, *options, "--", "sleep", "30", stderr=subprocess.PIPE)

    run("--memory", "2000MiB", *movable, name="a")
    small.wait_for_tenant("a")
    run("--memory", "2000MiB", *movable, name="b")
    small.wait_for_tenant("b")
    # The memory that they take turns on is not available to others, ...
    done = small.run("--memory", "600MiB", "--", "true")
    assert done.returncode == 125 and "does not fit" in done.stderr, done.stderr
    run("--memory", "500MiB", name="c")
    small.wait_for_tenant("c")
    # ... and the memory that is promised to others is not available to them.
    done = small.run("--memory", "2100MiB", *movable, "--", "true")
    assert done.returncode == 125 and "does not fit" in done.stderr, done.stderr


@pytest.mark.alone  # shares
def test_shares_hold_over_turns(small):
    """While one tenant is out, the other gets the share of both, and the lengths of turns follow the shares. So over many turns
    each gets its share. With limits alone, and turns of equal length, each would get half of its share."""
    tenants, cores = {}, {"a": 60, "b": 20}
    for name, pct in cores.items():
        tenants[name] = small.start_load(
            "--name", name, "--memory", "1536MiB", "--cores", pct, "--on-full", "swap",
            load=("--mib", 1000, "--kernel-us", 2000, "--seconds", 24))
    # In its turn each tenant has the share of both; none of that is lent.
    scaled = wait_until(lambda: [t for t in small.tenants().values()
                                 if t["swap"] and t["swap"]["share_scale"] > 1.1], 15, "turns")
    assert all(t["devices"][0]["lent_pct"] < 1 for t in scaled), scaled
    shares = {name: small.end_load(tenant, name)[0] for name, tenant in tenants.items()}
    for name, pct in cores.items():
        assert shares[name].is_sound(), shares
        # The first turn is partial, and moves take a tenth of the time.
        assert 0.75 * pct < shares[name].charged_pct < 1.2 * pct, shares
