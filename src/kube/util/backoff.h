/* How long to wait before the next try of what failed: twice as long each time, and never in step with
 * others. Pure. */
#pragma once

#include <stdint.h>

#define BACKOFF_MAX_S 30

struct backoff {
	unsigned failures; /* in a row; 0 after a success */
};

/* Counts a failure. `random`: any 32 bits. From half of the wait that is due to all of it, at least
 * at_least_ns (what the server asked for; 0: nothing). */
uint64_t backoff_next_ns(struct backoff *backoff, uint32_t random, uint64_t at_least_ns);
