/* Arrays and mipmapped arrays, with sizes as on a real GPU but without contents. */
#include <stdlib.h>

#include "sim/cuda/sim.h"

#define ARRAY_ALIGN 65536 /* sizes are multiples of this */

struct CUarray_st {
	uint32_t magic;
	CUarray next;
	CUcontext ctx;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	uint64_t bytes;
	/* memory at the server; 0 with deferred mapping, or for a level of a mipmap */
	uint32_t block;
};

struct CUmipmappedArray_st {
	struct CUarray_st whole; /* its magic is MAGIC_MIPMAP */
	unsigned int levels_n;
	struct CUarray_st levels[16];
};

/* Has mipmaps too. Guarded by sim.lock. */
static CUarray arrays;

static unsigned int format_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8: return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF: return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT: return 4;
	default: return 0;
	}
}

static uint64_t raw_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return (uint64_t)d->Width * SIM_MAX(d->Height, 1) * SIM_MAX(d->Depth, 1) * d->NumChannels *
	       format_bytes(d->Format);
}

static uint64_t rounded(uint64_t bytes)
{
	return (bytes + ARRAY_ALIGN - 1) / ARRAY_ALIGN * ARRAY_ALIGN;
}

static bool is_valid(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return d->Width && d->Width <= 1 << 17 && d->Height <= 1 << 17 && d->Depth <= 1 << 14 &&
	       (d->NumChannels == 1 || d->NumChannels == 2 || d->NumChannels == 4) &&
	       format_bytes(d->Format) &&
	       !(d->Flags & CUDA_ARRAY3D_SPARSE); /* sparse arrays are not simulated */
}

/* An array with deferred mapping gets no memory. More than 1 MiB is rounded up to pages of 2 MiB, as on an H200. */
static CUresult alloc_block(CUcontext ctx, uint64_t bytes, unsigned int flags, uint32_t *ret_block)
{
	*ret_block = 0;
	if (flags & CUDA_ARRAY3D_DEFERRED_MAPPING)
		return CUDA_SUCCESS;
	SIM_FAIL_IF(sim_fault_oom(), CUDA_ERROR_OUT_OF_MEMORY);
	if (bytes > 1 << 20)
		bytes = (bytes + SIM_UNIT - 1) / SIM_UNIT * SIM_UNIT;
	return sim_block_new(ctx->dev, bytes, SIM_BLOCK_DATA, ret_block);
}

/* Takes the array's memory, and adds the array or mipmap to the list. Frees the struct if there is no memory. */
static CUresult array_begin(CUarray array)
{
	CUresult r = alloc_block(array->ctx, array->bytes, array->desc.Flags, &array->block);

	if (r != CUDA_SUCCESS) {
		free(array);
		return r;
	}
	SIM_WITH_LOCK();
	array->next = arrays;
	arrays = array;
	return CUDA_SUCCESS;
}

static CUresult array_create(CUarray *ret_array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	CUcontext ctx;
	CUarray array;

	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!ret_array || !is_valid(desc), CUDA_ERROR_INVALID_VALUE);
	SIM_UNSAFE();
	array = calloc(1, sizeof(*array));
	SIM_FAIL_IF(!array, CUDA_ERROR_OUT_OF_MEMORY);
	array->magic = MAGIC_ARRAY;
	array->ctx = ctx;
	/* Copy field by field, so that a later query does not return padding bytes of the caller. */
	array->desc.Width = desc->Width;
	array->desc.Height = desc->Height;
	array->desc.Depth = desc->Depth;
	array->desc.Format = desc->Format;
	array->desc.NumChannels = desc->NumChannels;
	array->desc.Flags = desc->Flags;
	array->bytes = rounded(raw_bytes(desc));
	CUresult r = array_begin(array);
	if (r == CUDA_SUCCESS)
		*ret_array = array;
	return r;
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	SIM_ENTER(cuArrayCreate_v2);
	SIM_FAIL_IF(!desc, CUDA_ERROR_INVALID_VALUE);
	return array_create(array, &(CUDA_ARRAY3D_DESCRIPTOR){ desc->Width, desc->Height, 0,
							       desc->Format, desc->NumChannels, 0 });
}

SIM_FUNCTION(cuArray3DCreate_v2, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR *desc),
	     desc ? array_create(array, desc) : CUDA_ERROR_INVALID_VALUE)

static bool is_array(CUarray array)
{
	return array && array->magic == MAGIC_ARRAY;
}

/* Frees the array or mipmap *at, and takes it off the list. Call with sim.lock held. */
static void array_end(CUarray *at)
{
	CUarray array = *at;

	*at = array->next;
	sim_block_free(array->block);
	sim_free_handle(array);
}

