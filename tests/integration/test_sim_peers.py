"""The simulated GPU against outside clients that know nothing of it: NVIDIA's cuda.bindings and
pynvml. Each client is a process of its own. ALLOT_BUILD names the build directory."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap
import time

import pytest

pytest.importorskip("cuda.bindings.driver")
pytest.importorskip("pynvml")

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("ALLOT_BUILD", ROOT / "build")).resolve()
# The directory of scripts/build, or a tree of Meson's.
SIM = (BUILD / "meson" if (BUILD / "meson").exists() else BUILD) / "src" / "sim"
MIB = 1 << 20
TOTAL = 143771 * MIB
CONTEXT = 518 * MIB

PREAMBLE = """
import ctypes, os, sys, threading, time
import pynvml
from cuda.bindings import driver as cu
MIB = 1 << 20
R = cu.CUresult

def ok(result):
    assert result[0] == R.CUDA_SUCCESS, result[0]
    return result[1] if len(result) == 2 else result[1:]

def start(device=0):
    ok(cu.cuInit(0))
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(device))))))

def kernel(name):
    module = ok(cu.cuModuleLoadData(b".version 8.0\\n.target sm_90\\n\\0"))
    return ok(cu.cuModuleGetFunction(module, name.encode()))

def launch(f, stream=0, blocks=132):
    return cu.cuLaunchKernel(f, blocks, 1, 1, 128, 1, 1, 0, stream, 0, 0)

def used():
    free, total = ok(cu.cuMemGetInfo())
    return total - free
