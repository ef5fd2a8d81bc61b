"""Tenants whose memory does not fit on the card together take turns on it, and lose no data."""

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

# Each tenant's context takes 518 MiB of it.
CARD = 2560 * MIB
SPEC = f"""
[gpu]
name = small
memory = {CARD}
"""

# Holds pieces with bytes of their own, and works on them step by step: each step counts up a word in each
# piece, by way of the host. At the end every word and byte is there. The simulated card keeps the bytes of so
# much; what makes the tenant large (ballast) has none.
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

def step(pieces, n):
    for p, size, _ in pieces:
        word = bytearray(8)
        ok0(cu.cuMemcpyDtoH(word, p + size - 8, 8))
        assert struct.unpack("<Q", word)[0] == n, (n, word)
        ok0(cu.cuMemcpyHtoD(p + size - 8, struct.pack("<Q", n + 1), 8))

def check(pieces, n):
    for p, size, want in pieces:
        data = bytearray(size)
        ok0(cu.cuMemcpyDtoH(data, p, size))
        assert hashlib.sha256(data[:-8]).digest() == want, hex(p)
        assert struct.unpack("<Q", data[-8:])[0] == n

# Until the test says that it is enough.
def work(pieces):
    n = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        step(pieces, n)
        n += 1
    check(pieces, n)
    return n
