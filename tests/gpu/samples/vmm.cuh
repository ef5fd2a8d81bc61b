/* Steps of the driver's virtual memory API, on device 0. */
#pragma once

#include "driver.cuh"

inline CUmemAllocationProp vmm_properties(bool is_exported = false)
{
	CUmemAllocationProp p = {};

	p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
	if (is_exported)
		p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	return p;
}

inline CUdeviceptr vmm_reserve(size_t bytes)
{
	CUdeviceptr p = 0;

	OK(DRIVER(cuMemAddressReserve)(&p, bytes, 0, 0, 0));
	return p;
}

/* Maps the whole handle, readable and writable. */
inline void vmm_map(CUdeviceptr at, size_t bytes, CUmemGenericAllocationHandle handle)
{
	CUmemAccessDesc access = {};

	OK(DRIVER(cuMemMap)(at, bytes, 0, handle, 0));
	access.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	OK(DRIVER(cuMemSetAccess)(at, bytes, &access, 1));
}