static CUresult array_destroy(const void *array, uint32_t magic)
{
	CUarray *at = &arrays;

	SIM_WITH_LOCK();
	while (*at && (*at != array || (*at)->magic != magic))
		at = &(*at)->next;
	if (!*at)
		return CUDA_ERROR_INVALID_HANDLE;
	array_end(at);
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuArrayDestroy, (CUarray array), array_destroy(array, MAGIC_ARRAY))

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *desc, CUarray array)
{
	SIM_ENTER(cuArrayGetDescriptor_v2);
	SIM_FAIL_IF(!desc || !is_array(array), CUDA_ERROR_INVALID_HANDLE);
	*desc = (CUDA_ARRAY_DESCRIPTOR){ array->desc.Width, array->desc.Height, array->desc.Format,
					 array->desc.NumChannels };
	return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray array)
{
	SIM_ENTER(cuArray3DGetDescriptor_v2);
	SIM_FAIL_IF(!desc || !is_array(array), CUDA_ERROR_INVALID_HANDLE);
	*desc = array->desc;
	return CUDA_SUCCESS;
}

/* As the driver, fails for an array without deferred mapping. `array` is NULL if the handle is invalid. */
static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *req, const struct CUarray_st *array,
			     CUdevice dev)
{
	SIM_FAIL_IF(!req || !array || !(array->desc.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING),
		    CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!sim_device_of(dev), CUDA_ERROR_INVALID_DEVICE);
	*req = (CUDA_ARRAY_MEMORY_REQUIREMENTS){ array->bytes, ARRAY_ALIGN, { 0 } };
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuArrayGetMemoryRequirements,
	     (CUDA_ARRAY_MEMORY_REQUIREMENTS * req, CUarray array, CUdevice dev),
	     requirements(req, is_array(array) ? array : NULL, dev))

CUresult cuMipmappedArrayCreate(CUmipmappedArray *ret_mipmap, const CUDA_ARRAY3D_DESCRIPTOR *desc,
				unsigned int levels)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUmipmappedArray mipmap;
	CUcontext ctx;

	SIM_ENTER(cuMipmappedArrayCreate);
	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!ret_mipmap || !desc || !levels || !is_valid(desc), CUDA_ERROR_INVALID_VALUE);
	SIM_UNSAFE();
	mipmap = calloc(1, sizeof(*mipmap));
	SIM_FAIL_IF(!mipmap, CUDA_ERROR_OUT_OF_MEMORY);
	mipmap->whole.magic = MAGIC_MIPMAP;
	mipmap->whole.ctx = ctx;
	mipmap->whole.desc = d = *desc;
	/* Each level has half the sides of the one before. A level of one element is the last, even if `levels` is larger. */
	for (; mipmap->levels_n < SIM_MIN(levels, 16u); mipmap->levels_n++) {
		struct CUarray_st *level = &mipmap->levels[mipmap->levels_n];

		level->magic = MAGIC_ARRAY;
		level->ctx = ctx;
		level->desc = d;
		level->bytes = raw_bytes(&d);
		mipmap->whole.bytes += level->bytes;
		if (d.Width <= 1 && d.Height <= 1 && d.Depth <= 1) {
			mipmap->levels_n++;
			break;
		}
		d.Width = SIM_MAX(d.Width / 2, 1);
		d.Height = d.Height ? SIM_MAX(d.Height / 2, 1) : 0;
		d.Depth = d.Depth ? SIM_MAX(d.Depth / 2, 1) : 0;
	}
	mipmap->whole.bytes = rounded(mipmap->whole.bytes);
	CUresult r = array_begin(&mipmap->whole);
	if (r == CUDA_SUCCESS)
		*ret_mipmap = mipmap;
	return r;
}

static bool is_mipmap(CUmipmappedArray mipmap)
{
	return mipmap && mipmap->whole.magic == MAGIC_MIPMAP;
}

CUresult cuMipmappedArrayGetLevel(CUarray *array, CUmipmappedArray mipmap, unsigned int level)
{
	SIM_ENTER(cuMipmappedArrayGetLevel);
	SIM_FAIL_IF(!is_mipmap(mipmap), CUDA_ERROR_INVALID_HANDLE);
	SIM_FAIL_IF(!array || level >= mipmap->levels_n, CUDA_ERROR_INVALID_VALUE);
	*array = &mipmap->levels[level];
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuMipmappedArrayDestroy, (CUmipmappedArray mipmap), array_destroy(mipmap, MAGIC_MIPMAP))

SIM_FUNCTION(cuMipmappedArrayGetMemoryRequirements,
	     (CUDA_ARRAY_MEMORY_REQUIREMENTS * req, CUmipmappedArray mipmap, CUdevice dev),
	     requirements(req, is_mipmap(mipmap) ? &mipmap->whole : NULL, dev))

void sim_arrays_of_context_gone(CUcontext ctx)
{
	for (CUarray *at = &arrays; *at;)
		if ((*at)->ctx == ctx)
			array_end(at);
		else
			at = &(*at)->next;
}
