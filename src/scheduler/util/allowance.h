/*
 * A rate limit for work on behalf of callers: a token bucket that fills with `per_second` units of work, and holds at most one
 * second's worth. While it is not empty, a caller gets all the work that it asks for, even if that is more than the bucket
 * holds; later callers then wait until the debt is paid off. Pure; the caller's clock, in nanoseconds, must not go back.
 */
#pragma once

#include <stdint.h>

struct allowance {
	uint64_t per_second; /* 0 if there is no limit */
	/* When all work taken so far is paid off, that is, the bucket is full again. */
	uint64_t paid_ns;
};

/* Returns 0 if `work` was taken. Otherwise takes nothing and returns the time in ns until the bucket is not empty. */
uint64_t allowance_take(struct allowance *allowance, uint64_t work, uint64_t now_ns);
