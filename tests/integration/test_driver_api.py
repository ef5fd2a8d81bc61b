"""Driver API functions with old ABIs, in batched forms, and of a driver newer than allot: allot must govern them like their
current forms. Clients call them with ctypes, because no Python binding has them."""

import textwrap

import pytest

PREAMBLE = """
import ctypes as c, sys, time
MIB = 1 << 20
cu = c.CDLL("libcuda.so.1")
u64, u32, size = c.c_uint64, c.c_uint32, c.c_size_t

def ok(result):
    assert result == 0, result

def start():
    ok(cu.cuInit(0))
    ctx = c.c_void_p()
    ok(cu.cuDevicePrimaryCtxRetain(c.byref(ctx), 0))
    ok(cu.cuCtxSetCurrent(ctx))

def used():
    free, total = size(), size()
    ok(cu.cuMemGetInfo_v2(c.byref(free), c.byref(total)))
    return total.value - free.value

def kernel(name):
    module, f = c.c_void_p(), c.c_void_p()
    ok(cu.cuModuleLoadData(c.byref(module), b".version 8.0\\n.target sm_90\\n"))
    ok(cu.cuModuleGetFunction(c.byref(f), module, name))
    return f

def alloc(bytes):
    ptr = u64()
    ok(cu.cuMemAlloc_v2(c.byref(ptr), size(bytes)))
    return ptr
"""


@pytest.fixture
def client(machine, python):
    def run(code, *options, **environment):
        result = machine.run(*options, "--", python, "-c", PREAMBLE + textwrap.dedent(code),
                             environment=environment)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    return run


def test_old_functions_show_the_quota(client):
    client("""
        start()
        free, total = u32(), u32()
        ok(cu.cuMemGetInfo(c.byref(free), c.byref(total)))
        assert total.value == 2048 * MIB, total.value
        assert free.value == 2048 * MIB - used()
        ok(cu.cuDeviceTotalMem(c.byref(total), 0))
        assert total.value == 2048 * MIB
        """, "--memory", "2GiB")


def test_the_old_meminfo_without_outputs_needs_no_context(client):
    client("""
        ok(cu.cuInit(0))
        assert cu.cuMemGetInfo(None, None) == 0
        assert cu.cuMemGetInfo(c.byref(u32()), None) == 201
        """, "--memory", "2GiB")


def test_old_functions_are_charged(client):
    client("""
        start()
        base = used()

        class Array(c.Structure):
            _fields_ = [(n, u32) for n in ("width", "height", "format", "channels")]

        array = c.c_void_p()
        ok(cu.cuArrayCreate(c.byref(array), c.byref(Array(4096, 4096, 1, 4))))
        assert used() - base == 64 * MIB, used() - base
        assert cu.cuArrayCreate(c.byref(c.c_void_p()), c.byref(Array(65536, 65536, 1, 1))) == 2
        ok(cu.cuArrayDestroy(array))
        assert used() == base

        for create, end in [(cu.cuCtxCreate, cu.cuCtxDestroy), (cu.cuGLCtxCreate, cu.cuCtxDetach)]:
            ctx = c.c_void_p()
            ok(create(c.byref(ctx), 0, 0))
            assert used() - base > 100 * MIB
            ok(end(ctx))
            assert used() == base
        """, "--memory", "2GiB")


def test_green_contexts_hold_a_charged_primary_context(client):
    client("""
        ok(cu.cuInit(0))
        green, other = c.c_void_p(), c.c_void_p()
        ok(cu.cuGreenCtxCreate(c.byref(green), None, 0, 1))
        ctx = c.c_void_p()
        ok(cu.cuCtxFromGreenCtx(c.byref(ctx), green))
        ok(cu.cuCtxSetCurrent(ctx))
        base = used()
        assert base > 100 * MIB
        ok(cu.cuGreenCtxCreate(c.byref(other), None, 0, 1))
        assert used() == base
        ok(cu.cuGreenCtxDestroy(other))
        assert used() == base
        ok(cu.cuGreenCtxDestroy(green))
        ok(cu.cuCtxSetCurrent(None))
        second = c.c_void_p()
        ok(cu.cuCtxCreate_v2(c.byref(second), 0, 0))
        assert used() == base   # only of the second context: the primary one's was given back
        """, "--memory", "2GiB")
    out = client("""
        ok(cu.cuInit(0))
        print(cu.cuGreenCtxCreate(c.byref(c.c_void_p()), None, 0, 1))
        """, "--memory", "100MiB")
    assert out == "2\n"


def test_a_refused_green_context_makes_no_primary_context(client):
    client("""
        ok(cu.cuInit(0))
        ctx, green, flags, active = c.c_void_p(), c.c_void_p(), u32(), c.c_int(1)
        ok(cu.cuDevicePrimaryCtxRetain(c.byref(ctx), 0))
        ok(cu.cuDevicePrimaryCtxReset_v2(0))
        assert cu.cuGreenCtxCreate(c.byref(green), None, 0, 0) == 1
        ok(cu.cuDevicePrimaryCtxGetState(0, c.byref(flags), c.byref(active)))
        assert active.value == 0
        ok(cu.cuCtxCreate_v2(c.byref(ctx), 0, 0))
        one = used()
        ok(cu.cuCtxDestroy_v2(ctx))
        ok(cu.cuCtxCreate_v2(c.byref(ctx), 0, 0))
        assert used() == one
        """, "--memory", "2GiB")


