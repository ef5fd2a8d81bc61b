"""Less common calls of the simulated driver: types of graph nodes, the DOT output of a graph, streams of green contexts, and
managed variables of libraries. Also NVML in a forked child."""

from sim_peers import sim, start_sim    # noqa: F401

PREAMBLE = """
        import ctypes as c
        start()
        cuda = c.CDLL("libcuda.so.1")
        def raw(name, *arguments):
            assert getattr(cuda, name)(*arguments) == 0, name
        """


def test_node_types_and_dot_output_of_a_graph(sim, tmp_path):     # noqa: F811
    sim.run(PREAMBLE + f"""
        f = kernel("allot_sim_1000us_132b")
        graph = ok(cu.cuGraphCreate(0))
        params = (c.c_ulonglong * 32)()
        def add(kind, *fields):
            params[:] = [kind, 0, *fields, *[0] * (30 - len(fields))]
            node, got = c.c_void_p(), c.c_int()
            raw("cuGraphAddNode", c.byref(node), c.c_void_p(int(graph)), None, c.c_size_t(0), params)
            raw("cuGraphNodeGetType", node, c.byref(got))
            assert got.value == kind, (got.value, kind)
        p = int(ok(cu.cuMemAlloc(4096)))
        context = int(ok(cu.cuCtxGetCurrent()))
        add(5)
        add(0, int(f), 132 | 1 << 32, 1 | 1 << 32, 1 | 1 << 32, 0, 0, 0)
        add(2, p, 4096, 1 << 32, 4096, 1, context)
        add(10, 1 | 0 << 32, 1, *[0] * 9, 0, 0, 1 << 20, 0)
        node = c.c_void_p()
        params[0] = 4
        assert cuda.cuGraphAddNode_v2(c.byref(node), c.c_void_p(int(graph)), None, None, c.c_size_t(0), params) == 801
        raw("cuGraphDebugDotPrint", c.c_void_p(int(graph)), b"{tmp_path}/graph.dot", 0)
        assert open("{tmp_path}/graph.dot").read().count("node") == 4
        exec = ok(cu.cuGraphInstantiate(graph, 0))
        ok(cu.cuGraphLaunch(exec, 0))
        ok(cu.cuCtxSynchronize())
        """)


def test_a_green_context_has_streams(sim):     # noqa: F811
    sim.run(PREAMBLE + """
        green, stream = c.c_void_p(), c.c_void_p()
        raw("cuGreenCtxCreate", c.byref(green), None, 0, 1)
        assert cuda.cuGreenCtxStreamCreate(c.byref(stream), green, 0, 0) == 1
        raw("cuGreenCtxStreamCreate", c.byref(stream), green, 1, 0)
        raw("cuStreamSynchronize", stream)
        raw("cuStreamDestroy_v2", stream)
        """)


def test_a_full_stack_of_contexts_takes_no_new_one(sim):     # noqa: F811
    sim.run(PREAMBLE + """
        before, context = used(), ok(cu.cuCtxGetCurrent())
        for i in range(63):
            ok(cu.cuCtxPushCurrent(context))
        made = c.c_void_p()
        assert cuda.cuCtxCreate_v2(c.byref(made), 0, 0) == 2
        assert used() == before
        """)


def test_a_managed_variable_is_host_accessible(sim):     # noqa: F811
    sim.run(PREAMBLE + """
        library, at, size = c.c_void_p(), c.c_ulonglong(), c.c_size_t()
        raw("cuLibraryLoadData", c.byref(library), b".version 7.0", None, None, 0, None, None, 0)
        raw("cuLibraryGetManaged", c.byref(at), c.byref(size), library, b"shared")
        c.memset(at.value, 7, size.value)
        out = (c.c_ubyte * size.value)()
        raw("cuMemcpyDtoH_v2", out, at, size)
        assert set(out) == {7}
        assert cuda.cuLibraryGetManaged(c.byref(at), None, library, b"") == 1
        assert cuda.cuProfilerInitialize(b"settings", b"output", 0) == 801
        """)


def test_nvml_works_after_a_fork(sim):     # noqa: F811
    sim.run("""
        pynvml.nvmlInit()
        device = pynvml.nvmlDeviceGetHandleByIndex(0)
        total = pynvml.nvmlDeviceGetMemoryInfo(device).total
        child = os.fork()
        if not child:
            try:
                same = pynvml.nvmlDeviceGetMemoryInfo(device).total == total
                pynvml.nvmlShutdown()
                pynvml.nvmlInit()
                same &= pynvml.nvmlDeviceGetCount() == 1
            finally:
                os._exit(0 if same else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert pynvml.nvmlDeviceGetMemoryInfo(device).total == total
        """)
