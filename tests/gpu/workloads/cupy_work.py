"""CuPy: its memory pool, then the driver's stream-ordered one; a raw kernel, a product, a sort."""

import cupy
import numpy

import protocol

MIB = 1 << 20

SCALED_SUM = cupy.RawKernel(r"""
extern "C" __global__ void scaled_sum(const float *a, const float *b, float *out, int count)
{
	int at = blockIdx.x * blockDim.x + threadIdx.x;

	if (at < count)
		out[at] = a[at] + 0.5f * b[at];
}
""", "scaled_sum")


def work(numbers):
    a = cupy.asarray(numbers.standard_normal((1024, 1024), dtype=numpy.float32))
    b = cupy.asarray(numbers.standard_normal((1024, 1024), dtype=numpy.float32))
    out = cupy.empty_like(a)
    SCALED_SUM((a.size // 256,), (256,), (a, b, out, numpy.int32(a.size)))
    product = a @ out
    ordered = cupy.sort(product, axis=1)
    return [cupy.asnumpy(part) for part in (out, product, ordered, product.sum(axis=0))]


def try_all(quota, name):
    if quota is not None:
        protocol.ask_too_much(lambda: cupy.ones(2 * quota, dtype=cupy.uint8),
                              (cupy.cuda.memory.OutOfMemoryError,
                               cupy.cuda.runtime.CUDARuntimeError), name,
                              ("Out of memory", "OutOfMemory", "MemoryAllocation"))


def main():
    options = protocol.arguments(__doc__)
    numbers = numpy.random.default_rng(20261121)
    results = work(numbers)
    kept = [cupy.ones(mib * MIB, dtype=cupy.uint8) for mib in (10, 200, 600)]
    cupy.cuda.Device().synchronize()
    protocol.hold("CuPy's pool")
    try_all(options.quota, "CuPy's pool")
    results += work(numbers)
    del kept
    cupy.get_default_memory_pool().free_all_blocks()

    pool = cupy.cuda.MemoryAsyncPool()
    cupy.cuda.set_allocator(pool.malloc)
    results += work(numbers)
    kept = [cupy.ones(mib * MIB, dtype=cupy.uint8) for mib in (10, 200, 600)]
    cupy.cuda.Device().synchronize()
    protocol.hold("the driver's pool")
    try_all(options.quota, "the driver's pool")
    results += work(numbers)
    protocol.end(*results, *(cupy.asnumpy(part[::MIB]) for part in kept))


main()
