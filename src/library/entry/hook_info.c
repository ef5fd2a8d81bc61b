/* Hooks of calls that query how much memory a GPU has. They report the tenant's quota as the size of the GPU's memory. */
#include "library/entry/hooks.h"
#include "library/memory/ledger.h"
#include "library/memory/swap_hold.h"
#include "library/state/process_state.h"

DEFINE_HOOK(hook_mem_get_info, get, (size_t * free_bytes, size_t *total_bytes))
{
	size_t unread_free, unread_total;
	CUresult result = get(free_bytes, total_bytes);
	int index = result == CUDA_SUCCESS && process_is_active() ? process_current_index() : -1;

	if (index < 0 || (!free_bytes && !total_bytes))
		return result;
	/* The driver accepts NULL for a value that is not wanted, but each value below is computed from both. */
	if (!free_bytes || !total_bytes) {
		free_bytes = free_bytes ? free_bytes : &unread_free;
		total_bytes = total_bytes ? total_bytes : &unread_total;
		result = get(free_bytes, total_bytes);
		if (result != CUDA_SUCCESS)
			return result;
	}
	uint64_t quota = ledger_quota(index), used = ledger_used(index);
	if (quota >= *total_bytes && !swap_is_on())
		return result;
	uint64_t left = used < quota ? quota - used : 0;
	if (*total_bytes > quota)
		*total_bytes = quota;
	/* With swap, all unused quota counts as free: the daemon moves other tenants' memory off the GPU if needed. */
	if (*free_bytes > left || swap_is_on())
		*free_bytes = left;
	return result;
}

DEFINE_HOOK(hook_device_total_mem, get, (size_t * bytes, CUdevice device))
{
	CUresult result = get(bytes, device);
	int index = result == CUDA_SUCCESS && process_is_active() ? process_device_index(device)
								  : -1;

	if (index >= 0 && bytes && ledger_quota(index) < *bytes)
		*bytes = ledger_quota(index);
	return result;
}
