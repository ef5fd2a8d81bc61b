/*
 * The order of waiting: who is next, among those that wait for device memory in any way (in a call, in
 * the freezer, swapped out). Algorithm 2 of Gil et al. (docs/reference/seeds.md), with ties and a bound:
 *
 *   1. who is overdue (below), by arrival: fading use can't send it back behind those that come later
 *   2. least faded use (fade.h)
 *   3. arrival
 *   4. id
 *
 * Overdue is who has waited for patience_ns, or was passed by passes_most others: bytes went to others
 * that come later in this order, on a card where it needs some. For it bytes are kept free (admit.h), so
 * the wait ends. Both bounds are needed: use alone would let tenants that have had nothing yet pass one
 * that has, for as long as such come.
 *
 * Pure, plain data: times are arguments.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ORDER_PATIENCE_NS UINT64_C(600000000000) /* ten minutes */
#define ORDER_PASSES_MOST 8

struct order_bounds {
	uint64_t patience_ns; /* 0: everyone is overdue at once: first come, first served */
	uint32_t passes_most; /* 0: the same */
};

/* One that waits. */
struct order_key {
	double use_ns;     /* faded, as of now */
	uint64_t arrival;  /* counts up with each that begins to wait */
	uint64_t since_ns; /* when it did */
	uint32_t passes;   /* times that it was passed since */
	uint32_t id;       /* decides between what is the same otherwise */
};

/* Is this one to be kept free for? A time before since_ns is since_ns. */
bool order_is_overdue(const struct order_key *k, uint64_t now_ns, const struct order_bounds *bounds);

/* Below, at or above zero where a comes before, with or after b. A total order at any one now_ns. */
int order_compare(const struct order_key *a, const struct order_key *b, uint64_t now_ns,
		  const struct order_bounds *bounds);