def test_a_green_context_ends_with_the_primary_context(client):
    client("""
        ok(cu.cuInit(0))
        green, flags, active = c.c_void_p(), u32(), c.c_int(1)
        ok(cu.cuGreenCtxCreate(c.byref(green), None, 0, 1))
        ok(cu.cuDevicePrimaryCtxRelease_v2(0))  # the green context's own reference: there is no other
        ok(cu.cuDevicePrimaryCtxGetState(0, c.byref(flags), c.byref(active)))
        assert active.value == 0
        assert cu.cuDevicePrimaryCtxRelease_v2(0) == 201 and cu.cuGreenCtxDestroy(green) == 201
        first, second = c.c_void_p(), c.c_void_p()
        ok(cu.cuCtxCreate_v2(c.byref(first), 0, 0))
        one = used()
        ok(cu.cuCtxCreate_v2(c.byref(second), 0, 0))
        assert used() == 2 * one   # the primary context's memory was given back
        """, "--memory", "2GiB")


def test_functions_that_tenants_may_not_use(client):
    client("""
        start()
        ctx = c.c_void_p()
        assert cu.cuCtxAttach(c.byref(ctx), 0) == 801
        assert cu.cuMemMapArrayAsync(None, 0, None) == 801
        """)


def test_old_captures_and_batches(client):
    client("""
        start()
        f = kernel(b"allot_sim_10us_132b")
        s, graph, x = c.c_void_p(), c.c_void_p(), c.c_void_p()
        ok(cu.cuStreamCreate(c.byref(s), 1))
        ok(cu.cuStreamBeginCapture(s))
        ok(cu.cuLaunchGridAsync(f, 132, 1, s))
        ok(cu.cuStreamEndCapture(s, c.byref(graph)))
        ok(cu.cuGraphInstantiateWithFlags(c.byref(x), graph, c.c_uint64(0)))
        ok(cu.cuGraphUpload(x, s))
        ok(cu.cuGraphLaunch(x, s))
        p, q = alloc(4 * MIB), alloc(4 * MIB)
        text = c.create_string_buffer(b"batch", 4096)
        dsts, srcs = (u64 * 2)(p, q), (u64 * 2)(c.addressof(text), p)
        sizes = (size * 2)(4096, 4096)
        ok(cu.cuMemcpyBatchAsync_v2(dsts, srcs, sizes, size(2), None, None, size(0), s))
        ok(cu.cuStreamSynchronize(s))
        back = c.create_string_buffer(4096)
        ok(cu.cuMemcpyDtoH_v2(back, q, size(4096)))
        assert back.value == b"batch"
        ok(cu.cuMemDiscardBatchAsync(dsts, sizes, size(2), u64(0), s))
        ok(cu.cuStreamDestroy(s))
        """)


LOADS = {
    "cuLaunchGrid": "ok(cu.cuLaunchGrid(f, 132, 1))",
    "cuLaunchCooperativeKernelMultiDevice": "ok(cu.cuLaunchCooperativeKernelMultiDevice("
                                            "c.byref(Launch(f.value, 132, 1, 1, 1)), 1, 0))",
    "cuMemcpyBatchAsync": "ok(cu.cuMemcpyBatchAsync(dsts, srcs, sizes, size(1), None, None, size(0),"
                          " c.byref(size()), None))",
}


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_work_of_all_kinds_is_gated(client, load):
    """At 20 % of the GPU, 0.3 s of work take 1.5 s; the bound is half of that. A round is shorter while the daemon has no CPU
    time and takes no lease back. That time is charged, so later rounds take longer."""
    client("""
        class Launch(c.Structure):
            _fields_ = [("f", c.c_void_p), *((n, u32) for n in "xyzuvwb"), ("stream", c.c_void_p),
                        ("params", c.c_void_p)]

            def __init__(self, f, x, y, z, u):
                super().__init__(f, x, y, z, u, 1, 1)

        start()
        f = kernel(b"allot_sim_1000us_132b")
        # 1 ms at the speed of the simulated GPU's memory.
        n = 2 * 10**9
        p = alloc(2 * n)
        dsts, srcs, sizes = (u64 * 1)(p.value + n), (u64 * 1)(p), (size * 1)(n)

        def work(count):
            begin = time.monotonic()
            for i in range(count):
                LOAD
            ok(cu.cuCtxSynchronize())
            return time.monotonic() - begin

        # The library learns how long the work takes.
        work(100)
        took = [work(300)]
        while sum(took) < 0.75 * len(took) and len(took) < 8:
            took.append(work(300))
        assert sum(took) >= 0.75 * len(took), took
        """.replace("LOAD", load), "--cores", "20", "--memory", "8GiB")


UNKNOWN = """
    start()
    ptr = u64()
    r = cu.cuMemAlloc_v9(c.byref(ptr), size(4 * MIB))
    pfn, status = c.c_void_p(), c.c_int(-1)
    found = cu.cuGetProcAddress_v2(b"cuMemAlloc", c.byref(pfn), 13010, u64(0), c.byref(status))
    print(r, found, bool(pfn.value), status.value)
    """


def test_unknown_versions_of_governed_functions(client, tmp_path):
    log = tmp_path / "log"
    future = {"ALLOT_SIM_FUTURE": "1", "ALLOT_LOG": str(log)}
    assert client(UNKNOWN, **future) == "500 0 False 1\n"
    assert "cuMemAlloc_v9: this version of allot does not know this function of the driver: hidden" in (
        log.read_text())
    log.unlink()
    assert client(UNKNOWN, **future, ALLOT_UNKNOWN="pass") == "0 0 True 0\n"
    assert "does not know this function of the driver: allowed" in log.read_text()


def test_before_cuinit_the_driver_refuses_calls(client):
    client("""
        assert cu.cuMemMapArrayAsync(None, 1, None) == 1
        assert cu.cuMemMapArrayAsync(None, 0, None) == 3
        ok(cu.cuInit(0))
        assert cu.cuMemMapArrayAsync(None, 0, None) == 801
        """, "--memory", "2GiB")
