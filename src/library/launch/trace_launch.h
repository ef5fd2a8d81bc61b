/*
 * Launch functions for a traced process: each calls the driver and records the launch. The fast path (fast_path.h) calls them
 * instead of the driver if the trace's clock is the processor's counter. So tracing costs an untraced process nothing.
 */
#pragma once

#include "library/loader/real.h"

struct trace_launch {
	DRIVER_TABLE_LAUNCH(SLOT_WORK)
};

/* Call only functions that the driver has. Thread safe. */
SYS_DATA const struct trace_launch trace_launch;