"""


@pytest.fixture
def small(tmp_path_factory):
    spec = tmp_path_factory.mktemp("spec") / "small.sim"
    spec.write_text(SPEC)
    machine = make_machine(tmp_path_factory, str(spec))
    yield machine
    machine.clean()


def tenant(machine, python, name, code):
    """One that may hold 60 % of the card."""
    return Tenant(machine, python, WORKER + textwrap.dedent(code), name=name, memory="1536MiB",
                  options=("--on-full", "swap", "--swap-arena", "1024MiB"))


def swaps(machine):
    return {name: t["swap"] for name, t in machine.tenants().items() if t["swap"]}


def test_two_of_sixty_percent_both_end(small, python):
    """Either works for some seconds, in its turns; both end with what they should have."""
    code = """
        pieces = [take(m) for m in (40, 40, 30)]
        big = ballast(800)
        look()
        print(work(pieces), flush=True)
        """
    a = tenant(small, python, "a", code)
    a.line()
    b = tenant(small, python, "b", code)
    b.line()
    # b has its memory: a had to go for it.
    wait_until(lambda: swaps(small)["a"]["swapped_bytes"] == 910 * MIB, what="a, all of it out")
    a.go()
    b.go()
    wait_until(lambda: all(s["moved_s"] > 0 for s in swaps(small).values()), what="moves of both")
    a.go()
    b.go()
    assert int(a.line()) > 0 and int(b.line()) > 0
    a.end()
    b.end()


def test_one_that_is_slow_to_leave_is_awaited(tmp_path_factory, python):
    """Its way out takes longer than one that does not answer would be waited for, and another grows all the
    while: neither fails."""
    spec = tmp_path_factory.mktemp("spec") / "slow.sim"
    spec.write_text(SPEC + "copy_bytes_s = 70MiB\n")
    machine = make_machine(tmp_path_factory, str(spec))
    code = """
        look("here")
        pieces = [take(2)]
        big = [ballast(100) for _ in range({count})]
        look()
        print("works", flush=True) # more is said to it only then: what comes with a line is read with it
        print(work(pieces), flush=True)
        """
    a = tenant(machine, python, "a", code.format(count=8))
    b = tenant(machine, python, "b", code.format(count=9))
    for t in (a, b):
        t.line()
        # What the arena has no place for yet would stay on the card.
        wait_until(lambda: swaps(machine).get(t.name, {}).get("arena_ready_bytes") == 1024 * MIB, 10,
                   "the arena")
    for _ in range(2):
        a.go()
        a.line()
    b.go()
    wait_until(lambda: swaps(machine)["a"]["state"] == "leaving", what="a is on its way")
    begin = time.monotonic()
    wait_until(lambda: swaps(machine)["a"]["swapped_bytes"] == 802 * MIB, what="a is out")
    assert time.monotonic() - begin > 10.5
    b.line()
    b.go()
    b.line()
    b.go()
    assert int(b.line()) >= 0
    b.end()
    wait_until(lambda: swaps(machine)["a"]["state"] == "in", what="a is back")
    assert swaps(machine)["a"]["failed"] == 0
    a.go()
    assert int(a.line()) > 0
    a.end()
    machine.clean()


def test_never_more_on_the_card_than_it_has(small, python):
    """While three take turns, what is not out is never more than the card."""
    code = """
        pieces = [take(m) for m in (20, 20, 20, 20)]
        big = ballast(800)
        look()
        work(pieces)
        """
    tenants = []
    for name in "abc":
        tenants.append(tenant(small, python, name, code))
        tenants[-1].line()
    for t in tenants:
        t.go()
    for _ in range(40):
        now = small.tenants().values()
        on_card = sum(t["devices"][0]["memory_used_bytes"] - t["swap"]["swapped_bytes"]
                      for t in now if t["swap"])
        assert on_card <= CARD, now
    for t in tenants:
        t.go()
    for t in tenants:
        t.end()


def test_what_fits_together_never_moves(small, python):
    code = """
        pieces = [take(40), take(40)]
        big = ballast(300)
        look()
        step(pieces, 0)
        print("works", flush=True)
        for p, size, _ in pieces:
            ok0(cu.cuMemcpyHtoD(p + size - 8, bytes(8), 8))
        print(work(pieces), flush=True)
        """
    tenants = [tenant(small, python, name, code) for name in "ab"]
    for t in tenants:
        t.line()
        t.go()
        assert t.line() == "works"
    time.sleep(3)
    assert len(swaps(small)) == 2
    assert all(s["moved_s"] == 0 and s["failed"] == 0 for s in swaps(small).values()), swaps(small)
    for t in tenants:
        t.go()
        assert int(t.line()) > 0
        t.end()


def test_the_arena_is_locked_once_the_card_may_become_short(small, python, tmp_path):
    """Locking is in a program's way, so it is not done for tenants that fit together."""
    log = tmp_path / "log"
    a = Tenant(small, python, WORKER + textwrap.dedent("""
        pieces = [take(40)]
        look()
        check(pieces, 0)
        """), name="a", memory="1536MiB", environment={"ALLOT_LOG": str(log)},
        options=("--on-full", "swap", "--swap-arena", "1024MiB"))
    a.line()
    wait_until(lambda: swaps(small)["a"]["arena_ready_bytes"] == 1024 * MIB, what="the arena")
    time.sleep(0.3)
    assert "page-locked" not in log.read_text()
    b = tenant(small, python, "b", "look()")
    b.line()
    wait_until(lambda: "page-locked" in log.read_text(), what="page-locking")
    for one in (a, b):
        one.go()
        one.end()


def test_an_allocation_waits_for_an_idle_tenant_to_leave(small, python):
    idle = tenant(small, python, "idle", """
        pieces = [take(70), take(70)]
        big = ballast(750)
        look()
        check(pieces, 0)
        """)
    idle.line()
    comes = tenant(small, python, "comes", """
        free, total = ok(cu.cuMemGetInfo())
        assert (free, total) == ((1536 - 518) * MIB, 1536 * MIB), (free, total)
        pieces = [take(30), take(50)]
        big = ballast(800)
        pieces.append(take(50))
        look()
        check(pieces, 0)
        """)
    comes.line()
    # Its last bytes were had before it said so.
    wait_until(lambda: swaps(small)["idle"]["state"] == "out", what="idle, out")
    assert small.tenants()["idle"]["state"] == "swapped"
    assert small.tenants()["comes"]["devices"][0]["denied"] == 0
    # It comes back when it wants something, though the other is there still.
    idle.go()
    idle.end()
    comes.go()
    comes.end()


