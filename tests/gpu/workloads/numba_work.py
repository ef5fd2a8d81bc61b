"""numba-cuda: kernels compiled by NVVM, one of them with shared memory."""

import sys

import numpy

if not hasattr(numpy, "row_stack"):     # gone in numpy 2.5, and numba-cuda 0.30 asks for it
    numpy.row_stack = numpy.vstack

import protocol

try:
    from numba import cuda, float32
    from numba.cuda.cudadrv.driver import CudaAPIError
except Exception as error:      # it fits few releases of numpy, and fails on others as it likes
    protocol.skip(f"numba can't be imported: {type(error).__name__}: {error}")
    sys.exit(0)

MIB = 1 << 20
COUNT = 1 << 20
BLOCK = 256


@cuda.jit
def scaled_sum(a, b, out):
    at = cuda.grid(1)
    if at < out.size:
        out[at] = a[at] + float32(0.5) * b[at]


@cuda.jit
def block_sums(values, out):
    shared = cuda.shared.array(BLOCK, float32)
    own = cuda.threadIdx.x
    shared[own] = values[cuda.grid(1)]
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if own < half:
            shared[own] += shared[own + half]
        cuda.syncthreads()
        half //= 2
    if own == 0:
        out[cuda.blockIdx.x] = shared[0]


def work(numbers):
    a, b = (cuda.to_device(numbers.standard_normal(COUNT, dtype=numpy.float32)) for _ in "ab")
    out = cuda.device_array(COUNT, dtype=numpy.float32)
    sums = cuda.device_array(COUNT // BLOCK, dtype=numpy.float32)
    scaled_sum[COUNT // BLOCK, BLOCK](a, b, out)
    block_sums[COUNT // BLOCK, BLOCK](out, sums)
    return [out.copy_to_host(), sums.copy_to_host()]


def main():
    options = protocol.arguments(__doc__)
    try:
        available = cuda.is_available()
    except Exception as error:          # NVVM does not load: cuda-bindings has its own errors
        protocol.skip(f"numba: {type(error).__name__}: {str(error).splitlines()[0]}")
    if not available:
        protocol.skip("numba finds no GPU")
    numbers = numpy.random.default_rng(20261121)
    results = work(numbers)
    kept = [cuda.device_array(mib * MIB, dtype=numpy.uint8) for mib in (10, 200, 600)]
    cuda.synchronize()
    protocol.hold()
    if options.quota is not None:
        protocol.ask_too_much(lambda: cuda.device_array(2 * options.quota, dtype=numpy.uint8),
                              CudaAPIError, "2x the quota", ("OUT_OF_MEMORY", "[2]"))
    results += work(numbers)
    protocol.end(*results, bytes(len(kept)))


main()
