#include "sim/cuda/sim.h"

static CUresult copies(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
		       CUstream stream, bool ptds)
{
	CUresult r = dsts && srcs && sizes && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

	for (size_t i = 0; r == CUDA_SUCCESS && i < count; i++)
		r = ptds ? cuMemcpyAsync_ptsz(dsts[i], srcs[i], sizes[i], stream)
			 : cuMemcpyAsync(dsts[i], srcs[i], sizes[i], stream);
	return r;
}

SIM_TWINS(cuMemcpyBatchAsync, _ptsz,
	  (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	   CUmemcpyAttributes *attributes, size_t *attribute_of, size_t attributes_n, size_t *fail,
	   CUstream stream),
	  return copies(dsts, srcs, sizes, count, stream, ptds);)
SIM_TWINS(cuMemcpyBatchAsync_v2, _ptsz,
	  (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	   CUmemcpyAttributes *attributes, size_t *attribute_of, size_t attributes_n,
	   CUstream stream),
	  return copies(dsts, srcs, sizes, count, stream, ptds);)
SIM_TWINS(cuMemcpyWithAttributesAsync, _ptsz,
	  (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUmemcpyAttributes *attributes,
	   CUstream stream),
	  return copies(&dst, &src, &bytes, 1, stream, ptds);)

/* Host and GPU share one address space, so CU_MEMORYTYPE_UNIFIED is right for both ends of a copy. */
static CUresult copies_3d(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, CUstream stream, bool ptds)
{
	CUresult r = ops && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

	for (size_t i = 0; r == CUDA_SUCCESS && i < count; i++) {
		const CUDA_MEMCPY3D_BATCH_OP *op = &ops[i];
		const CUDA_MEMCPY3D copy = {
			.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
			.srcDevice = op->src.ptr,
			.srcPitch = op->src.row_length,
			.srcHeight = op->src.layer_height,
			.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
			.dstDevice = op->dst.ptr,
			.dstPitch = op->dst.row_length,
			.dstHeight = op->dst.layer_height,
			.WidthInBytes = op->width,
			.Height = op->height,
			.Depth = op->depth,
		};

		if (op->src.type != 1 || op->dst.type != 1) /* only linear memory is simulated */
			return CUDA_ERROR_NOT_SUPPORTED;
		r = ptds ? cuMemcpy3DAsync_v2_ptsz(&copy, stream)
			 : cuMemcpy3DAsync_v2(&copy, stream);
	}
	return r;
}

SIM_TWINS(cuMemcpy3DBatchAsync, _ptsz,
	  (size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail, unsigned long long flags,
	   CUstream stream),
	  return copies_3d(count, ops, stream, ptds);)
SIM_TWINS(cuMemcpy3DBatchAsync_v2, _ptsz,
	  (size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream stream),
	  return copies_3d(count, ops, stream, ptds);)
SIM_TWINS(cuMemcpy3DWithAttributesAsync, _ptsz,
	  (CUDA_MEMCPY3D_BATCH_OP * op, unsigned long long flags, CUstream stream),
	  return copies_3d(1, op, stream, ptds);)

/* No fabric and no decompression engine are simulated. */
SIM_TWINS(cuFabricCpyBatchAsync, _ptsz,
	  (size_t count, CUDA_FABRIC_COPY_BATCH_OP *ops, unsigned long long flags, CUstream stream),
	  (void)ptds;
	  return CUDA_ERROR_NOT_SUPPORTED;)
SIM_TWINS(cuMemBatchDecompressAsync, _ptsz,
	  (CUmemDecompressParams * params, size_t count, unsigned int flags, size_t *fail,
	   CUstream stream),
	  (void)ptds;
	  return CUDA_ERROR_NOT_SUPPORTED;)

/* Only checks the arguments of a prefetch or discard, because simulated managed memory does not move. */
static CUresult hints(const CUdeviceptr *ptrs, const size_t *sizes, size_t count, CUstream stream,
		      bool ptds)
{
	SIM_FAIL_IF(!ptrs || !sizes || !count, CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < count; i++)
		SIM_FAIL_IF(!sizes[i] || !ptrs[i], CUDA_ERROR_INVALID_VALUE);
	return sim_stream(stream, ptds, &stream);
}

SIM_TWINS(cuMemPrefetchBatchAsync, _ptsz,
	  (CUdeviceptr * ptrs, size_t *sizes, size_t count, CUmemLocation *locations,
	   size_t *location_of, size_t locations_n, unsigned long long flags, CUstream stream),
	  return hints(ptrs, sizes, count, stream, ptds);)
SIM_TWINS(cuMemDiscardBatchAsync, _ptsz,
	  (CUdeviceptr * ptrs, size_t *sizes, size_t count, unsigned long long flags,
	   CUstream stream),
	  return hints(ptrs, sizes, count, stream, ptds);)
SIM_TWINS(cuMemDiscardAndPrefetchBatchAsync, _ptsz,
	  (CUdeviceptr * ptrs, size_t *sizes, size_t count, CUmemLocation *locations,
	   size_t *location_of, size_t locations_n, unsigned long long flags, CUstream stream),
	  return hints(ptrs, sizes, count, stream, ptds);)
