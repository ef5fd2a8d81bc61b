/* A memset takes time at set_bytes_per_s. It writes real bytes only where host memory has the contents (va.c). */
#include <string.h>

#include "sim/cuda/sim.h"

static void fill(uint64_t dst, uint32_t value, uint64_t n, unsigned int size)
{
	unsigned char *at = (unsigned char *)(uintptr_t)dst;

	if (size == 1) {
		memset(at, (int)value, n);
		return;
	}
	for (; n; n--, at += size)
		memcpy(at, &value, size); /* little endian, like the GPU */
}

static CUresult set(uint64_t dst, uint64_t pitch, uint32_t value, uint64_t width, uint64_t height,
		    unsigned int size, CUstream handle, bool ptds)
{
	struct sim_step step = { .kind = STEP_SET, .way = SIM_WAY_WITHIN };
	struct sim_region *region;
	uint64_t base, n, bytes, span;
	CUstream stream;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	SIM_FAIL_IF(__builtin_mul_overflow(width, size, &span) || dst % size ||
			    (height > 1 && pitch < span) ||
			    __builtin_mul_overflow(span, height, &bytes) ||
			    (bytes && (__builtin_mul_overflow(pitch, height - 1, &n) ||
				       __builtin_add_overflow(span, n, &span))),
		    CUDA_ERROR_INVALID_VALUE);
	if (!bytes)
		return CUDA_SUCCESS;
	bool capturing = sim_is_capturing(stream);
	pthread_mutex_lock(&sim.lock);
	bool inside = sim_va_is_device(dst) ? sim_allocation_at(dst, &base, &n, &region)
					    : sim_host_find(dst, &base, &n);
	inside = inside && span <= base + n - dst;
	if (inside && !capturing && sim_va_has_bytes(dst, span))
		for (uint64_t y = 0; y < height; y++)
			fill(dst + y * pitch, value, width, size);
	pthread_mutex_unlock(&sim.lock);
	SIM_FAIL_IF(!inside, CUDA_ERROR_INVALID_VALUE);
	step.ns = sim_ns_of(bytes, sim_context_device(stream->ctx)->info.set_bytes_per_s);
	return sim_submit(stream, &step);
}

#define SET(symbol, type, size) \
	SIM_TWINS(symbol##_v2, _ptds, (CUdeviceptr dst, type value, size_t n), \
		  return set(dst, 0, value, n, 1, size, NULL, ptds);) \
	SIM_TWINS(symbol##Async, _ptsz, (CUdeviceptr dst, type value, size_t n, CUstream stream), \
		  return set(dst, 0, value, n, 1, size, stream, ptds);)
#define SET_2D(symbol, type, size) \
	SIM_TWINS(symbol##_v2, _ptds, \
		  (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height), \
		  return set(dst, pitch, value, width, height, size, NULL, ptds);) \
	SIM_TWINS(symbol##Async, _ptsz, \
		  (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height, \
		   CUstream stream), \
		  return set(dst, pitch, value, width, height, size, stream, ptds);)

SET(cuMemsetD8, unsigned char, 1)
SET(cuMemsetD16, unsigned short, 2)
SET(cuMemsetD32, unsigned int, 4)
SET_2D(cuMemsetD2D8, unsigned char, 1)
SET_2D(cuMemsetD2D16, unsigned short, 2)
SET_2D(cuMemsetD2D32, unsigned int, 4)
