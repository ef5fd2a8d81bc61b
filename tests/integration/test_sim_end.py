"""Failures of the simulated GPU and its clients. A client is killed or forks; the server is missing, is killed or exits; a GPU
is lost; faults are injected."""

import os
import pathlib
import signal
import subprocess
import time

import pytest

from machines import wait_until
from sim_peers import CONTEXT, LIBRARIES, MIB, SERVER, client_command, client_environment, sim, start_sim  # noqa: F401


def test_init_fails_without_a_server(tmp_path, sim):  # noqa: F811
    assert "100" in sim.run("print(int(cu.cuInit(0)[0]))", ALLOT_SIM_SOCKET=str(tmp_path / "none"))
    assert "100" in sim.run("print(int(cu.cuInit(0)[0]))", ALLOT_SIM_SOCKET="")


def test_a_killed_client_releases_everything(sim):  # noqa: F811
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
    wait_until(lambda: not sim.ctl("stats")["clients"], what="the end of the client")
    assert sim.ctl("stats")["cards"][0]["memory_used_bytes"] == 0
    # The killed client's kernels would still run for minutes.
    sim.run("start(); t = time.monotonic(); ok(launch(kernel('allot_sim_1000us_132b')));"
            "ok(cu.cuCtxSynchronize()); assert time.monotonic() - t < 30")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_its_files(sim, number):  # noqa: F811
    client = sim.popen("start(); print('up', flush=True); time.sleep(60)")
    assert client.stdout.readline() == "up\n"
    files = [pathlib.Path(sim.socket), pathlib.Path(f"{sim.socket}.uvm")]
    assert all(file.exists() for file in files)
    sim.server.send_signal(number)
    assert sim.server.wait(timeout=30) == 0
    assert not any(file.exists() for file in files)


def test_xid_and_lost_gpu(sim):  # noqa: F811
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


def test_launches_on_a_lost_gpu_do_not_wait(sim):  # noqa: F811
    """Launches that the server drops leave room in the launch queue, which holds 1,024."""
    client = sim.popen("""
        start()
        flag = ok(cu.cuMemAlloc(4))
        f, spin = kernel("allot_sim_60000000us_132b"), kernel("allot_sim_spin_1b")
        ok(launch(f))
        print("up", flush=True)
        cu.cuCtxSynchronize()
        for i in range(1100):
            ok(launch(f))
            ok(cu.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, 0, ((flag,), (None,)), 0))
        """)
    assert client.stdout.readline() == "up\n"
    sim.ctl("lose", "0")
    assert client.wait(60) == 0


def test_calls_fail_after_the_server_is_killed(sim):  # noqa: F811
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


def test_a_forked_child_is_not_initialized(sim):  # noqa: F811
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


def test_injected_faults(sim):  # noqa: F811
    sim.run("""
        start()
        for i in range(3):
            ok(cu.cuMemAlloc(100))
        assert cu.cuMemAlloc(100)[0] == R.CUDA_ERROR_OUT_OF_MEMORY
        """, ALLOT_SIM_FAULT="oom-after=3")
    sim.run("assert cu.cuInit(0)[0] == R.CUDA_ERROR_NO_DEVICE", ALLOT_SIM_FAULT="fail=cuInit:100")
    client = sim.popen("""
        start()
        print('up', flush=True)
        cu.cuMemAlloc(1)
        print('no', flush=True)
        """, ALLOT_SIM_FAULT="hang=cuMemAlloc_v2")
    assert client.stdout.readline() == "up\n"
    time.sleep(0.3)
    assert client.poll() is None


def test_the_server_ends_after_its_last_client(tmp_path):
    socket = tmp_path / "s"
    server = subprocess.Popen([SERVER, "--spec", "h200", "--socket", socket, "--linger",
                               "0.3", "--foreground"])
    while not socket.exists():
        time.sleep(0.01)
    time.sleep(0.5)
    assert server.poll() is None  # no client has connected yet
    subprocess.run(client_command("start()"), check=True, timeout=30,
                   env=client_environment(socket))
    assert server.wait(5) == 0
    assert not socket.exists()


@pytest.mark.parametrize("scope", ["all", "stays"])
def test_an_mps_fault_of_an_unknown_client_ends_no_server(tmp_path, scope):
    control = [str(LIBRARIES / "nvidia-cuda-mps-control")]
    environment = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}
    daemon = subprocess.Popen([*control, "-f"], env=environment, stdout=subprocess.DEVNULL)

    def ask(command):
        return subprocess.run(control, input=command + "\n", env=environment, capture_output=True, text=True, timeout=10).stdout

    try:
        deadline = time.monotonic() + 10
        while not (tmp_path / "nvidia-cuda-mps-control.pid").exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        ask(f"start_server -uid {os.getuid()}")
        server = ask("get_server_list")
        assert server.strip()
        ask(f"sim_fault 1 {scope}")
        time.sleep(0.2)
        assert ask("get_server_list") == server
        assert ask(f"get_server_status {server.strip()}") == "ACTIVE\n"
    finally:
        daemon.terminate()
        daemon.wait()
