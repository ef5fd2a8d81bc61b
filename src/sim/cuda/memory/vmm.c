/*
 * The virtual memory API: reserved addresses, handles of memory, and mappings. Memory is freed when its handle was released as
 * often as it was created, retained or imported, it is mapped nowhere, and all exported descriptors are closed. The server
 * watches these descriptors.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/cuda/memory/vmm.h"

struct mapping {
	struct mapping *next;
	uint64_t base, bytes;
	struct vmm *vmm;
	uint32_t access; /* bit i: device i may access the mapping */
};

struct reserved {
	struct mapping *mappings;
};

static struct vmm *handles; /* guarded by sim.lock */

/* Limit of host memory for the contents of handles. A handle beyond it has no contents. */
#define KEPT_MAX (256ull << 20)
static uint64_t kept_bytes;

static void add_backing(struct vmm *vmm)
{
	if (!vmm->block || vmm->bytes_at || kept_bytes + vmm->bytes > KEPT_MAX)
		return;
	void *at = mmap(NULL, vmm->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return;
	vmm->bytes_at = at;
	kept_bytes += vmm->bytes;
}

static void remove_backing(struct vmm *vmm)
{
	if (!vmm->bytes_at)
		return;
	munmap(vmm->bytes_at, vmm->bytes);
	kept_bytes -= vmm->bytes;
}

static void map_backing(const struct vmm *vmm, uint64_t offset, uint64_t ptr, uint64_t bytes)
{
	if (vmm->bytes_at)
		mremap((char *)vmm->bytes_at + offset, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		       (void *)(uintptr_t)ptr);
}

static void unmap_backing(const struct mapping *m)
{
	if (m->vmm->bytes_at)
		mmap((void *)(uintptr_t)m->base, m->bytes, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

struct vmm *sim_vmm_of(CUmemGenericAllocationHandle handle)
{
	struct vmm *vmm = handles;

	while (vmm && (uintptr_t)vmm != handle)
		vmm = vmm->next;
	return vmm;
}

void sim_vmm_check(struct vmm *vmm)
{
	struct vmm **at;

	if (vmm->refs || vmm->maps)
		return;
	for (at = &handles; *at != vmm; at = &(*at)->next)
		;
	*at = vmm->next;
	while (vmm->bindings) {
		struct binding *binding = vmm->bindings;

		vmm->bindings = binding->next;
		binding->memory->maps--;
		sim_vmm_check(binding->memory);
		free(binding);
	}
	sim_block_free(vmm->block);
	remove_backing(vmm);
	free(vmm);
}

struct vmm *sim_vmm_new(const CUmemAllocationProp *prop, uint64_t bytes, uint32_t block)
{
	struct vmm *vmm = calloc(1, sizeof(*vmm));

	if (!vmm)
		return NULL;
	vmm->magic = MAGIC_VMM;
	vmm->prop = *prop;
	vmm->bytes = bytes;
	vmm->block = block;
	vmm->refs = 1;
	vmm->next = handles;
	handles = vmm;
	return vmm;
}

static bool on_device(const CUmemAllocationProp *prop)
{
	return prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

static uint64_t granularity(const CUmemAllocationProp *prop)
{
	uint64_t block = on_device(prop) ? sim.devices[prop->location.id].info.block_bytes : 0;

	return SIM_MAX(block, SIM_UNIT);
}

static CUresult check_prop(const CUmemAllocationProp *prop)
{
	SIM_FAIL_IF(!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
			    (prop->requestedHandleTypes & ~(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR |
							    CU_MEM_HANDLE_TYPE_FABRIC)),
		    CUDA_ERROR_INVALID_VALUE);
	if (on_device(prop))
		return sim_device_of(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	return prop->location.type >= CU_MEM_LOCATION_TYPE_HOST &&
			       prop->location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option)
{
	SIM_ENTER(cuMemGetAllocationGranularity);
	SIM_TRY(check_prop(prop));
	SIM_FAIL_IF(!bytes, CUDA_ERROR_INVALID_VALUE);
	*bytes = granularity(prop);
	return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
		     const CUmemAllocationProp *prop, unsigned long long flags)
{
	uint32_t block = 0;

	SIM_ENTER(cuMemCreate);
	SIM_TRY(check_prop(prop));
	SIM_FAIL_IF(!handle || !bytes || bytes % granularity(prop) || flags,
		    CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(sim_fault_oom(), CUDA_ERROR_OUT_OF_MEMORY);
	SIM_UNSAFE();
	SIM_WITH_LOCK();
	if (on_device(prop))
		SIM_TRY(sim_block_new(prop->location.id, bytes, SIM_BLOCK_DATA, &block));
	struct vmm *vmm = sim_vmm_new(prop, bytes, block);
	if (!vmm) {
		sim_block_free(block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*handle = (uintptr_t)vmm;
	return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	SIM_ENTER(cuMemRelease);
	SIM_WITH_LOCK();
	struct vmm *vmm = sim_vmm_of(handle);
	SIM_FAIL_IF(!vmm || !vmm->refs, CUDA_ERROR_INVALID_VALUE);
	vmm->refs--;
	sim_vmm_check(vmm);
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
						CUmemGenericAllocationHandle handle)
{
	SIM_ENTER(cuMemGetAllocationPropertiesFromHandle);
	SIM_WITH_LOCK();
	struct vmm *vmm = sim_vmm_of(handle);
	if (vmm && prop)
		*prop = vmm->prop;
	return vmm && prop ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t alignment, CUdeviceptr hint,
			     unsigned long long flags)
{
	SIM_ENTER(cuMemAddressReserve);
	SIM_FAIL_IF(!ptr || !bytes || bytes % SIM_UNIT || (alignment & (alignment - 1)) || flags,
		    CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	struct reserved *reserved = calloc(1, sizeof(*reserved));
	struct sim_region *region = reserved ? sim_va_new(REGION_RESERVED, bytes, alignment) : NULL;
	if (!region) {
		free(reserved);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	region->bytes = bytes;
	region->detail = reserved;
	*ptr = region->base;
	return CUDA_SUCCESS;
}

/* Returns the reserved range that contains [ptr, ptr + bytes), or NULL. Call with sim.lock held. */
static struct reserved *find_reserved(CUdeviceptr ptr, uint64_t bytes,
				      struct sim_region **ret_region)
{
	struct sim_region *region = sim_va_find(ptr);

	if (!region || region->kind != REGION_RESERVED ||
	    !sim_is_within(ptr - region->base, bytes, region->span))
		return NULL;
	*ret_region = region;
	return region->detail;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
	struct sim_region *region;

	SIM_ENTER(cuMemAddressFree);
	SIM_WITH_LOCK();
	struct reserved *reserved = find_reserved(ptr, bytes, &region);
	SIM_FAIL_IF(!reserved || reserved->mappings || region->base != ptr || region->bytes != bytes,
		    CUDA_ERROR_INVALID_VALUE);
	sim_region_drop(region);
	return CUDA_SUCCESS;
}

void sim_vmm_region_gone(struct sim_region *region)
{
	struct reserved *reserved = region->detail;

	while (reserved->mappings) {
		struct mapping *m = reserved->mappings;

		reserved->mappings = m->next;
		unmap_backing(m);
		m->vmm->maps--;
		sim_vmm_check(m->vmm);
		free(m);
	}
}

CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags)
{
	struct sim_region *region;

	SIM_ENTER(cuMemMap);
	SIM_WITH_LOCK();
	struct vmm *vmm = sim_vmm_of(handle);
	struct reserved *reserved = find_reserved(ptr, bytes, &region);
	SIM_FAIL_IF(!vmm || !vmm->refs || !reserved || !bytes || flags || ptr % SIM_UNIT ||
			    bytes % SIM_UNIT || offset % SIM_UNIT ||
			    !sim_is_within(offset, bytes, vmm->bytes),
		    CUDA_ERROR_INVALID_VALUE);
	for (struct mapping *m = reserved->mappings; m; m = m->next)
		SIM_FAIL_IF(ptr < m->base + m->bytes && m->base < ptr + bytes,
			    CUDA_ERROR_INVALID_VALUE);
	struct mapping *mapping = calloc(1, sizeof(*mapping));
	SIM_FAIL_IF(!mapping, CUDA_ERROR_OUT_OF_MEMORY);
	*mapping = (struct mapping){ reserved->mappings, ptr, bytes, vmm, 0 };
	reserved->mappings = mapping;
	vmm->maps++;
	add_backing(vmm);
	map_backing(vmm, offset, ptr, bytes);
	return CUDA_SUCCESS;
}

/* The range must consist of whole mappings. */
CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	struct sim_region *region;
	struct mapping **at;
	uint64_t covered = 0;

	SIM_ENTER(cuMemUnmap);
	SIM_WITH_LOCK();
	struct reserved *reserved = find_reserved(ptr, bytes, &region);
	for (struct mapping *m = reserved ? reserved->mappings : NULL; m; m = m->next)
		if (m->base >= ptr && m->base + m->bytes <= ptr + bytes)
			covered += m->bytes;
	SIM_FAIL_IF(!reserved || !bytes || covered != bytes, CUDA_ERROR_INVALID_VALUE);
	for (at = &reserved->mappings; *at;) {
		struct mapping *m = *at;

		if (m->base < ptr || m->base >= ptr + bytes) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		unmap_backing(m);
		m->vmm->maps--;
		sim_vmm_check(m->vmm);
		free(m);
	}
	return CUDA_SUCCESS;
}

static struct mapping *find_mapping(CUdeviceptr ptr)
{
	struct sim_region *region;
	struct reserved *reserved = find_reserved(ptr, 0, &region);
	struct mapping *m = reserved ? reserved->mappings : NULL;

	while (m && (ptr < m->base || ptr >= m->base + m->bytes))
		m = m->next;
	return m;
}

bool sim_vmm_find(uint64_t addr, uint64_t *ret_base, uint64_t *ret_bytes)
{
	struct mapping *m = find_mapping(addr);

	if (!m)
		return false;
	*ret_base = m->base;
	*ret_bytes = m->bytes;
	return true;
}

bool sim_vmm_has_bytes(uint64_t addr, uint64_t n)
{
	struct mapping *m = find_mapping(addr);

	return m && m->vmm->bytes_at && sim_is_within(addr - m->base, n, m->bytes);
}

struct vmm *sim_vmm_at(CUdeviceptr ptr)
{
	struct mapping *m = find_mapping(ptr);

	return m ? m->vmm : NULL;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	SIM_ENTER(cuMemRetainAllocationHandle);
	SIM_FAIL_IF(!handle, CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	struct mapping *m = find_mapping((uintptr_t)addr);
	if (m) {
		m->vmm->refs++;
		*handle = (uintptr_t)m->vmm;
	}
	return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
	struct sim_region *region;
	uint64_t covered = 0;

	SIM_ENTER(cuMemSetAccess);
	SIM_FAIL_IF(!desc || !count || !bytes, CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	struct reserved *reserved = find_reserved(ptr, bytes, &region);
	for (struct mapping *m = reserved ? reserved->mappings : NULL; m; m = m->next) {
		if (m->base < ptr || m->base + m->bytes > ptr + bytes)
			continue;
		covered += m->bytes;
		for (size_t i = 0; i < count; i++) {
			if (sim_device_of(desc[i].location.id))
				sim_set_access(&m->access, &desc[i]);
		}
	}
	return covered == bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	SIM_ENTER(cuMemGetAccess);
	SIM_FAIL_IF(!flags || !location || !sim_device_of(location->id), CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	struct mapping *m = find_mapping(ptr);
	if (m)
		*flags = m->access >> location->id & 1 ? 3 : 0;
	return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_FUNCTION(cuMemGetHandleForAddressRange,
	     (void *handle, CUdeviceptr ptr, size_t bytes, CUmemRangeHandleType type,
	      unsigned long long flags),
	     CUDA_ERROR_NOT_SUPPORTED)
