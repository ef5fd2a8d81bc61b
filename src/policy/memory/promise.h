/*
 * Decides what a GPU promises to a tenant: checks memory quotas and shares, and chooses the values that a request does not
 * name. No I/O, no state.
 *
 * Memory: a quota that was asked for is promised. The promises together never exceed the GPU. A tenant that asked for no quota
 * may use "the rest": at any time, the GPU's memory less all promises. It is promised nothing, but memory that it holds cannot
 * be promised to others. A tenant that waits for memory is promised nothing either: its quota may be anything up to the GPU's
 * size, and only what it is granted counts.
 *
 * Tenants whose memory can be moved off the GPU (swap_schedule.h) take turns in the same memory. So only the largest of their
 * quotas is taken from the GPU (movable_bytes), not their sum.
 *
 * Shares: guarantees that sum to more than 100 % are refused, unless the GPU may be overcommitted. Then they are scaled down in
 * proportion, as the arbiter's weights are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct promise {
	bool memory_given;    /* false: the tenant may use all memory that is not promised */
	uint64_t quota_bytes; /* quota in force */
	/* for a tenant with on_full wait: the bytes that a grant reserves, at most the quota; 0 means the quota */
	uint64_t reserve_bytes;
	double cores_pct; /* 0: no guarantee */
	bool limit_given; /* false: the limit was not given, and follows cores_pct */
	double limit_pct; /* 100: no cap */
};

/* One GPU, and what was promised of it to other tenants. */
struct promise_card {
	unsigned index;
	uint64_t memory_bytes;
	/* sum of the quotas asked for, not counting tenants with on_full wait or swap */
	uint64_t promised_bytes;
	uint64_t unpromised_held_bytes; /* held by tenants that have no quota */
	uint64_t granted_bytes;         /* granted to tenants with on_full wait (grant.h) */
	/* kept free for tenants that have waited too long (grant.h) */
	uint64_t kept_bytes;
	uint64_t movable_bytes; /* largest quota of a tenant whose memory can be moved */
	bool is_movable;        /* the request is from a tenant whose memory can be moved */
	double promised_cores_pct;
	bool may_overcommit; /* guarantees may sum to more than 100 % */
	unsigned tenant_count;
};

/* A value without its has_ flag is kept (request "set") or chosen ("create"). */
struct promise_request {
	/* memory_is_unpromised: no fixed quota, but all memory that is not promised (null in JSON) */
	bool has_memory, memory_is_unpromised;
	uint64_t memory_bytes;
	bool has_reserve;
	uint64_t reserve_bytes;
	bool waits; /* the tenant has on_full wait */
	bool has_cores;
	double cores_pct;
	bool has_limit;
	double limit_pct;
};

/*
 * Decides the terms of a request on a GPU. `now`: the tenant's present terms, which *card does not include; NULL: a new tenant.
 * held_bytes: memory that the tenant holds. Returns -EINVAL for a value out of range, -ENOSPC if there is no room, -EBUSY for a
 * quota below held_bytes; err has the value, the GPU and what is possible.
 */
int promise_decide(const struct promise_card *card, const struct promise *now, uint64_t held_bytes,
		   const struct promise_request *request, struct promise *ret, struct error *err);

/*
 * Guarantees on a GPU may sum to more than 100 %. Then each user gets as much as the others, but not more than the user's
 * tenants were promised together (max-min fairness). So no user can take another's guarantee by making tenants. promised_pct
 * has each user's sum. Returns the most that a user's tenants have in force together; INFINITY if all guarantees fit.
 */
double promise_user_most_pct(const double *promised_pct, size_t users);
/* A user's tenants share user_most_pct in proportion to their guarantees. */
double promise_in_force_pct(double user_most_pct, double user_promised_pct, double cores_pct);

/* Returns the memory that is not promised: the quota of a tenant that asked for no quota. */
uint64_t promise_unpromised_bytes(const struct promise_card *card);
