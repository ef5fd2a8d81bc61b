/*
 * The real driver: a typed slot per function, found in the libcuda and libnvidia-ml that the program
 * itself loaded, and the way back from an address of the driver's to our hook for that symbol.
 *
 * The driver's own answer decides what a look-up means (version, per-thread-stream variant); names
 * are never compared with versions. Thread safe. Slots are written once.
 */
#ifndef ALLOT_INTERPOSE_REAL_H
#define ALLOT_INTERPOSE_REAL_H

#include <stdbool.h>

#include "driver/driver_table.h"
#include "driver/nvml_abi.h"

#define SLOT_HOOK(symbol, hook, params, args) CUresult(*symbol) params;
#define SLOT_WORK(symbol, streams, params, args, ...) CUresult(*symbol) params;
#define SLOT_CALL(symbol, params) CUresult(*symbol) params;

/* NULL: this driver has no such function. */
struct real_driver {
	DRIVER_TABLE(SLOT_HOOK, SLOT_WORK)
	DRIVER_CALLS(SLOT_CALL)
};

/* NVML functions that are hooked (first two) or called. */
struct real_nvml {
	nvmlReturn_t (*nvmlDeviceGetMemoryInfo)(nvmlDevice_t, nvmlMemory_t *);
	nvmlReturn_t (*nvmlDeviceGetMemoryInfo_v2)(nvmlDevice_t, nvmlMemory_v2_t *);
	nvmlReturn_t (*nvmlDeviceGetUUID)(nvmlDevice_t, char *, unsigned int);
};

extern struct real_driver real;
extern struct real_nvml real_nvml;

/*
 * Fills the slots if the library is loaded and they are not filled yet. False when it is not loaded.
 * May run before libc is ready.
 */
bool real_find_driver(void);
bool real_find_nvml(void);

/* In a forked child: the search may have been under way in another thread. */
void real_reset(void);

/* Our hook for a function of the driver's at `address`, or NULL when it is not governed. */
void *real_hook_of_address(const void *address);

/* Our hook of that exact name, or NULL: a quick test for dlsym. */
void *real_hook_of_name(const char *name);

#endif
