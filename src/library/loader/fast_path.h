/*
 * The fast path: how a launch in free run passes without running the whole gate.
 *
 * Between two launches a microsecond or more of driver code runs, which evicts all of the library's data from the
 * first-level caches. So the cost of a launch depends less on its instructions than on the number of cache lines of
 * data and code that it touches. The fast path touches three lines of data: struct fast_path, the first line of the
 * stream's record, and the lease word. Of code it touches only the wrapper.
 *
 * A device's fast path is open while every other check of the gate is known to let launches pass: the process belongs
 * to a tenant and is not swappable, no capture is in progress, the in-flight work is below its bound, and the device is
 * shown as busy. Only the lease word is read at each launch. Code that makes one of these conditions false changes it
 * first and then shuts the fast path. Launches then take the gate, which opens the fast path again (fast_path_pass.h)
 * when all conditions are true. Opening and shutting both hold locks.fast_path, so a thread that checked the conditions earlier
 * cannot reopen a path that was shut since.
 *
 * While the process is traced, the fast path leads to functions that record the launch (trace_launch.h). Tracing
 * begins and ends with the fast path shut.
 *
 * The fast path serves explicit streams, and the legacy default stream while there is only one context. With more
 * contexts the driver must be asked to which one the default stream belongs (INFLIGHT_ONLY_PLACE). Launches into a
 * thread's own default stream always take the gate.
 *
 * In a forked child the kernel has zeroed the struct (MADV_WIPEONFORK), so the fast path is shut there. Thread safe.
 */
#pragma once

#include <stdbool.h>

#include "abi/driver_table.h"
#include "abi/shm/region.h"
#include "library/sys/sys.h"

#define FAST_PATH_ALL UINT32_MAX
#define FAST_PATH_SLOT(symbol, streams, params, args, ...) CUresult(*symbol) params;

struct fast_path {
	_Alignas(SYS_PAGE) _Atomic uint32_t open; /* devices (bits) whose fast path is open */
	const struct region_control *_Atomic control;
	/* Copies of slots of `real` (real.h), which are in other cache lines; of trace_launch while the process is traced. */
	struct {
		DRIVER_TABLE_LAUNCH(FAST_PATH_SLOT)
	} real;
	_Atomic bool is_prepared; /* set by fast_path_prepare() */
};

_Static_assert(offsetof(struct fast_path, real) + sizeof(((struct fast_path *)0)->real) <= 64,
	       "what a launch looks at is one line of the cache");

SYS_DATA struct fast_path fast_path;

/*
 * Call before the fast path is first opened. Makes sure that a forked child finds the fast path shut. If that is
 * not possible, the fast path stays shut.
 */
void fast_path_prepare(void);

/* Shuts the fast path of `devices` (bits). Call this after the change that requires it. */
void fast_path_shut(uint32_t devices);

/* True if the fast path of any device is open. */
static inline bool fast_path_is_open(void)
{
	return atomic_load_explicit(&fast_path.open, memory_order_relaxed) != 0;
}
