"""Tenants on two GPUs whose memory is moved off: from both GPUs at once, and back to the same GPU and addresses."""

import textwrap

import pytest

from machines import make_machine, wait_until
from python_tenant import CONTEXT, MIB, Tenant
from test_swap import BUFFERS, pause, resume, swap_of
from test_swap_turns import WORKER

pytest.importorskip("cuda.bindings.driver")

GPU_BYTES = 2560 * MIB
SPEC = f"""
[gpu]
name = first
memory = {GPU_BYTES}
nvlink = 1
[gpu]
name = second
memory = {GPU_BYTES}
nvlink = 0
"""

# Contexts on both GPUs, as a program for two GPUs has them.
BOTH_GPUS = """
ok(cu.cuInit(0))
contexts = [ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(d)))) for d in range(2)]

def on(device):
    ok(cu.cuCtxSetCurrent(contexts[device]))

def can_access(device, ptr):
    location = cu.CUmemLocation()
    location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    location.id = device
    return ok(cu.cuMemGetAccess(location, cu.CUdeviceptr(ptr))) == 3
"""


@pytest.fixture
def pair(tmp_path_factory):
    spec = tmp_path_factory.mktemp("spec") / "pair.sim"
    spec.write_text(SPEC)
    machine = make_machine(tmp_path_factory, str(spec))
    yield machine
    machine.clean()


def tenant_of_both(machine, python, code):
    return Tenant(machine, python, BUFFERS + BOTH_GPUS + textwrap.dedent(code), memory="1536MiB",
                  options=("--gpu", "0,1", "--on-full", "swap"))


def used(machine):
    return [card["memory_used_bytes"] for card in machine.ps()["devices"]]


def test_memory_of_both_gpus_is_unchanged_after_a_move(pair, python):
    tenant = tenant_of_both(pair, python, """
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
    expected = [50 * MIB, 18 * MIB]
    wait_until(lambda: swap_of(pair), what="a swappable process")
    assert [d["swappable_bytes"] for d in swap_of(pair)["devices"]] == expected
    wait_until(lambda: used(pair) == [CONTEXT + n for n in expected], what="NVML's figures")
    pause(pair)
    swap = swap_of(pair)
    assert [d["swapped_bytes"] for d in swap["devices"]] == expected
    assert swap["swapped_bytes"] == sum(expected) and swap["failed"] == 0
    wait_until(lambda: used(pair) == [CONTEXT, CONTEXT], what="both GPUs to be empty but for contexts")
    tenant.go()
    resume(pair)
    tenant.line()
    assert swap_of(pair)["state"] == "in" and swap_of(pair)["swapped_bytes"] == 0
    tenant.go()
    tenant.end()


def test_peer_access_is_as_the_program_set_it(pair, python):
    """Programs set peer access for contexts. Movable memory has it for existing and later allocations, also after a move."""
    tenant = tenant_of_both(pair, python, """
        on(0)
        before = int(ok(cu.cuMemAlloc(4 * MIB)))
        on(1)
        assert not can_access(1, before)
        assert cu.cuCtxEnablePeerAccess(contexts[0], 0)[0] == R.CUDA_SUCCESS
        assert cu.cuCtxEnablePeerAccess(contexts[0], 0)[0] == \
            R.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
        on(0)
        after = int(ok(cu.cuMemAlloc(4 * MIB)))
        on(1)
        other = int(ok(cu.cuMemAlloc(4 * MIB)))
        look()
        # Access from the first GPU to the second was not enabled.
        assert can_access(1, before) and can_access(1, after)
        assert can_access(0, before) and can_access(1, other) and not can_access(0, other)
        look()
        assert can_access(1, before) and can_access(1, after) and not can_access(0, other)
        assert cu.cuCtxDisablePeerAccess(contexts[0])[0] == R.CUDA_SUCCESS
        assert not can_access(1, before) and not can_access(1, after) and can_access(0, before)
        look()
        """)
    tenant.line()
    tenant.go()
    tenant.line()
    pause(pair)
    resume(pair)
    wait_until(lambda: swap_of(pair)["state"] == "in", what="the memory's return")
    tenant.go()
    tenant.line()
    tenant.go()
    tenant.end()


def test_turns_on_two_gpus(pair, python):
    """One tenant uses both GPUs, and one tenant each a single GPU; no two fit on a GPU. All make progress and lose no data."""
    single = WORKER + textwrap.dedent("""
        blocks = [take(m) for m in (40, 30)]
        big = ballast(1000)
        look("ready")
        print(work(blocks), flush=True)
        """)
    double = WORKER.replace("start()", "", 1) + BOTH_GPUS + textwrap.dedent("""
        on(0)
        blocks = [take(40)]
        big = ballast(1000)
        on(1)
        blocks.append(take(30))
        more = ballast(1000)
        look("ready")
        print(work(blocks), flush=True)
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

    def all_have_left_and_returned():
        assert all(n <= GPU_BYTES for n in used(pair))
        for name, tenant in pair.tenants().items():
            swap = tenant["swap"]
            if not swap:
                continue
            out[name].add(swap["state"] == "out")
            if swap["state"] in ("in", "out"):
                is_out = [d["swapped_bytes"] == d["swappable_bytes"] for d in swap["devices"]
                          if d["swappable_bytes"]]
                assert len(set(is_out)) == 1, swap
        return all(states == {True, False} for states in out.values())

    # A turn is nine times as long as the moves that end it, which take seconds each on a busy machine.
    wait_until(all_have_left_and_returned, 240, "turns of all three")
    for tenant in tenants:
        tenant.go()
    for tenant in tenants:
        assert int(tenant.line()) > 0
        tenant.end()
