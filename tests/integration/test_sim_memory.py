"""Memory on the simulated GPU: its exact amount in bytes, every way to allocate it, and its contents."""

import textwrap

from sim_peers import sim, start_sim  # noqa: F401


def test_cuda_and_nvml_agree_on_memory_to_the_byte(sim):  # noqa: F811
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


def test_out_of_memory_at_capacity(sim):  # noqa: F811
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


def test_copies_move_bytes(sim):  # noqa: F811
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


def test_pool_reserves_and_releases_memory(sim):  # noqa: F811
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


def test_vmm_lives_until_released_and_unmapped(sim):  # noqa: F811
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
        end = (1 << 64) - 64 * MIB   # with 64 MiB more, it is 0
        assert cu.cuMemMap(va, 64 * MIB, end, h, 0)[0] == R.CUDA_ERROR_INVALID_VALUE
        assert cu.cuMemMap(va, end, 64 * MIB, h, 0)[0] == R.CUDA_ERROR_INVALID_VALUE
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


def test_exported_memory_outlives_its_process(sim):  # noqa: F811
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
        assert used() == base + 64 * MIB      # the descriptor still holds it
        os.close(fd)
        while used() != base and time.monotonic() < deadline:
            time.sleep(0.005)
        assert used() == base
        """))


def test_memory_of_an_invisible_gpu_cant_be_imported(start_sim):  # noqa: F811
    start_sim("h200x2").run(VMM + textwrap.dedent("""
        import socket
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            start()
            h = ok(cu.cuMemCreate(64 * MIB, prop(True), 0))
            fd = int(ok(cu.cuMemExportToShareableHandle(h, FD, 0)))
            p = cu.CUmemPoolProps()
            p.allocType, p.handleTypes, p.location = prop().type, FD, prop().location
            pool = ok(cu.cuMemPoolCreate(p))
            ptr = ok(cu.cuMemAllocFromPoolAsync(2 * MIB, pool, 0))
            of_pool = int(ok(cu.cuMemPoolExportToShareableHandle(pool, FD, 0)))
            data = ctypes.string_at(ok(cu.cuMemPoolExportPointer(ptr)).getPtr(), 64)
            socket.send_fds(theirs, [data], [fd, of_pool])
            theirs.recv(1)
            os._exit(0)
        theirs.close()
        os.environ["CUDA_VISIBLE_DEVICES"] = "1"
        start()
        data, (fd, of_pool), *_ = socket.recv_fds(ours, 64, 2)
        desc = cu.CUDA_EXTERNAL_MEMORY_HANDLE_DESC()
        desc.type = cu.CUexternalMemoryHandleType.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
        desc.handle.fd, desc.size = fd, 64 * MIB
        assert cu.cuImportExternalMemory(desc)[0] == R.CUDA_ERROR_INVALID_DEVICE
        assert cu.cuMemImportFromShareableHandle(fd, FD)[0] == R.CUDA_ERROR_INVALID_DEVICE
        pool = ok(cu.cuMemPoolImportFromShareableHandle(of_pool, FD, 0))
        pointer = cu.CUmemPoolPtrExportData()
        ctypes.memmove(pointer.getPtr(), data, 64)
        assert cu.cuMemPoolImportPointer(pool, pointer)[0] == R.CUDA_ERROR_INVALID_DEVICE
        ours.send(b"x"); os.waitpid(pid, 0)
        """))
