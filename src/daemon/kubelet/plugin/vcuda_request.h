/* What a container asks for in gpu-manager's vocabulary, on cards, as a claim. */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "kube/gpu_manager/vcuda_choice.h"
#include "policy/placement/choose.h"

/*
 * The cards that a scheduler has chosen, else the best of those that have room; `model` is this node's now (topology.h). Fills
 * the request, whose texts are `key` and `name`; `device` is of the kubelet's choice, for the key. -ENOSPC: no card, or not
 * that one, has room, with the reasons; -ENODEV: a number is no card's; -EINVAL: parts of cards where they are not
 * shared (the setting kube_share), too many cards, or names that are too long.
 */
int vcuda_request_make(struct node *node, const struct place_node *model,
		       const struct vcuda_choice *choice, const char *device,
		       char key[TENANT_CLAIM_MAX], char name[REGION_NAME_MAX],
		       struct claim_request *ret, struct error *err);

/* Was the claim made with just that? Its live terms (kube/own/live.h) do not count. */
bool vcuda_request_is_met(const struct claim *claim, const struct vcuda_ask *ask);

/* A name for people: what does not fit is cut, and gets an id where it is not the only one. */
void vcuda_request_name(const struct kube_pod *pod, size_t container, char name[REGION_NAME_MAX]);
