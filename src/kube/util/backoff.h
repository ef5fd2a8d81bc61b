/*
 * The wait before the next try, doubled after each failure up to BACKOFF_MAX_S. The wait is random, so that clients do not
 * retry at the same moment. Thread safe.
 */
#pragma once

#include <stdint.h>

/* A watch must work again within 10 s after the API server has come back. */
#define BACKOFF_MAX_S 8

struct backoff {
	/* failures in a row; no longer incremented once the wait is BACKOFF_MAX_S; the caller sets it to 0 after a success */
	unsigned failures;
};

/*
 * Counts a failure. Returns a random time between half of the backoff and all of it, but at least at_least_ns (the time that
 * the server asked for, or 0).
 */
uint64_t backoff_next_ns(struct backoff *backoff, uint64_t at_least_ns);
/* Like backoff_next_ns(), with the given random bits. Pure. */
uint64_t backoff_from_random_ns(struct backoff *backoff, uint32_t random, uint64_t at_least_ns);

/* 32 random bits, not for secrets. Does not block. */
uint32_t backoff_random(void);
