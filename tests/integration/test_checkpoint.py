"""Tenants whose GPU memory and contexts are moved to host memory by the driver's checkpoint calls. allot uses these where
liballot.so can't move the memory."""

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from machines import BUILD, kill_servers, processes_of, wait_until
from servers import start_servers
from python_tenant import CONTEXT, MIB, PREAMBLE, Tenant, card_used
from test_swap import BUFFERS, WORKERS, resume, tenant_says as says

pytest.importorskip("cuda.bindings.driver")

HELD = CONTEXT + (2 + 4 + 34 + 2 + 8) * MIB
CARD = 143771 * MIB
FAULT = "ALLOT_SIM_FAULT"


def start_unswappable(machine, python, code, **more):
    """Starts a tenant without --on-full swap."""
    return Tenant(machine, python, BUFFERS + textwrap.dedent(code), **more)


def swap_of(machine, name="a"):
    return machine.tenants().get(name, {}).get("swap")


def pause(machine, name="a"):
    done = machine.allot("pause", name, "--swap-out", *machine.sim)
    assert done.returncode == 0, done.stderr


def listed(machine):
    """Returns the pids of the processes that NVML lists on the GPU."""
    program = ("import pynvml as n; n.nvmlInit(); "
               "h = n.nvmlDeviceGetHandleByIndex(0); "
               "print([p.pid for p in n.nvmlDeviceGetComputeRunningProcesses(h)])")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False,
                          env={**machine.environment, "LD_LIBRARY_PATH": str(BUILD / "sim"),
                               "ALLOT_SIM_SOCKET": str(machine.run_dir / "sim.sock")})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def helpers(machine):
    return {pid: line for pid, line in processes_of(str(machine.base)).items()
            if line.startswith("allot-checkpoint ")}


def settings(directory, text="checkpoint_timeout = 1500ms\n"):
    path = directory / "settings"
    path.write_text(text)
    return str(path)


def test_all_memory_is_swapped_out_and_back(machine, python):
    tenant = start_unswappable(machine, python, """
        small = ok(cu.cuMemAlloc(64 << 10))
        look()
        check()
        look()
        """)
    tenant.line()
    assert swap_of(machine) is None
    tenant.wait_used(HELD + 2 * MIB)
    pid = machine.tenants()["a"]["processes"][0]["pid"]
    assert listed(machine) == [pid]
    pause(machine)
    swap = swap_of(machine)
    assert (swap["kind"], swap["state"], swap["swapped_bytes"], swap["error"]) == \
        ("checkpoint", "out", HELD + 2 * MIB, None)
    # The context has left too, which the library could not move. The used quota is unchanged.
    assert card_used(machine) == 0 and listed(machine) == []
    assert tenant.used() == HELD + 2 * MIB
    assert machine.tenants()["a"]["state"] == "swapped"
    tenant.go()
    assert not says(tenant, 0.5)
    resume(machine)
    tenant.line()
    assert card_used(machine) == HELD + 2 * MIB and listed(machine) == [pid]
    assert swap_of(machine) is None and machine.tenants()["a"]["state"] in ("idle", "running")
    wait_until(lambda: not helpers(machine), what="the end of the helper")
    tenant.go()
    tenant.end()


def test_others_use_the_memory_of_a_swapped_tenant(machine, python):
    """Another tenant is promised the memory and uses it. Meanwhile a resume fails, and the tenant stays in host memory."""
    tenant = start_unswappable(machine, python, """
        look()
        check()
        """, memory="100GiB")
    tenant.line()
    pause(machine)
    other = Tenant(machine, python, """
        start()
        big = ok(cu.cuMemAlloc(120 << 30))
        look()
        """, memory="130GiB", name="b")
    other.line()
    tenant.go()
    done = machine.allot("resume", "a", *machine.sim)
    assert done.returncode == 1 and "stays in host memory: it needs" in done.stderr, done.stderr
    assert "102400 MiB of GPU 0" in done.stderr and done.stderr.count("\n") == 1
    assert swap_of(machine)["state"] == "out"
    assert not says(tenant, 0.2)
    other.go()
    other.end()
    machine.wait_for_tenant("a")
    wait_until(lambda: card_used(machine) == 0, what="an empty GPU")
    wait_until(lambda: machine.allot("resume", "a", *machine.sim).returncode == 0, what="its return")
    tenant.end()


