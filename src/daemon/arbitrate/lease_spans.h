/*
 * The latest spans of time in which one tenant had a card's lease, or ran on the card alone. A ring, which forgets the
 * oldest. Pure, except for memory; not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/shm/region.h"
#include "policy/lease/arbiter.h"

#define LEASE_SPANS_MAX 256 /* 5 ms each at the shortest: more than a second */

struct lease_span {
	char tenant[REGION_NAME_MAX];
	uint64_t begin_ns, end_ns; /* monotonic; end_ns 0: it has not ended */
	uint64_t closing_ns; /* of a lease: when it was told to launch nothing more; 0: never */
	uint64_t number;     /* counts all spans of this GPU, from 1 */
	bool is_free;        /* it ran without a lease, alone on the GPU */
	bool began_earlier;  /* it began before anybody watched: begin_ns is when watching began */
	struct arbiter_lease_end end; /* why and how it ended; only if it did */
};

struct lease_spans {
	struct lease_span span[LEASE_SPANS_MAX]; /* number n is at n % LEASE_SPANS_MAX */
	uint64_t last;                           /* number of the newest; 0: none */
	/* Identifies the newest span while it has not ended; 0: it has. */
	uint64_t key;
	bool is_begun; /* lease_spans_note() was called, perhaps without a tenant */
};

/* State of the present lease, and how the one before it ended. */
struct lease_span_state {
	bool is_free, is_closing;
	struct arbiter_lease_end end;
};

/*
 * The tenant that has the card now; NULL: none. `key`, not 0, differs with each tenant and each lease; while it stays the
 * same the span goes on.
 */
void lease_spans_note(struct lease_spans *spans, uint64_t now_ns, const char *tenant, uint64_t key,
		      struct lease_span_state state);

/*
 * Copies those that began after number `since`, or were not over when that was asked last, oldest first, as they were
 * at `now_ns`: what began later is left for the next call, what ended later is not over. Returns how many. What
 * `since` is at the next call is *ret_since: the last that is over.
 */
size_t lease_spans_since(const struct lease_spans *spans, uint64_t since, uint64_t now_ns,
			 struct lease_span ret[LEASE_SPANS_MAX], uint64_t *ret_since);
