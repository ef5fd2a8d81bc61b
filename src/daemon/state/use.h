/*
 * How much GPU time each tenant has used, fading (policy/memory/fade.h, setting use_half_life): what those that
 * wait are ordered by, and `ps` shows. What is charged counts, on all its cards together. Who comes again
 * under the same name, of the same user, goes on from what is left. Main thread only.
 */
#pragma once

#include <stdint.h>

#include "daemon/util/json.h"

#define USE_MOST_S 1e12 /* more GPU time nobody has used */

struct node;
struct tenant;

/* A new tenant: what one of its name left behind. */
void use_begin(struct tenant *tenant);
/* Adds what was charged since the last call. */
void use_update(struct tenant *tenant, uint64_t now_ns);
/* Of now. */
double use_ns(const struct tenant *tenant, uint64_t now_ns);
/* The tenant ends: remembered, in place of whoever is the least worth it, for some. */
void use_end(struct tenant *tenant);
/* Of a tenant that a daemon before this one had. */
void use_restore(struct tenant *tenant, double use_ns);

/* Of all tenants that there are and were, a list for the state file (use_state.h): NULL: no memory. */
json_t *use_to_json(struct node *node);
/*
 * What such a list says, of so long ago, for use_begin(): before there are tenants. -EINVAL: it is not
 * understood, and nothing is taken.
 */
int use_from_json(struct node *node, const json_t *list, uint64_t passed_ns, struct error *err);
