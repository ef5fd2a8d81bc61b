/*
 * Decides which tenants are granted device memory now: for all GPUs at once, from plain data.
 *
 * A grant reserves all that a tenant declared, on all of its GPUs, or nothing. So a tenant that holds memory has what it needs
 * to finish, and never waits for another tenant that holds some. There is no circular wait, whatever tenants hold, and in
 * whatever order they grow.
 *
 * Requests are granted in the order of wait_order.h as far as bytes last. Requests behind one that does not fit may overtake
 * it, until it is overdue (wait_order.h). From then on, the bytes that it needs are kept free, for the first overdue request
 * first. No other tenant gets these bytes, not even one that already holds memory.
 *
 * The bound, for a request that fits into its GPUs if no other waiting request is granted: if q requests waited when it came,
 * and each holder finishes within h, it is granted within patience_ns + (q + 1) x h. Proof: it is overdue after patience_ns at
 * most. The bytes that the first overdue request needs are kept free on each of its GPUs, so no new holder takes them; the
 * present holders finish within h. Only the q earlier requests can come before it among the overdue.
 *
 * A tenant that holds memory, and reserved less than its quota, may ask for more (is_growth). It gets what is free at that
 * moment, before the waiting requests that are not overdue, or is refused. It does not wait, because it would hold memory while
 * it waits.
 *
 * Pure: no clock, no I/O, no memory of its own. tests/unit/policy/memory tests the bound and the other rules on random
 * schedules.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/memory/wait_order.h"

#define GRANT_MAX_NEEDS 16 /* most GPUs of one tenant */

struct grant_card {
	uint64_t size_bytes;  /* how much can be held on the GPU */
	uint64_t taken_bytes; /* granted, promised, used by others, or not freed by the driver */
	uint64_t kept_bytes;  /* output: free bytes that are kept for overdue requests */
};

struct grant_need {
	unsigned card;
	uint64_t bytes;
};

enum grant_verdict {
	GRANT_WAITS,
	GRANT_GRANTED, /* taken_bytes of its cards includes its bytes from now on */
	GRANT_REFUSED, /* more than a GPU can have, or growth that does not fit now */
};

struct grant_request {
	struct order_key key; /* grant_decide() increases `passes` */
	bool is_growth;       /* the tenant holds memory, and asks for `need` in addition */
	unsigned need_count;
	struct grant_need need[GRANT_MAX_NEEDS];
	void *owner;
	/* output: */
	enum grant_verdict verdict;
	/* position in the waiting order before this decision, from 1; 0 for growth and refused requests */
	unsigned place;
};

/*
 * Decides all requests. Sorts `requests`: growth first, then the others in the waiting order. Adds granted bytes to the cards'
 * taken_bytes. Refuses a request that needs a card beyond card_count.
 */
void grant_decide(struct grant_card *cards, size_t card_count, struct grant_request *requests,
		  size_t count, uint64_t now_ns, const struct order_bounds *bounds);

uint64_t grant_free_bytes(const struct grant_card *card);
