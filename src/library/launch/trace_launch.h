/*
 * What the fast path (fast_path.h) leads to while the process is traced, in place of the driver's own functions: each calls
 * the real one and records that. So a launch that nobody records has no part of it in its way. Recorded in free run,
 * by the processor's counter, and into streams that have a handle: others take the gate (trace_work.h).
 */
#ifndef ALLOT_LIBRARY_LAUNCH_TRACE_LAUNCH_H
#define ALLOT_LIBRARY_LAUNCH_TRACE_LAUNCH_H

#include "library/loader/real.h"

struct trace_launch {
	DRIVER_TABLE_LAUNCH(SLOT_WORK)
};

/* Each to be called only where the driver has that function. Thread safe. */
SYS_DATA const struct trace_launch trace_launch;

#endif
