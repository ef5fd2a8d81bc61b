"""Memory that processes share: VMM handles, pools, external memory. A tenant is charged once for it while any of its processes
holds it. Another tenant that imports the memory is charged, too."""

import textwrap

import pytest

from machines import wait_until
from python_tenant import CONTEXT, MIB, Tenant, card_used

pytest.importorskip("cuda.bindings.driver")

# The parent imports memory that its child exports, and sends the child commands.
PAIR = """
FABRIC = cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_FABRIC
ACCESS = cu.CUmemAccessDesc()
ACCESS.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
ACCESS.location.id = 0
ACCESS.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE

def make(bytes_=64 * MIB, types=FD):
    return ok(cu.cuMemCreate(bytes_, prop(types), 0))

def map_(handle, bytes_=64 * MIB):
    p = ok(cu.cuMemAddressReserve(bytes_, 0, 0, 0))
    ok(cu.cuMemMap(p, bytes_, 0, handle, 0))
    ok(cu.cuMemSetAccess(p, bytes_, [ACCESS], 1))
    return p

def make_pool(max_size=0, types=FD):
    p = cu.CUmemPoolProps()
    p.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    p.handleTypes = cu.CUmemAllocationHandleType(types)
    p.location = ACCESS.location
    p.maxSize = max_size
    return ok(cu.cuMemPoolCreate(p))

ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

def fork(export, commands):
    # The child sends the bytes and descriptors of export() once, then calls commands[command]() for each command.
    child = os.fork()
    if child == 0:
        ours.close()
        start()
        data, fds = export()
        socket.send_fds(theirs, [data], fds)
        for fd in fds:
            os.close(fd)
        while (command := theirs.recv(10).decode()) != "die":
            commands[command]()
            theirs.send(b"done")
        os._exit(0)
    theirs.close()
    start()
    data, fds, _, _ = socket.recv_fds(ours, 256, 4)

    def send_command(command):
        ours.send(command.encode())
        if command == "die":
            os.waitpid(child, 0)
        else:
            ours.recv(10)
    return data, fds, send_command
"""


def start_pair(machine, python, code, memory="4GiB", name="a"):
    """Starts a tenant with code that can call the functions of PAIR."""
    return Tenant(machine, python, PAIR + textwrap.dedent(code), memory=memory, name=name)


def check_steps(tenant, machine, *expected):
    """At each look() of the program, compares the bytes of ledger and GPU with the next pair (ledger, GPU) of `expected`."""
    for ledger, card in expected:
        tenant.line()
        tenant.wait_used(ledger)
        assert card_used(machine) == card
        tenant.go()
    tenant.end()


@pytest.mark.parametrize("handle_type", ["FD", "FABRIC"])
@pytest.mark.parametrize("command", ["release", "die"])
def test_vmm_memory_is_charged_once_until_its_last_holder_releases_it(machine, python, handle_type, command):
    contexts = 2 * CONTEXT if command == "release" else CONTEXT
    tenant = start_pair(machine, python, f"""
        held = []
        def export():
            held.append(make(types={handle_type}))
            h = ok(cu.cuMemExportToShareableHandle(held[0], {handle_type}, 0))
            return (b"x", [int(h)]) if {handle_type} == FD else (ctypes.string_at(h.getPtr(), 64), [])
        data, fds, send_command = fork(export, {{"release": lambda: ok(cu.cuMemRelease(held[0]))}})
        if {handle_type} == FD:
            source = fds[0]
        else:
            source = cu.CUmemFabricHandle()
            ctypes.memmove(source.getPtr(), data, 64)
            source = source.getPtr()
        first = ok(cu.cuMemImportFromShareableHandle(source, {handle_type}))
        second = ok(cu.cuMemImportFromShareableHandle(source, {handle_type}))
        p = map_(first)
        for fd in fds:
            os.close(fd)
        look()
        send_command("{command}")
        look()
        ok(cu.cuMemRelease(first))
        ok(cu.cuMemUnmap(p, 64 * MIB))
        look()
        ok(cu.cuMemRelease(second))
        look()
        if "{command}" == "release":
            send_command("die")
        """)
    check_steps(tenant, machine,
                (2 * CONTEXT + 64 * MIB, 2 * CONTEXT + 64 * MIB),
                (contexts + 64 * MIB, contexts + 64 * MIB),
                (contexts + 64 * MIB, contexts + 64 * MIB),
                (contexts, contexts))