"""


class Sim:
    def __init__(self, directory, spec):
        self.socket = str(directory / "card.sock")
        self.clients = []
        self.server = subprocess.Popen(
            [SIM / "allot-sim", "--spec", spec, "--socket", self.socket, "--foreground"])
        deadline = time.monotonic() + 10
        while subprocess.run([SIM / "allot-sim", "--ctl", "--socket", self.socket, "stats"],
                             capture_output=True).returncode:
            assert time.monotonic() < deadline and self.server.poll() is None
            time.sleep(0.02)

    def ctl(self, *words):
        done = subprocess.run([SIM / "allot-sim", "--ctl", "--socket", self.socket, *words],
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout) if words[0] == "stats" else None

    def used(self, card=0):
        return self.ctl("stats")["cards"][card]["memory_used_bytes"]

    def popen(self, code, **env):
        client = subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + textwrap.dedent(code)], stdout=subprocess.PIPE,
            stdin=subprocess.PIPE, text=True,
            env={**os.environ, "LD_LIBRARY_PATH": str(SIM), "ALLOT_SIM_SOCKET": self.socket, **env})
        self.clients.append(client)
        return client

    def run(self, code, timeout=60, **env):
        client = self.popen(code, **env)
        out, _ = client.communicate(timeout=timeout)
        assert client.returncode == 0, out
        return out

    def close(self):
        for process in [*self.clients, self.server]:
            process.kill()
            process.wait()


@pytest.fixture
def start_sim(tmp_path):
    started = []

    def start(spec="h200"):
        started.append(Sim(tmp_path, spec))
        return started[-1]

    yield start
    for sim in started:
        sim.close()


@pytest.fixture
def sim(start_sim):
    return start_sim()


def test_device(sim):
    sim.run("""
        ok(cu.cuInit(0))
        assert ok(cu.cuDriverGetVersion()) == 13000
        assert ok(cu.cuDeviceGetCount()) == 1
        dev = ok(cu.cuDeviceGet(0))
        assert ok(cu.cuDeviceGetName(64, dev)).rstrip(b"\\0 ").startswith(b"NVIDIA H200")
        assert ok(cu.cuDeviceTotalMem(dev)) == 143771 * MIB
        A = cu.CUdevice_attribute
        attr = lambda a: ok(cu.cuDeviceGetAttribute(a, dev))
        assert attr(A.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) == 132
        assert attr(A.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 9
        assert attr(A.CU_DEVICE_ATTRIBUTE_WARP_SIZE) == 32
        assert attr(A.CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) == 1
        assert ok(cu.cuDeviceGetPCIBusId(32, dev)).startswith(b"0000:18:00.0")
        assert cu.cuDeviceGet(1)[0] == R.CUDA_ERROR_INVALID_DEVICE
        assert cu.cuMemAlloc(1)[0] == R.CUDA_ERROR_INVALID_CONTEXT
        pynvml.nvmlInit()
        h = pynvml.nvmlDeviceGetHandleByIndex(0)
        assert pynvml.nvmlDeviceGetName(h) == "NVIDIA H200"
        uuid = bytes(ok(cu.cuDeviceGetUuid(dev)).bytes)
        assert pynvml.nvmlDeviceGetUUID(h).replace("-", "")[3:] == uuid.hex()
        again = pynvml.nvmlDeviceGetHandleByUUID(pynvml.nvmlDeviceGetUUID(h))
        assert pynvml.nvmlDeviceGetIndex(again) == 0
        assert pynvml.nvmlDeviceGetPciInfo(h).busId == "00000000:18:00.0"
        assert pynvml.nvmlSystemGetDriverVersion() == "580.159.04"
        assert pynvml.nvmlDeviceGetNumaNodeId(h) == 0
        """)


def test_no_server(tmp_path, sim):
    assert "100" in sim.run("print(int(cu.cuInit(0)[0]))", ALLOT_SIM_SOCKET=str(tmp_path / "none"))
    assert "100" in sim.run("print(int(cu.cuInit(0)[0]))", ALLOT_SIM_SOCKET="")


def test_memory_is_exact_and_agrees(sim):
    sim.run("""
        start()
        pynvml.nvmlInit()
        h = pynvml.nvmlDeviceGetHandleByIndex(0)
        base = used()
        assert base == 518 * MIB

        def check(expected):
            assert used() == base + expected, (used() - base, expected)
            m = pynvml.nvmlDeviceGetMemoryInfo(h)
            assert m.used == base + expected and m.total == 143771 * MIB
            assert m.free == m.total - m.used
            [p] = pynvml.nvmlDeviceGetComputeRunningProcesses(h)
            assert p.pid == os.getpid() and p.usedGpuMemory == base + expected

        check(0)
        a = ok(cu.cuMemAlloc(3 * MIB)); check(4 * MIB)
        b = ok(cu.cuMemAlloc(1)); check(6 * MIB)
        c = ok(cu.cuMemAlloc(700)); check(6 * MIB)
        assert int(c) == int(b) + 512
        at, size = ok(cu.cuMemGetAddressRange(int(c) + 5))
        assert int(at) == int(c) and size == 700
        d, pitch = ok(cu.cuMemAllocPitch(1000, 4096, 4)); assert pitch == 1024; check(10 * MIB)
        for p in a, b, c, d:
            ok(cu.cuMemFree(p))
        check(0)
        assert cu.cuMemFree(a)[0] == R.CUDA_ERROR_INVALID_VALUE
        assert cu.cuMemAlloc(0)[0] == R.CUDA_ERROR_INVALID_VALUE
        """)


def test_out_of_memory_at_capacity(sim):
    sim.run("""
        start()
        free, total = ok(cu.cuMemGetInfo())
        p = ok(cu.cuMemAlloc(free - free % (2 * MIB)))
        assert ok(cu.cuMemGetInfo())[0] < 2 * MIB
        assert cu.cuMemAlloc(2 * MIB)[0] == R.CUDA_ERROR_OUT_OF_MEMORY
        ok(cu.cuMemFree(p))
        assert ok(cu.cuMemGetInfo())[0] == free
        assert cu.cuMemAlloc(total)[0] == R.CUDA_ERROR_OUT_OF_MEMORY
        """)


def test_copies_move_bytes(sim):
    sim.run("""
        start()
        src = (ctypes.c_ubyte * 4096)(*([1, 2, 3, 4] * 1024))
        dst = (ctypes.c_ubyte * 4096)()
        p = ok(cu.cuMemAlloc(4096)); q = ok(cu.cuMemAlloc(2 * MIB))
        ok(cu.cuMemcpyHtoD(p, ctypes.addressof(src), 4096))
        ok(cu.cuMemcpyDtoD(q, p, 4096))
        ok(cu.cuMemsetD32(q, 0x01020304, 4))
        ok(cu.cuMemcpyDtoH(ctypes.addressof(dst), q, 4096))
        assert bytes(dst[:16]) == b"\\4\\3\\2\\1" * 4 and bytes(dst[16:]) == bytes(src[16:])
        assert cu.cuMemcpyHtoD(p, ctypes.addressof(src), 8192)[0] == R.CUDA_ERROR_INVALID_VALUE
        t = time.monotonic()
        big = ok(cu.cuMemAllocHost(1 << 28)); dev = ok(cu.cuMemAlloc(1 << 28))
        s = ok(cu.cuStreamCreate(0)); e = [ok(cu.cuEventCreate(0)) for _ in range(2)]
        gate = (ctypes.c_uint32 * 1)(0)
        ok(cu.cuStreamWaitValue32(s, ctypes.addressof(gate), 1, 0))
        ok(cu.cuEventRecord(e[0], s))
        ok(cu.cuMemcpyHtoDAsync(dev, big, 1 << 28, s))
        ok(cu.cuEventRecord(e[1], s))
        gate[0] = 1
        ok(cu.cuStreamSynchronize(s))
        ms = ok(cu.cuEventElapsedTime(e[0], e[1]))
        assert abs(ms - (1 << 28) / (51.6 * 2**30) * 1e3) < 0.01, ms
        """)


def test_launch_events_and_time(sim):
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
        assert 0.08 < time.monotonic() - t < 0.3
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
        assert 0.05 <= time.monotonic() - t < 1
        """)


