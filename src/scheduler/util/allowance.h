/*
 * Work that may be done for whoever asks: so much a second, and no more saved up than of one second. Who comes while there is
 * something left gets all that it asks for, however much that is, and those after it wait until that is paid. Pure; the
 * caller's clock, in nanoseconds, does not go back.
 */
#pragma once

#include <stdint.h>

struct allowance {
	uint64_t per_second; /* 0: there is no limit */
	/* When all that was taken is paid for; before now: something is left. */
	uint64_t paid_ns;
};

/* 0: `work` was taken. Else how long it takes until something is left, and nothing was. */
uint64_t allowance_take(struct allowance *allowance, uint64_t work, uint64_t now_ns);
