"""Small CUDA C++ programs (tests/gpu/samples), one for each part of CUDA, built by nvcc. The CUDA runtime is linked
statically, nvcc's default; one program is also built with the shared runtime."""

import concurrent.futures
import os
import shutil
import subprocess
import tempfile

from . import pair, swapped

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "samples")
TOOLKIT = "/usr/local/cuda/bin"
# Code for Hopper, because clusters need it, and PTX that newer GPUs compile.
FLAGS = ["-O2", "-std=c++17", "-arch=sm_90", "-Xcompiler", "-Wall"]
COMPILE_S = 300
GIB = 1 << 30


class Sample:
    """One build of a program. `over`: whether it tries to exceed its quota, with its own way of allocating memory."""

    def __init__(self, source, quota_gib=1.5, flags=(), over=True, name=None):
        self.name = name or source.replace("_", " ")
        self.source = source
        self.quota_bytes = int(quota_gib * GIB)
        self.flags = list(flags)
        self.over = over


SAMPLES = [
    Sample("vectors"),
    Sample("vectors", flags=["-cudart", "shared"], name="vectors with the shared runtime"),
    Sample("arrays"),
    Sample("textures"),
    Sample("surfaces"),
    Sample("ipc", 3),
    Sample("vmm"),
    Sample("vmm_fd", 2),
    Sample("pools"),
    Sample("pool_fd", 2),
    Sample("cooperative", over=False),
    Sample("clusters", over=False),
    Sample("graphs"),
    Sample("device_graph", flags=["-rdc=true", "-lcudadevrt"], over=False),
    Sample("managed"),
    Sample("pinned"),
    Sample("green"),
    Sample("limits", 3),
    Sample("modules", 2),
    Sample("per_thread", flags=["--default-stream", "per-thread"]),
    Sample("batch", over=False),
    Sample("wait_values", over=False),
    Sample("external", over=False),
    Sample("threads", 4),
    Sample("old_abi", 2, over=False),
]


def find_nvcc():
    return shutil.which("nvcc") or shutil.which("nvcc", path=TOOLKIT)


def library_folder(nvcc):
    """The folder of the shared CUDA runtime, which the loader may not search by itself."""
    return os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))), "lib64")


def compile_one(nvcc, sample, folder):
    """(path, None), or (None, the compiler's messages)."""
    program = os.path.join(folder, sample.name.replace(" ", "-"))
    command = [nvcc, *FLAGS, *sample.flags, os.path.join(FOLDER, sample.source + ".cu"), "-o",
               program]
    if "shared" in sample.flags:
        command += ["-Xlinker", f"-rpath={library_folder(nvcc)}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_S,
                              check=False)
    except subprocess.TimeoutExpired:
        return None, f"nvcc did not end within {COMPILE_S} s"
    said = (done.stdout + done.stderr).strip()
    return (program, None) if done.returncode == 0 else (None, said[-2000:])


def compile_all(nvcc, samples, folder):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        return list(workers.map(lambda sample: compile_one(nvcc, sample, folder), samples))


def chosen(options):
    """The samples that --samples names, or all samples."""
    names = getattr(options, "samples", None)
    return [s for s in SAMPLES if not names or s.source in names.split(",")]


def check(machine, tally, options):
    nvcc = find_nvcc()
    samples = chosen(options)
    why = ("the simulated GPU runs no CUDA runtime" if machine.sim else
           "no nvcc here" if not nvcc else
           "no g++ here, which nvcc needs" if not shutil.which("g++") else None)
    if why:
        tally.skip(f"{len(samples)} samples", why)
        return
    with tempfile.TemporaryDirectory(prefix="allot-samples-", dir="/tmp") as folder:
        for sample, (program, said) in zip(samples, compile_all(nvcc, samples, folder)):
            if not program:
                tally.bad(f"{sample.name}: compiles", said)
                continue
            pair.run(machine, tally, sample.name, [program], sample.quota_bytes,
                     swapped.OPTIONS if options.swap else [], timeout_s=60, over=sample.over)
