/*
 * The wait before the next try after failures. It doubles each time and is random, so that clients
 * do not retry in step. Pure.
 */
#pragma once

#include <stdint.h>

#define BACKOFF_MAX_S 30

struct backoff {
	unsigned failures; /* number of failures in a row; 0 after a success */
};

/*
 * Counts a failure and returns the wait: a random time between half of the present backoff and all
 * of it, but at least at_least_ns (what the server asked for; 0 if nothing). `random` is any 32
 * random bits.
 */
uint64_t backoff_next_ns(struct backoff *backoff, uint32_t random, uint64_t at_least_ns);
