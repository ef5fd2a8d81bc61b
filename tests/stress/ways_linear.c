/* Linear memory, arrays, and memory of the host, which is nobody's quota. */
#include <stdlib.h>

#include "ways.h"

CUresult get_linear(struct ways_thread *t, struct held *h)
{
	h->bytes = pick_bytes(t);
	return cuMemAlloc_v2(&h->ptr, h->bytes);
}

bool put_linear(struct ways_thread *t, struct held *h)
{
	GPU_DO(cuMemFree_v2(h->ptr));
	return true;
}

CUresult get_pitch(struct ways_thread *t, struct held *h)
{
	size_t width = 1 + pick(t, 9000), height = 1 + pick(t, 3000), pitch;

	h->bytes = width * height;
	return cuMemAllocPitch_v2(&h->ptr, &pitch, width, height, 16);
}

bool put_pitch(struct ways_thread *t, struct held *h)
{
	GPU_DO(cuMemFree_v2(h->ptr));
	return true;
}

/* Small pieces too have pages of their own, on this card. */
CUresult get_managed(struct ways_thread *t, struct held *h)
{
	h->bytes = pick_bytes(t);
	return cuMemAllocManaged(&h->ptr, h->bytes, 1);
}

bool put_managed(struct ways_thread *t, struct held *h)
{
	return put_linear(t, h);
}

CUresult get_array(struct ways_thread *t, struct held *h)
{
	CUDA_ARRAY_DESCRIPTOR d = { 1 + pick(t, 2048), 1 + pick(t, 1024), CU_AD_FORMAT_FLOAT, 4 };

	h->bytes = d.Width * d.Height * 16;
	return cuArrayCreate_v2(&h->array, &d);
}

bool put_array(struct ways_thread *t, struct held *h)
{
	GPU_DO(cuArrayDestroy(h->array));
	return true;
}

CUresult get_array3d(struct ways_thread *t, struct held *h)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {
		.Width = 1 + pick(t, 512),
		.Height = 1 + pick(t, 512),
		.Depth = 1 + pick(t, 64),
		.Format = CU_AD_FORMAT_HALF,
		.NumChannels = 2,
	};

	h->bytes = d.Width * d.Height * d.Depth * 4;
	return cuArray3DCreate_v2(&h->array, &d);
}

bool put_array3d(struct ways_thread *t, struct held *h)
{
	return put_array(t, h);
}

CUresult get_mipmap(struct ways_thread *t, struct held *h)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {
		.Width = 256 + pick(t, 2048),
		.Height = 256 + pick(t, 2048),
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 4,
	};

	h->bytes = d.Width * d.Height * 4;
	return cuMipmappedArrayCreate(&h->mipmap, &d, 1 + (unsigned)pick(t, 8));
}

bool put_mipmap(struct ways_thread *t, struct held *h)
{
	GPU_DO(cuMipmappedArrayDestroy(h->mipmap));
	return true;
}

static CUresult make_physical_host(struct held *h, uint64_t bytes)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 0 },
	};

	return cuMemCreate(&h->handle, bytes, &prop, 0);
}

static CUresult register_host(struct held *h, uint64_t bytes)
{
	h->host = aligned_alloc(4096, bytes);
	if (!h->host)
		give_up("no memory");
	return cuMemHostRegister_v2(h->host, bytes, 0);
}

/* Never refused: the quota is the card's. */
CUresult get_host(struct ways_thread *t, struct held *h)
{
	uint64_t bytes = (1 + pick(t, 64)) * 4096;

	h->variant = (unsigned)pick(t, 4);
	switch (h->variant) {
	case 0: GPU_DO(cuMemHostAlloc(&h->host, bytes, 0)); break;
	case 1: GPU_DO(cuMemAllocHost_v2(&h->host, bytes)); break;
	case 2: GPU_DO(register_host(h, bytes)); break;
	default: GPU_DO(make_physical_host(h, 2 * MIB * (1 + pick(t, 8))));
	}
	return CUDA_SUCCESS;
}

bool put_host(struct ways_thread *t, struct held *h)
{
	switch (h->variant) {
	case 0:
	case 1: GPU_DO(cuMemFreeHost(h->host)); break;
	case 2:
		GPU_DO(cuMemHostUnregister(h->host));
		free(h->host);
		break;
	default: GPU_DO(cuMemRelease(h->handle));
	}
	return true;
}
