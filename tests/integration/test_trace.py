"""allot trace on the simulated GPU: the file has all that the program did, and is complete however the recording ends."""

import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import textwrap
import threading
import time

import pytest

from machines import BUILD, wait_until
from python_tenant import Tenant
from trace_events import Trace

cuda = pytest.importorskip("cuda.bindings.driver")

# A kernel that takes {us} microseconds on the simulated GPU, and a stream of its own.
KERNEL = """
start()
module = ok(cu.cuModuleLoadData(b"allot-sim"))
kernel = ok(cu.cuModuleGetFunction(module, b"allot_sim_{us}us_1b"))
stream = ok(cu.cuStreamCreate(1))

def launch(count):
    for _ in range(count):
        ok(cu.cuLaunchKernel(kernel, 3, 2, 1, 64, 1, 1, 0, stream, 0, 0))
    ok(cu.cuStreamSynchronize(stream))
"""


class Recorder:
    """`allot trace` in the background."""

    def __init__(self, machine, name, path, *options, **more):
        self.path = pathlib.Path(path)
        self.process = subprocess.Popen(
            [BUILD / "allot", "trace", name, *machine.sim, "--output", path, *options],
            env=machine.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, **more)
        machine.started.append(self.process)

    def wait_until_recording(self, machine, name):
        log = machine.run_dir / "allotd.log"
        begin = re.compile(rf"tenant '{re.escape(name)}' .*: traced by process {self.process.pid} ")
        wait_until(lambda: self.process.poll() is None and begin.search(log.read_text()),
                   what="the start of the trace")
        return self

    def end(self, number=signal.SIGINT):
        if number:
            self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, errors
        return Trace(self.path.read_text()), errors


@pytest.fixture
def traced(machine, python, tmp_path):
    """start(code, *options) starts a tenant, and runs `code` in it once it is recorded; returns (tenant, Recorder)."""
    def start(code, *options, name="a", memory="4GiB", path=tmp_path / "trace.json", us=20):
        code = KERNEL.replace("{us}", str(us)) + textwrap.dedent(code)
        tenant = Tenant(machine, python, "look('begin')\n" + code, memory, name, options)
        assert tenant.line() == "begin"
        recorder = Recorder(machine, name, path).wait_until_recording(machine, name)
        tenant.go()
        return tenant, recorder
    return start


def test_each_launch_allocation_and_denial_is_recorded(machine, traced):
    tenant, recorder = traced("""
        p = ok(cu.cuMemAlloc(64 << 20))
        launch(1000)
        ok(cu.cuMemsetD8Async(p, 0, 1 << 20, stream))
        refused(cu.cuMemAlloc(8 << 30))
        small = ok(cu.cuMemAlloc(1000))
        ok(cu.cuMemFree(small))
        ok(cu.cuMemFree(p))
        look("done")
        """)
    assert tenant.line() == "done"
    figures = machine.tenants()["a"]
    trace, errors = recorder.end()
    tenant.go()
    tenant.end()
    launches = trace.of("launch")
    assert len(launches) == trace.other["launches"] == 1000, errors
    pid = figures["processes"][0]["pid"]
    for event in launches:
        assert event["name"] == "allot_sim_20us_1b" and event["pid"] == pid
        assert (event["args"]["gpu"], event["args"]["blocks"], event["args"]["threads"]) == (0, 6, 64)
    assert len({event["args"]["stream"] for event in launches}) == 1
    assert trace.name_of(pid).startswith("python")
    assert trace.name_of(pid, launches[0]["tid"])
    assert [event["args"]["bytes"] for event in trace.of("copy", "cuMemsetD8Async")] == [1 << 20]
    allocated = [event["args"] for event in trace.of("memory", "allocate")]
    freed = [event["args"] for event in trace.of("memory", "free")]
    assert [a["bytes"] for a in allocated] == [64 << 20, 1024]
    assert [f["address"] for f in freed] == [a["address"] for a in reversed(allocated)]
    denied = trace.of("memory", "allocation denied")
    assert [event["args"]["bytes"] for event in denied] == [8 << 30]
    assert len(denied) == figures["devices"][0]["denied"] == trace.other["denied"]
    # The counter of the process's memory rose to the amount that it held.
    used = [event["args"]["bytes"] for event in trace.of("memory", "memory, GPU 0", "C")]
    assert max(used) >= (64 << 20) + (2 << 20) and used[-1] < max(used)
    assert trace.other["lost"] == 0 and "1,000" not in errors and "1000 launches" in errors


