#!/usr/bin/env python3
"""Replaces bench/load/llm_server.py on the simulated GPU: it has the same loop and answers, but runs kernels of known length
instead of a decoder."""

import ctypes
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "bench" / "load"))
from llm_server import parser, run      # noqa: E402

PREFILL_KERNELS, DECODE_KERNELS, KERNEL_US = 4, 2, 1000

cuda = ctypes.CDLL("libcuda.so.1")


def do(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    if result != 0:
        sys.exit(f"{name}: {result}")


class Engine:
    def __init__(self):
        context, module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        do("cuInit", 0)
        do("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        do("cuCtxSetCurrent", context)
        do("cuModuleLoadData", ctypes.byref(module), b"x")
        do("cuModuleGetFunction", ctypes.byref(self.kernel), module, f"allot_sim_{KERNEL_US}us_132b".encode())

    def _work(self, kernels):
        for _ in range(kernels):
            do("cuLaunchKernel", self.kernel, 132, 1, 1, 256, 1, 1, 0, None, None, None)
        do("cuCtxSynchronize")

    def prefill(self, _):
        self._work(PREFILL_KERNELS)

    def decode(self):
        self._work(DECODE_KERNELS)


run(parser().parse_args(), Engine())
