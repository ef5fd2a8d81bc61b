"""Calls every hooked function before the driver or NVML is initialized, after NVML's shutdown, and with NULL pointers. Each
must return what it returns without the library."""

import pytest

from machines import ROOT
from held import compile_c

NVML_UNINITIALIZED = "1"
NVML_NOT_SUPPORTED = "3"
CUDA_NOT_SUPPORTED = "801"
# These return other values in a tenant, whatever the arguments: it has no process there, or no such pid.
OTHER_VALUES = {"nvmlDeviceGetProcessUtilization", "nvmlSystemGetProcessName"}


@pytest.fixture(scope="session")
def edges(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("edges") / "edges", f"-I{ROOT / 'src'}", "edges.c", "-ldl")


def ends_of(machine, options, *command):
    """Returns {(symbol, case): result or signal of the call}."""
    done = machine.run("--memory", "10GiB", *options, "--", *command)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr
    return {tuple(line.split(" ", 2)[:2]): line.split(" ", 2)[2] for line in done.stdout.splitlines()}


def compare(machine, edges, mode, *options):
    alone = ends_of(machine, (), "env", "-u", "LD_PRELOAD", edges, mode)
    tenant = ends_of(machine, options, edges, mode)
    assert len(alone) > 50 and set(alone) == set(tenant)
    return {case: (alone[case], tenant[case]) for case in alone if alone[case] != tenant[case]}


@pytest.mark.parametrize("mode", ["early", "joined"])
def test_before_initialization(machine, edges, mode):
    # The simulated NVML checks some structures before it checks that it is initialized.
    assert not {case: ends for case, ends in compare(machine, edges, mode).items()
                if not (case[0].startswith("nvml") and ends[1] == NVML_UNINITIALIZED)}


def test_after_shutdown_of_nvml(machine, edges):
    ends = ends_of(machine, (), edges, "late")
    assert len(ends) > 50 and set(ends.values()) == {NVML_UNINITIALIZED}


@pytest.mark.parametrize("options", [(), ("--on-full", "swap")])
def test_null_pointers(machine, edges, options):
    """Functions that a tenant may not use are refused whatever the arguments are."""
    def is_refused(symbol, end):
        return end == (NVML_NOT_SUPPORTED if symbol.startswith("nvml") else CUDA_NOT_SUPPORTED)

    assert not {case: ends for case, ends in compare(machine, edges, "null", *options).items()
                if case[0] not in OTHER_VALUES and not is_refused(case[0], ends[1])}


TOPOLOGY = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
device = ctypes.c_void_p()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
for count in (0, 1, 2, 64):
    for has_array in (False, True):
        for call, *first in ((nvml.nvmlSystemGetTopologyGpuSet, ctypes.c_uint(0)),
                             (nvml.nvmlDeviceGetTopologyNearestGpus, device, ctypes.c_uint(50))):
            found = ctypes.c_uint(count)
            array = (ctypes.c_void_p * 64)(*[7] * 64)
            result = call(*first, ctypes.byref(found), array if has_array else None)
            print(call.__name__, count, has_array, result, found.value, [bool(x) and x != 7 for x in array].count(True))
"""


def test_arrays_of_devices(machine2, python):
    """If the count exceeds the number of devices, NVML leaves it unchanged. The elements behind the devices are no devices."""
    two = ["--gpu", "0,1", "--memory", "10GiB"]
    alone = machine2.run(*two, "--", "env", "-u", "LD_PRELOAD", python, "-c", TOPOLOGY)
    tenant = machine2.run(*two, "--", python, "-c", TOPOLOGY)
    assert alone.returncode == 0 and tenant.returncode == 0, tenant.stderr
    assert len(alone.stdout.splitlines()) == 16 and "64 True 0 64 2" in alone.stdout
    assert tenant.stdout == alone.stdout