def test_a_launch_into_the_threads_own_default_stream_takes_the_gate(traced):
    """Only the gate records which default stream it was."""
    tenant, recorder = traced("""
        for _ in range(3):
            ok(cu.cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, 0, 0, 0))
        per_thread = ctypes.CDLL("libcuda.so.1").cuLaunchKernel_ptsz
        for _ in range(3):
            assert per_thread(ctypes.c_void_p(int(kernel)), 1, 1, 1, 64, 1, 1, 0, None, None, None) == 0
        ok(cu.cuCtxSynchronize())
        look("done")
        """, us=50000)
    assert tenant.line() == "done"
    trace, _ = recorder.end()
    tenant.go()
    tenant.end()
    assert sorted(event["args"]["stream"] for event in trace.of("launch")) == ["default"] * 3 + ["per-thread"] * 3


@pytest.mark.skipif(tuple(map(int, os.uname().release.split(".")[:2])) < (5, 14), reason="the kernel maps pages one by one")
def test_pages_of_the_trace_are_populated_at_the_first_launch(machine, traced):
    tenant, recorder = traced("""
        launch(1)
        maps = open("/proc/self/smaps").read()
        look(maps[maps.index("allot-trace"):].split("Rss:")[1].split()[0])
    """)
    assert int(tenant.line()) >= 4096
    recorder.end()
    tenant.go()


def test_leases_agree_with_ps_and_do_not_overlap(machine, traced):
    """Two tenants have half of the GPU each. The trace has as many leases as ps counts, none overlap, and all have a reason."""
    other = machine.start_load("--name", "b", "--memory", "4GiB", "--cores", "50",
                               load=("--seconds", 60, "--iters", 1000, "--report-every", 0))
    machine.wait_for_tenant("b", lambda t: t["devices"][0]["used_s"] > 0.1)
    tenant, recorder = traced("""
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            launch(20)
        look("done")
        """, "--cores", "50", us=500)
    assert tenant.line() == "done"
    # The last lease has ended, and is counted.
    machine.wait_for_tenant("a", lambda t: t["devices"][0]["lease"] not in ("go", "closing"))
    trace, errors = recorder.end()
    counted = machine.tenants()["a"]["devices"][0]
    tenant.go()
    tenant.end()
    other.terminate()
    leases = trace.leases_of("a")
    assert len(leases) == trace.other["leases"] == counted["leases"] > 5, errors
    assert {lease["args"].get("end") for lease in leases} <= {"turn", "idle", "cap", "alone"}
    # Only one lease at a time holds the GPU, and most of the charge was within leases. The remainder is work that was in flight
    # when a lease ended: little on an idle machine, a fifth beside six busy loops.
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in trace.of("lease") if e["name"] != "drain")
    assert all(before[1] <= after[0] + 0.002 for before, after in zip(spans, spans[1:]))
    held_s = sum(lease["dur"] for lease in leases) / 1e6
    assert counted["used_s"] / 2 < held_s < trace.other["lasted_s"]
    # Launches that are marked as leased are within a lease.
    inside = [any(lease["ts"] <= e["ts"] <= lease["ts"] + lease["dur"] + 1000 for lease in leases)
              for e in trace.of("launch") if e["args"].get("leased")]
    assert len(inside) > 50 and sum(inside) > 0.9 * len(inside)
    assert {e["name"] for e in trace.of("wait")} >= {"wait: lease"}