def test_a_resume_fails_on_a_gpu_full_of_foreign_memory(machine, python):
    """allotd asks NVML for free memory before a restore. Here a process of no tenant holds almost all of it."""
    tenant = start_unswappable(machine, python, "look()\ncheck()")
    tenant.line()
    pause(machine)
    hoard = subprocess.Popen(
        [python, "-c", PREAMBLE + "start(); ok(cu.cuMemAlloc(%d)); look()" % (CARD - CONTEXT - 400 * MIB)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**machine.environment, "LD_LIBRARY_PATH": str(BUILD / "sim"),
             "ALLOT_SIM_SOCKET": str(machine.run_dir / "sim.sock")})
    machine.started.append(hoard)
    assert hoard.stdout.readline()
    # Immediately: whether the census has seen that memory yet decides about the message.
    done = machine.allot("resume", "a", *machine.sim)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert "GPU 0" in done.stderr, done.stderr
    assert "the moved memory needs" in done.stderr or "are promised to others or in use" in done.stderr, done.stderr
    assert swap_of(machine)["state"] == "out"
    assert machine.tenants()["a"]["state"] == "swapped"
    hoard.kill()
    hoard.wait()
    tenant.go()
    wait_until(lambda: machine.allot("resume", "a", *machine.sim).returncode == 0, what="its return")
    tenant.end()


def test_all_processes_are_swapped_out_or_none(machine, python):
    """One of two processes holds memory that the driver can't move. The other one is restored at once, and both continue."""
    tenant = start_unswappable(machine, python, """
        import subprocess
        child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        look()
        check()
        print(child.communicate("free\\n")[0].strip(), child.returncode, flush=True)
        look()
        check()
        """.replace("CHILD", repr(PREAMBLE + textwrap.dedent("""
        start()
        ptr = ok(cu.cuMemAllocManaged(4 * MIB, 1))
        look()
        ok0 = lambda result: result[0] == R.CUDA_SUCCESS or sys.exit(3)
        ok0(cu.cuMemFree(ptr))
        print("freed", flush=True)
        """))))
    tenant.line()
    machine.wait_for_tenant("a", lambda tenant: len(tenant["processes"]) == 2)
    before = card_used(machine)
    done = machine.allot("pause", "a", "--swap-out", *machine.sim)
    assert done.returncode == 1 and "managed memory" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 2  # the progress, and the reason of the failure
    assert card_used(machine) == before and len(listed(machine)) == 2
    state = machine.tenants()["a"]
    assert state["state"] != "swapped" and state["state"] != "paused", state
    assert state["swap"]["state"] == "in" and state["swap"]["failed"] == 1
    tenant.go()
    assert tenant.line() == "freed 0"
    pause(machine)
    assert card_used(machine) == 0
    tenant.go()
    resume(machine)
    tenant.end()


def test_work_and_threads_wait_while_swapped_out(machine, python):
    """Threads that copy, set, allocate and launch all the time do not notice ten moves."""
    tenant = start_unswappable(machine, python, "SIZE, OTHER = 2 * MIB, 64 << 10\n" + WORKERS)
    tenant.line()
    for _ in range(10):
        pause(machine)
        assert card_used(machine) == 0
        resume(machine)
    tenant.go()
    tenant.line()
    tenant.end()


