"""A mirror of this machine's driver (allot mirror): programs that load its libraries through LD_LIBRARY_PATH, without
a preload, are tenants like any other."""

import os
import subprocess
import sys
import tempfile

from . import pair, samples, workloads
from .samples import Sample

QUOTA = 3 << 30
MIRROR_S = 60


def make(machine, tally, folder):
    done = subprocess.run([machine.allot, "mirror", folder], capture_output=True, text=True,
                          timeout=MIRROR_S, check=False)
    lib64 = os.path.join(folder, "lib64")
    has = os.listdir(lib64) if os.path.isdir(lib64) else []
    wanted = {"libcuda.so.1", "libnvidia-ml.so.1", "liballot.so"}
    tally.verdict(done.returncode == 0 and wanted <= set(has), "a mirror of this driver",
                  f"{len(has)} names; {(done.stdout + done.stderr).strip().splitlines()[-1:]}")
    return lib64


def check(machine, tally, options):
    nvcc = samples.find_nvcc()
    if machine.sim or os.geteuid():
        tally.skip("a mirror of this driver", "the simulated GPU has none" if machine.sim else
                   "needs root")
        return
    with tempfile.TemporaryDirectory(prefix="allot-mirror-", dir="/tmp") as folder:
        lib64 = make(machine, tally, os.path.join(folder, "driver"))
        without_preload = ["env", "-u", "LD_PRELOAD", f"LD_LIBRARY_PATH={lib64}"]
        program, said = samples.compile_one(nvcc, Sample("vectors"), folder) if nvcc else (None, "")
        if program:
            pair.run(machine, tally, "mirror, static runtime", without_preload + [program], QUOTA,
                     timeout_s=60)
        else:
            tally.skip("mirror, static runtime", f"nvcc: {said}" if nvcc else "no nvcc here")
        eager = os.path.join(workloads.FOLDER, "torch_eager.py")
        pair.run(machine, tally, "mirror, PyTorch", without_preload + [sys.executable, eager], QUOTA)
