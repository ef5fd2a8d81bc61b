/*
 * A slice is one of the equal parts of a card that the kubelet counts as a device (slices.h). Turns the slices that the
 * kubelet chose for a container into a claim (the container's right to them) and an injection (its mounts and environment).
 * Main thread only.
 */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "daemon/containers/claims/injection.h"
#include "daemon/kubelet/devices/slices.h"

/* Prefix of the key of a claim made from slices. The name of the claim's first slice follows. */
#define ALLOCATE_KEY "slices/"

/*
 * Allocates one container's slices. Reuses a claim with exactly these slices if no process lives in it. Releases any other
 * claim made from slices that has one of them, since the kubelet considers the slice free; -EBUSY if a process lives in that
 * claim. *ret_new_claim is NULL if the claim was there before. The caller owns *ret_injection. After an error nothing is
 * allocated and the outputs are unchanged. Also returns errors of claims_allocate() and injection_make().
 */
int allocate_slices(struct node *node, const struct slices *slices, const struct slice_set *set,
		    struct claim **ret_new_claim, struct injection *ret_injection,
		    struct error *err);

/*
 * Finds the claim with the request's key and terms, or makes it (*ret_is_new). First releases a claim with that key and other
 * terms; -EBUSY if a process runs in it.
 */
int allocate_request(struct node *node, const struct claim_request *request, struct claim **ret,
		     bool *ret_is_new, struct error *err);

/* Returns the request's entry for the card, and adds it if needed; NULL if the request already has REGION_MAX_DEVICES cards. */
struct claim_device_request *allocate_add_card(struct claim_request *request, struct card *card);

/* True if the claim was made from slices and has one of the slices in `set`. */
bool allocate_has(const struct slices *slices, const struct claim *claim,
		  const struct slice_set *set);
/* True if the claim was made from slices. */
bool allocate_is_own_claim(const struct claim *claim);

/* True if a process lives in the claim. Processes that an earlier daemon knew count even before they reconnect. */
bool allocate_is_in_use(const struct claim *claim);
/* True if the claim has a tenant, and was made for the request's cards and slots, with the same memory, cores and limits. */
bool allocate_is_same(const struct claim *claim, const struct claim_request *request);
