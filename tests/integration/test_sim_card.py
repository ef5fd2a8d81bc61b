"""The simulated GPU reports its properties and its load through CUDA and NVML."""

import time

from sim_peers import sim, start_sim  # noqa: F401


def test_device_properties(sim):  # noqa: F811
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


def test_topology(start_sim):  # noqa: F811
    sim = start_sim("h200x4")  # noqa: F811
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


def test_architectures(start_sim, tmp_path):  # noqa: F811
    spec = tmp_path / "spec"
    spec.write_text("".join(f"[gpu]\ncc = {cc}\n" for cc in ("5.2", "6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0")))
    start_sim(str(spec)).run("""
        pynvml.nvmlInit()
        names = "MAXWELL PASCAL VOLTA TURING AMPERE AMPERE ADA HOPPER BLACKWELL".split()
        for i, name in enumerate(names):
            got = pynvml.nvmlDeviceGetArchitecture(pynvml.nvmlDeviceGetHandleByIndex(i))
            assert got == getattr(pynvml, "NVML_DEVICE_ARCH_" + name), (name, got)
        """)


def test_get_proc_address(sim):  # noqa: F811
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
        for name, version, flags, expected in [
                ("cuLaunchKernelEx", 11000, 0, S.CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
                ("cuLaunchKernel", 6050, 2, S.CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
                ("cuNoSuchThing", 12000, 0, S.CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
                ("cuMemAlloc_v2", 12000, 0, S.CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
                ("cuFabricCpyBatchAsync", 13000, 0, S.CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)]:
            assert get(name, version, flags) == (R.CUDA_SUCCESS, 0, expected), (name, version, flags)
            pfn = ctypes.c_void_p(7)
            assert lib.cuGetProcAddress(name.encode(), ctypes.byref(pfn), version,
                                        ctypes.c_uint64(flags)) == R.CUDA_ERROR_NOT_FOUND
            assert pfn.value == 7, "the output was written although nothing was found"
        # Invalid arguments leave the outputs unchanged.
        for version, flags in [(13010, 0), (12000, 3)]:
            pfn, status = ctypes.c_void_p(7), ctypes.c_int(7)
            assert lib.cuGetProcAddress_v2(b"cuMemAlloc", ctypes.byref(pfn), version,
                                           ctypes.c_uint64(flags), ctypes.byref(status)
                                           ) == R.CUDA_ERROR_INVALID_VALUE
            assert (pfn.value, status.value) == (7, 7)
        """)


def test_nvml_load_and_defects_of_nvml(start_sim, tmp_path):  # noqa: F811
    spec = tmp_path / "cards"
    spec.write_text("[gpu]\ndefects = loses-busy-process\n[card]\ndefects = no-process-utilization"
                    "\n[card]\n")
    sim = start_sim(str(spec))  # noqa: F811
    busy = [sim.popen(f"""
        start({i})
        f = kernel("allot_sim_1000us_132b")
        print("up", flush=True)
        while True:
            ok(launch(f))
        """) for i in range(3)]
    for client in busy:
        assert client.stdout.readline() == "up\n"
    time.sleep(1.7)     # by default, the figure of a process is of the last second
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
