/*
 * Makes a claim request from gpu-manager's vocabulary.
 */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "kube/gpu_manager/vcuda_choice.h"
#include "policy/placement/choose_cards.h"

/*
 * *ret points to `key` and `name`. Uses a scheduler's cards, else the best ones. `model`: this node now (topology.h);
 * `device`: the kubelet's pick, for the key. Returns -ENOSPC, with reasons, without room; -ENODEV if a chosen card is not
 * here; -EINVAL for a part of a card if kube_share forbids that, too many cards or long names.
 */
int vcuda_request_make(struct node *node, const struct place_node *model,
		       const struct vcuda_choice *choice, const char *device,
		       char key[TENANT_CLAIM_MAX], char name[REGION_NAME_MAX],
		       struct claim_request *ret, struct error *err);

/* Returns true if the claim was made with exactly these amounts. Ignores later changes by annotations (kube/own/live.h). */
bool vcuda_request_matches(const struct claim *claim, const struct vcuda_request *ask);

/* Makes the tenant's name, for people: cut if too long, with an id if not unique. */
void vcuda_request_name(const struct kube_pod *pod, size_t container, char name[REGION_NAME_MAX]);
