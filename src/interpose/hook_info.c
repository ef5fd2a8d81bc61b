/* What the program is told of the card's memory: its quota is the card. */
#include "interpose/guest.h"
#include "interpose/hooks.h"
#include "interpose/ledger.h"

CUresult hook_mem_get_info(CUresult (*get)(size_t *, size_t *), size_t *free_bytes,
			   size_t *total_bytes)
{
	CUresult result = get(free_bytes, total_bytes);
	int index = result == CUDA_SUCCESS && guest_is_active() ? guest_current_index() : -1;

	if (index < 0)
		return result;
	uint64_t quota = ledger_quota(index), used = ledger_used(index);
	if (quota >= *total_bytes)
		return result;
	uint64_t left = used < quota ? quota - used : 0;
	*total_bytes = quota;
	if (*free_bytes > left)
		*free_bytes = left;
	return result;
}

CUresult hook_device_total_mem(CUresult (*get)(size_t *, CUdevice), size_t *bytes, CUdevice device)
{
	CUresult result = get(bytes, device);
	int index = result == CUDA_SUCCESS && guest_is_active() ? guest_device_index(device) : -1;

	if (index >= 0 && ledger_quota(index) < *bytes)
		*bytes = ledger_quota(index);
	return result;
}