def test_a_wait_for_memory_and_a_pause(machine, python, traced):
    wait = ("--on-full", "wait")
    holder = Tenant(machine, python, "start()\np = ok(cu.cuMemAlloc(100 << 30))\nlook('held')",
                    "101GiB", "holder", wait)
    assert holder.line() == "held"
    tenant, recorder = traced("""
        p = ok(cu.cuMemAlloc(60 << 30))
        look("held")
        """, *wait, memory="61GiB")
    machine.wait_for_tenant("a", lambda t: t["state"] == "queued")
    holder.go()
    holder.end()
    assert tenant.line() == "held"
    assert machine.allot("pause", "a", *machine.sim).returncode == 0
    machine.wait_for_tenant("a", lambda t: t["state"] == "paused")
    time.sleep(0.1)
    trace, _ = recorder.end()
    tenant.go()
    tenant.end()
    waits = trace.of("wait", "wait: memory")
    assert waits and all(wait["args"]["granted"] for wait in waits)
    assert sum(wait["dur"] for wait in waits) > 1000
    assert {event["name"] for event in trace.of("state")} >= {"queued", "paused"}


def test_short_processes_are_recorded(machine, python, traced):
    """Each process is recorded from its first launch on, also a short one between two rounds, and a fork's child."""
    child = KERNEL.replace("{us}", "20") + "launch(300)\n"
    tenant, recorder = traced(f"""
        import subprocess
        children = [subprocess.Popen([sys.executable, "-c", {PREAMBLE_OF_CHILD!r} + {child!r}])
                     for _ in range(3)]
        assert all(p.wait() == 0 for p in children)
        if not os.fork():
            os._exit(0)
        os.wait()
        launch(100)
        """)
    tenant.end()
    _, errors = recorder.process.communicate(timeout=20)
    assert recorder.process.returncode == 0 and "which has ended" in errors
    trace = Trace(recorder.path.read_text())
    by_pid = {}
    for event in trace.of("launch"):
        by_pid[event["pid"]] = by_pid.get(event["pid"], 0) + 1
    assert sorted(by_pid.values()) == [100, 300, 300, 300]
    assert trace.other["lost"] == 0


PREAMBLE_OF_CHILD = """
import os, sys, time
from cuda.bindings import driver as cu
def ok(result):
    assert result[0] == cu.CUresult.CUDA_SUCCESS, result[0]
    return result[1] if len(result) == 2 else result[1:]
def start():
    ok(cu.cuInit(0))
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(0))))))
"""


def test_errors_and_ends_of_a_recording(machine, traced, tmp_path):
    tenant, recorder = traced("launch(10)\nlook('done')")
    assert tenant.line() == "done"
    existing = tmp_path / "kept.json"
    existing.write_text("mine")

    def refused(*args):
        result = machine.allot("trace", *args, *machine.sim)
        assert result.stdout == "" and result.stderr.count("\n") == 1, result.stderr
        return result.returncode, result.stderr

    assert refused("nobody", "--output", existing) == (1, "allot: trace: there is no tenant 'nobody': allot ps lists them\n")
    assert existing.read_text() == "mine"
    code, errors = refused("a")
    assert code == 1 and "traced already, by process" in errors
    assert refused() == (2, "allot: trace: write one tenant's name; allot ps lists them\n")
    assert refused("a", "--seconds", "x")[0] == 2
    trace, _ = recorder.end()
    assert trace.other["launches"] == 10
    code, errors = refused("a", "--output", tmp_path / "none" / "x")
    assert code == 1 and "none/x': No such file or directory" in errors
    code, errors = refused("a", "--seconds", "0.1", "--output", "/dev/full")
    assert code == 1 and "/dev/full': can't be written: No space left on device" in errors
    # A limited time, to a pipe, also to one whose reader has gone.
    done = machine.allot("trace", "a", *machine.sim, "--seconds", "0.2", "--output", "-")
    assert done.returncode == 0 and 0.19 < Trace(done.stdout).other["lasted_s"] < 5
    done = subprocess.run(f"{BUILD}/allot trace a --sim h200 --seconds 0.2 --output - | true",
                          shell=True, env=machine.environment, capture_output=True, text=True,
                          timeout=20, check=True)
    assert "Broken pipe" in done.stderr
    done = machine.allot("trace", "a", *machine.sim, "--limit", "1KiB", "--output", existing)
    assert done.returncode == 0 and "as large as --limit allows" in done.stderr
    Trace(existing.read_text())
    # A killed recorder leaves the tenant unchanged: the next may trace it.
    third = Recorder(machine, "a", tmp_path / "third.json").wait_until_recording(machine, "a")
    third.process.kill()
    third.process.wait()
    wait_until(lambda: machine.allot("trace", "a", *machine.sim, "--seconds", "0.1", "--output",
                                     tmp_path / "fourth.json").returncode == 0, what="the fourth recording")
    # When the daemon is killed, the recorder completes the file with what it has.
    last = Recorder(machine, "a", tmp_path / "last.json").wait_until_recording(machine, "a")
    for pid in machine.daemons():
        os.kill(pid, signal.SIGKILL)
    _, errors = last.process.communicate(timeout=20)
    assert last.process.returncode == 1 and "closed the connection" in errors and "recording stopped after" in errors
    assert Trace((tmp_path / "last.json").read_text()).other["tenant"] == "a"
    tenant.process.kill()


