/*
 * A tenant's use is its GPU time on all cards, decaying exponentially (policy/memory/fade.h, tuning use_half_life). It orders
 * waiting tenants; `ps` shows it. A new tenant of the same name and user starts with the decayed use of the old tenant.
 * Main thread only.
 */
#pragma once

#include <stdint.h>

#include "daemon/util/json.h"

#define USE_MOST_S 1e12 /* upper bound of a plausible use */

struct node;
struct tenant;

void use_begin(struct tenant *tenant);
/* Adds the GPU time that was charged since the last call. */
void use_update(struct tenant *tenant, uint64_t now_ns);
double use_ns(const struct tenant *tenant, uint64_t now_ns);
/* Remembers the use of a tenant that ends. */
void use_end(struct tenant *tenant);
void use_restore(struct tenant *tenant, double use_ns);

/* Returns the use of present and past tenants, for use.json (use_state.h). NULL if out of memory. */
json_t *use_to_json(struct node *node);
/* Restores what use_to_json() returned passed_ns ago: all or, on -EINVAL, nothing. Call before there are tenants. */
int use_from_json(struct node *node, const json_t *list, uint64_t passed_ns, struct error *err);