def test_an_allocation_waits_while_swapped_out(machine, python):
    """Its thread was not in the driver when the tenant left, so the library sees the allocation first."""
    tenant = start_unswappable(machine, python, """
        look()
        print("begins", flush=True)
        big = ok(cu.cuMemAlloc(64 * MIB))
        print("has it", flush=True)
        ok0(cu.cuMemFree(big))
        check()
        """)
    tenant.line()
    pause(machine)
    tenant.go()
    assert tenant.line() == "begins"
    assert not select.select([tenant.process.stdout], [], [], 0.3)[0]
    assert card_used(machine) == 0
    resume(machine)
    assert tenant.line() == "has it"
    tenant.end()


def test_swap_out_gives_up_on_work_that_does_not_end(machine, python, tmp_path):
    """A stream waits for a value that is not written yet. The swap-out fails in time, and the tenant continues."""
    tenant = start_unswappable(machine, python, """
        stream = ok(cu.cuStreamCreate(1))
        ok0(cu.cuStreamWaitValue32(stream, held[0][0], 7, 1))
        look()
        ok0(cu.cuMemcpyHtoD(held[0][0], (7).to_bytes(4, "little"), 4))
        ok0(cu.cuStreamSynchronize(stream))
        look()
        """, environment={"ALLOT_CONFIG": settings(tmp_path)})
    tenant.line()
    done = machine.allot("pause", "a", "--swap-out", *machine.sim)
    assert done.returncode == 1 and "did not end in time" in done.stderr, done.stderr
    tenant.go()
    tenant.line()
    pause(machine)
    resume(machine)
    tenant.go()
    tenant.end()


def test_a_process_killed_while_swapped_out(machine, python):
    tenant = start_unswappable(machine, python, "look()")
    tenant.line()
    pause(machine)
    os.kill(machine.tenants()["a"]["processes"][0]["pid"], signal.SIGKILL)
    tenant.process.wait(timeout=10)
    wait_until(lambda: "a" not in machine.tenants(), what="the end of the tenant")
    assert card_used(machine) == 0
    wait_until(lambda: not helpers(machine), what="the end of the helper")
    assert not list(machine.run_dir.glob("keeper-*"))
    machine.wait_until_gone()


def test_a_program_can_exit_while_swapped_out(machine, python):
    """The library does not wait in the locked driver."""
    tenant = start_unswappable(machine, python, "look()\nsys.exit(0)")
    tenant.line()
    pause(machine)
    tenant.go()
    tenant.end()


def test_a_process_that_starts_while_swapped_out_gets_no_memory(machine, python):
    tenant = start_unswappable(machine, python, """
        import subprocess
        look()
        child = subprocess.run([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)
        print(child.stdout.strip(), flush=True)
        look()
        check()
        """.replace("CHILD", repr(PREAMBLE + textwrap.dedent("""
        ok(cu.cuInit(0))
        print(cu.cuDevicePrimaryCtxRetain(0)[0].name)
        """))))
    tenant.line()
    pause(machine)
    tenant.go()
    assert tenant.line() == "CUDA_ERROR_OUT_OF_MEMORY"
    assert card_used(machine) == 0
    resume(machine)
    tenant.go()
    tenant.end()


def test_the_daemon_is_killed_while_a_tenant_is_swapped_out(machine, python):
    """The helper restores the memory. The next daemon reads in its state that the tenant was swapped out, and swaps it out
    again."""
    tenant = start_unswappable(machine, python, "look(); check(); look(); check()")
    tenant.line()
    pause(machine)
    tenant.go()
    machine.kill_daemon()
    wait_until(lambda: (swap_of(machine) or {}).get("state") == "out", what="the swap-out")
    assert card_used(machine) == 0
    if not says(tenant, 0.3):
        resume(machine)
        tenant.line()
        pause(machine)
    tenant.go()
    resume(machine)
    tenant.end()


