/* The clock by which traced processes record (abi/shm/trace_clock.h), and the duration of its ticks. Thread safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/trace_clock.h"

/*
 * Chooses the processor's counter (TRACE_COUNTER) if it runs at a constant rate on all processors (`is_invariant`) and the
 * kernel has not rejected it as its own clock source. `kernels` is the text of the kernel's current_clocksource file, or "" if
 * there is none. Pure.
 */
enum trace_clock trace_clock_choose(bool is_invariant, const char *kernels);

/* Chooses the clock for this machine. */
enum trace_clock trace_clock_here(void);

/* One moment, read on the trace's clock and on the daemon's. */
struct trace_moment {
	uint64_t ticks, now_ns; /* now_ns: the daemon's clock, as used for leases */
};

struct trace_moment trace_clock_now(enum trace_clock clock);
