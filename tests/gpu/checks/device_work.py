"""Work that the GPU starts itself: graphs and kernels that a kernel launches. Its time is charged to the launch
that began it, so a tenant with a cap gets no more of it than its share."""

import tempfile

from . import samples
from .samples import Sample

SECONDS = 6
CORES = 30
TOLERANCE_POINTS = 1.5
RUN_S = 60


def rate(job):
    status = job.wait(RUN_S)
    events = job.json()
    if status != 0 or not events:
        return None, f"status {status}{job.tail()}"
    last = events[-1][1]
    return last["done"] / last["seconds"], None


def check_kind(machine, tally, program, kind):
    name = {"graph": "graphs launched by a kernel", "kernel": "kernels launched by a kernel"}[kind]
    command = [program, kind, str(SECONDS)]
    native, why = rate(machine.native(f"{kind}-native", command))
    if native is None:
        tally.bad(f"{name}: without allot", why)
        return
    held, why = rate(machine.tenant(f"{kind}-held", command, ["--cores", str(CORES)]))
    if held is None:
        tally.bad(f"{name}: in a tenant", why)
        return
    share = 100 * held / native
    tally.verdict(abs(share - CORES) <= TOLERANCE_POINTS, f"{name} are debited",
                  f"{held:.0f} of {native:.0f} in a second: {share:.1f} %, asked {CORES}")


def check(machine, tally, options):
    nvcc = samples.find_nvcc()
    if machine.sim or not nvcc:
        tally.skip("work that the GPU starts", "the simulated GPU runs no CUDA runtime"
                   if machine.sim else "no nvcc here")
        return
    sample = Sample("device_rate", flags=["-rdc=true", "-lcudadevrt"])
    with tempfile.TemporaryDirectory(prefix="allot-device-work-", dir="/tmp") as folder:
        program, said = samples.compile_one(nvcc, sample, folder)
        if not program:
            tally.bad("device_rate: compiles", said)
            return
        for kind in "graph", "kernel":
            check_kind(machine, tally, program, kind)