def test_vmm_memory_imported_by_its_own_process_is_charged_once(machine, python):
    tenant = Tenant(machine, python, PAIR + textwrap.dedent("""
        start()
        made = make()
        fd = int(ok(cu.cuMemExportToShareableHandle(made, FD, 0)))
        again = ok(cu.cuMemImportFromShareableHandle(fd, FD))
        os.close(fd)
        assert used() == 582 * MIB, used() // MIB
        ok(cu.cuMemRelease(made))
        # The charge moves to the import without a gap.
        assert used() == 582 * MIB, used() // MIB
        ok(cu.cuMemRelease(again))
        assert used() == 518 * MIB, used() // MIB
        """))
    tenant.end()


def test_vmm_memory_of_another_tenant_is_charged_to_the_importer(machine, python, tmp_path):
    """The import is charged at once, as the exporter's library tagged the descriptor. Over the quota the import fails."""
    path = tmp_path / "socket"
    exporter = start_pair(machine, python, f"""
        start()
        server = socket.socket(socket.AF_UNIX)
        server.bind("{path}")
        server.listen()
        look()
        handle = make()
        fd = int(ok(cu.cuMemExportToShareableHandle(handle, FD, 0)))
        client, _ = server.accept()
        socket.send_fds(client, [b"x"], [fd])
        look()
        """, name="exporter")
    exporter.line()
    importer = start_pair(machine, python, f"""
        start()
        refused_once = ok(cu.cuMemAlloc(460 * MIB))
        client = socket.socket(socket.AF_UNIX)
        client.connect("{path}")
        _, fds, _, _ = socket.recv_fds(client, 1, 1)
        refused(cu.cuMemImportFromShareableHandle(fds[0], FD))
        ok(cu.cuMemFree(refused_once))
        handle = ok(cu.cuMemImportFromShareableHandle(fds[0], FD))
        look()
        ok(cu.cuMemRelease(handle))
        look()
        """, name="importer", memory="1GiB")
    exporter.go()
    importer.line()
    importer.wait_used(CONTEXT + 64 * MIB)
    exporter.wait_used(CONTEXT + 64 * MIB)
    assert card_used(machine) == 2 * CONTEXT + 64 * MIB
    importer.go()
    importer.line()
    importer.wait_used(CONTEXT)
    importer.go()
    exporter.go()
    importer.end()
    exporter.line()
    exporter.end()


def test_memory_of_imported_pools_is_charged_once(machine, python):
    tenant = start_pair(machine, python, """
        held = []
        def export():
            pool = make_pool()
            p = ok(cu.cuMemAllocFromPoolAsync(96 * MIB, pool, 0))
            ok(cu.cuStreamSynchronize(0))
            data = ok(cu.cuMemPoolExportPointer(p))
            fd = int(ok(cu.cuMemPoolExportToShareableHandle(pool, FD, 0)))
            return ctypes.string_at(data.getPtr(), 64), [fd]
        data, fds, send_command = fork(export, {})
        pool = ok(cu.cuMemPoolImportFromShareableHandle(fds[0], FD, 0))
        share = cu.CUmemPoolPtrExportData()
        ctypes.memmove(share.getPtr(), data, 64)
        p = ok(cu.cuMemPoolImportPointer(pool, share))
        assert cu.cuMemAllocFromPoolAsync(MIB, pool, 0)[0] == R.CUDA_ERROR_INVALID_VALUE
        look()
        send_command("die")
        look()
        ok(cu.cuMemFreeAsync(p, 0))
        look()
        # The GPU holds it until the pool is destroyed, which NVML does not show.
        ok(cu.cuMemPoolDestroy(pool))
        look()
        """)
    check_steps(tenant, machine,
                (2 * CONTEXT + 96 * MIB, 2 * CONTEXT + 96 * MIB),
                (CONTEXT + 96 * MIB, CONTEXT + 96 * MIB),
                (CONTEXT + 96 * MIB, CONTEXT + 96 * MIB),
                (CONTEXT, CONTEXT))


def test_a_destroyed_pool_is_charged_until_its_last_allocation_is_freed(machine, python):
    tenant = start_pair(machine, python, """
        start()
        pool = make_pool()
        ok(cu.cuDeviceSetMemPool(0, pool))
        p = ok(cu.cuMemAllocAsync(96 * MIB, 0))
        ok(cu.cuMemPoolDestroy(pool))
        assert cu.cuMemPoolDestroy(pool)[0] == R.CUDA_ERROR_INVALID_VALUE
        assert cu.cuMemAllocFromPoolAsync(MIB, pool, 0)[0] == R.CUDA_ERROR_INVALID_VALUE
        assert int(ok(cu.cuDeviceGetMemPool(0))) == int(ok(cu.cuDeviceGetDefaultMemPool(0)))
        look()
        refused(cu.cuMemAlloc(420 * MIB))
        ok(cu.cuMemFreeAsync(p, 0))
        # An allocation that needs the pool's cached memory gets it at once.
        ok(cu.cuMemFree(ok(cu.cuMemAlloc(500 * MIB))))
        look()
        # A pool with a maximum size refuses by itself.
        small = make_pool(64 * MIB)
        refused(cu.cuMemAllocFromPoolAsync(96 * MIB, small, 0))
        ok(cu.cuMemAllocFromPoolAsync(32 * MIB, small, 0))
        look()
        """, memory="1GiB")
    check_steps(tenant, machine,
                (CONTEXT + 96 * MIB, CONTEXT + 96 * MIB),
                (CONTEXT, CONTEXT),
                (CONTEXT + 32 * MIB, CONTEXT + 32 * MIB))


