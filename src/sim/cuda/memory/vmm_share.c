/* Memory of the virtual memory API that processes share. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "sim/cuda/memory/vmm.h"

/* contents of a fabric handle */
struct fabric {
	uint64_t name;
	unsigned char rest[56];
};

/* Exports memory as the write end of a pipe. The server's read end hangs up when all processes have closed the write end. */
static CUresult export_fd(void *out, const struct vmm *vmm)
{
	int fds[2];

	SIM_FAIL_IF(pipe2(fds, O_CLOEXEC) < 0, CUDA_ERROR_OPERATING_SYSTEM);
	CUresult r = (CUresult)link_call_fd(
		&sim.link, (struct sim_request_msg){ .type = SIM_MEM_EXPORT, .id = vmm->block },
		fds[0], NULL);
	close(fds[0]);
	if (r == CUDA_SUCCESS)
		*(int *)out = fds[1];
	else
		close(fds[1]);
	return r;
}

static CUresult export_fabric(void *out, const struct vmm *vmm)
{
	uint64_t val[5];

	SIM_TRY(sim_call((struct sim_request_msg){ .type = SIM_MEM_NAME, .id = vmm->block }, val));
	memcpy(out, &(struct fabric){ .name = val[0] }, sizeof(struct fabric));
	return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type, unsigned long long flags)
{
	SIM_ENTER(cuMemExportToShareableHandle);
	SIM_WITH_LOCK();
	struct vmm *vmm = sim_vmm_of(handle);
	SIM_FAIL_IF(!out || flags || !vmm || !vmm->block || !(vmm->prop.requestedHandleTypes & type),
		    CUDA_ERROR_INVALID_VALUE);
	return type == CU_MEM_HANDLE_TYPE_FABRIC ? export_fabric(out, vmm) : export_fd(out, vmm);
}

static CUresult find_block(void *os_handle, CUmemAllocationHandleType type, uint64_t val[5])
{
	int fd = (int)(intptr_t)os_handle;
	struct fabric fabric;

	if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
		memcpy(&fabric, os_handle, sizeof(fabric));
		return sim_call((struct sim_request_msg){ .type = SIM_MEM_OPEN,
							  .arg = { fabric.name } },
				val);
	}
	SIM_FAIL_IF(type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fcntl(fd, F_GETFD) < 0,
		    CUDA_ERROR_INVALID_VALUE);
	return (CUresult)link_call_fd(&sim.link, (struct sim_request_msg){ .type = SIM_MEM_IMPORT },
				      fd, val);
}

/* Imported memory cannot be exported again: the driver reports no handle types for it. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os_handle,
					CUmemAllocationHandleType type)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	struct vmm *vmm = NULL;
	uint64_t val[5];

	SIM_ENTER(cuMemImportFromShareableHandle);
	SIM_FAIL_IF(!handle, CUDA_ERROR_INVALID_VALUE);
	SIM_TRY(find_block(os_handle, type, val));
	prop.location.id = sim_device_with_card(val[2]);
	pthread_mutex_lock(&sim.lock);
	if (prop.location.id >= 0)
		vmm = sim_vmm_new(&prop, val[1], (uint32_t)val[0]);
	if (!vmm)
		sim_block_free((uint32_t)val[0]);
	pthread_mutex_unlock(&sim.lock);
	*handle = (uintptr_t)vmm;
	return vmm ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
