/*
 * Decides which waiting tenant is next to get device memory, whether it waits in a call, frozen or swapped out. This is
 * Algorithm 2 of Gil et al. (docs/reference/seeds.md), with rules for ties and two bounds on waiting. The order is
 *
 *   1. overdue tenants (see below), by arrival: use fades, so by use a later arrival could overtake them again
 *   2. the tenant with the least faded use (fade.h)
 *   3. the first arrival
 *   4. the lowest id
 *
 * A tenant is overdue if it has waited for patience_ns, or was overtaken passes_most times. In grant.h, a tenant is overtaken
 * when a tenant later in this order gets bytes of a GPU that both need. In freeze_policy.h, a container is overtaken when a
 * later arrival goes on before it. Bytes are kept free for an overdue tenant (grant.h), so its wait ends. Without the bounds,
 * new tenants without any use could overtake a tenant with some use for ever.
 *
 * Pure policy on plain data; times are arguments.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ORDER_PATIENCE_NS UINT64_C(600000000000) /* ten minutes */
#define ORDER_PASSES_MOST 8

struct order_bounds {
	uint64_t patience_ns; /* if 0, every tenant is overdue at once: first come, first served */
	uint32_t passes_most; /* likewise if 0 */
};

struct order_key {
	double use_ns;    /* faded use, as of now */
	uint64_t arrival; /* grows with each tenant that begins to wait */
	uint64_t since_ns;
	uint32_t passes; /* how often the tenant was overtaken */
	uint32_t id;     /* decides ties */
};

/* A now_ns before since_ns counts as since_ns. */
bool order_is_overdue(const struct order_key *k, uint64_t now_ns, const struct order_bounds *bounds);

/* Returns a value below, at or above zero if `a` comes before, with or after `b`. For a fixed now_ns, the order is total. */
int order_compare(const struct order_key *a, const struct order_key *b, uint64_t now_ns,
		  const struct order_bounds *bounds);
