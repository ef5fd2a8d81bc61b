/*
 * Turns the kubelet's choice of slices (slices.h) into a claim and an injection. Main thread only.
 */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "daemon/containers/claims/injection.h"
#include "daemon/kubelet/devices/slices.h"

#define ALLOCATE_KEY \
	"slices/" /* A claim made by slices has this prefix and its first slice's name as key. */

/*
 * Allocates one container's slices. A claim with exactly these slices and no process is reused; any other claim with one of
 * them is released, since the kubelet considers the slice free, or -EBUSY is returned if a process runs in it. The caller
 * owns *ret_injection. After an error nothing is allocated and the outputs are unchanged. Other errors: claims_allocate(),
 * injection_make().
 */
int allocate_slices(struct node *node, const struct slices *slices, const struct slice_set *set,
		    struct claim **ret_claim, struct injection *ret_injection, struct error *err);

/*
 * Finds or makes (*ret_is_new) the claim with the request's key and terms. A claim with that key and other terms is
 * released first; -EBUSY if a process runs in it.
 */
int allocate_request(struct node *node, const struct claim_request *request, struct claim **ret,
		     bool *ret_is_new, struct error *err);

/* Returns the request's entry for the card, adding one if needed; NULL if there are too many. */
struct claim_device_request *allocate_add_card(struct claim_request *request, struct card *card);

/* Returns true if the claim was made by slices and has one of the set. */
bool allocate_has(const struct slices *slices, const struct claim *claim,
		  const struct slice_set *set);
/* Returns true if the claim was made by slices. */
bool allocate_is_own_claim(const struct claim *claim);

/*
 * Returns true if a process lives in the claim, of any kind. Counts processes of the daemon's previous run even before they
 * connect.
 */
bool allocate_is_in_use(const struct claim *claim);
/* Returns true if the claim is in force and was made with the request's terms. */
bool allocate_is_same(const struct claim *claim, const struct claim_request *request);