def test_launch_queue_is_bounded(sim):
    sim.run("""
        start()
        f = kernel("allot_sim_1000us_132b")
        t = time.monotonic()
        for i in range(1024):
            ok(launch(f))
        assert time.monotonic() - t < 0.5
        for i in range(200):
            ok(launch(f))
        assert 0.15 < time.monotonic() - t < 0.6
        """)


def test_host_functions_and_values(sim):
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
        # A kernel that spins until it is told, in the presence of other work of its process.
        ok(cu.cuMemsetD32(flag, 0, 1))
        spin = kernel("allot_sim_spin_1b")
        ok(cu.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, s, ((flag,), (None,)), 0))
        ok(launch(kernel("allot_sim_1000us_132b"), t))
        ok(cu.cuStreamSynchronize(t))
        assert cu.cuStreamQuery(s)[0] == R.CUDA_ERROR_NOT_READY
        ok(cu.cuStreamWriteValue32(t, flag, 1, 0))
        ok(cu.cuStreamSynchronize(s))
        """)


def test_graphs(sim):
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
        # Work that does not come back, and a stream that is not capturing.
        ok(cu.cuStreamBeginCapture(s, M.CU_STREAM_CAPTURE_MODE_RELAXED))
        ok(cu.cuEventRecord(e, s)); ok(cu.cuStreamWaitEvent(t, e, 0)); ok(launch(f, t))
        assert cu.cuStreamEndCapture(s)[0] == R.CUDA_ERROR_STREAM_CAPTURE_UNJOINED
        assert cu.cuStreamEndCapture(s)[0] == R.CUDA_ERROR_ILLEGAL_STATE
        """)


def test_pools(sim):
    sim.run("""
        start()
        base = used()
        dev = ok(cu.cuDeviceGet(0))
        pool = ok(cu.cuDeviceGetDefaultMemPool(dev))
        A = cu.CUmemPool_attribute
        get = lambda a: int(ok(cu.cuMemPoolGetAttribute(pool, a)))
        s = ok(cu.cuStreamCreate(0))
        p = ok(cu.cuMemAllocAsync(1000, s)); q = ok(cu.cuMemAllocAsync(40 * MIB, s))
        assert used() - base == (32 + 64) * MIB
        assert get(A.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 96 * MIB
        assert get(A.CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1024 + 40 * MIB
        ok(cu.cuMemFreeAsync(q, s))
        assert used() - base == 96 * MIB     # kept until a synchronization
        ok(cu.cuStreamSynchronize(s))
        assert used() - base == 32 * MIB
        ok(cu.cuMemFreeAsync(p, s)); ok(cu.cuStreamSynchronize(s))
        assert used() == base
        ok(cu.cuMemPoolSetAttribute(pool, A.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                    cu.cuuint64_t(1 << 40)))
        q = ok(cu.cuMemAllocAsync(40 * MIB, s)); ok(cu.cuMemFreeAsync(q, s))
        ok(cu.cuStreamSynchronize(s))
        assert used() - base == 64 * MIB
        ok(cu.cuMemPoolTrimTo(pool, 0))
        assert used() == base
        """)


