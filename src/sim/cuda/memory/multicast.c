/* Multicast objects map memory of several devices. Here they keep their bindings and the bound memory, but send nothing. */
#include <stdlib.h>

#include "sim/cuda/memory/vmm.h"

static bool is_object(const struct vmm *vmm)
{
	return vmm && vmm->is_multicast;
}

static bool is_valid(const CUmulticastObjectProp *prop)
{
	return prop && prop->numDevices && prop->size && prop->size % SIM_UNIT == 0 && !prop->flags;
}

CUresult cuMulticastGetGranularity(size_t *bytes, const CUmulticastObjectProp *prop,
				   CUmulticastGranularity_flags option)
{
	SIM_ENTER(cuMulticastGetGranularity);
	SIM_FAIL_IF(!bytes || !is_valid(prop), CUDA_ERROR_INVALID_VALUE);
	*bytes = SIM_UNIT;
	return CUDA_SUCCESS;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *object, const CUmulticastObjectProp *prop)
{
	CUmemAllocationProp none = { .type = CU_MEM_ALLOCATION_TYPE_PINNED };

	SIM_ENTER(cuMulticastCreate);
	SIM_FAIL_IF(!object || !is_valid(prop), CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	struct vmm *vmm = sim_vmm_new(&none, prop->size, 0);
	if (vmm)
		vmm->is_multicast = true;
	*object = (uintptr_t)vmm;
	return vmm ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle object, CUdevice dev)
{
	SIM_ENTER(cuMulticastAddDevice);
	SIM_FAIL_IF(!sim_device_of(dev), CUDA_ERROR_INVALID_DEVICE);
	SIM_WITH_LOCK();
	struct vmm *vmm = sim_vmm_of(object);
	SIM_FAIL_IF(!is_object(vmm) || vmm->devices >> dev & 1, CUDA_ERROR_INVALID_VALUE);
	vmm->devices |= 1u << dev;
	return CUDA_SUCCESS;
}

/* Call with sim.lock held. */
static CUresult bind_memory(CUmemGenericAllocationHandle object, size_t offset, struct vmm *memory,
			    size_t memory_offset, size_t bytes)
{
	struct vmm *vmm = sim_vmm_of(object);
	struct binding *binding;

	SIM_FAIL_IF(!is_object(vmm) || !memory || !memory->block || !bytes || offset % SIM_UNIT ||
			    bytes % SIM_UNIT || !sim_is_within(offset, bytes, vmm->bytes) ||
			    !sim_is_within(memory_offset, bytes, memory->bytes) ||
			    !(vmm->devices >> memory->prop.location.id & 1),
		    CUDA_ERROR_INVALID_VALUE);
	for (binding = vmm->bindings; binding; binding = binding->next)
		SIM_FAIL_IF(binding->dev == memory->prop.location.id &&
				    offset < binding->offset + binding->bytes &&
				    binding->offset < offset + bytes,
			    CUDA_ERROR_INVALID_VALUE);
	binding = calloc(1, sizeof(*binding));
	SIM_FAIL_IF(!binding, CUDA_ERROR_OUT_OF_MEMORY);
	*binding = (struct binding){ vmm->bindings, memory, memory->prop.location.id, offset,
				     bytes };
	vmm->bindings = binding;
	memory->maps++;
	return CUDA_SUCCESS;
}

static CUresult bind_handle(CUmemGenericAllocationHandle object, size_t offset,
			    CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes)
{
	SIM_WITH_LOCK();
	return bind_memory(object, offset, sim_vmm_of(memory), memory_offset, bytes);
}

static CUresult bind_addr(CUmemGenericAllocationHandle object, size_t offset, CUdeviceptr ptr,
			  size_t bytes)
{
	SIM_WITH_LOCK();
	return bind_memory(object, offset, sim_vmm_at(ptr), 0, bytes);
}

SIM_FUNCTION(cuMulticastBindMem,
	     (CUmemGenericAllocationHandle object, size_t offset, CUmemGenericAllocationHandle memory,
	      size_t memory_offset, size_t bytes, unsigned long long flags),
	     bind_handle(object, offset, memory, memory_offset, bytes))
SIM_FUNCTION(cuMulticastBindMem_v2,
	     (CUmemGenericAllocationHandle object, CUdevice dev, size_t offset,
	      CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes,
	      unsigned long long flags),
	     bind_handle(object, offset, memory, memory_offset, bytes))
SIM_FUNCTION(cuMulticastBindAddr,
	     (CUmemGenericAllocationHandle object, size_t offset, CUdeviceptr ptr, size_t bytes,
	      unsigned long long flags),
	     bind_addr(object, offset, ptr, bytes))
SIM_FUNCTION(cuMulticastBindAddr_v2,
	     (CUmemGenericAllocationHandle object, CUdevice dev, size_t offset, CUdeviceptr ptr,
	      size_t bytes, unsigned long long flags),
	     bind_addr(object, offset, ptr, bytes))

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle object, CUdevice dev, size_t offset,
			   size_t bytes)
{
	SIM_ENTER(cuMulticastUnbind);
	SIM_WITH_LOCK();
	struct vmm *vmm = sim_vmm_of(object);
	for (struct binding **at = vmm ? &vmm->bindings : NULL; at && *at; at = &(*at)->next) {
		struct binding *binding = *at;

		if (binding->dev != dev || binding->offset != offset || binding->bytes != bytes)
			continue;
		*at = binding->next;
		binding->memory->maps--;
		sim_vmm_check(binding->memory);
		free(binding);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}
