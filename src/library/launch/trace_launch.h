/*
 * In a traced process the fast path (fast_path.h) leads to these functions instead of the driver's. Each function
 * calls the real one and records the launch. So tracing costs an untraced launch nothing. These functions serve
 * launches in free run, into streams that have a handle, with the processor's counter as clock. Other launches
 * take the gate (trace_work.h).
 */
#pragma once

#include "library/loader/real.h"

struct trace_launch {
	DRIVER_TABLE_LAUNCH(SLOT_WORK)
};

/* A function may be called only if the driver has the real one. Thread safe. */
SYS_DATA const struct trace_launch trace_launch;