VMM = """
def prop(shared=False):
    p = cu.CUmemAllocationProp()
    p.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    p.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    p.location.id = 0
    if shared:
        p.requestedHandleTypes = (
            cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return p
FD = cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
"""


def test_vmm_lives_until_released_and_unmapped(sim):
    sim.run(VMM + textwrap.dedent("""
        start()
        base = used()
        g = ok(cu.cuMemGetAllocationGranularity(
            prop(), cu.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM))
        assert g == 2 * MIB
        assert cu.cuMemCreate(MIB, prop(), 0)[0] == R.CUDA_ERROR_INVALID_VALUE
        h = ok(cu.cuMemCreate(64 * MIB, prop(), 0))
        assert used() - base == 64 * MIB
        va = ok(cu.cuMemAddressReserve(64 * MIB, 0, 0, 0))
        ok(cu.cuMemMap(va, 64 * MIB, 0, h, 0))
        a = cu.CUmemAccessDesc(); a.location = prop().location
        a.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        ok(cu.cuMemSetAccess(va, 64 * MIB, [a], 1))
        ok(cu.cuMemRelease(h))
        assert used() - base == 64 * MIB
        again = ok(cu.cuMemRetainAllocationHandle(int(va)))
        ok(cu.cuMemUnmap(va, 64 * MIB))
        assert used() - base == 64 * MIB
        ok(cu.cuMemRelease(again))
        assert used() == base
        ok(cu.cuMemAddressFree(va, 64 * MIB))
        """))


def test_exported_memory_outlives_its_maker(sim):
    sim.run(VMM + textwrap.dedent("""
        import array, socket
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            start()
            h = ok(cu.cuMemCreate(64 * MIB, prop(True), 0))
            fd = int(ok(cu.cuMemExportToShareableHandle(h, FD, 0)))
            socket.send_fds(theirs, [b"x"], [fd])
            theirs.recv(1)
            os._exit(0)
        start()
        base = used()
        fd = socket.recv_fds(ours, 1, 1)[1][0]
        base = 518 * MIB
        h = ok(cu.cuMemImportFromShareableHandle(fd, FD))
        ours.send(b"x"); os.waitpid(pid, 0)
        deadline = time.monotonic() + 2
        while used() != base + 64 * MIB and time.monotonic() < deadline:
            time.sleep(0.005)
        assert used() == base + 64 * MIB
        ok(cu.cuMemRelease(h))
        assert used() == base + 64 * MIB      # the descriptor still stands for it
        os.close(fd)
        while used() != base and time.monotonic() < deadline:
            time.sleep(0.005)
        assert used() == base
        """))


def test_get_proc_address(sim):
    sim.run("""
        ok(cu.cuInit(0))
        lib = ctypes.CDLL("libcuda.so.1")
        def address(name):
            return ctypes.cast(getattr(lib, name), ctypes.c_void_p).value
        def get(name, version, flags):
            return cu.cuGetProcAddress(name.encode(), version, cu.CUdriverProcAddress_flags(flags))
        S = cu.CUdriverProcAddressQueryResult
        for name, version, flags, symbol in [
                ("cuMemAlloc", 4000, 0, "cuMemAlloc_v2"),
                ("cuMemAlloc", 13000, 2, "cuMemAlloc_v2"),
                ("cuLaunchKernel", 12000, 1, "cuLaunchKernel"),
                ("cuLaunchKernel", 12000, 2, "cuLaunchKernel_ptsz"),
                ("cuMemcpyHtoD", 12000, 2, "cuMemcpyHtoD_v2_ptds"),
                ("cuGetProcAddress", 11040, 0, "cuGetProcAddress"),
                ("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"),
                ("cuCtxCreate", 11000, 0, "cuCtxCreate_v2"),
                ("cuCtxCreate", 11040, 0, "cuCtxCreate_v3"),
                ("cuCtxCreate", 13000, 0, "cuCtxCreate_v4")]:
            result, pfn, status = get(name, version, flags)
            assert result == R.CUDA_SUCCESS and pfn == address(symbol), (name, version, flags)
            assert status == S.CU_GET_PROC_ADDRESS_SUCCESS
        result, pfn, status = get("cuLaunchKernelEx", 11000, 0)
        assert result == R.CUDA_ERROR_NOT_FOUND
        result, pfn, status = get("cuNoSuchThing", 12000, 0)
        assert result == R.CUDA_ERROR_NOT_FOUND
        """)


