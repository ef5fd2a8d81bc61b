/*
 * Admission: who may have device memory now. Decides over all cards at once, from plain data.
 *
 * A grant reserves all that a tenant declared, on all of its cards, or nothing. So who holds memory has
 * what it needs to come to its end, and never waits for another who holds some: there is no circle of
 * waiting, whatever tenants hold and grow in whatever order.
 *
 * Requests are met in the order of order.h as far as bytes last: one that does not fit is passed by those
 * behind it, until it is overdue. What an overdue one needs is kept free from then on, for the
 * first of them first: nobody else gets it, not even one that holds already.
 *
 * The bound, for a request that fits what others than its rivals leave of its cards: with q that waited
 * when it came, and holders that each end within h, it is granted within patience_ns + (q + 1) x h.
 * Proof: it is overdue after patience_ns at most. Of the overdue, the first to have come is kept free
 * for on each of its cards, so nobody who comes to hold takes what it lacks; those that held end within h.
 * Only those q can come before it among the overdue.
 *
 * A tenant that holds, and reserved less than its quota, may ask for more (is_growth): it gets
 * what is free at that moment, before those that wait and are not overdue, or is refused. It
 * does not wait, since it would hold meanwhile.
 *
 * Pure: no clock, no I/O, no memory of its own. tests/unit/policy/memory shows the bound and the rest on random
 * schedules.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/memory/order.h"

#define ADMIT_MAX_NEEDS 16 /* cards of one tenant */

struct admit_card {
	uint64_t size_bytes;  /* what can be held on it */
	uint64_t taken_bytes; /* granted, promised, draining, or others' */
	uint64_t kept_bytes;  /* out: of what is free, kept for those that are overdue */
};

struct admit_need {
	unsigned card; /* index into the cards */
	uint64_t bytes;
};

enum admit_verdict {
	ADMIT_WAITS,
	ADMIT_GRANTED, /* its bytes are in taken_bytes now */
	ADMIT_REFUSED, /* more than a card can ever have; or growth that does not fit now */
};

struct admit_request {
	struct order_key key; /* passes is counted up here */
	bool is_growth;       /* asked for by one that holds: `need` is on top of that */
	unsigned need_count;
	struct admit_need need[ADMIT_MAX_NEEDS];
	void *owner; /* the caller's */
	/* Out: */
	enum admit_verdict verdict;
	unsigned place; /* in the order before this decision, from 1; growth and what is refused: 0 */
};

/*
 * Decides all requests at `now_ns`. Sorts `requests` (growth first, then the order of waiting), fills in
 * verdicts and places, and takes what is granted from the cards. A need on a card that there is not is
 * refused.
 */
void admit_decide(struct admit_card *cards, size_t card_count, struct admit_request *requests,
		  size_t count, uint64_t now_ns, const struct order_bounds *bounds);

/* Of a card: not taken. */
uint64_t admit_free_bytes(const struct admit_card *card);