def test_a_process_that_does_not_answer_is_reported(machine, traced, tmp_path):
    """The message names the process. Meanwhile a terminal shows the progress."""
    tenant, recorder = traced("launch(10)\nlook('done')")
    assert tenant.line() == "done"
    recorder.end()
    pid = machine.tenants()["a"]["processes"][0]["pid"]
    os.kill(pid, signal.SIGSTOP)
    master, slave = pty.openpty()
    done = subprocess.run([BUILD / "allot", "trace", "a", *machine.sim, "--seconds", "3",
                           "--output", tmp_path / "x"], env=machine.environment, stderr=slave,
                          timeout=20, check=False)
    os.kill(pid, signal.SIGCONT)
    shown = os.read(master, 65536).decode()
    os.close(slave)
    os.close(master)
    assert done.returncode == 0
    assert shown.count("\r\x1b[K") > 2 and "no process records yet" in shown
    assert f"process {pid} is not in the trace" in shown.splitlines()[-1]
    assert Trace((tmp_path / "x").read_text()).other["processes"] == 0


def test_an_older_daemon_cant_trace(machine, tmp_path):
    refusal = b'{"ok":false,"error":"op \'trace\': unknown operation","errno":95}\n'

    def answer(listener):
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(refusal)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "allotd.sock"))
        listener.listen()
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        result = machine.allot("trace", "a", "--run-dir", tmp_path)
        thread.join()
    assert result.returncode == 1
    assert "is of a version that can't trace: restart it" in result.stderr


@pytest.mark.alone  # a cost
def test_tracing_costs_little(machine, traced):
    """Compares the launches that one process does in the same processor time, alternately traced and not. The requirement
    on real hardware is trace_overhead of bench/run; here the GPU, the tenant and allot share two processors."""
    tenant, recorder = traced("""
        def rate():
            count, begin = 0, time.process_time()
            while time.process_time() - begin < 0.08:
                launch(50)
                count += 50
            return count
        for line in iter(lambda: look("ready"), ""):
            print(rate(), flush=True)
        """)
    recorder.end()
    rates = {True: [], False: []}
    for is_traced in [True, False] * 3:
        assert tenant.line() == "ready"
        if is_traced:
            recorder.path.unlink()
            recorder = Recorder(machine, "a", recorder.path)
            wait_until(lambda: recorder.path.exists() and recorder.path.stat().st_size,
                       what="the start of the trace")
            time.sleep(0.1)
        tenant.go("go")
        rates[is_traced].append(int(tenant.line()))
        if is_traced:
            trace, _ = recorder.end()
            assert trace.other["launches"] >= rates[True][-1]
    tenant.process.stdin.close()
    assert sorted(rates[True])[1] > 0.7 * sorted(rates[False])[1], rates