def test_a_pool_is_charged_to_its_own_device(machine2, python):
    tenant = Tenant(machine2, python, PAIR + textwrap.dedent("""
        start(1)
        start(0)
        ACCESS.location.id = 1
        ok(cu.cuMemAllocFromPoolAsync(96 * MIB, make_pool(), 0))
        p = ok(cu.cuMemAllocFromPoolAsync(64 * MIB, ok(cu.cuDeviceGetDefaultMemPool(1)), 0))
        look()
        """), options=("--gpu", "0,1"))
    tenant.line()
    tenant.wait_used(CONTEXT)
    wait_until(lambda: tenant.device(1)["memory_used_bytes"] == CONTEXT + 160 * MIB, what="device 1")
    tenant.go()
    tenant.end()


def test_memory_bound_to_a_multicast_object_is_charged_until_it_is_unbound(machine, python):
    tenant = start_pair(machine, python, """
        start()
        p = cu.CUmulticastObjectProp()
        p.numDevices, p.size = 1, 128 * MIB
        assert ok(cu.cuMulticastGetGranularity(
            p, cu.CUmulticastGranularity_flags.CU_MULTICAST_GRANULARITY_MINIMUM)) == 2 * MIB
        mc = ok(cu.cuMulticastCreate(p))
        ok(cu.cuMulticastAddDevice(mc, 0))
        handle, other = make(), make()
        at = map_(other)
        ok(cu.cuMulticastBindMem(mc, 0, handle, 0, 64 * MIB, 0))
        ok(cu.cuMulticastBindAddr(mc, 64 * MIB, at, 64 * MIB, 0))
        view = map_(mc, 128 * MIB)
        look()
        ok(cu.cuMemRelease(handle))
        ok(cu.cuMemRelease(other))
        ok(cu.cuMemUnmap(at, 64 * MIB))
        look()
        ok(cu.cuMulticastUnbind(mc, 0, 0, 64 * MIB))
        look()
        ok(cu.cuMulticastUnbind(mc, 0, 64 * MIB, 64 * MIB))
        ok(cu.cuMemUnmap(view, 128 * MIB))
        ok(cu.cuMemRelease(mc))
        look()
        """)
    check_steps(tenant, machine,
                (CONTEXT + 128 * MIB, CONTEXT + 128 * MIB),
                (CONTEXT + 128 * MIB, CONTEXT + 128 * MIB),
                (CONTEXT + 64 * MIB, CONTEXT + 64 * MIB),
                (CONTEXT, CONTEXT))


def test_external_memory_of_an_ended_process_is_charged_to_its_importer(machine, python, tmp_path):
    """No call of the importer allocates it. NVML counts it for its exporter, and after that one's end for its importer."""
    tenant = start_pair(machine, python, """
        held = []
        def export():
            held.append(make())
            return b"x", [int(ok(cu.cuMemExportToShareableHandle(held[0], FD, 0)))]
        data, fds, send_command = fork(export, {})
        desc = cu.CUDA_EXTERNAL_MEMORY_HANDLE_DESC()
        desc.type = cu.CUexternalMemoryHandleType.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
        desc.handle.fd = fds[0]
        desc.size = 64 * MIB
        memory = ok(cu.cuImportExternalMemory(desc))
        part = cu.CUDA_EXTERNAL_MEMORY_BUFFER_DESC()
        part.size = 64 * MIB
        p = ok(cu.cuExternalMemoryGetMappedBuffer(memory, part))
        look()
        send_command("die")
        look()
        ok(cu.cuMemFree(p))
        ok(cu.cuDestroyExternalMemory(memory))
        look()
        """)
    check_steps(tenant, machine,
                (2 * CONTEXT + 64 * MIB, 2 * CONTEXT + 64 * MIB),
                (CONTEXT + 64 * MIB, CONTEXT + 64 * MIB),
                (CONTEXT, CONTEXT))
