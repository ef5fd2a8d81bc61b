"""Runs tests/differential/run for a while: it makes random calls of the driver and of NVML with and without allot, and compares
the results. Also repeats calls that once differed. By hand it can run longer, and on a real GPU."""

import re
import subprocess
import sys
import time
from pathlib import Path

from machines import BUILD, ROOT

SECONDS = 45


def run(*options, timeout=240):
    return subprocess.run([sys.executable, ROOT / "tests/differential/run", "--build", BUILD, "--jobs", "1",
                           *map(str, options)], capture_output=True, text=True, timeout=timeout, check=False)


def test_random_calls_do_not_differ():
    result = run("--seconds", SECONDS, "--seed", 1)
    assert result.returncode == 0, result.stdout + result.stderr
    assert int(re.search(r"^(\d+) calls in", result.stdout, re.MULTILINE).group(1)) > 1000, result.stdout


# The causes were: pointers and handles that the library read before the driver refused the call; outputs of failed calls; and
# errors of another function than the program called.
ONCE_DIFFERED = ["cuArrayCreate", "cuArrayCreate_v2", "cuArray3DCreate", "cuMemcpy2D_v2", "cuMemcpyBatchAsync",
                 "cuMemPrefetchBatchAsync", "cuMemCreate", "cuMipmappedArrayCreate", "cuMemAlloc", "cuMemAllocPitch",
                 "cuLaunchKernelEx", "cuGraphLaunch", "cuGraphInstantiateWithFlags", "cuGreenCtxDestroy", "cuCtxCreate_v3",
                 "cuGetProcAddress", "cuGetProcAddress_v2", "nvmlSystemGetProcessName",
                 "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetGraphicsRunningProcesses_v2"]


def test_calls_that_once_differed():
    result = run(*(text for function in ONCE_DIFFERED for text in ("--function", function)))
    assert result.returncode == 0, result.stdout + result.stderr


CAPTURE = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, stream, graph, array = (ctypes.c_void_p() for _ in range(4))
description = (ctypes.c_size_t * 5)(64, 64, 0, 0x20 | 1 << 32, 0)
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
assert cuda.cuStreamBeginCapture_v2(stream, 1) == 0
print(cuda.cuMipmappedArrayCreate(ctypes.byref(array), description, 0), cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
"""


def test_a_refused_array_does_not_break_a_capture(machine, python):
    result = machine.run("--memory", "1GiB", "--", python, "-c", CAPTURE)
    assert (result.returncode, result.stdout) == (0, "1 0\n"), result.stdout + result.stderr


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def until(condition):
    deadline = time.monotonic() + 30
    while not (result := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return result


def child_of(pid, name):
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            if Path(f"/proc/{child}/comm").read_text() == name + "\n":
                return child
        except (FileNotFoundError, ProcessLookupError):
            pass    # it has ended since it was listed
    return None


def test_a_sequence_ends_with_its_caller():
    caller = subprocess.Popen([BUILD / "meson/tests/differential/differential-calls"], stdin=subprocess.PIPE, text=True,
                              env={"LD_LIBRARY_PATH": str(BUILD / "sim"), "ALLOT_SIM_FAULT": "hang=cuInit"})
    caller.stdin.write("random 1 1 0 1 600\n")
    caller.stdin.flush()
    child = until(lambda: child_of(caller.pid, "differential-ca"))
    caller.kill()
    caller.wait()
    until(lambda: not is_alive(child))


def test_a_terminated_run_ends_its_sequences():
    process = subprocess.Popen([sys.executable, ROOT / "tests/differential/run", "--build", BUILD, "--jobs", "1",
                                "--function", "cuStreamQuery", "--environment", "ALLOT_SIM_FAULT=hang=cuStreamQuery"],
                               stdout=subprocess.DEVNULL)
    tenant = until(lambda: child_of(process.pid, "allot"))
    caller = until(lambda: child_of(tenant, "differential-ca"))
    child = until(lambda: child_of(caller, "differential-ca"))
    process.terminate()
    assert process.wait(timeout=30) == 143
    until(lambda: not is_alive(child))


def test_a_difference_is_reported():
    result = run("--function", "cuStreamQuery", "--environment", "ALLOT_SIM_FAULT=fail=cuStreamQuery:46")
    assert result.returncode == 1, result.stdout + result.stderr
    assert re.search(r"with: +\d+ cuStreamQuery\(.*\) = 46;", result.stdout), result.stdout
    assert "--only function:" in result.stdout


def test_a_crash_in_a_tenant_alone_is_reported():
    result = run("--function", "cuStreamQuery", "--environment", "ALLOT_SIM_FAULT=crash=cuStreamQuery")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "signal 6 under allot alone" in result.stdout
