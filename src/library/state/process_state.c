#include "library/state/process_state.h"

#include <string.h>

#include "library/loader/real.h"

#define MAX_CUDA_DEVICES 64

/* process_state.own points here until the process joins. */
static struct process_own nobody;
struct process_state process_state = { .own = &nobody };

/* By CUDA ordinal: index + 1; 0 if not looked up yet, -1 if not the tenant's. */
static _Atomic int8_t device_index[MAX_CUDA_DEVICES];

void process_update_has_one_device(void)
{
	atomic_store(&process_own()->has_one_device,
		     atomic_load(&process_state.control)->device_count == 1 &&
			     !atomic_load(&process_state.detours));
}

int process_uuid_index(const void *uuid)
{
	const struct region_control *control = atomic_load(&process_state.control);

	for (uint32_t i = 0; control && i < control->device_count; i++)
		if (memcmp(control->device[i].uuid, uuid, 16) == 0)
			return (int)i;
	return -1;
}

CUresult process_find_device(CUdevice device, int *ret_index)
{
	bool is_kept = device >= 0 && device < MAX_CUDA_DEVICES;
	int known = is_kept ? atomic_load_explicit(&device_index[device], memory_order_relaxed) : 0;
	CUuuid uuid;

	if (!known) {
		/* On a MIG instance, _v2 returns the instance's UUID, which the tenant's list has. */
		CUresult result = real.cuDeviceGetUuid_v2 ? real.cuDeviceGetUuid_v2(&uuid, device)
							  : real.cuDeviceGetUuid(&uuid, device);
		if (result != CUDA_SUCCESS)
			return result;
		int index = process_uuid_index(&uuid);
		known = index >= 0 ? index + 1 : -1;
		if (is_kept)
			atomic_store_explicit(&device_index[device], (int8_t)known,
					      memory_order_relaxed);
	}
	*ret_index = known < 0 ? -1 : known - 1;
	return CUDA_SUCCESS;
}

bool process_device_exists(CUdevice device)
{
	int index;
	CUresult result = process_find_device(device, &index);

	return result != CUDA_ERROR_INVALID_DEVICE && result != CUDA_ERROR_NOT_INITIALIZED;
}

int process_device_index(CUdevice device)
{
	int index;

	return process_find_device(device, &index) == CUDA_SUCCESS ? index : -1;
}

int process_current_index(void)
{
	CUdevice device;

	if (!real.cuCtxGetDevice || real.cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return -1;
	return process_device_index(device);
}

void process_reset(void)
{
	for (int i = 0; i < MAX_CUDA_DEVICES; i++)
		atomic_store(&device_index[i], 0);
	atomic_store(&process_state.captures, 0);
}
