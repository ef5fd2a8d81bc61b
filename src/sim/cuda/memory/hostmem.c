/* Page-locked host memory, legacy IPC, and queries about pointers. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/cuda/sim.h"

struct host {
	struct host *next;
	uint64_t base, bytes;
	unsigned int flags;
	bool registered; /* the program allocated the memory and registered it */
};

static struct host *hosts; /* guarded by sim.lock */

static struct host *host_at(uint64_t addr)
{
	struct host *h = hosts;

	while (h && (addr < h->base || addr >= h->base + h->bytes))
		h = h->next;
	return h;
}

bool sim_host_find(uint64_t addr, uint64_t *ret_base, uint64_t *ret_bytes)
{
	const struct host *h = host_at(addr);

	if (!h)
		return false;
	*ret_base = h->base;
	*ret_bytes = h->bytes;
	return true;
}

static CUresult host_add(uint64_t base, uint64_t bytes, unsigned int flags, bool registered)
{
	struct host *h = calloc(1, sizeof(*h));

	SIM_FAIL_IF(!h, CUDA_ERROR_OUT_OF_MEMORY);
	*h = (struct host){ NULL, base, bytes, flags, registered };
	SIM_WITH_LOCK();
	h->next = hosts;
	hosts = h;
	return CUDA_SUCCESS;
}

static CUresult host_alloc(void **ptr, size_t bytes, unsigned int flags)
{
	CUcontext ctx;

	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!ptr || !bytes, CUDA_ERROR_INVALID_VALUE);
	SIM_UNSAFE();
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	SIM_FAIL_IF(at == MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
	CUresult r = host_add((uintptr_t)at, bytes, flags, false);
	if (r == CUDA_SUCCESS)
		*ptr = at;
	else
		munmap(at, bytes);
	return r;
}

SIM_FUNCTION(cuMemAllocHost_v2, (void **ptr, size_t bytes), host_alloc(ptr, bytes, 0))
SIM_FUNCTION(cuMemHostAlloc, (void **ptr, size_t bytes, unsigned int flags),
	     flags > 7 ? CUDA_ERROR_INVALID_VALUE : host_alloc(ptr, bytes, flags))

static struct host *host_remove(void *ptr, bool registered)
{
	struct host **at = &hosts, *h;

	SIM_WITH_LOCK();
	while (*at && ((*at)->base != (uintptr_t)ptr || (*at)->registered != registered))
		at = &(*at)->next;
	h = *at;
	if (h)
		*at = h->next;
	return h;
}

CUresult cuMemFreeHost(void *ptr)
{
	SIM_ENTER(cuMemFreeHost);
	if (!ptr)
		return CUDA_SUCCESS;
	SIM_UNSAFE();
	struct host *h = host_remove(ptr, false);
	SIM_FAIL_IF(!h, CUDA_ERROR_INVALID_VALUE);
	munmap(ptr, h->bytes);
	free(h);
	return CUDA_SUCCESS;
}

#define ADDRESSES_END (1ull << 47) /* end of a process's address space */

CUresult cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags)
{
	CUcontext ctx;

	SIM_ENTER(cuMemHostRegister_v2);
	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!ptr || !bytes || bytes > ADDRESSES_END ||
			    (uintptr_t)ptr > ADDRESSES_END - bytes,
		    CUDA_ERROR_INVALID_VALUE);
	SIM_UNSAFE();
	pthread_mutex_lock(&sim.lock);
	bool known = host_at((uintptr_t)ptr);
	pthread_mutex_unlock(&sim.lock);
	return known ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
		     : host_add((uintptr_t)ptr, bytes, flags, true);
}

