/*
 * Copies. A copy to or from the host or another GPU takes time at the rate of the link; a copy within a GPU, at
 * set_bytes_per_s. Real bytes move only if host memory has the contents of both ends (va.c): at the call for an asynchronous
 * copy, at the end for a synchronous one. A captured copy moves nothing.
 */
#include <string.h>

#include "sim/cuda/memory/vmm.h"
#include "sim/cuda/sim.h"

/* Most bytes of one copy: more than a GPU has. */
#define COPY_MAX (1ull << 38)

static struct sim_step copy_step(CUcontext ctx, uint64_t bytes, enum sim_way way)
{
	const struct sim_card_info *info = &sim_context_device(ctx)->info;
	uint64_t per_s = way == SIM_WAY_WITHIN ? info->set_bytes_per_s : info->copy_bytes_per_s;

	return (struct sim_step){ .kind = STEP_COPY, .way = way, .ns = sim_ns_of(bytes, per_s) };
}

/* Returns the device whose memory is at addr; NULL for host memory and managed memory. */
static const struct sim_device *device_of(uint64_t addr)
{
	const struct sim_device *home = NULL;

	SIM_WITH_LOCK();
	const struct sim_region *region = sim_va_is_device(addr) ? sim_va_find(addr) : NULL;
	if (region && region->kind == REGION_RESERVED) {
		const struct vmm *memory = sim_vmm_at(addr);
		home = memory && memory->block ? sim_device_of(memory->prop.location.id) : NULL;
	} else if (region && !region->managed) {
		home = sim_device_of(region->dev);
	}
	return home;
}

static struct sim_step peer_step(const struct sim_card_info *from, const struct sim_card_info *to,
				 uint32_t to_card, uint64_t bytes)
{
	uint64_t links = from->peers >> to_card & 1 ? from->links[to_card] : 0;
	uint64_t per_s = links ? links * from->nvlink_bytes_per_s : from->copy_bytes_per_s;

	if (!links && from->numa != to->numa)
		per_s = from->far_bytes_per_s ? from->far_bytes_per_s : from->copy_bytes_per_s / 2;
	return (struct sim_step){ .kind = STEP_COPY,
				  .way = SIM_WAY_PEER,
				  .ns = sim_ns_of(bytes, per_s) };
}

static enum sim_way way_of(bool to_card, bool from_card)
{
	return !to_card ? SIM_WAY_OUT : from_card ? SIM_WAY_WITHIN : SIM_WAY_IN;
}

/* A copy between two GPUs runs at the rate of their link. dst or src is 0 if that end is an array. */
static struct sim_step step_between(CUcontext ctx, uint64_t dst, uint64_t src, uint64_t bytes,
				    enum sim_way way)
{
	const struct sim_device *from = device_of(src), *to = device_of(dst);

	if (from && to && from != to)
		return peer_step(&from->info, &to->info, to->card, bytes);
	return copy_step(ctx, bytes, way);
}

static void move(uint64_t dst, uint64_t src, uint64_t bytes)
{
	pthread_mutex_lock(&sim.lock);
	bool can = dst && src && sim_va_has_bytes(dst, bytes) && sim_va_has_bytes(src, bytes);
	pthread_mutex_unlock(&sim.lock);
	if (can)
		memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, bytes);
}

/* True for host memory, and for device memory if all of [addr, addr + bytes) is allocated. */
static bool is_inside(uint64_t addr, uint64_t bytes)
{
	struct sim_region *region;
	uint64_t base, n;

	if (!sim_va_is_device(addr))
		return true;
	SIM_WITH_LOCK();
	return sim_allocation_at(addr, &base, &n, &region) && bytes <= base + n - addr;
}

static CUresult linear(uint64_t dst, uint64_t src, uint64_t bytes, CUstream handle, bool ptds,
		       bool wait)
{
	CUstream stream;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	if (wait)
		SIM_UNSAFE();
	if (!bytes)
		return CUDA_SUCCESS;
	SIM_FAIL_IF(!dst || !src || bytes > COPY_MAX || !is_inside(dst, bytes) ||
			    !is_inside(src, bytes),
		    CUDA_ERROR_INVALID_VALUE);
	struct sim_step step = step_between(stream->ctx, dst, src, bytes,
					    way_of(sim_va_is_device(dst), sim_va_is_device(src)));
	if (!wait && !sim_is_capturing(stream))
		move(dst, src, bytes);
	SIM_TRY(sim_submit(stream, &step));
	if (!wait)
		return CUDA_SUCCESS;
	SIM_TRY(sim_stream_wait(stream));
	move(dst, src, bytes);
	return CUDA_SUCCESS;
}

