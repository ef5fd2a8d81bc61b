/*
 * The fast path: how a launch under LEASE_FREE passes without running the whole gate.
 *
 * Between two launches the driver's code evicts the library's data from the first-level caches. So the number of cache lines
 * that a launch touches decides its cost. The fast path touches three lines of data (struct fast_path, the first line of the
 * stream's record, the lease word), and only the wrapper's code.
 *
 * A device's fast path is open while a launch would pass all checks of the gate except that of the lease. That is: the process
 * belongs to a tenant and is not swappable, no capture is in progress, the in-flight work is below its bound, and the device is
 * shown as busy. A launch reads only the lease word. Code that makes a condition false does so first, and then closes the fast
 * path. Launches then take the gate, which opens the fast path again when all conditions are true (fast_path_pass.h). Opening
 * and closing hold locks.fast_path, so that no thread opens a path by conditions that it checked before the path was closed.
 *
 * In a traced process the fast path leads to functions that record the launch (trace_launch.h). Tracing begins and ends with
 * the fast path closed.
 *
 * The fast path serves explicit streams, and the legacy default stream while there is one context (INFLIGHT_ONLY_PLACE). With
 * more contexts, the driver must be asked to which one that stream belongs. Launches into a thread's own default stream take
 * the gate.
 *
 * In a forked child the kernel has zeroed the struct (MADV_WIPEONFORK), so the fast path is closed there. Thread safe.
 */
#pragma once

#include <stdbool.h>

#include "abi/driver_table.h"
#include "abi/shm/region.h"
#include "library/sys/sys.h"

#define FAST_PATH_ALL UINT32_MAX
#define FAST_PATH_SLOT(symbol, streams, params, args, ...) CUresult(*symbol) params;

struct fast_path {
	_Alignas(SYS_PAGE) _Atomic uint32_t open; /* bit i: the fast path of device i is open */
	const struct region_control *_Atomic control;
	/* Copies from `real` (real.h) or, in a traced process, from trace_launch. */
	struct {
		DRIVER_TABLE_LAUNCH(FAST_PATH_SLOT)
	} real;
	_Atomic bool is_prepared; /* set by fast_path_prepare() */
};

_Static_assert(offsetof(struct fast_path, real) + sizeof(((struct fast_path *)0)->real) <= 64,
	       "the fields that a launch reads share one cache line");

SYS_DATA struct fast_path fast_path;

/* Call before the fast path is first opened. Makes it closed in a forked child. If that fails, it is never opened. */
void fast_path_prepare(void);

void fast_path_close(uint32_t devices);

static inline bool fast_path_is_open(void)
{
	return atomic_load_explicit(&fast_path.open, memory_order_relaxed) != 0;
}
