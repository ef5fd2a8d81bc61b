/* Converts what a container asks for in gpu-manager's vocabulary to a claim request. */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "kube/gpu_manager/vcuda_choice.h"
#include "policy/placement/choose_cards.h"

/*
 * Fills *ret, which points to `key` and `name`. Uses the cards that a scheduler has chosen, else the best cards that have room.
 * `model` is this node's current state (topology.h); `device` is the kubelet's pick, for the key. Returns -ENOSPC, with
 * reasons, if no card or not the chosen card has room. Returns -ENODEV if a chosen number is not a card of this node. Returns
 * -EINVAL if a part of a card is requested but the setting kube_share forbids sharing cards, if there are too many cards, or if
 * names are too long.
 */
int vcuda_request_make(struct node *node, const struct place_node *model,
		       const struct vcuda_choice *choice, const char *device,
		       char key[TENANT_CLAIM_MAX], char name[REGION_NAME_MAX],
		       struct claim_request *ret, struct error *err);

/*
 * Returns true if the claim was made with exactly the amounts of `ask`. Later changes by annotations (kube/own/live.h) are
 * ignored.
 */
bool vcuda_request_is_met(const struct claim *claim, const struct vcuda_ask *ask);

/* Makes the name of the container's tenant, for people to read. A long name is cut; a name that is not unique gets an id. */
void vcuda_request_name(const struct kube_pod *pod, size_t container, char name[REGION_NAME_MAX]);
