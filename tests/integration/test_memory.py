"""Memory charges beyond one allocation and one free: memory that no call allocates by name, legacy IPC memory, and memory of
graphs. The ledger is compared with the simulated GPU's own figures for the processes."""

import textwrap

import pytest

from machines import wait_until
from python_tenant import CONTEXT, MIB, Tenant, card_used

pytest.importorskip("cuda.bindings.driver")


def test_code_and_local_memory_are_charged(machine, python):
    tenant = Tenant(machine, python, """
        start()
        base = used()
        look()
        module = ok(cu.cuModuleLoadData(b".version 8.0" + b" " * (90 * MIB)))
        library = ok(cu.cuLibraryLoadData(b".version 8.0" + b" " * (8 * MIB), [], [], 0, [], [], 0))
        look()
        assert used() == base + 102 * MIB, used() - base
        # Memory that no call allocates by name leaves that much less of the quota.
        refused(cu.cuMemAlloc(4096 * MIB - 518 * MIB - 100 * MIB))
        p = ok(cu.cuMemAlloc(4096 * MIB - 518 * MIB - 102 * MIB))
        look()
        ok(cu.cuMemFree(p))
        ok(cu.cuModuleUnload(module))
        ok(cu.cuLibraryUnload(library))
        look()
        ok(cu.cuCtxSetLimit(cu.CUlimit.CU_LIMIT_STACK_SIZE, 2048))
        look()
        ok(cu.cuDevicePrimaryCtxRelease(0))
        look()
        """)
    tenant.line()
    tenant.wait_used(CONTEXT)
    tenant.go()
    tenant.line()
    tenant.wait_used(CONTEXT + 102 * MIB)
    assert tenant.device()["memory_unnamed_bytes"] == 102 * MIB
    assert card_used(machine) == tenant.used()
    tenant.go()
    tenant.line()
    tenant.wait_used(4096 * MIB)
    assert card_used(machine) == tenant.used()
    tenant.go()
    tenant.line()
    tenant.wait_used(CONTEXT)
    tenant.go()
    tenant.line()
    tenant.wait_used(CONTEXT + 132 * 2048 * 1024)
    tenant.go()
    tenant.line()
    tenant.wait_used(0)
    tenant.go()
    tenant.end()


def test_code_and_local_memory_are_refused_over_the_quota(machine, python):
    """The call itself is refused, before the daemon's next sample; and refused memory is not charged."""
    tenant = Tenant(machine, python, """
        start()
        base = used()
        first = ok(cu.cuModuleLoadData(b".version 8.0" + b" " * (200 * MIB)))
        assert used() >= base + 200 * MIB, used() - base
        refused(cu.cuModuleLoadData(b".version 8.0" + b" " * (320 * MIB)))
        refused(cu.cuLibraryLoadData(b".version 8.0" + b" " * (320 * MIB), [], [], 0, [], [], 0))
        refused(cu.cuCtxSetLimit(cu.CUlimit.CU_LIMIT_STACK_SIZE, 4096))
        assert ok(cu.cuCtxGetLimit(cu.CUlimit.CU_LIMIT_STACK_SIZE)) == 1024
        ok(cu.cuCtxSetLimit(cu.CUlimit.CU_LIMIT_STACK_SIZE, 2048))
        refused(cu.cuMemAlloc(100 * MIB))
        look()
        ok(cu.cuModuleUnload(first))
        ok(cu.cuMemAlloc(200 * MIB))
        """, memory="1GiB")
    tenant.line()
    assert card_used(machine) == CONTEXT + 202 * MIB + 132 * 2048 * 1024
    tenant.go()
    tenant.end()


def test_unloaded_code_causes_no_refusal(machine, python):
    """Unloaded code is charged until the daemon's next samples, which take a second each."""
    tenant = Tenant(machine, python, """
        start()
        module = ok(cu.cuModuleLoadData(b".version 8.0" + b" " * (90 * MIB)))
        look()
        ok(cu.cuModuleUnload(module))
        begin = time.monotonic()
        while cu.cuMemAlloc(4096 * MIB - 518 * MIB)[0] != R.CUDA_SUCCESS:
            assert time.monotonic() - begin < 20
            time.sleep(0.01)
        """)
    tenant.line()
    wait_until(lambda: tenant.device()["memory_unnamed_bytes"] == 92 * MIB, what="the charge")
    tenant.go()
    tenant.end()


# Two processes of one tenant: the parent opens memory that its child exports, and sends the child commands.
IPC = """
ours, theirs = socket.socketpair()
child = os.fork()
if child == 0:
    ours.close()
    start()
    p = ok(cu.cuMemAlloc(64 * MIB))
    handle = ok(cu.cuIpcGetMemHandle(p))
    theirs.send(handle_bytes(handle))
    while (command := theirs.recv(10)) != b"die":
        if command == b"free":
            ok(cu.cuMemFree(p))
        theirs.send(b"done")
    os._exit(0)

def send_command(command):
    ours.send(command)
    if command == b"die":
        os.waitpid(child, 0)
    else:
        ours.recv(10)

theirs.close()
start()
handle = handle_of(ours.recv(64))
"""


