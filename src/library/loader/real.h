/*
 * The real driver's functions, one typed slot each, from the libcuda and libnvidia-ml that the program loaded; and the hooks
 * for their addresses. Slots change only when the program loads the driver again. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "abi/driver_table.h"
#include "abi/nvml_table.h"
#include "library/sys/sys.h"

#define SLOT_HOOK(symbol, hook, params, args) CUresult(*symbol) params;
#define SLOT_WORK(symbol, streams, params, args, ...) CUresult(*symbol) params;
#define SLOT_CALL(symbol, params) CUresult(*symbol) params;

/* A slot is NULL if this driver lacks the function. */
struct real_driver {
	DRIVER_TABLE(SLOT_HOOK, SLOT_WORK)
	DRIVER_CALLS(SLOT_CALL)
};

#define SLOT_NVML_HOOK(symbol, hook, params, args) nvmlReturn_t(*symbol) params;
#define SLOT_NVML(symbol, params, ...) nvmlReturn_t(*symbol) params;

struct real_nvml {
	NVML_TABLE(SLOT_NVML_HOOK, SLOT_NVML_HOOK, SLOT_NVML)
	NVML_CALLS(SLOT_NVML)
};

SYS_DATA struct real_driver real;
SYS_DATA struct real_nvml real_nvml;

static inline CUcontext real_current_context(void)
{
	CUcontext context = NULL;

	if (real.cuCtxGetCurrent)
		real.cuCtxGetCurrent(&context);
	return context;
}

/* Fill `real` and `real_nvml`. False if the program has not loaded the library. May run before libc is ready. */
bool real_find_driver(void);
bool real_find_nvml(void);

/* For dlsym: the hook for the driver function at `address`, a stand-in if it must be hidden (unknown.h), or NULL. */
void *real_hook_of_address(const void *address);

/* For an address that the driver just returned: does not look for a driver loaded later, and returns no stand-in. */
void *real_hook_of_answer(const void *address);

/*
 * A quick lookup for dlsym: the hook of exactly this name. For a hooked name with a version or stream suffix that
 * driver_table.h lacks, such as cuMemAlloc_v9, a stand-in (unknown.h). Otherwise NULL.
 */
void *real_hook_of_name(const char *name);

/* True if `name` without its version and stream suffixes (_v2, _ptsz, _ptds) is a hooked driver function. */
bool real_hooks_form_of(const char *name);
