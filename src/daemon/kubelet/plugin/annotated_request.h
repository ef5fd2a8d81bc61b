/* Converts a scheduler's choice to a claim request. */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "kube/hami/find_allocating.h"

/*
 * Fills *ret, which points to `key` and `name`. Shares of the same card add up; cores 0 means no guarantee. With
 * kube_memory_scaling above 1, more memory is promised than exists, so the tenant gets on_full swap: such tenants take turns on
 * the card. The priority comes from the container's limits (kube/hami/priority.h). Returns -ENODEV if a card is not on this
 * node. Returns -EINVAL if a share has no memory, the priority does not exist, or names are too long.
 */
int annotated_request_make(struct node *node, const struct choice *choice,
			   char key[TENANT_CLAIM_MAX], char name[REGION_NAME_MAX],
			   struct claim_request *ret, struct error *err);

/*
 * Sets in *ret whether the container is to share its GPU by time or by space, and with which group. *ret points to the pod's
 * texts.
 */
int annotated_request_sharing(const struct kube_pod *pod, const char *container,
			      struct claim_request *ret, struct error *err);
