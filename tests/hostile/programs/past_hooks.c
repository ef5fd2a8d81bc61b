/*
 * Registers with the library, then takes memory by a copy of the driver that nothing hooks, and writes what it
 * likes into its slot of the tenant's report.
 *
 *     past_hooks COPY_OF_DRIVER MIB HOW
 *
 * HOW: "ledger": its ledger says all that it holds; "fresh": that the library has measured a byte. Holds it for a
 * minute.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slot.h"

#define MIB (UINT64_C(1) << 20)

typedef int init_function(unsigned);
typedef int retain_function(void **, int);
typedef int current_function(void *);
typedef int alloc_function(uint64_t *, size_t);

static int take(const char *driver, uint64_t mib)
{
	void *library = dlopen(driver, RTLD_NOW | RTLD_LOCAL);
	void *context;
	uint64_t at;
	if (!library)
		return -1;
	init_function *init = (init_function *)dlsym(library, "cuInit");
	retain_function *retain = (retain_function *)dlsym(library, "cuDevicePrimaryCtxRetain");
	current_function *current = (current_function *)dlsym(library, "cuCtxSetCurrent");
	alloc_function *alloc = (alloc_function *)dlsym(library, "cuMemAlloc_v2");
	if (init(0) || retain(&context, 0) || current(context))
		return -1;
	return alloc(&at, mib * MIB);
}

int main(int argc, char **argv)
{
	if (argc != 4 || take("libcuda.so.1", 16))
		return 2;
	struct region_slot_device *slot = find_slot(find_report());
	uint64_t mib = strtoull(argv[2], NULL, 10);
	if (!slot || take(argv[1], mib))
		return 3;
	if (!strcmp(argv[3], "ledger"))
		slot->used_bytes += mib * MIB;
	puts("taken");
	fflush(stdout);
	for (unsigned i = 0; i < 60000; i++) {
		if (!strcmp(argv[3], "fresh"))
			slot->fresh_bytes = 1;
		usleep(1000);
	}
	return 0;
}
