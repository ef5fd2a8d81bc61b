"""The bench's own MPS control daemon, without allot. --sharing space is compared with it."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import replace

from .job import Failed

PROGRAM = "nvidia-cuda-mps-control"
PIPE = "CUDA_MPS_PIPE_DIRECTORY"    # names the daemon to its clients
READY_S = 10


def threads(pct):
    """The environment of an MPS client with a fixed percentage of the SMs."""
    return {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{pct:g}"}


def priority(level):
    """The environment of an MPS client with a priority: 0, the default, comes before 1."""
    return {"CUDA_MPS_CLIENT_PRIORITY": str(level)}


@contextlib.contextmanager
def plain_mps(machine):
    """Runs an MPS control daemon with default settings. All native processes that start within this context are its clients."""
    program = os.path.join(machine.build.sim_dir(), PROGRAM) if machine.sim else shutil.which(PROGRAM)
    if not program or not os.path.exists(program):
        raise Failed(f"there is no {PROGRAM} here")
    before = machine.native_environment
    with tempfile.TemporaryDirectory(prefix="allot-mps-", dir="/tmp") as directory:
        environment = dict(before, **{PIPE: directory}, CUDA_MPS_LOG_DIRECTORY=directory)
        with subprocess.Popen([program, "-f"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as daemon:
            try:
                _wait_for(daemon, os.path.join(directory, "control"))
                machine.native_environment = environment
                yield
            finally:
                machine.native_environment = before
                _end(daemon, program, environment)


def _end(daemon, program, environment):
    """Ends the control daemon and its servers, and kills the daemon if it hangs. No client may be left."""
    try:
        subprocess.run([program], input="quit -t 1\n", text=True, env=environment, check=False,
                       stdout=subprocess.DEVNULL, timeout=READY_S)
        daemon.wait(READY_S)
    except subprocess.TimeoutExpired:
        daemon.kill()


def _wait_for(daemon, path):
    deadline = time.monotonic() + READY_S
    while not os.path.exists(path):
        if daemon.poll() is not None or time.monotonic() > deadline:
            raise Failed(f"{PROGRAM} did not start")
        time.sleep(0.05)


def shares(bench, loads, seconds):
    """The shares in percent that these loads of allot's tenants get under plain MPS, each with its --cores as the percentage of
    SMs; None for each if MPS can't be started here, which does not keep allot from being judged."""
    def pct(load):
        return float(load.options[load.options.index("--cores") + 1])
    try:
        with plain_mps(bench.machine):
            clients = [replace(load, options=None, environment=threads(pct(load))) for load in loads]
            return [outcome.share_pct for outcome in bench.loads.run(clients, seconds)]
    except Failed as error:
        bench.result.skip("plain MPS", str(error))
        return [None] * len(loads)
