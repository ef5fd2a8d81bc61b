"""Page-locked host memory: it counts against a separate quota, and never as memory of a GPU."""

import textwrap

import pytest

from machines import wait_until
from python_tenant import CONTEXT, MIB, Tenant, card_used

pytest.importorskip("cuda.bindings.driver")

EACH_WAY = """
import mmap
start()

def host_pool():
    p = cu.CUmemPoolProps()
    p.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    p.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA
    return ok(cu.cuMemPoolCreate(p))

def host_prop():
    p = prop()
    p.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA
    return p

region = mmap.mmap(-1, 160 * MIB)
address = ctypes.addressof(ctypes.c_char.from_buffer(region))
pool = host_pool()
WAYS = {
    "alloc": (lambda n: cu.cuMemHostAlloc(n, 0), lambda p: cu.cuMemFreeHost(p)),
    "plain": (lambda n: cu.cuMemAllocHost(n), lambda p: cu.cuMemFreeHost(p)),
    "register": (lambda n: cu.cuMemHostRegister(address, n, 0),
                 lambda p: cu.cuMemHostUnregister(address)),
    "vmm": (lambda n: cu.cuMemCreate(n, host_prop(), 0), lambda h: cu.cuMemRelease(h)),
    "pool": (lambda n: cu.cuMemAllocFromPoolAsync(n, pool, 0),
             lambda p: (cu.cuMemFreeAsync(p, 0)[0], cu.cuMemPoolTrimTo(pool, 0)[0])),
}

def get(way, bytes_):
    result = WAYS[way][0](bytes_)
    assert result[0] == R.CUDA_SUCCESS, (way, result[0])
    return result[1] if len(result) > 1 else None
"""


def host_used(tenant):
    return tenant.machine.tenants()[tenant.name]["host_memory_used_bytes"]


@pytest.mark.parametrize("way", ["alloc", "plain", "register", "vmm", "pool"])
def test_each_way_of_allocation_is_bound_by_the_quota(machine, python, way):
    tenant = Tenant(machine, python, EACH_WAY + textwrap.dedent(f"""
        p = get("{way}", 64 * MIB)
        look()
        # Memory that is allocated in one way counts for all ways.
        for other in WAYS:
            if other not in ("{way}", "register"):
                refused(WAYS[other][0](96 * MIB))
        assert used() == 518 * MIB
        ok_free = WAYS["{way}"][1](p)
        assert ok_free[0] == R.CUDA_SUCCESS
        refused(WAYS["{way}"][0](160 * MIB))
        q = get("{way}", 128 * MIB)
        assert WAYS["{way}"][1](q)[0] == R.CUDA_SUCCESS
        look()
        """), options=("--host-memory", "128MiB"))
    tenant.line()
    wait_until(lambda: host_used(tenant) == 64 * MIB, what="64 MiB of host memory")
    assert machine.tenants()["a"]["host_memory_quota_bytes"] == 128 * MIB
    assert tenant.used() == CONTEXT
    assert card_used(machine) == CONTEXT
    tenant.go()
    tenant.line()
    wait_until(lambda: host_used(tenant) == 0, what="no host memory")
    tenant.go()
    tenant.end()


def test_without_a_quota_it_is_only_counted(machine, python):
    tenant = Tenant(machine, python, EACH_WAY + textwrap.dedent("""
        p = get("alloc", 8192 * MIB)
        look()
        # Memory that was allocated in a context is freed with it.
        ok(cu.cuDevicePrimaryCtxReset(0))
        look()
        """), memory="1GiB")
    tenant.line()
    wait_until(lambda: host_used(tenant) == 8192 * MIB, what="8 GiB of host memory")
    assert machine.tenants()["a"]["host_memory_quota_bytes"] is None
    tenant.go()
    tenant.line()
    wait_until(lambda: host_used(tenant) == 0, what="no host memory")
    tenant.go()
    tenant.end()