def test_killed_client_gives_everything_back(sim):
    client = sim.popen("""
        start()
        ok(cu.cuMemAlloc(1 << 30)); ok(cu.cuMemAllocAsync(1 << 20, 0))
        f = kernel("allot_sim_60000000us_132b")
        for i in range(10):
            ok(launch(f))
        used()
        print("up", flush=True)
        time.sleep(60)
        """)
    assert client.stdout.readline() == "up\n"
    assert sim.used() == CONTEXT + (1 << 30) + 32 * MIB
    client.kill()
    client.wait()
    deadline = time.monotonic() + 0.1
    while sim.used() and time.monotonic() < deadline:
        pass
    stats = sim.ctl("stats")
    assert stats["cards"][0]["memory_used_bytes"] == 0
    assert stats["clients"] == []
    sim.run("start(); t = time.monotonic(); ok(launch(kernel('allot_sim_1000us_132b')));"
            "ok(cu.cuCtxSynchronize()); assert time.monotonic() - t < 0.05")


SATURATE = """
start()
f = kernel("allot_sim_1000us_132b")
print("up", flush=True)
sys.stdin.readline()
end = time.monotonic() + 1.5
while time.monotonic() < end:
    ok(launch(f))
"""


@pytest.mark.parametrize("tenants,share_pct", [(1, 100.0), (2, 45.8), (5, 18.3)])
def test_sharing_loses_to_switches(sim, tenants, share_pct):
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


def test_nvml_load_and_its_defects(start_sim, tmp_path):
    spec = tmp_path / "cards"
    spec.write_text("[card]\ndefects = loses-busy-process\n[card]\ndefects = no-process-utilization"
                    "\n[card]\n")
    sim = start_sim(str(spec))
    busy = [sim.popen(f"""
        start({i})
        f = kernel("allot_sim_1000us_132b")
        print("up", flush=True)
        while True:
            ok(launch(f))
        """) for i in range(3)]
    for client in busy:
        assert client.stdout.readline() == "up\n"
    time.sleep(0.7)
    sim.run(f"""
        pids = {[client.pid for client in busy]}
        pynvml.nvmlInit()
        assert pynvml.nvmlDeviceGetCount() == 3
        h = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(3)]
        for i in range(3):
            assert pynvml.nvmlDeviceGetUtilizationRates(h[i]).gpu == 100
            assert [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(h[i])] == [pids[i]]
        def fails(i):
            try:
                pynvml.nvmlDeviceGetProcessUtilization(h[i], 0)
            except pynvml.NVMLError as e:
                return e.value
        assert fails(0) == pynvml.NVML_ERROR_NOT_FOUND
        assert fails(1) == pynvml.NVML_ERROR_NOT_SUPPORTED
        [s] = pynvml.nvmlDeviceGetProcessUtilization(h[2], 0)
        assert s.pid == pids[2] and s.smUtil == 100
        kind, samples = pynvml.nvmlDeviceGetSamples(h[0], pynvml.NVML_GPU_UTILIZATION_SAMPLES, 0)
        stamps = [x.timeStamp for x in samples]
        assert all(b - a == 200000 for a, b in zip(stamps, stamps[1:]))
        assert samples[-1].sampleValue.uiVal == 100
        """)


def test_topology(start_sim):
    sim = start_sim("h200x4")
    sim.run("""
        ok(cu.cuInit(0))
        assert ok(cu.cuDeviceGetCount()) == 4
        assert ok(cu.cuDeviceCanAccessPeer(0, 3)) == 1
        pynvml.nvmlInit()
        h = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(4)]
        level = pynvml.nvmlDeviceGetTopologyCommonAncestor
        assert level(h[0], h[1]) == pynvml.NVML_TOPOLOGY_NODE
        assert level(h[0], h[2]) == pynvml.NVML_TOPOLOGY_SYSTEM
        assert pynvml.nvmlDeviceGetNvLinkState(h[0], 17) == 1
        assert pynvml.nvmlDeviceGetP2PStatus(h[0], h[1], 0) == pynvml.NVML_P2P_STATUS_OK
        """)
    assert "2" in sim.run("ok(cu.cuInit(0)); print(ok(cu.cuDeviceGetCount()))",
                          CUDA_VISIBLE_DEVICES="2,0")