CUresult cuMemHostUnregister(void *ptr)
{
	SIM_ENTER(cuMemHostUnregister);
	SIM_UNSAFE();
	struct host *h = host_remove(ptr, true);
	SIM_FAIL_IF(!h, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	free(h);
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *dptr, void *ptr, unsigned int flags)
{
	SIM_ENTER(cuMemHostGetDevicePointer_v2);
	pthread_mutex_lock(&sim.lock);
	bool known = host_at((uintptr_t)ptr);
	pthread_mutex_unlock(&sim.lock);
	SIM_FAIL_IF(!dptr || !known || flags, CUDA_ERROR_INVALID_VALUE);
	*dptr = (uintptr_t)ptr; /* host and GPU share one address space, as with a real GPU */
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
	SIM_ENTER(cuMemHostGetFlags);
	SIM_WITH_LOCK();
	const struct host *h = host_at((uintptr_t)ptr);
	if (h && flags)
		*flags = h->flags | 2; /* DEVICEMAP: always set */
	return h && flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The contents of a CUipcMemHandle. */
struct ipc {
	uint64_t name, offset, bytes;
};

/* region->detail of a REGION_IPC. */
struct opened {
	uint64_t name;
	uint32_t times;
};

/* Returns the region in which this context has already opened the memory `name`, or NULL. Call with sim.lock held. */
static struct sim_region *opened_before(uint64_t name, CUcontext ctx)
{
	struct sim_region *region = sim_va_list();

	while (region && (region->kind != REGION_IPC || region->ctx != ctx ||
			  ((struct opened *)region->detail)->name != name))
		region = region->next;
	return region;
}

/* Managed memory, pools and memory of the virtual memory API have no handle of this kind. */
static bool has_ipc(const struct sim_region *region)
{
	return !region->managed && (region->kind == REGION_LINEAR || region->kind == REGION_HEAP);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct sim_region *region;
	uint64_t base, bytes, val[5];

	SIM_ENTER(cuIpcGetMemHandle);
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!handle || !sim_allocation_at(ptr, &base, &bytes, &region) || !has_ipc(region),
		    CUDA_ERROR_INVALID_VALUE);
	SIM_TRY(sim_call((struct sim_request_msg){ .type = SIM_MEM_NAME, .id = region->block }, val));
	struct ipc ipc = { val[0], base - region->base, region->bytes };
	memset(handle, 0, sizeof(*handle));
	memcpy(handle->reserved, &ipc, sizeof(ipc));
	return CUDA_SUCCESS;
}

static CUresult open_block(const struct ipc *ipc, CUcontext ctx, struct sim_region **ret_region)
{
	struct opened *opened;
	uint64_t val[5];
	CUresult r = sim_call((struct sim_request_msg){ .type = SIM_MEM_OPEN, .arg = { ipc->name } },
			      val);

	if (r != CUDA_SUCCESS)
		return r;
	opened = calloc(1, sizeof(*opened));
	struct sim_region *region = opened ? sim_va_new(REGION_IPC, ipc->bytes, 0) : NULL;
	if (!region) {
		free(opened);
		sim_block_free((uint32_t)val[0]);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	opened->name = ipc->name;
	region->detail = opened;
	region->bytes = ipc->bytes;
	region->block = (uint32_t)val[0];
	region->ctx = ctx;
	region->dev = ctx->dev;
	*ret_region = region;
	return CUDA_SUCCESS;
}

static CUresult ipc_open(CUdeviceptr *ptr, CUipcMemHandle handle)
{
	struct ipc ipc;
	CUcontext ctx;
	CUresult r = CUDA_SUCCESS;

	SIM_TRY(sim_need_context(&ctx));
	memcpy(&ipc, handle.reserved, sizeof(ipc));
	SIM_FAIL_IF(!ptr || !ipc.bytes || ipc.bytes > 1ull << 44 || ipc.offset >= ipc.bytes,
		    CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	struct sim_region *region = opened_before(ipc.name, ctx);
	if (!region)
		r = open_block(&ipc, ctx, &region);
	if (r == CUDA_SUCCESS) {
		((struct opened *)region->detail)->times++;
		*ptr = region->base + ipc.offset;
	}
	return r;
}

SIM_FUNCTION(cuIpcOpenMemHandle, (CUdeviceptr * ptr, CUipcMemHandle handle, unsigned int flags),
	     ipc_open(ptr, handle))
SIM_FUNCTION(cuIpcOpenMemHandle_v2, (CUdeviceptr * ptr, CUipcMemHandle handle, unsigned int flags),
	     ipc_open(ptr, handle))

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	SIM_ENTER(cuIpcCloseMemHandle);
	SIM_WITH_LOCK();
	struct sim_region *region = sim_va_find(ptr);
	if (region && region->kind != REGION_IPC)
		region = NULL;
	if (region && --((struct opened *)region->detail)->times == 0)
		sim_region_drop(region);
	return region ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* If ptr is unknown, fails and writes 0, or -2 for DEVICE_ORDINAL. Call with sim.lock held. */
static CUresult attribute(void *value, CUpointer_attribute attr, CUdeviceptr ptr)
{
	struct sim_region *region = NULL;
	const struct host *h = NULL;
	uint64_t base = 0, bytes = 0;
	bool device = sim_allocation_at(ptr, &base, &bytes, &region);

	if (!device)
		h = host_at(ptr);
	bool known = device || h;
	if (h)
		base = h->base, bytes = h->bytes;
	switch ((int)attr) { /* cuda_abi.h does not name all attributes */
	case 1: /* CONTEXT */ *(CUcontext *)value = device ? region->ctx : NULL; break;
	case 2: /* MEMORY_TYPE */
		*(unsigned int *)value = device ? CU_MEMORYTYPE_DEVICE : h ? CU_MEMORYTYPE_HOST : 0;
		break;
	case 3: /* DEVICE_POINTER */ *(CUdeviceptr *)value = known ? ptr : 0; break;
	case 4: /* HOST_POINTER */
		*(uint64_t *)value = h || (device && region->managed) ? ptr : 0;
		SIM_FAIL_IF(device && !region->managed, CUDA_ERROR_INVALID_VALUE);
		break;
	case 6: /* SYNC_MEMOPS */
	case 15: /* IS_GPU_DIRECT_RDMA_CAPABLE */ *(int *)value = 0; break;
	case 7: /* BUFFER_ID */
		*(uint64_t *)value = device ? region->serial << 12 | (base - region->base) / 512
					    : base;
		break;
	case 8: /* IS_MANAGED */ *(int *)value = device && region->managed; break;
	case 9: /* DEVICE_ORDINAL */ *(int *)value = device ? region->dev : known ? 0 : -2; break;
	case 10: /* IS_LEGACY_CUDA_IPC_CAPABLE */ *(int *)value = device && has_ipc(region); break;
	case 11: /* RANGE_START_ADDR */ *(uint64_t *)value = base; break;
	case 12: /* RANGE_SIZE */ *(size_t *)value = bytes; break;
	case 13: /* MAPPED */ *(int *)value = known; break;
	case 14: /* ALLOWED_HANDLE_TYPES */ *(uint64_t *)value = 0; break;
	case 16: /* ACCESS_FLAGS */ *(int *)value = known ? 3 : 0; break;
	case 17: /* MEMPOOL_HANDLE */
		*(CUmemoryPool *)value = device && region->kind == REGION_POOL ? sim_pool_of(region)
									       : NULL;
		break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attr, CUdeviceptr ptr)
{
	SIM_ENTER(cuPointerGetAttribute);
	SIM_FAIL_IF(!value, CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	return attribute(value, attr, ptr);
}

/* As in the driver, an attribute that does not apply gives 0 and success. */
CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attrs, void **values,
				CUdeviceptr ptr)
{
	SIM_ENTER(cuPointerGetAttributes);
	SIM_FAIL_IF(!n || !attrs || !values, CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	for (unsigned int i = 0; i < n; i++)
		if (values[i])
			attribute(values[i], attrs[i], ptr);
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuPointerSetAttribute, (const void *value, CUpointer_attribute attr, CUdeviceptr ptr),
	     attr == 6 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)
