"""Legacy IPC of memory that can be moved off the GPU: allot's own handles, and file descriptors passed via the daemon."""

import textwrap

import pytest

from machines import make_machine, wait_until
from python_tenant import CONTEXT, MIB, Tenant, card_used
from test_memory import TWO_TENANTS, IPC, export_and_open
from test_swap import pause, resume, swap_of
from test_swap_cards import SPEC

pytest.importorskip("cuda.bindings.driver")

CODE = """
import hashlib

def pattern(seed, n):
    return hashlib.shake_128(seed).digest(n)

def write(ptr, data):
    assert cu.cuMemcpyHtoD(ptr, data, len(data))[0] == R.CUDA_SUCCESS

def read(ptr, n):
    data = bytearray(n)
    assert cu.cuMemcpyDtoH(data, ptr, n)[0] == R.CUDA_SUCCESS
    return bytes(data)
"""


def swappable(machine, python, code, **more):
    return Tenant(machine, python, textwrap.dedent(code), options=("--on-full", "swap"), **more)


@pytest.mark.parametrize("command", ["free", "die"])
def test_shared_memory_is_charged_once_until_its_last_holder_releases_it(machine, python, command):
    """The same as for unmovable memory (test_memory.py); and the memory exists as long as a process has it open."""
    contexts = CONTEXT if command == "die" else 2 * CONTEXT
    tenant = swappable(machine, python, CODE + IPC + textwrap.dedent(f"""
        q = ok(cu.cuIpcOpenMemHandle(handle, 1))
        assert int(ok(cu.cuIpcOpenMemHandle(handle, 1))) == int(q)
        write(q, pattern(b"ours", 1 << 20))
        ok(cu.cuIpcCloseMemHandle(q))
        look()
        send_command(b"{command}")
        look()
        assert read(q, 1 << 20) == pattern(b"ours", 1 << 20)
        ok(cu.cuIpcCloseMemHandle(q))
        assert cu.cuIpcCloseMemHandle(q)[0] != R.CUDA_SUCCESS
        look()
        assert cu.cuIpcOpenMemHandle(handle, 1)[0] == R.CUDA_ERROR_INVALID_HANDLE
        if {command == "free"}:
            send_command(b"die")
        """))
    tenant.line()
    tenant.wait_used(2 * CONTEXT + 64 * MIB)
    assert card_used(machine) == 2 * CONTEXT + 64 * MIB
    wait_until(lambda: swap_of(machine), what="a swappable process")
    wait_until(lambda: sum(d["stays"]["known_to_others_bytes"]
                           for d in swap_of(machine)["devices"]) == 64 * MIB, 5, "the report of shared memory")
    tenant.go()
    tenant.line()
    tenant.wait_used(contexts + 64 * MIB)
    assert card_used(machine) == contexts + 64 * MIB
    tenant.go()
    tenant.line()
    tenant.wait_used(contexts)
    wait_until(lambda: card_used(machine) == contexts, what="the memory's release")
    tenant.go()
    tenant.end()


def test_only_memory_that_is_not_shared_moves(machine, python):
    """Processes of the simulated GPU don't see each other's bytes; tests/gpu checks those."""
    tenant = swappable(machine, python, CODE + textwrap.dedent("""
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            ours.close()
            start()
            ptr = ok(cu.cuIpcOpenMemHandle(handle_of(theirs.recv(64)), 1))
            while theirs.recv(8):
                write(int(ptr) + 4096, pattern(b"child", 5000))
                theirs.send(read(int(ptr) + 4096, 5000))
            os._exit(0)
        theirs.close()
        start()
        p = int(ok(cu.cuMemAlloc(3 * MIB + 1)))
        unshared = int(ok(cu.cuMemAlloc(16 * MIB)))
        write(p, pattern(b"parent", 3 * MIB))
        write(unshared, pattern(b"unshared", 16 * MIB))
        exported = ok(cu.cuIpcGetMemHandle(p))
        # The same memory has the same handle; its exporter can't open it, as on a real GPU.
        assert handle_bytes(ok(cu.cuIpcGetMemHandle(p + 100))) == handle_bytes(exported)
        assert cu.cuIpcOpenMemHandle(exported, 1)[0] == R.CUDA_ERROR_INVALID_CONTEXT
        ours.send(handle_bytes(exported))
        def child_works():
            ours.send(b"work")
            return ours.recv(5000) == pattern(b"child", 5000)
        assert child_works()
        look()
        assert child_works()
        assert read(p, 4096) == pattern(b"parent", 4096)
        assert read(unshared, 16 * MIB) == pattern(b"unshared", 16 * MIB)
        look()
        ours.close()
        os.waitpid(child, 0)
        """))
    tenant.line()
    pause(machine)
    assert swap_of(machine)["swapped_bytes"] == 16 * MIB
    resume(machine)
    tenant.go()
    tenant.line()
    tenant.go()
    tenant.end()


def test_another_tenant_cant_open_the_handle(machine, python):
    code = TWO_TENANTS + textwrap.dedent("""
        assert cu.cuIpcOpenMemHandle(handle, 1)[0] == R.CUDA_ERROR_INVALID_HANDLE
        look()
        """)
    exporter, importer = (swappable(machine, python, code, name=name) for name in ("exporter", "importer"))
    export_and_open(exporter, importer)
    for tenant in importer, exporter:
        tenant.go()
        tenant.end()


def test_a_handle_outlives_the_daemon(machine, python):
    """The exporting process reports the memory to the next daemon."""
    tenant = swappable(machine, python, CODE + IPC + textwrap.dedent("""
        look()
        q = ok(cu.cuIpcOpenMemHandle(handle, 1))
        write(q, pattern(b"after", 1 << 20))
        look()
        ok(cu.cuIpcCloseMemHandle(q))
        send_command(b"free")
        look()
        send_command(b"die")
        """))
    tenant.line()
    machine.kill_daemon()
    machine.wait_for_tenant("a", lambda tenant: len(tenant["processes"]) == 2)
    tenant.go()
    tenant.line()
    tenant.go()
    tenant.line()
    wait_until(lambda: card_used(machine) == 2 * CONTEXT, what="the memory's release")
    tenant.go()
    tenant.end()


def test_memory_is_opened_on_another_gpu(tmp_path_factory, python):
    """The other GPU accesses it over NVLink. It is closed with the context that it was opened in."""
    spec = tmp_path_factory.mktemp("spec") / "pair.sim"
    spec.write_text(SPEC)
    pair = make_machine(tmp_path_factory, str(spec))
    try:
        tenant = Tenant(pair, python, CODE + IPC.replace("start()\nhandle", "start(1)\nhandle") +
                        textwrap.dedent("""
            q = ok(cu.cuIpcOpenMemHandle(handle, 1))
            write(q, pattern(b"far", 1 << 20))
            assert read(q, 1 << 20) == pattern(b"far", 1 << 20)
            look()
            ok(cu.cuDevicePrimaryCtxReset(1))
            send_command(b"free")
            look()
            send_command(b"die")
            """), options=("--gpu", "0,1", "--on-full", "swap"), memory="1536MiB")
        tenant.line()
        wait_until(lambda: pair.ps()["devices"][0]["memory_used_bytes"] == CONTEXT + 64 * MIB, 5,
                   "the memory on the first GPU")
        tenant.go()
        tenant.line()
        wait_until(lambda: pair.ps()["devices"][0]["memory_used_bytes"] == CONTEXT, 5,
                   "the memory's release")
        tenant.go()
        tenant.end()
    finally:
        pair.clean()
