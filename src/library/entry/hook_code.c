/*
 * Hooks of calls that load code or enlarge stacks. These calls do not state how much memory they take, so it is measured
 * (measured.h). The daemon later finds the memory that the driver takes when a kernel is first launched.
 */
#include "library/entry/hooks.h"
#include "library/loader/real.h"
#include "library/memory/holding.h"
#include "library/memory/measured.h"
#include "library/memory/swap_hold.h"
#include "library/memory/swap_room.h"
#include "library/trace/trace_record.h"

/* On a full GPU, loading waits for this much memory: code's size is unknown, but code memory grows in steps of this size. */
#define CODE_BYTES (32 * MIB)

/*
 * Defines a hook that loads code. If the code exceeds the quota, the hook unloads it. A second measurement (measured.h) then
 * decides whether the hook loads the code again or fails. `made` gets the code's handle.
 */
#define LOADS(name, params, args, made, unload) \
	DEFINE_HOOK_WITH_ROOM(hook_##name, real_function, params, args) \
	{ \
		WITH_MEMORY_HELD(); \
		struct measured m; \
		measured_begin(&m, charge_index()); \
		CUresult result = real_function args; \
		swap_room_check_result(result, m.index, CODE_BYTES); \
		if (result != CUDA_SUCCESS || measured_charge(&m)) \
			return result; \
		unload(*(made)); \
		if (!measured_charge_retry(&m)) \
			return CUDA_ERROR_OUT_OF_MEMORY; \
		result = real_function args; \
		if (result != CUDA_SUCCESS) \
			measured_refund(&m); \
		return result; \
	}

/* Defines a hook whose call may load code that it cannot unload again. So the code is charged even beyond the quota. */
#define LOADS_FOR_GOOD(name, params, args) \
	DEFINE_HOOK_WITH_ROOM(hook_##name, real_function, params, args) \
	{ \
		WITH_MEMORY_HELD(); \
		struct measured m; \
		measured_begin(&m, charge_index()); \
		CUresult result = real_function args; \
		measured_charge_always(&m); \
		swap_room_check_result(result, m.index, CODE_BYTES); \
		return result; \
	}

#define UNLOADS(name, params, args) \
	DEFINE_HOOK(hook_##name, real_function, params) \
	{ \
		struct measured m; \
		measured_begin(&m, charge_index()); \
		/* Forget the handle first: once the driver has unloaded this code, other code may get the handle. */ \
		trace_code_unloads(); \
		CUresult result = real_function args; \
		measured_release(&m); \
		return result; \
	}

LOADS(module_load, (CUmodule * module, const char *path), (module, path), module,
      real.cuModuleUnload)
LOADS(module_load_data, (CUmodule * module, const void *image), (module, image), module,
      real.cuModuleUnload)
LOADS(module_load_data_ex,
      (CUmodule * module, const void *image, unsigned int count, CUjit_option *options,
       void **values),
      (module, image, count, options, values), module, real.cuModuleUnload)
LOADS(library_load_data,
      (CUlibrary * library, const void *image, CUjit_option *jit, void **jit_values,
       unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count),
      (library, image, jit, jit_values, jit_count, options, values, count), library,
      real.cuLibraryUnload)
LOADS(library_load_file,
      (CUlibrary * library, const char *path, CUjit_option *jit, void **jit_values,
       unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count),
      (library, path, jit, jit_values, jit_count, options, values, count), library,
      real.cuLibraryUnload)

LOADS_FOR_GOOD(module_get_global_v1,
	       (CUdeviceptr_v1 * ptr, unsigned int *bytes, CUmodule module, const char *name),
	       (ptr, bytes, module, name))
LOADS_FOR_GOOD(module_get_global,
	       (CUdeviceptr * ptr, size_t *bytes, CUmodule module, const char *name),
	       (ptr, bytes, module, name))
LOADS_FOR_GOOD(library_get_module, (CUmodule * module, CUlibrary library), (module, library))
LOADS_FOR_GOOD(library_get_global,
	       (CUdeviceptr * ptr, size_t *bytes, CUlibrary library, const char *name),
	       (ptr, bytes, library, name))
LOADS_FOR_GOOD(func_load, (CUfunction function), (function))

UNLOADS(module_unload, (CUmodule module), (module))
UNLOADS(library_unload, (CUlibrary library), (library))

static uint64_t attribute(CUdevice_attribute which)
{
	CUdevice device;
	int value = 0;

	if (!real.cuDeviceGetAttribute || real.cuCtxGetDevice(&device) != CUDA_SUCCESS ||
	    real.cuDeviceGetAttribute(&value, which, device) != CUDA_SUCCESS)
		return 0;
	return value > 0 ? (uint64_t)value : 0;
}

/*
 * A larger stack takes at once its growth times the number of threads that the GPU can run at a time (measured on an H200,
 * driver 580: 264 MiB per KiB). Other limits take no memory until a kernel needs it.
 */
static uint64_t stack_growth_bytes(CUlimit limit, size_t old, size_t value)
{
	uint64_t bytes;

	if (limit != CU_LIMIT_STACK_SIZE || value <= old)
		return 0;
	uint64_t threads = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
			   attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
	return __builtin_mul_overflow((uint64_t)(value - old), threads, &bytes) ? UINT64_MAX : bytes;
}

DEFINE_HOOK_WITH_ROOM(hook_ctx_set_limit, set, (CUlimit limit, size_t value), (limit, value))
{
	WITH_MEMORY_HELD();
	struct holding h = { .device = charge_index() };
	struct measured m;
	size_t old;

	if (h.device < 0 || !real.cuCtxGetLimit || real.cuCtxGetLimit(&old, limit) != CUDA_SUCCESS)
		return set(limit, value);
	measured_begin(&m, h.device);
	h.bytes = stack_growth_bytes(limit, old, value);
	if (h.bytes && !charge_begin_on_gpu(&h))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = set(limit, value);
	swap_room_check_result(result, h.device, h.bytes);
	ledger_release(h.device, h.bytes);
	if (value < old) {
		measured_release(&m);
	} else if (result == CUDA_SUCCESS && !measured_charge(&m)) {
		set(limit, old);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return result;
}
