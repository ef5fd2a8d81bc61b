/*
 * Launch functions for a traced process: each calls the driver and records the launch. The fast path (fast_path.h) calls them
 * instead of the driver, so tracing costs an untraced process nothing. They serve launches on the fast path if the trace's
 * clock is the processor's counter. Other launches take the gate (trace_work.h).
 */
#pragma once

#include "library/loader/real.h"

struct trace_launch {
	DRIVER_TABLE_LAUNCH(SLOT_WORK)
};

/* Call a function of this table only if the driver has the function of that name. Thread safe. */
SYS_DATA const struct trace_launch trace_launch;
