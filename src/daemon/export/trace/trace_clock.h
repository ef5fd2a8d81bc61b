/*
 * By which clock traced processes record (abi/shm/trace_clock.h), and what its ticks are worth. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/trace_clock.h"

/*
 * The processor's counter, where it goes at one rate on all processors whatever they do (`is_invariant`), and the kernel, by
 * the clock that it took for itself, has not found it unreliable. `kernels` is the text of
 * current_clocksource, "" where there is none. Pure.
 */
enum trace_clock trace_clock_choose(bool is_invariant, const char *kernels);

/* The same of this machine. */
enum trace_clock trace_clock_here(void);

/* One moment by both clocks. */
struct trace_moment {
	uint64_t ticks, now_ns; /* now_ns: the daemon's, as of leases */
};

struct trace_moment trace_clock_now(enum trace_clock clock);
