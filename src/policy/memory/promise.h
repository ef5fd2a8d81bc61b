/*
 * What may be promised of a card: pure checks of memory quotas and shares, with the values that are
 * chosen where a request names nothing. No I/O, no state.
 *
 * Memory: quotas that were asked for are promised, and never exceed the card. A tenant that asked for
 * none has "the rest": what the card has less what is promised, now and as that changes. It is
 * promised nothing, but what it holds can't be promised to others. A tenant that waits for memory is
 * promised none either: its quota may be anything that the card has; what it is granted counts.
 *
 * Tenants whose memory can be moved off the card (swap_turns.h) take turns on what is promised to nobody:
 * each may be promised all of that, and it is never less than the largest of their quotas.
 *
 * Shares: guarantees of more than 100 % in sum are refused or, where the card may be promised too often,
 * scaled down in proportion for as long as that is so (the arbiter's weights are the same).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A tenant's terms on one card. */
struct promise {
	bool memory_given;      /* false: the rest */
	uint64_t quota_bytes;   /* in force now */
	uint64_t reserve_bytes; /* of a tenant that waits: what it is granted at once; 0: its quota */
	double cores_pct;       /* 0: no guarantee */
	bool limit_given;       /* false: follows cores_pct */
	double limit_pct;       /* 100: no cap */
};

/* One card, and what other tenants were promised of it. */
struct promise_card {
	unsigned index;
	uint64_t memory_bytes;
	uint64_t promised_bytes;  /* sum of the quotas asked for */
	uint64_t rest_held_bytes; /* held by tenants that have the rest */
	uint64_t granted_bytes;   /* to tenants that wait */
	uint64_t kept_bytes;      /* free for those of them that have waited long enough */
	uint64_t movable_bytes; /* largest quota of a tenant whose memory can be moved: see below */
	bool is_movable;        /* the request is of such a tenant */
	double promised_cores_pct;
	bool may_overcommit; /* guarantees may sum over 100 % */
	unsigned tenant_count;
};

/* What a request names; a false has_ means: leave as it is (set), or choose (create). */
struct promise_request {
	bool has_memory, memory_is_unpromised; /* memory_is_unpromised: the request says so (null) */
	uint64_t memory_bytes;
	bool has_reserve;
	uint64_t reserve_bytes;
	bool waits; /* not of the request, but the tenant's on_full */
	bool has_cores;
	double cores_pct;
	bool has_limit;
	double limit_pct;
};

/*
 * The terms of a request on a card, on top of `now` (NULL: a new tenant); the tenant's own promise is
 * not in *card. `held_bytes` is what the tenant holds. -EINVAL for values out of range, -ENOSPC for
 * what can't be promised, -EBUSY for a quota under held_bytes; the text names the value, the card and
 * what would be right.
 */
int promise_decide(const struct promise_card *card, const struct promise *now, uint64_t held_bytes,
		   const struct promise_request *request, struct promise *ret, struct error *err);

/* What a guarantee is worth while so much is promised in sum, itself included. */
double promise_effective_pct(double promised_cores_pct, double cores_pct);

/* The quota of a tenant that has the rest. */
uint64_t promise_rest_bytes(const struct promise_card *card);
