"""Real programs (tests/gpu/workloads), each run natively and under a quota; pair.py says what is compared. A program
is skipped if this machine lacks something that it needs."""

import importlib.util
import os
import sys
from collections import namedtuple

from . import pair, swapped

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(os.path.dirname(HERE), "workloads")
GIB = 1 << 30
LIMIT_S = 240           # an import alone can take a minute on a cold disk

# `needs`: Python modules; `sim`: whether the simulated GPU suffices. Programs of one framework follow each other, so that
# the framework's files are still in the page cache.
Workload = namedtuple("Workload", "name program quota needs sim gpus",
                      defaults=(4 * GIB, ("torch",), False, 1))

WORKLOADS = (
    Workload("tensorflow-pattern", "tensorflow_pattern.py", 8 * GIB, ("cuda.bindings",), True),
    Workload("torch-eager", "torch_eager.py"),
    Workload("torch-compile", "torch_compile.py", needs=("torch", "triton")),
    Workload("cuda-graphs", "cuda_graphs.py"),
    Workload("expandable-segments", "expandable.py", 6 * GIB),
    Workload("malloc-async", "malloc_async.py"),
    Workload("data-loader", "data_loader.py"),
    Workload("ddp", "ddp.py", gpus=2),
    Workload("lm-generate", "lm_generate.py", needs=("torch", "transformers")),
    Workload("amp-resnet", "amp_resnet.py", needs=("torch", "torchvision")),
    Workload("vllm-pattern", "vllm_pattern.py", 8 * GIB, ("torch", "cuda.bindings")),
    Workload("jax-preallocating", "jax_train.py", 8 * GIB, ("jax",)),
    Workload("jax-growing", "jax_train.py --grow", 8 * GIB, ("jax",)),
    Workload("cupy", "cupy_work.py", needs=("cupy",)),
    Workload("numba", "numba_work.py", needs=("numba_cuda",)),
    Workload("onnx-runtime", "onnx_runtime.py", needs=("onnxruntime",)),
)
NAMES = tuple(workload.name for workload in WORKLOADS)


def is_here(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:     # the package that contains the module is missing, too
        return False


def why_not(machine, workload):
    missing = [module for module in workload.needs if not is_here(module)]
    if missing:
        return f"no {missing[0]} here"
    if machine.sim and not workload.sim:
        return "the simulated GPU computes nothing"
    if machine.nvml.count() < workload.gpus:
        return "one GPU"
    return None


def share_of(options):
    return [*(["--cores", str(options.cores)] if options.cores else []),
            *(swapped.OPTIONS if options.swap else [])]


def check(machine, tally, options):
    for workload in WORKLOADS:
        if workload.name not in options.workloads:
            continue
        why = why_not(machine, workload)
        if why:
            tally.skip(workload.name, why)
            continue
        program, *arguments = workload.program.split()
        gpus = ",".join(str(gpu) for gpu in range(workload.gpus))
        pair.run(machine, tally, workload.name,
                 [sys.executable, os.path.join(FOLDER, program), *arguments], workload.quota,
                 ["--gpu", gpus, *share_of(options)], LIMIT_S)
