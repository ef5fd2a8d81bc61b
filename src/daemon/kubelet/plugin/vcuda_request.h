/* Makes a claim request from a pod's request for gpu-manager's resources (cores and units of memory). */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "kube/gpu_manager/vcuda_choice.h"
#include "policy/placement/choose_cards.h"

/*
 * Makes a request for the cards that a scheduler chose, else for the best ones. *ret points to `key` and `name`. `model`: the
 * node's present use (topology.h); `device`: the first device that the kubelet picked, for the key. Returns -ENOSPC, with
 * reasons, if there is no room; -ENODEV if a chosen card is not on this node; -EINVAL for a part of a card if kube_share
 * forbids that, too many cards, or names that are too long.
 */
int vcuda_request_make(struct node *node, const struct place_node *model,
		       const struct vcuda_choice *choice, const char *device,
		       char key[TENANT_CLAIM_MAX], char name[REGION_NAME_MAX],
		       struct claim_request *ret, struct error *err);

/* True if the claim was made with these amounts. Ignores later changes by annotations (kube/own/live.h). */
bool vcuda_request_matches(const struct claim *claim, const struct vcuda_request *ask);

/* Makes the tenant's name, which is only displayed: it is cut if too long, and gets an id if not unique. */
void vcuda_request_name(const struct kube_pod *pod, size_t container, char name[REGION_NAME_MAX]);
