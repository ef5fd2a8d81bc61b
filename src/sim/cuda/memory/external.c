/* Memory imported from another API, such as Vulkan. Here its handle is a descriptor from cuMemExportToShareableHandle. */
#include <stdlib.h>
#include <unistd.h>

#include "sim/cuda/sim.h"

#define OPAQUE_FD 1

struct CUextMemory_st {
	uint32_t block;
	uint64_t bytes;
	CUdevice dev;
};

/* On success the driver owns the descriptor. */
CUresult cuImportExternalMemory(CUexternalMemory *memory,
				const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
	CUexternalMemory made;
	uint64_t val[5];
	CUcontext ctx;

	SIM_ENTER(cuImportExternalMemory);
	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!memory || !desc || desc->type != OPAQUE_FD || !desc->size,
		    CUDA_ERROR_INVALID_VALUE);
	made = calloc(1, sizeof(*made));
	SIM_FAIL_IF(!made, CUDA_ERROR_OUT_OF_MEMORY);
	CUresult r = (CUresult)link_call_fd(&sim.link,
					    (struct sim_request_msg){ .type = SIM_MEM_IMPORT },
					    desc->handle.fd, val);
	if (r != CUDA_SUCCESS) {
		free(made);
		return r;
	}
	*made = (struct CUextMemory_st){ (uint32_t)val[0], val[1], sim_device_with_card(val[2]) };
	if (made->dev < 0) {
		sim_block_free(made->block);
		free(made);
		return CUDA_ERROR_INVALID_DEVICE;
	}
	close(desc->handle.fd);
	*memory = made;
	return CUDA_SUCCESS;
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *ptr, CUexternalMemory memory,
					 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	SIM_ENTER(cuExternalMemoryGetMappedBuffer);
	SIM_FAIL_IF(!ptr || !memory || !desc || !desc->size ||
			    !sim_is_within(desc->offset, desc->size, memory->bytes),
		    CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	struct sim_region *region = sim_va_new(REGION_LINEAR, desc->size, 0);
	SIM_FAIL_IF(!region, CUDA_ERROR_OUT_OF_MEMORY);
	region->bytes = desc->size;
	region->dev = memory->dev;
	*ptr = region->base;
	return CUDA_SUCCESS;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
	SIM_ENTER(cuDestroyExternalMemory);
	SIM_FAIL_IF(!memory, CUDA_ERROR_INVALID_VALUE);
	sim_block_free(memory->block);
	free(memory);
	return CUDA_SUCCESS;
}