/* A copy to or from an array only takes time, because simulated arrays hold no bytes. */
static CUresult cost_only(uint64_t bytes, enum sim_way way, CUstream handle, bool ptds, bool wait)
{
	CUstream stream;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	SIM_FAIL_IF(bytes > COPY_MAX, CUDA_ERROR_INVALID_VALUE);
	if (wait)
		SIM_UNSAFE();
	struct sim_step step = copy_step(stream->ctx, bytes, way);
	CUresult r = sim_submit(stream, &step);
	return r == CUDA_SUCCESS && wait ? sim_stream_wait(stream) : r;
}

#define SYNC(symbol, params, dst, src, bytes) \
	SIM_TWINS(symbol, _ptds, params, \
		  return linear((uintptr_t)(dst), (uintptr_t)(src), bytes, NULL, ptds, true);)
#define ASYNC(symbol, params, dst, src, bytes) \
	SIM_TWINS(symbol, _ptsz, params, \
		  return linear((uintptr_t)(dst), (uintptr_t)(src), bytes, stream, ptds, false);)

SYNC(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t bytes), dst, src, bytes)
SYNC(cuMemcpyPeer,
     (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes), dst,
     src, bytes)
SYNC(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void *src, size_t bytes), dst, src, bytes)
SYNC(cuMemcpyDtoH_v2, (void *dst, CUdeviceptr src, size_t bytes), dst, src, bytes)
SYNC(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes), dst, src, bytes)
ASYNC(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream), dst, src,
      bytes)
ASYNC(cuMemcpyPeerAsync,
      (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes,
       CUstream stream),
      dst, src, bytes)
ASYNC(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream), dst,
      src, bytes)
ASYNC(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream), dst, src,
      bytes)
ASYNC(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream), dst,
      src, bytes)

SIM_TWINS(cuMemcpyDtoA_v2, _ptds, (CUarray dst, size_t dst_offset, CUdeviceptr src, size_t bytes),
	  return cost_only(bytes, SIM_WAY_WITHIN, NULL, ptds, true);)
SIM_TWINS(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr dst, CUarray src, size_t src_offset, size_t bytes),
	  return cost_only(bytes, SIM_WAY_WITHIN, NULL, ptds, true);)
SIM_TWINS(cuMemcpyAtoA_v2, _ptds,
	  (CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes),
	  return cost_only(bytes, SIM_WAY_WITHIN, NULL, ptds, true);)
SIM_TWINS(cuMemcpyHtoA_v2, _ptds, (CUarray dst, size_t dst_offset, const void *src, size_t bytes),
	  return cost_only(bytes, SIM_WAY_IN, NULL, ptds, true);)
SIM_TWINS(cuMemcpyAtoH_v2, _ptds, (void *dst, CUarray src, size_t src_offset, size_t bytes),
	  return cost_only(bytes, SIM_WAY_OUT, NULL, ptds, true);)
SIM_TWINS(cuMemcpyHtoAAsync_v2, _ptsz,
	  (CUarray dst, size_t dst_offset, const void *src, size_t bytes, CUstream stream),
	  return cost_only(bytes, SIM_WAY_IN, stream, ptds, false);)
SIM_TWINS(cuMemcpyAtoHAsync_v2, _ptsz,
	  (void *dst, CUarray src, size_t src_offset, size_t bytes, CUstream stream),
	  return cost_only(bytes, SIM_WAY_OUT, stream, ptds, false);)

/* True for device memory and arrays. `device` is this end's address, unless the end is host memory. */
static bool is_end_on_card(CUmemorytype type, uint64_t device)
{
	return type == CU_MEMORYTYPE_UNIFIED ? sim_va_is_device(device) : type != CU_MEMORYTYPE_HOST;
}

/* One end of a pitched copy. addr is 0 for an array. */
struct end {
	uint64_t addr, pitch, plane;
	bool device;
};

