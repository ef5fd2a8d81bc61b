/* Turns the kubelet's choice of slices into a claim and an injection: what the container gets. Main thread only. */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "daemon/containers/claims/injection.h"
#include "daemon/kubelet/devices/slices.h"

#define ALLOCATE_KEY \
	"slices/" /* the key of a claim made by slices is this prefix and the name of the claim's first slice */

/*
 * Allocates the slices of one container. If a claim already has exactly these slices and no process runs in it, *ret_claim is
 * that claim. Any other claim that has one of the slices is released first, since the kubelet considers the slice free; -EBUSY if
 * a process still runs in that claim. The caller owns *ret_injection. After an error nothing is allocated, and *ret_claim and
 * *ret_injection are unchanged. Other errors: those of claims_allocate() and injection_make().
 */
int allocate_slices(struct node *node, const struct slices *slices, const struct slice_set *set,
		    struct claim **ret_claim, struct injection *ret_injection, struct error *err);

/*
 * Finds the claim that has the request's key and the same terms, or makes it (*ret_is_new). A claim that has that key and other
 * terms is released first; -EBUSY if a process still runs in that one.
 */
int allocate_request(struct node *node, const struct claim_request *request, struct claim **ret,
		     bool *ret_is_new, struct error *err);

/*
 * Returns the request's entry for that card, and adds an empty one if there is none. Returns NULL if the request has too many
 * devices.
 */
struct claim_device_request *allocate_add_card(struct claim_request *request, struct card *card);

/* Returns true if the claim was made by slices, and one of the claim's slices is in the set. */
bool allocate_has(const struct slices *slices, const struct claim *claim,
		  const struct slice_set *set);
/* Returns true if the claim was made by slices. */
bool allocate_made(const struct claim *claim);

/*
 * Returns true if a process lives in the claim, which may be of any kind. After a restart of the daemon, processes that have
 * not connected to the new daemon yet count too.
 */
bool allocate_is_lived_in(const struct claim *claim);
/* Returns true if the claim is in force, and was made with the same terms as the request. */
bool allocate_is_same(const struct claim *claim, const struct claim_request *request);
