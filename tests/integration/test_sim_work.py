"""Work on the simulated GPU: its duration, its dependencies, and how processes share the time."""

import textwrap
import time

import pytest

from sim_peers import sim, start_sim  # noqa: F401


@pytest.mark.alone  # how long launches take
def test_launches_take_their_time(sim):  # noqa: F811
    sim.run("""
        start()
        f = kernel("allot_sim_1000us_132b")
        s = ok(cu.cuStreamCreate(0))
        e = [ok(cu.cuEventCreate(0)) for _ in range(3)]
        gate = (ctypes.c_uint32 * 1)(0)
        ok(cu.cuStreamWaitValue32(s, ctypes.addressof(gate), 1, 0))
        ok(cu.cuEventRecord(e[0], s))
        for i in range(100):
            ok(launch(f, s))
        ok(cu.cuEventRecord(e[1], s))
        ok(launch(f, s, blocks=264))
        ok(cu.cuEventRecord(e[2], s))
        time.sleep(0.05)
        assert cu.cuEventQuery(e[0])[0] == R.CUDA_ERROR_NOT_READY
        gate[0] = 1
        assert cu.cuEventQuery(e[1])[0] == R.CUDA_ERROR_NOT_READY
        assert cu.cuStreamQuery(s)[0] == R.CUDA_ERROR_NOT_READY
        t = time.monotonic()
        ok(cu.cuEventSynchronize(e[1]))
        assert time.monotonic() - t > 0.08
        ok(cu.cuStreamSynchronize(s))
        assert cu.cuEventQuery(e[2])[0] == R.CUDA_SUCCESS
        assert abs(ok(cu.cuEventElapsedTime(e[0], e[1])) - 100) < 1e-3
        assert abs(ok(cu.cuEventElapsedTime(e[1], e[2])) - 2) < 1e-3
        # Any other name is a kernel of 10 us, so the PTX of real programs loads.
        g = kernel("_Z6vecAddPfS_S_i")
        t = time.monotonic()
        for i in range(5000):
            ok(launch(g, s))
        ok(cu.cuCtxSynchronize())
        assert time.monotonic() - t >= 0.05
        """)


@pytest.mark.alone  # how long launches take
def test_launch_queue_is_bounded(sim):  # noqa: F811
    """1,024 launches do not wait for the GPU, and each further one waits until a kernel has ended."""
    sim.run("""
        start()
        f = kernel("allot_sim_1000us_132b")
        early, late = ok(cu.cuEventCreate(0)), ok(cu.cuEventCreate(0))
        for i in range(1024):
            ok(launch(f))
            if i in (190, 1000):
                ok(cu.cuEventRecord(early if i == 190 else late, 0))
        assert cu.cuEventQuery(late)[0] == R.CUDA_ERROR_NOT_READY
        for i in range(200):
            ok(launch(f))
        ok(cu.cuEventQuery(early))
        """)


def test_host_functions_and_values(sim):  # noqa: F811
    sim.run("""
        start()
        s = ok(cu.cuStreamCreate(0))
        flag = ok(cu.cuMemAlloc(4))
        ok(cu.cuMemsetD32(flag, 0, 1))
        ok(launch(kernel("allot_sim_5000us_132b"), s))
        ok(cu.cuStreamWriteValue32(s, flag, 7, 0))
        t = ok(cu.cuStreamCreate(1))
        ok(cu.cuStreamWaitValue32(t, flag, 7, 1))
        ok(launch(kernel("allot_sim_10us_132b"), t))
        ok(cu.cuStreamSynchronize(t))
        host = (ctypes.c_uint32 * 1)()
        ok(cu.cuMemcpyDtoH(ctypes.addressof(host), flag, 4))
        assert host[0] == 7
        # A kernel that spins until its flag is set, beside other work of its process.
        ok(cu.cuMemsetD32(flag, 0, 1))
        spin = kernel("allot_sim_spin_1b")
        ok(cu.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, s, ((flag,), (None,)), 0))
        ok(launch(kernel("allot_sim_1000us_132b"), t))
        ok(cu.cuStreamSynchronize(t))
        assert cu.cuStreamQuery(s)[0] == R.CUDA_ERROR_NOT_READY
        ok(cu.cuStreamWriteValue32(t, flag, 1, 0))
        ok(cu.cuStreamSynchronize(s))
        """)