static struct end end_of(CUmemorytype type, uint64_t host, uint64_t device, uint64_t pitch,
			 uint64_t height, uint64_t x, uint64_t y, uint64_t z, uint64_t width)
{
	struct end end = { 0, pitch ? pitch : width, 0, is_end_on_card(type, device) };

	end.plane = end.pitch * height;
	if (type == CU_MEMORYTYPE_HOST)
		end.addr = host;
	else if (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED)
		end.addr = device;
	if (end.addr)
		end.addr += z * end.plane + y * end.pitch + x;
	return end;
}

static struct sim_step pitched_step(CUcontext ctx, struct end dst, struct end src, uint64_t bytes)
{
	return step_between(ctx, dst.addr, src.addr, bytes, way_of(dst.device, src.device));
}

static void move_rows(struct end dst, struct end src, uint64_t width, uint64_t height,
		      uint64_t depth)
{
	if (!dst.addr || !src.addr || !width || !height)
		/* nothing to move, and depth may be huge */
		return;
	for (uint64_t z = 0; z < depth; z++)
		for (uint64_t y = 0; y < height; y++)
			move(dst.addr + z * dst.plane + y * dst.pitch,
			     src.addr + z * src.plane + y * src.pitch, width);
}

static CUresult pitched(struct end dst, struct end src, uint64_t width, uint64_t height,
			uint64_t depth, CUstream stream, bool ptds, bool wait)
{
	CUstream target;
	uint64_t bytes;

	SIM_FAIL_IF(__builtin_mul_overflow(width, height, &bytes) ||
			    __builtin_mul_overflow(bytes, depth, &bytes) || bytes > COPY_MAX,
		    CUDA_ERROR_INVALID_VALUE);
	SIM_TRY(sim_stream(stream, ptds, &target));
	if (wait)
		SIM_UNSAFE();
	if (!wait && !sim_is_capturing(target))
		move_rows(dst, src, width, height, depth);
	struct sim_step step = pitched_step(target->ctx, dst, src, bytes);
	SIM_TRY(sim_submit(target, &step));
	if (!wait)
		return CUDA_SUCCESS;
	SIM_TRY(sim_stream_wait(target));
	move_rows(dst, src, width, height, depth);
	return CUDA_SUCCESS;
}

#define END(c, side, height, z) \
	end_of((c)->side##MemoryType, (uintptr_t)(c)->side##Host, (c)->side##Device, \
	       (c)->side##Pitch, height, (c)->side##XInBytes, (c)->side##Y, z, (c)->WidthInBytes)
#define COPY_2D(c, stream, wait) \
	((c) ? pitched(END(c, dst, 0, 0), END(c, src, 0, 0), (c)->WidthInBytes, (c)->Height, 1, \
		       stream, ptds, wait) \
	     : CUDA_ERROR_INVALID_VALUE)
#define END_3D(c, side) \
	END(c, side, (c)->side##Height ? (c)->side##Height : (c)->Height, (c)->side##Z)
#define COPY_3D(c, stream, wait) \
	((c) ? pitched(END_3D(c, dst), END_3D(c, src), (c)->WidthInBytes, (c)->Height, (c)->Depth, \
		       stream, ptds, wait) \
	     : CUDA_ERROR_INVALID_VALUE)

struct sim_step sim_copy_3d_step(CUcontext ctx, const CUDA_MEMCPY3D *copy)
{
	return pitched_step(ctx, END_3D(copy, dst), END_3D(copy, src),
			    copy->WidthInBytes * copy->Height * copy->Depth);
}

SIM_TWINS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *copy), return COPY_2D(copy, NULL, true);)
SIM_TWINS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *copy),
	  return COPY_2D(copy, NULL, true);)
SIM_TWINS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *copy), return COPY_3D(copy, NULL, true);)
SIM_TWINS(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER *copy), return COPY_3D(copy, NULL, true);)
SIM_TWINS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *copy, CUstream stream),
	  return COPY_2D(copy, stream, false);)
SIM_TWINS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *copy, CUstream stream),
	  return COPY_3D(copy, stream, false);)
SIM_TWINS(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER *copy, CUstream stream),
	  return COPY_3D(copy, stream, false);)