# What a call of each kind takes that is not made movable, on a card that another fills.
TAKES = {
    "context": "",
    "array": """
        d = cu.CUDA_ARRAY_DESCRIPTOR()
        d.Width, d.Height, d.NumChannels = 8192, 8192, 1
        d.Format = cu.CUarray_format.CU_AD_FORMAT_FLOAT
        kept = ok(cu.cuArrayCreate(d))
        """,
    "async": """
        kept = ok(cu.cuMemAllocAsync(256 * MIB, cu.CUstream(0)))
        ok0(cu.cuStreamSynchronize(cu.CUstream(0)))
        """,
    "vmm": """
        prop = cu.CUmemAllocationProp()
        prop.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        prop.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        prop.location.id = 0
        kept = ok(cu.cuMemCreate(256 * MIB, prop, 0))
        """,
    "pitch": """
        kept, pitch = ok(cu.cuMemAllocPitch(1 << 19, 512, 4))
        """,
}


@pytest.mark.parametrize("kind", TAKES)
def test_whatever_takes_memory_waits_for_room(small, python, kind):
    """The driver has none left; the call that asks for it does not fail."""
    large = Tenant(small, python, WORKER + textwrap.dedent(f"""
        pieces = [take(20)]
        big = ballast({1900 if kind == "context" else 1340})
        look()
        check(pieces, 0)
        """), name="large", memory="2500MiB",
        options=("--on-full", "swap", "--swap-arena", "2000MiB"))
    large.line()
    assert swaps(small)["large"]["state"] == "in"
    comes = tenant(small, python, "comes", TAKES[kind] + """
        look()
        """)
    comes.line()
    wait_until(lambda: swaps(small)["large"]["state"] == "out", what="large, out")
    assert small.tenants()["comes"]["devices"][0]["denied"] == 0
    comes.go()
    comes.end()
    large.go()
    large.end()


def test_beyond_the_quota_nothing_waits(small, python):
    """What the quota has no room for is refused at once, a further context too."""
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


def test_memory_of_one_that_is_killed_is_anothers(small, python):
    code = """
        pieces = [take(m) for m in (40, 40, 30)]
        big = ballast(800)
        look()
        check(pieces, 0)
        """
    a = tenant(small, python, "a", code)
    a.line()
    b = tenant(small, python, "b", code)
    b.line()
    wait_until(lambda: swaps(small)["a"]["state"] == "out", what="a, out")
    os.kill(small.tenants()["b"]["processes"][0]["pid"], signal.SIGKILL)
    # There is room for all again.
    wait_until(lambda: swaps(small)["a"]["state"] == "in", what="the return of a")
    a.go()
    a.end()


def test_the_daemon_is_killed_among_the_turns(small, python):
    code = """
        pieces = [take(m) for m in (40, 40, 30)]
        big = ballast(800)
        look()
        print(work(pieces), flush=True)
        """
    a = tenant(small, python, "a", code)
    a.line()
    b = tenant(small, python, "b", code)
    b.line()
    a.go()
    b.go()
    for _ in range(3):
        small.kill_daemon()
        wait_until(lambda: len(swaps(small)) == 2, what="both of them")
    a.go()
    b.go()
    assert int(a.line()) > 0 and int(b.line()) > 0
    a.end()
    b.end()


SLOW_BYTES_S = 80 * MIB


@pytest.fixture
def slow(tmp_path_factory):
    """Of 800 MiB a move takes ten seconds."""
    spec = tmp_path_factory.mktemp("spec") / "slow.sim"
    spec.write_text(SPEC + f"copy_bytes_s = {SLOW_BYTES_S}\n")
    machine = make_machine(tmp_path_factory, str(spec))
    yield machine
    machine.clean()


HOLDER = """
    pieces = [take(2)]
    big = ballast(798)
    look()
    check(pieces, 0)
    """


def order(machine, *words):
    done = machine.allot(*words, *machine.sim)
    assert done.returncode == 0, done.stderr


def state_is(machine, state):
    wait_until(lambda: swaps(machine)["a"]["state"] == state, what=state)


