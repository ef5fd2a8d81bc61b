#!/usr/bin/env python3
"""Replaces `bench/load/torch_load.py --serve` on the simulated GPU: it gives the same answers to the same lines, but uses
kernels and memory of known size instead of PyTorch."""

import argparse
import ctypes
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "bench" / "load"))
from trainings import bypass                    # noqa: E402
from trainings.serve import Server, serve       # noqa: E402

KERNELS = 10            # in a step
KERNEL_US = 1000
SAMPLE_MIB = 16         # memory for each sample of a batch

cuda = ctypes.CDLL("libcuda.so.1")
Pointer = ctypes.c_void_p


def do(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    if result != 0:
        sys.exit(f"{name}: {result}")


class Gpu:
    """One GPU. Its context is current after construction, until use() of another one."""

    def __init__(self, index):
        self.context, module, self.kernel = Pointer(), Pointer(), Pointer()
        do("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), index)
        self.use()
        do("cuModuleLoadData", ctypes.byref(module), b"x")
        do("cuModuleGetFunction", ctypes.byref(self.kernel), module, f"allot_sim_{KERNEL_US}us_132b".encode())
        self.held = None

    def use(self):
        do("cuCtxSetCurrent", self.context)

    def hold(self, mib):
        """Allocates memory, and returns whether that succeeded."""
        self.use()
        held = ctypes.c_ulonglong()
        if cuda.cuMemAlloc_v2(ctypes.byref(held), ctypes.c_size_t(mib << 20)) != 0:
            return False
        self.held = held
        return True

    def give_back(self):
        if self.held is not None:
            self.use()
            do("cuMemFree_v2", self.held)
            self.held = None


class Timer:
    """Stands for a timer of GPU time: the time of a step is known."""

    def begin(self):
        pass

    end = begin

    def ms(self):
        return KERNEL_US * KERNELS / 1e3


class Training:
    """On several GPUs, all run a step at the same time, and it ends with the last of them."""

    size = "samples"
    timer = Timer

    def __init__(self, gpus):
        self.gpus = gpus

    def launch(self):
        for _ in range(KERNELS):
            for gpu in self.gpus:
                gpu.use()
                do("cuLaunchKernel", gpu.kernel, 132, 1, 1, 256, 1, 1, 0, None, None, None)

    def wait(self):
        for gpu in self.gpus:
            gpu.use()
            do("cuCtxSynchronize")

    def memory(self):
        return {}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", action="store_true", required=True)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--processors")     # ignored: only measurements on a real GPU need it
    options = parser.parse_args()
    do("cuInit", 0)
    first = int(options.device.rpartition(":")[2])
    gpus = [Gpu(first + i) for i in range(options.ranks)]

    def make(_, batch):
        if not all(gpu.hold(batch * SAMPLE_MIB) for gpu in gpus):
            return None, "out of memory"
        training = Training(gpus)
        training.launch()
        training.wait()
        return training, None

    def free():
        for gpu in gpus:
            gpu.give_back()
    serve(Server(make, free, bypass=bypass.of_this_process()).obey, sys.stdin, sys.stdout)


main()