def test_the_next_daemon_adopts_a_busy_swapped_tenant(machine, python):
    """The library's helper thread has work in flight, and must not wait for its end in the locked driver."""
    tenant = start_unswappable(machine, python, """
        module = ok(cu.cuModuleLoadData(b".version 8.0\\n.target sm_90\\n\\0"))
        kernel = ok(cu.cuModuleGetFunction(module, b"allot_sim_700000us_132b"))
        while look() != "end":
            ok0(cu.cuLaunchKernel(kernel, 132, 1, 1, 128, 1, 1, 0, 0, 0, 0))
        check()
        """)
    tenant.line()
    for _ in range(2):
        tenant.go("on")
        tenant.line()
        pause(machine)
        machine.kill_daemon(*helpers(machine))
        wait_until(lambda: machine.tenants().get("a", {}).get("processes"), what="its adoption")
        wait_until(lambda: (swap_of(machine) or {}).get("state") == "out", what="the swap-out")
        assert not machine.tenants()["a"]["adopting"]
        resume(machine)
    tenant.go("end")
    tenant.end()


@pytest.mark.parametrize("step, order", [
    ("Lock", "pause"), ("Checkpoint", "pause"), ("Restore", "resume"), ("Unlock", "resume")])
def test_the_daemon_and_its_helper_are_killed_during_a_move(machine, python, tmp_path, monkeypatch,
                                                            step, order):
    """At each step of a move: the next daemon completes it, and the contents of the memory are intact."""
    # Helpers of this daemon hang in that call; those of the next daemon do not.
    monkeypatch.setenv(FAULT, f"hang=cuCheckpointProcess{step}")
    start_servers(machine, tmp_path, "")
    tenant = start_unswappable(machine, python, "look(); check(); look(); check()")
    tenant.line()
    if order == "resume":
        pause(machine)
    command = subprocess.Popen(
        [BUILD / "allot", order, "a", *(["--swap-out"] if order == "pause" else []), *machine.sim],
        env=machine.environment, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    machine.started.append(command)
    moving = {"pause": "leaving", "resume": "returning"}[order]
    wait_until(lambda: (swap_of(machine) or {}).get("state") == moving and helpers(machine), 5, moving)
    time.sleep(0.3)
    machine.kill_daemon(*helpers(machine))
    command.wait(timeout=20)
    wait_until(lambda: machine.tenants().get("a", {}).get("processes"), what="its adoption")
    if order == "pause":
        wait_until(lambda: (swap_of(machine) or {}).get("state") == "out", what="the swap-out")
        assert card_used(machine) == 0
        resume(machine)
    wait_until(lambda: card_used(machine) == HELD, what="its return")
    tenant.go()
    tenant.line()
    pause(machine)
    tenant.go()
    resume(machine)
    tenant.end()


def test_the_helper_is_killed_while_a_tenant_is_swapped_out(machine, python):
    """Another helper replaces it, because each swapped tenant needs one that can restore it."""
    tenant = start_unswappable(machine, python, "look(); check()")
    tenant.line()
    pause(machine)
    first = list(helpers(machine))
    assert len(first) == 1
    kill_servers(first[0])
    wait_until(lambda: helpers(machine) and first[0] not in helpers(machine), what="another helper")
    wait_until(lambda: swap_of(machine)["state"] == "out", what="its answer")
    assert card_used(machine) == 0
    tenant.go()
    resume(machine)
    tenant.end()


def start_with_faulty_driver(machine, python, tmp_path, monkeypatch, fault, settings_="", code="look(); check()"):
    """Starts a tenant of a daemon whose checkpoint helpers have a driver with that fault."""
    monkeypatch.setenv(FAULT, fault)
    start_servers(machine, tmp_path, settings_)
    tenant = start_unswappable(machine, python, code)
    tenant.line()
    return tenant


@pytest.mark.parametrize("step", ["Lock", "Checkpoint"])
def test_a_driver_that_hangs(machine, python, tmp_path, monkeypatch, step):
    """The helper is killed in time, and another one takes back the unfinished move."""
    tenant = start_with_faulty_driver(machine, python, tmp_path, monkeypatch, f"hang=cuCheckpointProcess{step}",
                                      "checkpoint_timeout = 500ms\n")
    done = machine.allot("pause", "a", "--swap-out", *machine.sim)
    assert done.returncode == 1 and "did not answer in time" in done.stderr, done.stderr
    assert card_used(machine) == HELD and swap_of(machine)["state"] == "in"
    wait_until(lambda: not helpers(machine), what="the end of the helpers")
    tenant.go()
    tenant.end()


def test_a_restore_that_fails(machine, python, tmp_path, monkeypatch):
    """The tenant stays in host memory, with the reason in its state. When it ends, it leaves nothing behind."""
    tenant = start_with_faulty_driver(machine, python, tmp_path, monkeypatch, "fail=cuCheckpointProcessRestore:304")
    pause(machine)
    done = machine.allot("resume", "a", *machine.sim)
    assert done.returncode == 1 and "CUDA_ERROR_OPERATING_SYSTEM" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
    assert swap_of(machine)["state"] == "out" and "can't be restored" in swap_of(machine)["error"]
    assert machine.tenants()["a"]["state"] == "swapped" and card_used(machine) == 0
    os.kill(machine.tenants()["a"]["processes"][0]["pid"], signal.SIGKILL)
    wait_until(lambda: "a" not in machine.tenants(), what="the end of the tenant")
    wait_until(lambda: not helpers(machine), what="the end of the helper")
    tenant.process.wait(timeout=10)


def test_a_driver_without_checkpoints(machine, python, tmp_path, monkeypatch):
    tenant = start_with_faulty_driver(machine, python, tmp_path, monkeypatch, "fail=cuCheckpointProcessLock:801")
    done = machine.allot("pause", "a", "--swap-out", *machine.sim)
    assert done.returncode == 1 and "CUDA_ERROR_NOT_SUPPORTED" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 2 and swap_of(machine)["state"] == "in"
    tenant.go()
    tenant.end()


def test_shared_memory_is_not_swapped_out(machine, python):
    tenant = start_unswappable(machine, python, """
        handle = ok(cu.cuIpcGetMemHandle(held[0][0]))
        look()
        check()
        """)
    tenant.line()
    done = machine.allot("pause", "a", "--swap-out", *machine.sim)
    assert done.returncode == 1 and "other processes share" in done.stderr, done.stderr
    assert card_used(machine) == HELD
    tenant.go()
    tenant.end()


def test_pause_of_a_swapped_tenant_brings_its_memory_back(machine, python):
    """A paused tenant can be swapped out. `allot pause` then brings its memory back, and it is still paused."""
    tenant = start_unswappable(machine, python, "look(); check()")
    tenant.line()
    assert machine.allot("pause", "a", *machine.sim).returncode == 0
    pause(machine)
    assert machine.allot("pause", "a", *machine.sim).returncode == 0
    assert card_used(machine) == HELD and machine.tenants()["a"]["state"] == "paused"
    resume(machine)
    tenant.go()
    tenant.end()


def test_a_move_is_not_interrupted_by_other_requests(machine, python, tmp_path, monkeypatch):
    """While a tenant is moved, requests for other moves are refused."""
    tenant = start_with_faulty_driver(machine, python, tmp_path, monkeypatch, "hang=cuCheckpointProcessLock",
                                      "checkpoint_timeout = 2s\n")
    first = subprocess.Popen([BUILD / "allot", "pause", "a", "--swap-out", *machine.sim],
                             env=machine.environment, stderr=subprocess.PIPE, text=True)
    machine.started.append(first)
    wait_until(lambda: (swap_of(machine) or {}).get("state") == "leaving", what="the move")
    for arguments in (["resume", "a"], ["pause", "a", "--swap-out"]):
        done = machine.allot(*arguments, *machine.sim)
        assert done.returncode == 1 and "is being moved already (leaving)" in done.stderr, done.stderr
    assert first.wait(timeout=20) == 1
    tenant.go()
    tenant.end()
