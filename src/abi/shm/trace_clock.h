/*
 * The clock of a trace. Its ticks are the same for the daemon and a traced process, in any time namespace. The daemon chooses
 * the clock; only the daemon knows a tick's length (daemon/export/trace/trace_clock.h). Thread safe; may run before libc is
 * ready.
 */
#pragma once

#include <stdint.h>
#include <time.h>

enum trace_clock {
	TRACE_NO_CLOCK = 0,
	TRACE_COUNTER = 1,  /* the processor's counter: faster to read than clock_gettime() */
	TRACE_REALTIME = 2, /* nanoseconds since 1970; time namespaces do not shift it */
};

static inline uint64_t trace_ticks(enum trace_clock clock)
{
	struct timespec t;

	if (__builtin_expect(clock == TRACE_COUNTER, 1)) {
#if defined(__x86_64__)
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
		uint64_t ticks;
		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
		return ticks;
#endif
	}
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}