def test_graphs(sim):  # noqa: F811
    sim.run("""
        start()
        f = kernel("allot_sim_1000us_132b")
        s = ok(cu.cuStreamCreate(1)); t = ok(cu.cuStreamCreate(1)); e = ok(cu.cuEventCreate(2))
        M = cu.CUstreamCaptureMode; S = cu.CUstreamCaptureStatus
        ok(cu.cuStreamBeginCapture(s, M.CU_STREAM_CAPTURE_MODE_GLOBAL))
        for i in range(10):
            ok(launch(f, s))
        assert ok(cu.cuStreamIsCapturing(s)) == S.CU_STREAM_CAPTURE_STATUS_ACTIVE
        ok(cu.cuEventRecord(e, s)); ok(cu.cuStreamWaitEvent(t, e, 0))
        ok(launch(f, t))
        join = ok(cu.cuEventCreate(2)); ok(cu.cuEventRecord(join, t))
        ok(cu.cuStreamWaitEvent(s, join, 0))
        g = ok(cu.cuStreamEndCapture(s))
        assert ok(cu.cuGraphGetNodes(g))[1] == 11
        x = ok(cu.cuGraphInstantiate(g, 0))
        b = [ok(cu.cuEventCreate(0)) for _ in range(2)]
        ok(cu.cuEventRecord(b[0], s))
        for i in range(3):
            ok(cu.cuGraphLaunch(x, s))
        ok(cu.cuEventRecord(b[1], s)); ok(cu.cuStreamSynchronize(s))
        assert abs(ok(cu.cuEventElapsedTime(b[0], b[1])) - 33) < 1
        ok(cu.cuGraphExecDestroy(x)); ok(cu.cuGraphDestroy(g))

        # An event query from another thread breaks a global capture, unless that thread is relaxed.
        def query(relaxed, out):
            if relaxed:
                ok(cu.cuThreadExchangeStreamCaptureMode(M.CU_STREAM_CAPTURE_MODE_RELAXED))
            out.append(cu.cuEventQuery(b[0])[0])

        for relaxed, result, end in [(True, R.CUDA_SUCCESS, R.CUDA_SUCCESS),
                                     (False, R.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                      R.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)]:
            ok(cu.cuStreamBeginCapture(s, M.CU_STREAM_CAPTURE_MODE_GLOBAL))
            ok(launch(f, s))
            out = []
            thread = threading.Thread(target=query, args=(relaxed, out))
            thread.start(); thread.join()
            assert out == [result], out
            assert cu.cuStreamEndCapture(s)[0] == end
        ok(cu.cuStreamBeginCapture(s, M.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
        out = []
        thread = threading.Thread(target=query, args=(False, out))
        thread.start(); thread.join()
        assert out == [R.CUDA_SUCCESS]
        assert cu.cuMemAlloc(1)[0] == R.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        assert cu.cuStreamEndCapture(s)[0] == R.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        # A capture whose fork is not joined, and a stream that is not capturing.
        ok(cu.cuStreamBeginCapture(s, M.CU_STREAM_CAPTURE_MODE_RELAXED))
        ok(cu.cuEventRecord(e, s)); ok(cu.cuStreamWaitEvent(t, e, 0)); ok(launch(f, t))
        assert cu.cuStreamEndCapture(s)[0] == R.CUDA_ERROR_STREAM_CAPTURE_UNJOINED
        assert cu.cuStreamEndCapture(s)[0] == R.CUDA_ERROR_ILLEGAL_STATE
        """)


