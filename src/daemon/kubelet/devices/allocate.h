/*
 * From the kubelet's choice of slices to a claim, and what its container gets. Main thread only.
 */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "daemon/containers/claims/injection.h"
#include "daemon/kubelet/devices/slices.h"

#define ALLOCATE_KEY "slices/" /* before the first of a claim's slices: no other claim has that */

/*
 * One container's. Slices that the kubelet gives again have no holder any more, by its own books: a claim that had
 * one of them is released first, unless something still runs in it (-EBUSY); one that had just these is given
 * again. *ret_injection is the caller's. On
 * failure nothing is allocated; *ret_claim and *ret_injection are left alone. Errors else as
 * claims_allocate() and injection_make() have them.
 */
int allocate_slices(struct node *node, const struct slices *slices, const struct slice_set *set,
		    struct claim **ret_claim, struct injection *ret_injection, struct error *err);

/*
 * The claim of a request whose key is its own: the one that is there where it was made with the same, or a new one
 * (*ret_is_new); one that was made with something else is released first, unless something still runs in it (-EBUSY).
 */
int allocate_request(struct node *node, const struct claim_request *request, struct claim **ret,
		     bool *ret_is_new, struct error *err);

/* The request's device of that card; a new one where it has none, of which memory and limit are to be said. NULL: too many. */
struct claim_device_request *allocate_add_card(struct claim_request *request, struct card *card);

/* True when the claim was made so, and one of its slices is in the set. */
bool allocate_has(const struct slices *slices, const struct claim *claim,
		  const struct slice_set *set);
/* True when the claim was made so. */
bool allocate_made(const struct claim *claim);

/* Of any claim: do processes live in it? After a restart they may not have moved over yet, and count. */
bool allocate_is_lived_in(const struct claim *claim);
/* Is it in force, and made with all that is asked for? */
bool allocate_is_same(const struct claim *claim, const struct claim_request *request);
