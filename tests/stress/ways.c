#include "ways.h"

#include <stddef.h>

#define ROW(name, way, charge, weight) \
	{ \
		name, get_##way, put_##way, charge, weight \
	}

const struct way ways[] = {
	ROW("cuMemAlloc", linear, WAY_AT_ONCE, 20),
	ROW("cuMemAllocPitch", pitch, WAY_AT_ONCE, 20),
	ROW("cuMemAllocManaged", managed, WAY_AT_ONCE, 20),
	ROW("cuMemHostAlloc", host, WAY_NEVER, 5),
	ROW("cuArrayCreate", array, WAY_AT_ONCE, 20),
	ROW("cuArray3DCreate", array3d, WAY_AT_ONCE, 20),
	ROW("cuMipmappedArrayCreate", mipmap, WAY_AT_ONCE, 20),
	ROW("cuMemAllocAsync", async, WAY_AT_ONCE, 20),
	ROW("cuMemAllocFromPoolAsync", from_pool, WAY_AT_ONCE, 20),
	ROW("cuMemPoolCreate", pool, WAY_AT_ONCE, 5),
	ROW("graphs with memory", graph, WAY_AT_ONCE, 5),
	ROW("cuMemCreate", physical, WAY_AT_ONCE, 30),
	ROW("cuCtxCreate", context, WAY_AT_ONCE, 1),
	ROW("cuGreenCtxCreate", green, WAY_AT_ONCE, 1),
	ROW("cuIpcGetMemHandle", shared, WAY_AT_ONCE, 20),
	ROW("IPC, freed while open", orphan, WAY_LATE, 10),
	ROW("cuMemExportToShareableHandle", fd, WAY_AT_ONCE, 20),
	ROW("VMM, released while imported", fd_orphan, WAY_LATE, 10),
	ROW("cuModuleLoadData", module, WAY_LATE, 5),
	ROW("cuLibraryLoadData", library, WAY_LATE, 5),
	ROW("cuCtxSetLimit, stack", stack, WAY_LATE, 2),
};

const unsigned ways_count = sizeof(ways) / sizeof(ways[0]);

_Static_assert(sizeof(ways) / sizeof(ways[0]) <= WAYS_MAX_ROWS, "the board counts so many");

const struct way *ways_pick(struct ways_thread *t, uint64_t rows)
{
	uint64_t weight = 0, at;

	for (unsigned i = 0; i < ways_count; i++)
		weight += rows >> i & 1 ? ways[i].weight : 0;
	at = pick(t, weight);
	for (unsigned i = 0; i < ways_count; i++) {
		uint64_t own = rows >> i & 1 ? ways[i].weight : 0;
		if (at < own)
			return &ways[i];
		at -= own;
	}
	return NULL; /* no bit is set */
}

void ways_trim(struct ways_process *p)
{
	CUmemoryPool shared;

	GPU_DO(cuDeviceGetDefaultMemPool(&shared, 0));
	GPU_DO(cuMemPoolTrimTo(shared, 0));
	GPU_DO(cuMemPoolTrimTo(p->pool, 0));
	GPU_DO(cuDeviceGraphMemTrim(0));
}
