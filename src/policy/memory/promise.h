/*
 * What may be promised of a card: checks of memory quotas and shares, and the values that are chosen if a request does not name
 * them. No I/O, no state.
 *
 * Memory: a quota that was asked for is promised, and all promises never exceed the card. A tenant that asked for no quota has
 * "the rest": the card's memory less what is promised, at any time. It is promised nothing, but memory that it holds can't be
 * promised to others. A tenant that waits for memory is promised nothing either: its quota may be anything that the card has,
 * and only what it is granted counts.
 *
 * Tenants whose memory can be moved off the card (swap_schedule.h) take turns on the unpromised memory. Each may be promised
 * all of it, and it is never less than the largest of their quotas.
 *
 * Shares: guarantees that sum to more than 100 % are refused. If the card may be overcommitted, they are scaled down in
 * proportion while this is so (the arbiter's weights are the same).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A tenant's terms on one card. */
struct promise {
	bool memory_given;    /* if false, the tenant has the rest */
	uint64_t quota_bytes; /* in force now */
	/* Tenant that waits: what it is granted at once, at most its quota; 0 if that is its quota. */
	uint64_t reserve_bytes;
	double cores_pct; /* 0 if no guarantee */
	bool limit_given; /* if false, the limit follows cores_pct */
	double limit_pct; /* 100 if no cap */
};

/* One card, and what was promised of it to other tenants. */
struct promise_card {
	unsigned index;
	uint64_t memory_bytes;
	uint64_t promised_bytes;  /* sum of the quotas that were asked for */
	uint64_t rest_held_bytes; /* held by tenants that have the rest */
	uint64_t granted_bytes;   /* granted to tenants that wait */
	uint64_t kept_bytes;      /* kept free for overdue tenants */
	uint64_t movable_bytes;   /* largest quota of a tenant whose memory can be moved */
	bool is_movable;          /* the request is from a tenant whose memory can be moved */
	double promised_cores_pct;
	bool may_overcommit; /* guarantees may sum to more than 100 % */
	unsigned tenant_count;
};

/* What a request names. If a has_ field is false, the value is kept (set) or chosen (create). */
struct promise_request {
	/* has_memory: the request names a quota. memory_is_unpromised: it names the rest (null). */
	bool has_memory, memory_is_unpromised;
	uint64_t memory_bytes;
	bool has_reserve;
	uint64_t reserve_bytes;
	bool waits; /* from the tenant's on_full, not from the request */
	bool has_cores;
	double cores_pct;
	bool has_limit;
	double limit_pct;
};

/*
 * Works out the terms of a request on a card. `now` has the tenant's present terms, or is NULL for a new tenant; *card does not
 * include them. held_bytes is what the tenant holds. Returns -EINVAL for values out of range, -ENOSPC for what can't be
 * promised, -EBUSY for a quota below held_bytes. The error text names the value, the card and what is possible.
 */
int promise_decide(const struct promise_card *card, const struct promise *now, uint64_t held_bytes,
		   const struct promise_request *request, struct promise *ret, struct error *err);

/* Returns what a guarantee is worth if guarantees, itself included, sum to promised_cores_pct. */
double promise_effective_pct(double promised_cores_pct, double cores_pct);

/* Returns the quota of a tenant that has the rest. */
uint64_t promise_rest_bytes(const struct promise_card *card);
