/*
 * The fast path: how a launch in free run passes without all of the gate.
 *
 * Between two launches runs a microsecond or more of driver code, which leaves nothing of ours in the
 * first-level caches. So what a launch costs is not its instructions, but how many lines of the cache it
 * touches, of data and of code. Through the fast path these are three of data: the fast path itself, the first of the
 * stream's record, and the lease word; and of code what the wrapper is long.
 *
 * The fast path of a device is open while all that the gate would look at is known to let launches pass: this
 * process is the tenant's and not swappable, no capture is under way, work in flight has room, and the device is shown as
 * busy. The lease alone is read each time. Who changes one of these to its contrary does so first and then
 * shuts the fast path; launches then take the gate, which opens it again (fast_path_pass.h) when all is well.
 * Both hold the lock, so that what was shut is not opened by one who looked before.
 *
 * While the process is traced it leads to functions that record the launch (trace_launch.h): being traced begins and
 * ends with the fast path shut.
 *
 * Explicit streams pass, and the legacy default stream while there is but one context: else the driver must be asked whose it is,
 * (INFLIGHT_ONLY_PLACE). A thread's own default stream is the gate's.
 *
 * In a forked child the kernel has zeroed it (MADV_WIPEONFORK), so there it is shut. Thread safe.
 */
#pragma once

#include <stdbool.h>

#include "abi/driver_table.h"
#include "abi/shm/region.h"
#include "library/sys/sys.h"

#ifdef __aarch64__
#define FAST_PATH_PAGE 65536 /* the largest there is */
#else
#define FAST_PATH_PAGE 4096
#endif
#define FAST_PATH_ALL UINT32_MAX
#define FAST_PATH_SLOT(symbol, streams, params, args, ...) CUresult(*symbol) params;

struct fast_path {
	_Alignas(FAST_PATH_PAGE) _Atomic uint32_t open; /* devices (bits) */
	struct sys_lock lock; /* of all changes; inside it nothing else is locked */
	const struct region_control *_Atomic control;
	struct {
		DRIVER_TABLE_LAUNCH(FAST_PATH_SLOT)
	} real; /* as in the struct of that name, which lies further away; or as in trace_launch */
	_Atomic bool is_prepared; /* by fast_path_prepare() */
};

_Static_assert(offsetof(struct fast_path, real) + sizeof(((struct fast_path *)0)->real) <= 64,
	       "what a launch looks at is one line of the cache");

SYS_DATA struct fast_path fast_path;

/* Before the first offer: has forked children find it shut. Where that can't be had it stays shut. */
void fast_path_prepare(void);

/* After the change that it is shut for. */
void fast_path_shut(uint32_t devices);

/* Of any device. */
static inline bool fast_path_is_open(void)
{
	return atomic_load_explicit(&fast_path.open, memory_order_relaxed) != 0;
}
