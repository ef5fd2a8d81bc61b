/*
 * The latest spans of time in which one tenant had a card's lease, or ran on the card alone. A ring
 * buffer that overwrites the oldest span. Pure, except for memory; not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/shm/region.h"
#include "policy/lease/arbiter.h"

#define LEASE_SPANS_MAX 256 /* a span lasts at least 5 ms, so this is more than a second */

struct lease_span {
	char tenant[REGION_NAME_MAX];
	uint64_t begin_ns, end_ns; /* monotonic; end_ns 0: not ended yet */
	/* for a lease: when launches were stopped before its end; 0: not yet */
	uint64_t closing_ns;
	uint64_t number;    /* number of the span on this GPU, from 1 */
	bool is_free;       /* ran without a lease, alone on the GPU */
	bool began_earlier; /* began before recording did: begin_ns is the start of recording */
	struct arbiter_lease_end end; /* why and how it ended; valid if end_ns is not 0 */
};

struct lease_spans {
	struct lease_span span[LEASE_SPANS_MAX]; /* span n is at index n % LEASE_SPANS_MAX */
	uint64_t last;                           /* number of the newest span; 0: none */
	/* the key of lease_spans_note() for the newest span, until that span ends; then 0 */
	uint64_t key;
	bool is_begun; /* lease_spans_note() was called, perhaps without a tenant */
};

/*
 * The state of the present lease (is_free: the tenant runs without one), and how the previous lease
 * ended.
 */
struct lease_span_state {
	bool is_free, is_closing;
	struct arbiter_lease_end end;
};

/*
 * Records which tenant has the card now; NULL: none. `key` is not 0 and is different for each
 * tenant and each lease: the newest span continues as long as `key` stays the same.
 */
void lease_spans_note(struct lease_spans *spans, uint64_t now_ns, const char *tenant, uint64_t key,
		      struct lease_span_state state);

/*
 * Copies the spans with numbers above `since`, as they were at `now_ns`, oldest first, and returns
 * their count. A span that began after now_ns is left for the next call; one that ended after
 * now_ns is copied as not ended. *ret_since is the number of the last ended span: pass it as
 * `since` in the next call, which then copies the span that had not ended again.
 */
size_t lease_spans_since(const struct lease_spans *spans, uint64_t since, uint64_t now_ns,
			 struct lease_span ret[LEASE_SPANS_MAX], uint64_t *ret_since);