@pytest.mark.parametrize("command", ["free", "die"])
def test_ipc_memory_is_charged_once_until_its_last_holder_releases_it(machine, python, command):
    contexts = CONTEXT if command == "die" else 2 * CONTEXT
    tenant = Tenant(machine, python, IPC + textwrap.dedent(f"""
        q = ok(cu.cuIpcOpenMemHandle(handle, 1))
        assert int(ok(cu.cuIpcOpenMemHandle(handle, 1))) == int(q)
        ok(cu.cuIpcCloseMemHandle(q))
        look()
        send_command(b"{command}")
        look()
        ok(cu.cuIpcCloseMemHandle(q))
        look()
        if {command == "free"}:
            send_command(b"die")
        """))
    tenant.line()
    tenant.wait_used(2 * CONTEXT + 64 * MIB)
    tenant.go()
    tenant.line()
    tenant.wait_used(contexts + 64 * MIB)
    assert card_used(machine) == contexts + 64 * MIB
    tenant.go()
    tenant.line()
    tenant.wait_used(contexts)
    tenant.go()
    tenant.end()


# Two tenants: the one that gets "export" allocates memory and prints its handle; the other gets the handle.
TWO_TENANTS = """
start()
if (text := look()).startswith("export"):
    p = ok(cu.cuMemAlloc(64 * MIB))
    look(handle_bytes(ok(cu.cuIpcGetMemHandle(p))).hex())
    sys.exit()
handle = handle_of(bytes.fromhex(text))
"""


def export_and_open(exporter, importer):
    """Hands the exporter's handle to the importer; returns once the importer has opened it."""
    for tenant in exporter, importer:
        tenant.line()
    exporter.go("export")
    importer.go(exporter.line())
    importer.line()


def test_ipc_memory_is_charged_to_each_tenant_that_opens_it(machine, python):
    code = TWO_TENANTS + textwrap.dedent("""
        refused_once = ok(cu.cuMemAlloc(460 * MIB))
        refused(cu.cuIpcOpenMemHandle(handle, 1))
        ok(cu.cuMemFree(refused_once))
        q = ok(cu.cuIpcOpenMemHandle(handle, 1))
        look()
        ok(cu.cuIpcCloseMemHandle(q))
        look()
        """)
    exporter = Tenant(machine, python, code, name="exporter")
    importer = Tenant(machine, python, code, name="importer", memory="1GiB")
    export_and_open(exporter, importer)
    importer.wait_used(CONTEXT + 64 * MIB)
    exporter.wait_used(CONTEXT + 64 * MIB)
    importer.go()
    importer.line()
    importer.wait_used(CONTEXT)
    importer.go()
    exporter.go()
    importer.end()
    exporter.end()


GRAPH = """
def node_params(bytes_):
    p = cu.CUDA_MEM_ALLOC_NODE_PARAMS()
    p.poolProps.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    p.poolProps.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    p.poolProps.location.id = 0
    p.bytesize = bytes_
    return p

def graph_with(bytes_):
    graph = ok(cu.cuGraphCreate(0))
    params = node_params(bytes_)
    node = ok(cu.cuGraphAddMemAllocNode(graph, None, 0, params))
    ok(cu.cuGraphAddMemFreeNode(graph, [node], 1, params.dptr))
    return graph
"""


def test_memory_of_graphs_is_charged_while_it_is_reserved(machine, python):
    tenant = Tenant(machine, python, GRAPH + textwrap.dedent("""
        start()
        stream = ok(cu.cuStreamCreate(1))
        # One graph is captured, one is built of nodes: they share memory.
        ok(cu.cuStreamBeginCapture(stream, cu.CUstreamCaptureMode(1)))
        p = ok(cu.cuMemAllocAsync(96 * MIB, stream))
        ok(cu.cuMemFreeAsync(p, stream))
        captured = ok(cu.cuGraphInstantiate(ok(cu.cuStreamEndCapture(stream)), 0))
        made = ok(cu.cuGraphInstantiate(graph_with(64 * MIB), 0))
        assert used() == 518 * MIB
        ok(cu.cuGraphLaunch(captured, stream))
        ok(cu.cuGraphLaunch(made, stream))
        look()
        # Over the quota: a graph that can never fit is refused at instantiation, one that does not fit now at its launch.
        refused(cu.cuGraphInstantiate(graph_with(1024 * MIB + 1), 0))
        large = ok(cu.cuGraphInstantiate(graph_with(512 * MIB), 0))
        refused(cu.cuGraphLaunch(large, stream))
        # A captured launch maps nothing: the driver's own answer counts, not the quota.
        mine = cu.CUstream(cu.CU_STREAM_PER_THREAD)
        ok(cu.cuStreamBeginCapture(mine, cu.CUstreamCaptureMode(2)))
        per_thread = ctypes.CDLL("libcuda.so.1").cuGraphLaunch_ptsz
        assert per_thread(ctypes.c_void_p(int(large)), None) != 2
        cu.cuStreamEndCapture(mine)
        # Memory that no graph uses was released to make room.
        assert used() == 518 * MIB, used()
        ok(cu.cuGraphLaunch(captured, stream))
        assert used() == (518 + 96) * MIB, used()
        ok(cu.cuGraphExecDestroy(captured))
        ok(cu.cuDeviceGraphMemTrim(0))
        look()
        """), memory="1GiB")
    tenant.line()
    tenant.wait_used(CONTEXT + 96 * MIB)
    assert card_used(machine) == CONTEXT + 96 * MIB
    tenant.go()
    tenant.line()
    tenant.wait_used(CONTEXT)
    assert card_used(machine) == CONTEXT
    tenant.go()
    tenant.end()
