/*
 * The fast path of a traced process (fast_path.h) leads here instead of to the driver's functions: each function calls the
 * real one and records the launch. So an untraced launch has no part of it in its way. This is for free run, with the
 * processor's counter as clock, and streams that have a handle; other launches take the gate (trace_work.h).
 */
#pragma once

#include "library/loader/real.h"

struct trace_launch {
	DRIVER_TABLE_LAUNCH(SLOT_WORK)
};

/* Each to be called only where the driver has that function. Thread safe. */
SYS_DATA const struct trace_launch trace_launch;