def test_a_captured_copy_moves_nothing(sim):  # noqa: F811
    sim.run("""
        start()
        s = ok(cu.cuStreamCreate(1))
        src = (ctypes.c_ubyte * 64)(*range(64)); dst = (ctypes.c_ubyte * 64)()
        host = cu.CUmemorytype.CU_MEMORYTYPE_HOST

        def fill(c):
            c.srcMemoryType = c.dstMemoryType = host
            c.srcHost, c.dstHost = ctypes.addressof(src), ctypes.addressof(dst)
            c.srcPitch = c.dstPitch = c.WidthInBytes = 16
            c.Height = 2
            return c

        flat = fill(cu.CUDA_MEMCPY2D())
        deep = fill(cu.CUDA_MEMCPY3D())
        deep.Depth, deep.srcHeight, deep.dstHeight = 2, 2, 2
        for copy, c, moved in (cu.cuMemcpy2DAsync, flat, 32), (cu.cuMemcpy3DAsync, deep, 64):
            ctypes.memset(dst, 0, 64)
            ok(cu.cuStreamBeginCapture(s, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
            ok(copy(c, s))
            assert bytes(dst) == bytes(64)
            ok(cu.cuStreamEndCapture(s))
            ok(copy(c, s))
            assert bytes(dst)[:moved] == bytes(range(moved))
        """)


LINKED = """
[gpu]
nvlink = 1:1
nvlink_bytes_s = 1 GiB
[gpu]
nvlink = 0:1
nvlink_bytes_s = 1 GiB
"""


def test_each_copy_between_two_gpus_obeys_their_link(start_sim, tmp_path):  # noqa: F811
    """64 MiB take 62.5 ms, linear or pitched. Within a GPU they would take less than 0.1 ms."""
    spec = tmp_path / "linked"
    spec.write_text(LINKED)
    start_sim(str(spec)).run("""
        start(1)
        there = ok(cu.cuMemAlloc(64 * MIB))
        start()
        here = ok(cu.cuMemAlloc(64 * MIB))
        s = ok(cu.cuStreamCreate(1))
        before, after = ok(cu.cuEventCreate(0)), ok(cu.cuEventCreate(0))

        def fill(c, height):
            c.srcMemoryType = c.dstMemoryType = cu.CUmemorytype.CU_MEMORYTYPE_DEVICE
            c.srcDevice, c.dstDevice = here, there
            c.srcPitch = c.dstPitch = c.WidthInBytes = MIB
            c.Height = height
            return c

        flat = fill(cu.CUDA_MEMCPY2D(), 64)
        deep = fill(cu.CUDA_MEMCPY3D(), 32)
        deep.Depth, deep.srcHeight, deep.dstHeight = 2, 32, 32
        graph = ok(cu.cuGraphCreate(0))
        ok(cu.cuGraphAddMemcpyNode(graph, None, 0, deep, ok(cu.cuCtxGetCurrent())))
        executable = ok(cu.cuGraphInstantiate(graph, 0))
        for copy in (lambda: cu.cuMemcpyDtoDAsync(there, here, 64 * MIB, s),
                     lambda: cu.cuMemcpy2DAsync(flat, s), lambda: cu.cuMemcpy3DAsync(deep, s),
                     lambda: cu.cuGraphLaunch(executable, s)):
            ok(cu.cuEventRecord(before, s))
            ok(copy())
            ok(cu.cuEventRecord(after, s))
            ok(cu.cuStreamSynchronize(s))
            took_ms = ok(cu.cuEventElapsedTime(before, after))
            assert took_ms > 62, took_ms
        """)


