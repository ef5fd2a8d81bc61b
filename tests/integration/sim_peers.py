"""Fixtures and clients for tests of the simulated GPU with NVIDIA's own Python packages, cuda.bindings and pynvml, which do not
know that the GPU is simulated. Without the packages such tests are skipped. Each client runs in a separate process. A test file
must import the fixtures `sim` and `start_sim` from here, too."""

import json
import os
import subprocess
import sys
import textwrap
import time

import pytest

from machines import BUILD

pytest.importorskip("cuda.bindings.driver")
pytest.importorskip("pynvml")

SERVER = BUILD / "allot-sim"
LIBRARIES = BUILD / "sim"
MIB = 1 << 20
CONTEXT = 518 * MIB

# The beginning of every client.
PREAMBLE = """
import ctypes, os, sys, threading, time
import pynvml
from cuda.bindings import driver as cu
MIB = 1 << 20
R = cu.CUresult

def ok(result):
    assert result[0] == R.CUDA_SUCCESS, result[0]
    return result[1] if len(result) == 2 else result[1:]

def start(device=0):
    ok(cu.cuInit(0))
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(device))))))

def kernel(name):
    module = ok(cu.cuModuleLoadData(b".version 8.0\\n.target sm_90\\n\\0"))
    return ok(cu.cuModuleGetFunction(module, name.encode()))

def launch(f, stream=0, blocks=132):
    return cu.cuLaunchKernel(f, blocks, 1, 1, 128, 1, 1, 0, stream, 0, 0)

def used():
    free, total = ok(cu.cuMemGetInfo())
    return total - free
"""


def client_command(code):
    """Returns the command of a client that runs PREAMBLE and then `code`."""
    return [sys.executable, "-c", PREAMBLE + textwrap.dedent(code)]


def client_environment(socket, **more):
    """Returns an environment in which a client uses the simulated driver, and the GPUs whose server listens at `socket`."""
    return {**os.environ, "LD_LIBRARY_PATH": str(LIBRARIES), "ALLOT_SIM_SOCKET": str(socket),
            **more}


class Sim:
    """A server of simulated GPUs, and its clients."""

    def __init__(self, directory, spec):
        self.socket = str(directory / "card.sock")
        self.clients = []
        self.server = subprocess.Popen(
            [SERVER, "--spec", spec, "--socket", self.socket, "--foreground", "--linger", "0"])
        deadline = time.monotonic() + 10
        while subprocess.run([SERVER, "--ctl", "--socket", self.socket, "stats"],
                             capture_output=True).returncode:
            assert time.monotonic() < deadline and self.server.poll() is None
            time.sleep(0.02)

    def ctl(self, *arguments):
        done = subprocess.run([SERVER, "--ctl", "--socket", self.socket, *arguments],
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout) if arguments[0] == "stats" else None

    def used(self, card=0):
        return self.ctl("stats")["cards"][card]["memory_used_bytes"]

    def popen(self, code, **env):
        client = subprocess.Popen(
            client_command(code), stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True,
            env=client_environment(self.socket, **env))
        self.clients.append(client)
        return client

    def run(self, code, timeout=60, **env):
        client = self.popen(code, **env)
        out, _ = client.communicate(timeout=timeout)
        assert client.returncode == 0, out
        return out

    def close(self):
        for process in [*self.clients, self.server]:
            process.kill()
            process.wait()


@pytest.fixture
def start_sim(tmp_path):
    """Returns start_sim(spec), which starts a server for this test."""
    started = []

    def start(spec="h200"):
        started.append(Sim(tmp_path, spec))
        return started[-1]

    yield start
    for sim in started:
        sim.close()


@pytest.fixture
def sim(start_sim):
    """One simulated H200."""
    return start_sim()
