#include "sim/cuda/sim.h"

static bool is_function(const void *f)
{
	return f && ((CUfunction)(uintptr_t)f)->magic == MAGIC_FUNCTION;
}

static CUresult get_attribute(int *value, CUfunction_attribute attr, CUfunction f)
{
	static const int values[] = { 1024, 0, 0, 0, 32, 90, 90, 0, 49152, -1, 0, 0, 0, 0, 0, 0 };

	SIM_FAIL_IF(!value || attr < 0 || attr > 15, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!is_function(f), CUDA_ERROR_INVALID_HANDLE);
	*value = attr == 8 && f->max_dynamic_shared ? f->max_dynamic_shared : values[attr];
	return CUDA_SUCCESS;
}

static CUresult set_attribute(CUfunction f, CUfunction_attribute attr, int value)
{
	SIM_FAIL_IF(!is_function(f), CUDA_ERROR_INVALID_HANDLE);
	SIM_FAIL_IF(attr == 8 && (value < 0 || value > 232448), CUDA_ERROR_INVALID_VALUE);
	if (attr == 8)
		f->max_dynamic_shared = value;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuFuncGetAttribute, (int *value, CUfunction_attribute attr, CUfunction f),
	     get_attribute(value, attr, f))
SIM_FUNCTION(cuFuncSetAttribute, (CUfunction f, CUfunction_attribute attr, int value),
	     set_attribute(f, attr, value))
SIM_FUNCTION(cuKernelGetAttribute,
	     (int *value, CUfunction_attribute attr, CUkernel kernel, CUdevice dev),
	     get_attribute(value, attr, (CUfunction)kernel))
SIM_FUNCTION(cuKernelSetAttribute,
	     (CUfunction_attribute attr, int value, CUkernel kernel, CUdevice dev),
	     set_attribute((CUfunction)kernel, attr, value))

static CUresult get_name(const char **name, CUfunction f)
{
	SIM_FAIL_IF(!name, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!is_function(f), CUDA_ERROR_INVALID_HANDLE);
	*name = f->name;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuKernelGetName, (const char **name, CUkernel kernel),
	     get_name(name, (CUfunction)kernel))
SIM_FUNCTION(cuFuncGetName, (const char **name, CUfunction f), get_name(name, f))

CUresult cuKernelGetFunction(CUfunction *f, CUkernel kernel)
{
	SIM_ENTER(cuKernelGetFunction);
	SIM_FAIL_IF(!is_function(kernel), CUDA_ERROR_INVALID_HANDLE);
	*f = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
	SIM_ENTER(cuKernelGetLibrary);
	SIM_FAIL_IF(!is_function(kernel), CUDA_ERROR_INVALID_HANDLE);
	*library = (CUlibrary)((CUfunction)kernel)->module;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction f)
{
	SIM_ENTER(cuFuncGetModule);
	SIM_FAIL_IF(!is_function(f), CUDA_ERROR_INVALID_HANDLE);
	*module = f->module;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuFuncSetCacheConfig, (CUfunction f, CUfunc_cache config),
	     is_function(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE)
SIM_FUNCTION(cuFuncSetSharedMemConfig, (CUfunction f, CUsharedconfig config),
	     is_function(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE)
SIM_FUNCTION(cuFuncLoad, (CUfunction f), is_function(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE)

CUresult cuFuncIsLoaded(int *state, CUfunction f)
{
	SIM_ENTER(cuFuncIsLoaded);
	SIM_FAIL_IF(!is_function(f), CUDA_ERROR_INVALID_HANDLE);
	*state = 1;
	return CUDA_SUCCESS;
}

/* A kernel that spins has one parameter, an address; other kernels have none. */
static CUresult param_info(CUfunction f, size_t index, size_t *offset, size_t *bytes)
{
	SIM_FAIL_IF(!is_function(f), CUDA_ERROR_INVALID_HANDLE);
	SIM_FAIL_IF(!offset || !f->spins || index, CUDA_ERROR_INVALID_VALUE);
	*offset = 0;
	if (bytes)
		*bytes = sizeof(uint64_t);
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuFuncGetParamInfo, (CUfunction f, size_t index, size_t *offset, size_t *bytes),
	     param_info(f, index, offset, bytes))
SIM_FUNCTION(cuKernelGetParamInfo, (CUkernel kernel, size_t index, size_t *offset, size_t *bytes),
	     param_info((CUfunction)kernel, index, offset, bytes))

/* An SM has room for 2048 threads and 32 blocks. Registers and shared memory are not simulated. */
static CUresult active_blocks(int *blocks, CUfunction f, int block_size)
{
	SIM_FAIL_IF(!blocks || block_size < 1 || block_size > 1024, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!is_function(f), CUDA_ERROR_INVALID_HANDLE);
	*blocks = SIM_MIN(2048 / ((block_size + 31) / 32 * 32), 32);
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor,
	     (int *blocks, CUfunction f, int block_size, size_t shared_bytes),
	     active_blocks(blocks, f, block_size))
SIM_FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	     (int *blocks, CUfunction f, int block_size, size_t shared_bytes, unsigned int flags),
	     active_blocks(blocks, f, block_size))

static CUresult potential(int *min_grid, int *block_size, CUfunction f)
{
	CUcontext ctx;

	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!min_grid || !block_size, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!is_function(f), CUDA_ERROR_INVALID_HANDLE);
	*block_size = 1024;
	*min_grid = 2 * sim_context_device(ctx)->info.sms;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuOccupancyMaxPotentialBlockSize,
	     (int *min_grid, int *block_size, CUfunction f, CUoccupancyB2DSize size,
	      size_t shared_bytes, int limit),
	     potential(min_grid, block_size, f))
SIM_FUNCTION(cuOccupancyMaxPotentialBlockSizeWithFlags,
	     (int *min_grid, int *block_size, CUfunction f, CUoccupancyB2DSize size,
	      size_t shared_bytes, int limit, unsigned int flags),
	     potential(min_grid, block_size, f))

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction f, int blocks,
						 int block_size)
{
	SIM_ENTER(cuOccupancyAvailableDynamicSMemPerBlock);
	SIM_FAIL_IF(!bytes || blocks < 1, CUDA_ERROR_INVALID_VALUE);
	size_t of_block = 233472 / (size_t)blocks; /* 1,024 of them are the driver's own */
	*bytes = of_block > 1024 ? SIM_MIN(of_block - 1024, 232448) : 0;
	return CUDA_SUCCESS;
}