def test_xid_and_lost_card(sim):
    watcher = sim.popen("""
        pynvml.nvmlInit()
        h = pynvml.nvmlDeviceGetHandleByIndex(0)
        s = pynvml.nvmlEventSetCreate()
        pynvml.nvmlDeviceRegisterEvents(h, pynvml.nvmlEventTypeXidCriticalError, s)
        try:
            pynvml.nvmlEventSetWait(s, 50)
            assert False
        except pynvml.NVMLError as e:
            assert e.value == pynvml.NVML_ERROR_TIMEOUT
        print("up", flush=True)
        print(pynvml.nvmlEventSetWait(s, 5000).eventData, flush=True)
        print(pynvml.nvmlEventSetWait(s, 5000).eventData, flush=True)
        """)
    worker = sim.popen("""
        start()
        ok(launch(kernel("allot_sim_60000000us_132b")))
        print("up", flush=True)
        print(int(cu.cuCtxSynchronize()[0]), flush=True)
        print(int(cu.cuMemAlloc(1)[0]), flush=True)
        """)
    assert watcher.stdout.readline() == "up\n"
    assert worker.stdout.readline() == "up\n"
    sim.ctl("xid", "0", "31")
    assert watcher.stdout.readline() == "31\n"
    time.sleep(0.1)
    sim.ctl("lose", "0")
    assert watcher.stdout.readline() == "79\n"
    assert worker.stdout.readline() == "999\n"
    assert worker.stdout.readline() == "999\n"
    assert worker.wait(10) == 0
    sim.ctl("heal", "0")
    sim.run("start(); ok(cu.cuMemAlloc(1))")


def test_server_that_dies(sim):
    client = sim.popen("""
        start()
        ok(launch(kernel("allot_sim_60000000us_132b")))
        print("up", flush=True)
        print(int(cu.cuCtxSynchronize()[0]), flush=True)
        print(int(cu.cuMemGetInfo()[0]), int(launch(kernel("x"))[0]), flush=True)
        """)
    assert client.stdout.readline() == "up\n"
    time.sleep(0.1)
    sim.server.kill()
    assert client.stdout.readline() == "46\n"
    assert client.stdout.readline() == "46 46\n"
    assert client.wait(10) == 0


def test_fork(sim):
    sim.run("""
        start()
        p = ok(cu.cuMemAlloc(MIB * 4))
        pid = os.fork()
        if pid == 0:
            codes = {cu.cuMemAlloc(1)[0], cu.cuInit(0)[0], cu.cuCtxSynchronize()[0]}
            os._exit(0 if codes == {R.CUDA_ERROR_NOT_INITIALIZED} else 1)
        assert os.waitpid(pid, 0)[1] == 0
        ok(cu.cuMemFree(p))
        """)


def test_faults(sim):
    sim.run("""
        start()
        for i in range(3):
            ok(cu.cuMemAlloc(100))
        assert cu.cuMemAlloc(100)[0] == R.CUDA_ERROR_OUT_OF_MEMORY
        """, ALLOT_SIM_FAULT="oom-after=3")
    sim.run("assert cu.cuInit(0)[0] == R.CUDA_ERROR_NO_DEVICE", ALLOT_SIM_FAULT="fail=cuInit:100")
    client = sim.popen("start(); print('up', flush=True); cu.cuMemAlloc(1); print('no', flush=True)",
                       ALLOT_SIM_FAULT="hang=cuMemAlloc_v2")
    assert client.stdout.readline() == "up\n"
    time.sleep(0.3)
    assert client.poll() is None


def test_lingers_and_leaves(tmp_path):
    socket = tmp_path / "s"
    server = subprocess.Popen([SIM / "allot-sim", "--spec", "h200", "--socket", socket, "--linger",
                               "0.3", "--foreground"])
    while not socket.exists():
        time.sleep(0.01)
    time.sleep(0.5)
    assert server.poll() is None  # nobody came yet
    subprocess.run([sys.executable, "-c", PREAMBLE + "start()"], check=True, timeout=30,
                   env={**os.environ, "LD_LIBRARY_PATH": str(SIM), "ALLOT_SIM_SOCKET": str(socket)})
    assert server.wait(5) == 0
    assert not socket.exists()
