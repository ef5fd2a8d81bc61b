/*
 * Pools that several processes use. A process exports a pool as a descriptor or a fabric handle, and an allocation as 64 bytes.
 * The pool's creator is charged until it ends or destroys the pool. After that, each process that imported memory is charged
 * for its imports, until it destroys the pool too. The GPU keeps the memory until the last process has destroyed the pool. NVML
 * counts the memory for no process after the creator's end.
 */
#include "library/entry/hook_pool.h"

#include <string.h>

#include "library/entry/hooks.h"
#include "library/loader/real.h"
#include "library/memory/holding.h"
#include "library/memory/exports.h"
#include "library/memory/fd_tag.h"

DEFINE_HOOK(hook_mem_pool_export, export,
	    (void *out, CUmemoryPool pool, CUmemAllocationHandleType type, unsigned long long flags))
{
	CUresult result = export(out, pool, type, flags);

	if (result != CUDA_SUCCESS || !process_is_active())
		return result;
	if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		struct fd_tag tag = { .pages = 0 };
		int fd;
		memcpy(&fd, out, sizeof(fd));
		hook_pool_exported(pool, 0, &tag.key);
		if (tag.key)
			fd_tag_set(fd, &tag);
	} else if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
		uint64_t key;
		hook_pool_exported(pool, exports_fabric_key(out), &key);
	}
	return result;
}

DEFINE_HOOK(hook_mem_pool_import, import,
	    (CUmemoryPool * pool, void *os_handle, CUmemAllocationHandleType type,
	     unsigned long long flags))
{
	CUresult result = import(pool, os_handle, type, flags);
	struct fd_tag tag = { .key = 0 };

	if (result != CUDA_SUCCESS || !process_is_active())
		return result;
	if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		fd_tag_get((int)(intptr_t)os_handle, &tag);
	else if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		tag.key = exports_fabric_key(os_handle);
	hook_pool_imported(*pool, tag.key ? tag.key : fd_tag_new_key());
	return result;
}

static int index_of(CUdeviceptr ptr)
{
	int device;

	if (!real.cuPointerGetAttribute ||
	    real.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ptr) !=
		    CUDA_SUCCESS)
		return -1;
	return process_device_index(device);
}

/*
 * Charges this process for the memory if no process of the tenant is charged yet. Returns false if that exceeds the quota, or
 * if host memory ran out.
 */
static bool note_import(CUdeviceptr ptr, CUmemoryPool pool)
{
	struct holding h = {
		.kind = HOLDING_IMPORT,
		.key = ptr,
		.device = index_of(ptr),
		.related = (uint64_t)(uintptr_t)pool,
	};
	CUdeviceptr base;
	size_t bytes;

	if (h.device < 0 || !real.cuMemGetAddressRange_v2 ||
	    real.cuMemGetAddressRange_v2(&base, &bytes, ptr) != CUDA_SUCCESS)
		return true;
	h.bytes = charge_rounded(bytes);
	if (!hook_pool_import(pool, h.device, (int64_t)h.bytes))
		return false;
	if (ptrmap_insert(&h))
		return true;
	hook_pool_import(pool, h.device, -(int64_t)h.bytes);
	return false;
}

DEFINE_HOOK(hook_mem_pool_import_pointer, import,
	    (CUdeviceptr * ptr, CUmemoryPool pool, CUmemPoolPtrExportData *data))
{
	CUresult result = import(ptr, pool, data);

	if (result != CUDA_SUCCESS || !process_is_active() || note_import(*ptr, pool))
		return result;
	real.cuMemFree_v2(*ptr);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void hook_pool_freed_import(CUdeviceptr ptr)
{
	struct holding h;

	if (ptrmap_remove(HOLDING_IMPORT, ptr, &h))
		hook_pool_import((CUmemoryPool)(uintptr_t)h.related, h.device, -(int64_t)h.bytes);
}
