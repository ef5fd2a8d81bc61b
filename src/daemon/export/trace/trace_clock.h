/*
 * Chooses the clock for the time stamps of traced processes (abi/shm/trace_clock.h): the processor's counter or
 * CLOCK_REALTIME. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/trace_clock.h"

/*
 * Chooses TRACE_COUNTER if the processors' counter is invariant and the kernel has not rejected it. `kernels`: the text of
 * current_clocksource, or "". Pure.
 */
enum trace_clock trace_clock_choose(bool is_invariant, const char *kernels);

enum trace_clock trace_clock_here(void);

/* One moment, read on two clocks. */
struct trace_moment {
	uint64_t ticks, now_ns; /* now_ns: on clock_now_ns(), like the times of leases */
};

struct trace_moment trace_clock_now(enum trace_clock clock);