def test_a_reused_stream_number_does_not_join_an_old_capture(sim):  # noqa: F811
    """One of the next streams usually gets the memory, and so the number, of a destroyed stream."""
    sim.run("""
        start()
        f = kernel("allot_sim_1000us_132b")
        s, destroyed = ok(cu.cuStreamCreate(1)), ok(cu.cuStreamCreate(1))
        fork, join = ok(cu.cuEventCreate(2)), ok(cu.cuEventCreate(2))
        ok(cu.cuStreamBeginCapture(s, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        ok(cu.cuEventRecord(fork, s)); ok(cu.cuStreamWaitEvent(destroyed, fork, 0))
        ok(launch(f, destroyed)); ok(cu.cuEventRecord(join, destroyed)); ok(cu.cuStreamWaitEvent(s, join, 0))
        ok(cu.cuStreamDestroy(destroyed))
        created = [new := ok(cu.cuStreamCreate(1))]
        while int(new) != int(destroyed) and len(created) < 64:
            created.append(new := ok(cu.cuStreamCreate(1)))
        ok(cu.cuStreamWaitEvent(new, fork, 0)); ok(launch(f, new))
        ok(cu.cuStreamWaitEvent(s, join, 0))
        assert cu.cuStreamEndCapture(s)[0] == R.CUDA_ERROR_STREAM_CAPTURE_UNJOINED
        """)


def test_an_updated_graph_allocates_its_new_memory(sim):  # noqa: F811
    sim.run("""
        start()

        def graph(size):
            g = ok(cu.cuGraphCreate(0))
            if size:
                p = cu.CUDA_MEM_ALLOC_NODE_PARAMS()
                p.poolProps.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
                p.poolProps.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
                p.bytesize = size
                ok(cu.cuGraphAddMemAllocNode(g, None, 0, p))
            return g

        x = ok(cu.cuGraphInstantiate(graph(0), 0))
        base = used()
        ok(cu.cuGraphLaunch(x, 0))
        assert used() == base
        ok(cu.cuGraphExecUpdate(x, graph(64 * MIB)))
        ok(cu.cuGraphLaunch(x, 0))
        assert used() == base + 64 * MIB
        """)


CONCURRENT = """
start()
N = cu.CUstream_flags.CU_STREAM_NON_BLOCKING

def run_together(streams, submit):
    # Calls submit(stream, index) for each stream; returns when the work of each ended, in ms of the GPU's own time.
    gate = (ctypes.c_uint32 * 1)(0)
    used = [ok(cu.cuStreamCreate(N)) for _ in range(streams)]
    begin, *ends = [ok(cu.cuEventCreate(0)) for _ in range(streams + 1)]
    ok(cu.cuStreamWaitValue32(used[0], ctypes.addressof(gate), 1, 0))
    ok(cu.cuEventRecord(begin, used[0]))
    for i, stream in enumerate(used):
        ok(cu.cuStreamWaitEvent(stream, begin, 0))
        submit(stream, i)
        ok(cu.cuEventRecord(ends[i], stream))
    gate[0] = 1
    ok(cu.cuCtxSynchronize())
    return [round(ok(cu.cuEventElapsedTime(begin, end)), 4) for end in ends]

def kernels(streams, blocks):
    f = kernel(f"allot_sim_1000us_{blocks}b")

    def submit(stream, _):
        for i in range(10):
            ok(launch(f, stream, blocks))
    return max(run_together(streams, submit))

def check_ms(got, expected):
    assert abs(got - expected) < 1e-3 * expected, (got, expected)
"""


def test_streams_run_concurrently(sim):  # noqa: F811
    """Blocks have 128 threads, and an SM is fully busy with 449 threads."""
    sim.run(CONCURRENT + textwrap.dedent("""
        check_ms(kernels(1, 264), 10)
        check_ms(kernels(2, 132), 10)
        check_ms(kernels(2, 264), 20 * 256 / 449)
        check_ms(kernels(8, 264), 80 * 256 / 449)
        check_ms(kernels(2, 528), 20)
        # Copies and kernels are concurrent, with one copy at a time in each direction.
        f = kernel("allot_sim_5000us_132b")
        bytes = 32 * MIB
        p = ok(cu.cuMemAlloc(bytes))
        host = ok(cu.cuMemAllocHost(bytes))
        copy_ms = bytes / 55404578406 * 1e3
        def submit(stream, i):
            if i == 0:
                ok(launch(f, stream))
            elif i == 3:
                ok(cu.cuMemcpyDtoHAsync(host, p, bytes, stream))
            else:
                ok(cu.cuMemcpyHtoDAsync(p, host, bytes, stream))
        for got, expected in zip(run_together(4, submit), (5, copy_ms, 2 * copy_ms, copy_ms)):
            check_ms(got, expected)
        """))


