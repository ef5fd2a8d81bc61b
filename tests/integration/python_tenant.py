"""Runs a Python program as a tenant, one step at a time. The program uses NVIDIA's cuda.bindings. Also reads from the simulated
GPU itself how much of its memory is used."""

import json
import subprocess
import textwrap

from machines import BUILD, wait_until

MIB = 1 << 20
CONTEXT = 518 * MIB

PREAMBLE = """
import ctypes, os, socket, sys, time
from cuda.bindings import driver as cu
MIB = 1 << 20
R = cu.CUresult
FD = cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

def ok(result):
    assert result[0] == R.CUDA_SUCCESS, result[0]
    return result[1] if len(result) == 2 else result[1:]

def refused(result):
    assert result[0] == R.CUDA_ERROR_OUT_OF_MEMORY, result[0]

def start(device=0):
    ok(cu.cuInit(0))
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(device))))))

def used():
    free, total = ok(cu.cuMemGetInfo())
    return total - free

# Lets the test check something: prints a line, and waits for the test's answer.
def look(text="look"):
    print(text, flush=True)
    return sys.stdin.readline().strip()

def handle_bytes(handle):
    return ctypes.string_at(handle.getPtr(), 64)

def handle_of(bytes_):
    handle = cu.CUipcMemHandle()
    ctypes.memmove(handle.getPtr(), bytes_, 64)
    return handle

def prop(types=0):
    p = cu.CUmemAllocationProp()
    p.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    p.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    p.location.id = 0
    p.requestedHandleTypes = cu.CUmemAllocationHandleType(types)
    return p
"""


class Tenant:
    """A tenant whose Python program is PREAMBLE and then `code`. The program waits in look() until the test calls go()."""

    def __init__(self, machine, python, code, memory="4GiB", name="a", options=(),
                 environment=None):
        self.machine, self.name = machine, name
        self.process = machine.start(
            "--name", name, "--memory", memory, *options, "--", python, "-c",
            PREAMBLE + textwrap.dedent(code), stdin=subprocess.PIPE, environment=environment or {})

    def line(self):
        """Returns the next line that the program prints."""
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=10)[1]
        return line.strip()

    def go(self, text=""):
        """Lets the program's look() return `text`."""
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise AssertionError(self.process.stderr.read()) from None

    def end(self):
        """Waits for the program's end, which must be a success."""
        out, err = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, out + err

    def device(self, index=0):
        return self.machine.tenants()[self.name]["devices"][index]

    def used(self):
        return self.device()["memory_used_bytes"]

    def wait_used(self, bytes_):
        wait_until(lambda: self.used() == bytes_, 5,
                   f"{bytes_ / MIB} MiB, now {self.used() / MIB}")


def card_used(machine):
    """Returns the bytes of memory that all processes use, as the simulated GPU's server counts them."""
    simulator = BUILD / "allot-sim"
    done = subprocess.run([simulator, "--ctl", "--socket", machine.run_dir / "sim.sock", "stats"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["cards"][0]["memory_used_bytes"]
