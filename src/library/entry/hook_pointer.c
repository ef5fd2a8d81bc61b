/*
 * A program sees memory that swap can move off the GPU (swap_backing.h) as linear memory of a context. To the driver, such
 * memory belongs to no context, and does not exist while it is off the GPU.
 */
#include <string.h>

#include "library/entry/hooks.h"
#include "library/loader/real.h"
#include "library/memory/swap_hold.h"
#include "library/swap/swap_backing.h"

static bool is_movable(CUdeviceptr ptr, struct backing *ret_backing)
{
	return swap_is_on() && swap_backing_find(ptr, ret_backing);
}

DEFINE_HOOK(hook_get_address_range, get, (CUdeviceptr * base, size_t *bytes, CUdeviceptr ptr))
{
	struct backing b;

	if (!is_movable(ptr, &b))
		return get(base, bytes, ptr);
	if (base)
		*base = b.base;
	if (bytes)
		*bytes = b.asked;
	return CUDA_SUCCESS;
}

/* Movable memory has no 32-bit addresses, so the address in this old call is never of movable memory. */
DEFINE_HOOK(hook_get_address_range_v1, get,
	    (CUdeviceptr_v1 * base, unsigned int *bytes, CUdeviceptr_v1 ptr))
{
	return get(base, bytes, ptr);
}

/* Writes an attribute that the driver states differently for movable and linear memory. Returns false for all others. */
static bool attribute_of(const struct backing *b, CUpointer_attribute attr, void *value)
{
	switch ((int)attr) {
	case CU_POINTER_ATTRIBUTE_CONTEXT: memcpy(value, &b->owner, sizeof(b->owner)); return true;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		memcpy(value, &b->buffer_id, sizeof(b->buffer_id));
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		memcpy(value, &b->base, sizeof(b->base));
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: {
		size_t bytes = (size_t)b->asked;
		memcpy(value, &bytes, sizeof(bytes));
		return true;
	}
	default: return false;
	}
}

DEFINE_HOOK(hook_pointer_get_attribute, get,
	    (void *value, CUpointer_attribute attr, CUdeviceptr ptr))
{
	struct backing b;

	if (!is_movable(ptr, &b) || !value)
		return get(value, attr, ptr);
	if (attribute_of(&b, attr, value))
		return CUDA_SUCCESS;
	WITH_MEMORY_HELD();
	return get(value, attr, ptr);
}

DEFINE_HOOK(hook_pointer_get_attributes, get,
	    (unsigned int n, CUpointer_attribute *attrs, void **values, CUdeviceptr ptr))
{
	struct backing b;

	if (!is_movable(ptr, &b) || !attrs || !values)
		return get(n, attrs, values, ptr);
	WITH_MEMORY_HELD();
	CUresult result = get(n, attrs, values, ptr);
	for (unsigned int i = 0; i < n && result == CUDA_SUCCESS; i++)
		if (values[i])
			attribute_of(&b, attrs[i], values[i]);
	return result;
}

/* A program sets SYNC_MEMOPS if its network adapter accesses the memory without the driver. Such memory must not move. */
DEFINE_HOOK(hook_pointer_set_attribute, set,
	    (const void *value, CUpointer_attribute attr, CUdeviceptr ptr))
{
	struct backing b;

	if (!is_movable(ptr, &b))
		return set(value, attr, ptr);
	WITH_MEMORY_HELD();
	CUresult result = set(value, attr, ptr);
	if (result == CUDA_SUCCESS && attr == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		swap_backing_keep(ptr);
	return result;
}

/* Other processes use the memory by this handle, so the memory must not move any more. */
DEFINE_HOOK(hook_get_handle_for_range, get,
	    (void *handle, CUdeviceptr ptr, size_t bytes, CUmemRangeHandleType type,
	     unsigned long long flags))
{
	struct backing b;

	if (!is_movable(ptr, &b))
		return get(handle, ptr, bytes, type, flags);
	WITH_MEMORY_HELD();
	CUresult result = get(handle, ptr, bytes, type, flags);
	if (result == CUDA_SUCCESS)
		swap_backing_keep(ptr);
	return result;
}

/*
 * An operation on movable memory waits until that memory is on the GPU. An operation on other memory does not wait, because
 * another thread may need it to make progress.
 */
#define STREAM_VALUE(bits) \
	DEFINE_HOOK(hook_stream_value##bits, order, \
		    (CUstream stream, CUdeviceptr ptr, cuuint##bits##_t value, unsigned int flags)) \
	{ \
		struct backing b; \
		if (!is_movable(ptr, &b)) \
			return order(stream, ptr, value, flags); \
		WITH_MEMORY_HELD(); \
		return order(stream, ptr, value, flags); \
	}
STREAM_VALUE(32)
STREAM_VALUE(64)

/* Unlike a single operation, a batch always waits until movable memory is on the GPU: its addresses are not examined. */
DEFINE_HOOK(hook_stream_batch_values, order,
	    (CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops, unsigned int flags))
{
	WITH_MEMORY_HELD();
	return order(stream, n, ops, flags);
}
