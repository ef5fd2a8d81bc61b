/* Processes recognize memory that they share by the tag of its descriptor (fd_tag.h), or by the bytes of a fabric handle. */
#include <string.h>

#include "library/entry/hook_vmm.h"
#include "library/entry/hooks.h"
#include "library/loader/real.h"
#include "library/memory/holding.h"
#include "library/memory/exports.h"
#include "library/memory/fd_tag.h"
#include "library/memory/shared.h"
#include "library/memory/swap_hold.h"
#include "library/sys/locks.h"

/* Tags exported memory so that importers recognize it. Skips memory that was imported or is not recorded. */
static void note_export(const void *out, CUmemAllocationHandleType type, uint64_t number)
{
	struct holding h;

	if (!number || !ptrmap_find(HOLDING_PHYSICAL, number, &h) ||
	    shared_key(SHARED_IMPORTED_PHYSICAL, number))
		return;
	struct shared s = {
		.kind = SHARED_EXPORTED_PHYSICAL,
		.index = h.device,
		.id = number,
		.key = shared_key(SHARED_EXPORTED_PHYSICAL, number),
		.bytes = h.bytes,
	};
	uint64_t known = s.key;
	if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		struct fd_tag tag = { .key = known ? known : fd_tag_new_key(),
				      .pages = h.bytes / FD_TAG_PAGE };
		int fd;

		memcpy(&fd, out, sizeof(fd));
		s.key = tag.key;
		if (!fd_tag_set(fd, &tag))
			return;
	} else if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
		s.key = exports_fabric_key(out);
	}
	if (h.bytes && s.key && s.key != known)
		shared_record_export(&s);
}

DEFINE_HOOK(hook_mem_export, export,
	    (void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
	     unsigned long long flags))
{
	if (!process_is_active())
		return export(out, handle, type, flags);
	WITH_LOCK(&locks.vmm);
	CUresult result = export(out, handle, type, flags);
	if (result == CUDA_SUCCESS)
		note_export(out, type, vmm_number_of(HOLDING_HANDLE, handle));
	return result;
}

/*
 * Returns the key by which processes recognize the memory, and its size in pages. Only a descriptor's tag tells the size; then
 * *ret_is_sized is true. Memory of unknown size is charged when it is mapped.
 */
static struct fd_tag identify(void *os_handle, CUmemAllocationHandleType type, bool *ret_is_sized)
{
	struct fd_tag tag = { 0 };

	*ret_is_sized = false;
	if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
		tag.key = exports_fabric_key(os_handle);
	} else if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		*ret_is_sized = fd_tag_get((int)(intptr_t)os_handle, &tag);
	}
	if (!tag.key)
		tag.key = fd_tag_new_key();
	return tag;
}

static int place_of(CUmemGenericAllocationHandle handle)
{
	CUmemAllocationProp prop;

	if (!real.cuMemGetAllocationPropertiesFromHandle ||
	    real.cuMemGetAllocationPropertiesFromHandle(&prop, handle) != CUDA_SUCCESS)
		return -1;
	return charge_location_index(&prop.location);
}

/*
 * Charges this process for the memory if no process of the tenant is charged yet. Returns false if that exceeds the quota, or
 * if host memory ran out.
 */
static bool note_import(uint64_t handle, const struct fd_tag *tag, int index)
{
	uint64_t number = vmm_number_of(HOLDING_HANDLE, handle);
	struct shared s = {
		.kind = SHARED_IMPORTED_PHYSICAL,
		.index = index,
		.key = tag->key,
		.bytes = tag->pages * FD_TAG_PAGE,
	};

	if (number) {
		vmm_add_handle(handle, number);
		return true;
	}
	s.id = vmm_new_number();
	if (!shared_record_import(&s))
		return false;
	if (vmm_note(handle, s.id, index, 0))
		return true;
	shared_drop(SHARED_IMPORTED_PHYSICAL, s.id);
	return false;
}

DEFINE_HOOK(hook_mem_import, import,
	    (CUmemGenericAllocationHandle * handle, void *os_handle, CUmemAllocationHandleType type))
{
	WITH_MEMORY_HELD();
	bool is_sized;

	if (!process_is_active())
		return import(handle, os_handle, type);
	WITH_LOCK(&locks.vmm);
	CUresult result = import(handle, os_handle, type);
	if (result != CUDA_SUCCESS)
		return result;
	struct fd_tag tag = identify(os_handle, type, &is_sized);
	int index = place_of(*handle);
	/* A tag of 0 pages is that of a multicast object, which takes no memory. */
	if (index < 0 || (is_sized && !tag.pages) || note_import(*handle, &tag, index))
		return result;
	real.cuMemRelease(*handle);
	return CUDA_ERROR_OUT_OF_MEMORY;
}
