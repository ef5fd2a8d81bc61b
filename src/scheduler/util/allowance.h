/*
 * A rate limit for work on behalf of callers: so much work per second. At most one second's worth is saved up. A caller gets
 * everything it asks for while something is left, even if that is more than what is left; later callers then wait until that
 * is paid off. Pure; the caller's clock, in nanoseconds, must not go back.
 */
#pragma once

#include <stdint.h>

struct allowance {
	uint64_t per_second; /* 0 if there is no limit */
	/* When all work taken so far is paid off. */
	uint64_t paid_ns;
};

/* Returns 0 if `work` was taken. Otherwise takes nothing and returns the time in ns until something is left. */
uint64_t allowance_take(struct allowance *allowance, uint64_t work, uint64_t now_ns);