def test_a_way_out_that_is_called_off_ends_at_once(slow, python):
    """Nobody waits until all is copied for a room that nobody wants any more."""
    a = tenant(slow, python, "a", HOLDER)
    a.line()
    for _ in range(3):
        order(slow, "pause", "a", "--swap-out", "--no-wait")
        state_is(slow, "leaving")
        begin = time.monotonic()
        order(slow, "resume", "a")
        state_is(slow, "in")
        assert time.monotonic() - begin < 800 * MIB / SLOW_BYTES_S / 2
    assert swaps(slow)["a"]["failed"] == 0 and swaps(slow)["a"]["swapped_bytes"] == 0
    a.go()
    a.end()


def test_progress_is_drawn_again_and_again_on_a_terminal(slow, python):
    a = tenant(slow, python, "a", HOLDER)
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
    assert swaps(slow)["a"]["state"] == "leaving" and swaps(slow)["a"]["swapped_bytes"] == 0
    order(slow, "resume", "a")
    assert pausing.wait(timeout=20) == 1
    os.close(master)
    a.go()
    a.end()


def stop_daemon(machine, seconds=0.6):
    """It stands still, so that its tenants give it up; and goes on."""
    daemons = machine.daemons()
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in daemons:
            os.kill(pid, number)
        time.sleep(seconds)


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_a_move_outlasts_two_daemons(slow, python, end):
    """The thread that copies has seen none of them come and go. (Two: the pages of a fourth may lie where those of
    the first did.)"""
    a = tenant(slow, python, "a", HOLDER)
    a.line()
    order(slow, "pause", "a", "--swap-out")
    state_is(slow, "out")
    order(slow, "resume", "a")
    state_is(slow, "returning")
    for _ in range(2):
        slow.kill_daemon() if end == "killed" else stop_daemon(slow)
        wait_until(lambda: swaps(slow), what="the tenant's return")
    assert swaps(slow)["a"]["state"] == "returning"
    state_is(slow, "in")
    a.go()
    a.end()


def test_a_call_outlasts_two_daemons(slow, python):
    """So does a program's own copy, that counts itself out where it counted itself in."""
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


def test_quotas_of_swappable_tenants_may_overlap_and_others_may_not(small):
    movable = ("--on-full", "swap", "--swap-arena", "64MiB")

    def run(*options, name):
        return small.start("--name", name, *options, "--", "sleep", "30", stderr=subprocess.PIPE)

    run("--memory", "2000MiB", *movable, name="a")
    small.wait_for_tenant("a")
    run("--memory", "2000MiB", *movable, name="b")
    small.wait_for_tenant("b")
    # What they take turns on is not there for others, ...
    done = small.run("--memory", "600MiB", "--", "true")
    assert done.returncode == 125 and "does not fit" in done.stderr, done.stderr
    run("--memory", "500MiB", name="c")
    small.wait_for_tenant("c")
    # ... and what others are promised is not there for them.
    done = small.run("--memory", "2100MiB", *movable, "--", "true")
    assert done.returncode == 125 and "does not fit" in done.stderr, done.stderr


@pytest.mark.alone  # shares
@pytest.mark.parametrize("cores", [(50, 50), (60, 20)])
def test_shares_hold_over_turns(small, cores):
    """While one is away the other has what is both's, and turns are as long as the shares say: so over turns
    and absences together either has its share. By caps alone, in turns of one length, it would be half of it."""
    tenants = {}
    for name, pct in zip("ab", cores):
        tenants[name] = small.start_load(
            "--name", name, "--memory", "1536MiB", "--cores", pct, "--on-full", "swap",
            load=("--mib", 1000, "--kernel-us", 2000, "--seconds", 24))
    # In its turn either has what is both's; nothing of that is lent.
    scaled = wait_until(lambda: [t for t in small.tenants().values()
                                 if t["swap"] and t["swap"]["share_scale"] > 1.1], 15, "turns")
    assert all(t["devices"][0]["lent_pct"] < 1 for t in scaled), scaled
    shares = {name: small.end_load(tenant, name)[0] for name, tenant in tenants.items()}
    for name, pct in zip("ab", cores):
        assert shares[name].is_sound(), shares
        # It begins in the middle of a turn, and moves take a tenth of the time.
        assert 0.75 * pct < shares[name].charged_pct < 1.2 * pct, shares