def test_the_kinds_of_memory_decide_the_rate_of_a_copy(sim):  # noqa: F811
    """The rate is also right where only an address reveals the kind of memory, and in graphs."""
    sim.run(CONCURRENT + textwrap.dedent("""
        bytes = 32 * MIB
        p, q = ok(cu.cuMemAlloc(bytes)), ok(cu.cuMemAlloc(bytes))
        host = ok(cu.cuMemAllocHost(bytes))
        copy_ms = bytes / 55404578406 * 1e3
        kinds = cu.CUmemorytype

        def copy(kind, dst, src):
            c = cu.CUDA_MEMCPY3D()
            c.dstMemoryType = c.srcMemoryType = kind
            c.dstDevice, c.srcDevice = dst, src
            c.WidthInBytes, c.Height, c.Depth = bytes, 1, 1
            return c

        def submitted(c):
            return run_together(1, lambda stream, _: ok(cu.cuMemcpy3DAsync(c, stream)))[0]

        def in_graph(c):
            g = ok(cu.cuGraphCreate(0))
            ok(cu.cuGraphAddMemcpyNode(g, None, 0, c, ok(cu.cuCtxGetCurrent())))
            x = ok(cu.cuGraphInstantiate(g, 0))
            return run_together(1, lambda stream, _: ok(cu.cuGraphLaunch(x, stream)))[0]

        for ms in submitted, in_graph:
            check_ms(ms(copy(kinds.CU_MEMORYTYPE_UNIFIED, p, int(host))), copy_ms)
            check_ms(ms(copy(kinds.CU_MEMORYTYPE_UNIFIED, int(host), p)), copy_ms)
            within_ms = ms(copy(kinds.CU_MEMORYTYPE_UNIFIED, p, q))
            assert within_ms < copy_ms / 5, within_ms
            assert ms(copy(kinds.CU_MEMORYTYPE_DEVICE, p, q)) == within_ms
        """))


def test_a_percentage_of_the_sms_limits_all_streams(sim, tmp_path):  # noqa: F811
    pipe = tmp_path / "pipe"
    pipe.mkdir()
    # 58 of 132 SMs. One of them has five blocks, which would leave room on the whole GPU.
    sim.run(CONCURRENT + textwrap.dedent("""
        check_ms(kernels(1, 264), 10 * 5 * 128 / 449)
        check_ms(kernels(8, 264), 80 * 256 / 449 * 132 / 58)
        check_ms(kernels(8, 528), 80 * 132 / 58)
        """), CUDA_MPS_PIPE_DIRECTORY=str(pipe), CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="45")


SATURATE = """
start()
f = kernel("allot_sim_1000us_132b")
print("up", flush=True)
sys.stdin.readline()
end = time.monotonic() + 1.5
while time.monotonic() < end:
    ok(launch(f))
"""


@pytest.mark.alone  # shares
@pytest.mark.parametrize("tenants,share_pct", [(1, 100.0), (2, 45.8), (5, 18.3)])
def test_switches_cost_time_when_tenants_share(sim, tenants, share_pct):  # noqa: F811
    clients = [sim.popen(SATURATE) for _ in range(tenants)]
    for client in clients:
        assert client.stdout.readline() == "up\n"
    for client in clients:
        client.stdin.write("\n")
        client.stdin.flush()
    time.sleep(0.4)
    before = sim.ctl("stats")
    time.sleep(0.8)
    after = sim.ctl("stats")
    span_us = after["now_us"] - before["now_us"]
    busy = {c["pid"]: c["cards"][0]["busy_us"] for c in before["clients"]}
    for c in after["clients"]:
        pct = 100 * (c["cards"][0]["busy_us"] - busy[c["pid"]]) / span_us
        assert abs(pct - share_pct) < 0.4, (pct, share_pct)
