/*
 * How much GPU time each tenant has used on all its cards, with exponential decay
 * (policy/memory/fade.h, setting use_half_life). This module calls that the tenant's use. It orders
 * waiting tenants, and `ps` shows it. A new tenant of the same name and user continues with what is
 * left of that use. Main thread only.
 */
#pragma once

#include <stdint.h>

#include "daemon/util/json.h"

#define USE_MOST_S 1e12 /* upper bound of a plausible use */

struct node;
struct tenant;

/* Starts a new tenant with the use that an earlier tenant of its name and user left. */
void use_begin(struct tenant *tenant);
/* Adds to the use the GPU time that was charged to the tenant since the last call. */
void use_update(struct tenant *tenant, uint64_t now_ns);
/* Returns the tenant's use at now_ns, in nanoseconds. */
double use_ns(const struct tenant *tenant, uint64_t now_ns);
/* Remembers the use of a tenant that ends. A full table drops the entry with the least use. */
void use_end(struct tenant *tenant);
/* Sets the use of a tenant that was adopted from the previous daemon. */
void use_restore(struct tenant *tenant, double use_ns);

/*
 * Returns the use of all present and past tenants, as a list for the file of use (use_state.h).
 * Returns NULL if out of memory.
 */
json_t *use_to_json(struct node *node);
/*
 * Reads a list made by use_to_json(), written passed_ns ago, so that use_begin() finds its entries.
 * Call before there are tenants. Returns -EINVAL for an invalid list and then takes nothing from
 * it.
 */
int use_from_json(struct node *node, const json_t *list, uint64_t passed_ns, struct error *err);
