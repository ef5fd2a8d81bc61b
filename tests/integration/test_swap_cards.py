"""Tenants on two cards whose memory is moved off: from both cards at once, and back to the same card and addresses."""

import textwrap

import pytest

from machines import make_machine, wait_until
from python_tenant import CONTEXT, MIB, Tenant
from test_swap import BUFFERS, pause, resume, swap_of
from test_swap_turns import WORKER

pytest.importorskip("cuda.bindings.driver")

CARD = 2560 * MIB
SPEC = f"""
[gpu]
name = first
memory = {CARD}
nvlink = 1
[gpu]
name = second
memory = {CARD}
nvlink = 0
"""

# Contexts on both cards, as a program of two GPUs has them.
BOTH = """
ok(cu.cuInit(0))
contexts = [ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(d)))) for d in range(2)]

def on(device):
    ok(cu.cuCtxSetCurrent(contexts[device]))

def may_reach(device, ptr):
    place = cu.CUmemLocation()
    place.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    place.id = device
    return ok(cu.cuMemGetAccess(place, cu.CUdeviceptr(ptr))) == 3
"""


@pytest.fixture
def pair(tmp_path_factory):
    spec = tmp_path_factory.mktemp("spec") / "pair.sim"
    spec.write_text(SPEC)
    machine = make_machine(tmp_path_factory, str(spec))
    yield machine
    machine.clean()


def of_both(machine, python, code):
    return Tenant(machine, python, BUFFERS + BOTH + textwrap.dedent(code), memory="1536MiB",
                  options=("--gpu", "0,1", "--on-full", "swap"))


def used(machine):
    return [card["memory_used_bytes"] for card in machine.ps()["devices"]]


def test_both_cards_are_left_and_come_back_as_they_were(pair, python):
    tenant = of_both(pair, python, """
        on(1)
        for i, n in enumerate((12 * MIB, 5 * MIB)):
            ptr = int(ok(cu.cuMemAlloc(n)))
            held.append((ptr, n, fill(ptr, n, 100 + i)))
        look()
        check()
        on(0)
        check()
        look()
        """)
    tenant.line()
    here = [50 * MIB, 18 * MIB]
    wait_until(lambda: swap_of(pair), what="a swappable process")
    assert [d["swappable_bytes"] for d in swap_of(pair)["devices"]] == here
    wait_until(lambda: used(pair) == [CONTEXT + n for n in here], what="NVML's figures")
    pause(pair)
    swap = swap_of(pair)
    assert [d["swapped_bytes"] for d in swap["devices"]] == here
    assert swap["swapped_bytes"] == sum(here) and swap["failed"] == 0
    wait_until(lambda: used(pair) == [CONTEXT, CONTEXT], what="both cards")
    tenant.go()
    resume(pair)
    tenant.line()
    assert swap_of(pair)["state"] == "in" and swap_of(pair)["swapped_bytes"] == 0
    tenant.go()
    tenant.end()


def test_peers_reach_it_as_the_program_said(pair, python):
    """Peer access is said of contexts; memory that can be moved has it for what is there and what comes."""
    tenant = of_both(pair, python, """
        on(0)
        before = int(ok(cu.cuMemAlloc(4 * MIB)))
        on(1)
        assert not may_reach(1, before)
        assert cu.cuCtxEnablePeerAccess(contexts[0], 0)[0] == R.CUDA_SUCCESS
        assert cu.cuCtxEnablePeerAccess(contexts[0], 0)[0] == \
            R.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
        on(0)
        after = int(ok(cu.cuMemAlloc(4 * MIB)))
        on(1)
        other = int(ok(cu.cuMemAlloc(4 * MIB)))
        look()
        # From the first to the second nobody said it.
        assert may_reach(1, before) and may_reach(1, after)
        assert may_reach(0, before) and may_reach(1, other) and not may_reach(0, other)
        look()
        assert may_reach(1, before) and may_reach(1, after) and not may_reach(0, other)
        assert cu.cuCtxDisablePeerAccess(contexts[0])[0] == R.CUDA_SUCCESS
        assert not may_reach(1, before) and not may_reach(1, after) and may_reach(0, before)
        look()
        """)
    tenant.line()
    tenant.go()
    tenant.line()
    pause(pair)
    resume(pair)
    wait_until(lambda: swap_of(pair)["state"] == "in", what="it is back")
    tenant.go()
    tenant.line()
    tenant.go()
    tenant.end()


def test_turns_on_two_cards(pair, python):
    """One of both cards and one of each that fit on none of them with it: all get on, and nothing is lost."""
    single = WORKER + textwrap.dedent("""
        pieces = [take(m) for m in (40, 30)]
        big = ballast(1000)
        look("ready")
        print(work(pieces), flush=True)
        """)
    double = WORKER.replace("start()", "", 1) + BOTH + textwrap.dedent("""
        on(0)
        pieces = [take(40)]
        big = ballast(1000)
        on(1)
        pieces.append(take(30))
        more = ballast(1000)
        look("ready")
        print(work(pieces), flush=True)
        """)
    arena = ("--on-full", "swap", "--swap-arena", "2304MiB")
    tenants = [Tenant(pair, python, code, name=name, memory="1700MiB",
                      options=("--gpu", gpus, *arena))
               for name, gpus, code in (("both", "0,1", double), ("first", "0", single),
                                        ("second", "1", single))]
    for tenant in tenants:
        assert tenant.line() == "ready"
    for tenant in tenants:
        tenant.go()
    out = {name: set() for name in ("both", "first", "second")}

    def all_were_out():
        assert all(n <= CARD for n in used(pair))
        for name, tenant in pair.tenants().items():
            swap = tenant["swap"]
            if not swap:
                continue
            out[name].add(swap["state"] == "out")
            if swap["state"] in ("in", "out"):
                parts = [d["swapped_bytes"] == d["swappable_bytes"] for d in swap["devices"]
                         if d["swappable_bytes"]]
                assert len(set(parts)) == 1, swap
        return all(seen == {True, False} for seen in out.values())

    # A turn is nine times as long as the moves that end it, which take seconds each on a busy machine.
    wait_until(all_were_out, 240, "turns of all three")
    for tenant in tenants:
        tenant.go()
    for tenant in tenants:
        assert int(tenant.line()) > 0
        tenant.end()
