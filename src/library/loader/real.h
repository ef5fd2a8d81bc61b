/*
 * The real driver: a typed slot per function, found in the libcuda and libnvidia-ml that the program
 * itself loaded, and the way back from an address of the driver's to our hook for that symbol.
 *
 * The driver's own answer decides what a look-up means (version, per-thread-stream variant); names
 * are never compared with versions. Thread safe. Slots are written once.
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

/* NULL: this driver has no such function. */
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

/* The calling thread's context, or NULL: what memory dies with is found by it. */
static inline CUcontext real_current_context(void)
{
	CUcontext context = NULL;

	if (real.cuCtxGetCurrent)
		real.cuCtxGetCurrent(&context);
	return context;
}

/*
 * Fills the slots if the library is loaded and they are not filled yet. False when it is not loaded.
 * May run before libc is ready.
 */
bool real_find_driver(void);
bool real_find_nvml(void);

/* In a forked child: the search may have been under way in another thread. */
void real_reset(void);

/*
 * For dlsym: our hook for a function of the driver's at `address`, or what stands in for an unknown
 * one that was asked for by name and is refused (unknown.h). NULL when it is not governed.
 */
void *real_hook_of_address(const void *address);

/* The same, of rows alone. */
void *real_hook_of_known(const void *address);

/*
 * The same, of an address that the driver itself has just handed out: it can't be one that was loaded
 * anew, so what is in no row costs no search.
 */
void *real_hook_of_answer(const void *address);

/*
 * Our hook of that exact name, or what stands in for a form of a governed name that only the driver
 * knows, or NULL: a quick test for dlsym.
 */
void *real_hook_of_name(const char *name);

/* Whether a name of the driver's, in whatever version and variant, is one that is governed. */
bool real_governs_form_of(const char *name);
