/* A span is a time in which one tenant had a GPU's lease or ran alone without one. Not thread safe. No clock, no I/O. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/shm/region.h"
#include "policy/lease/arbiter.h"

#define LEASE_SPANS_MAX 256 /* 256 spans cover over a second if each lasts 5 ms */

struct lease_span {
	char tenant[REGION_NAME_MAX];
	uint64_t begin_ns, end_ns; /* end_ns is 0 if the span has not ended */
	/* When launches were stopped, before the lease's end; 0 if they were not, or the span has no lease. */
	uint64_t closing_ns;
	uint64_t number; /* on this GPU, from 1 */
	bool is_free;    /* ran without a lease, alone on the GPU */
	/* The span began before the recording, so begin_ns is the recording's start. */
	bool began_earlier;
	struct arbiter_lease_end end; /* why and how the span ended; valid if end_ns is not 0 */
};

struct lease_spans {
	struct lease_span span[LEASE_SPANS_MAX]; /* span n is at n % LEASE_SPANS_MAX */
	uint64_t last;                           /* number of the newest span; 0: none */
	/* The key of the newest span, if it has not ended, else 0. */
	uint64_t key;
	bool is_begun; /* lease_spans_note() was called, perhaps without a tenant */
};

/* State of the present lease; `end` says how the previous one ended. */
struct lease_span_state {
	bool is_free, is_closing;
	struct arbiter_lease_end end;
};

/* Records which tenant has the GPU; NULL: none. `key`, not 0, differs for each lease. The span ends when the key changes. */
void lease_spans_note(struct lease_spans *spans, uint64_t now_ns, const char *tenant, uint64_t key,
		      struct lease_span_state state);

/*
 * Copies the spans with numbers above `since`, oldest first, as they were at now_ns: without spans that began later, and
 * without an end that came later. Returns their count. Pass *ret_since, the number of the last ended span, as `since` next
 * time.
 */
size_t lease_spans_since(const struct lease_spans *spans, uint64_t since, uint64_t now_ns,
			 struct lease_span ret[LEASE_SPANS_MAX], uint64_t *ret_since);

/*
 * How many ended spans were overwritten before a reader got them. `since` is what the reader passed to its latest
 * lease_spans_since(); `now_since`, `list` and `count` are that call's results.
 */
uint64_t lease_spans_lost(uint64_t since, uint64_t now_since,
			  const struct lease_span list[LEASE_SPANS_MAX], size_t count);
