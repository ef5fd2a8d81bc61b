/* Converts a scheduler's choice (a container, and its shares of cards) to a claim request. */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "kube/hami/find_allocating.h"

/*
 * Makes a request for the choice's container. *ret points to `key` and `name`. Shares of a card add up; cores 0 means no
 * guarantee. If kube_memory_scaling is above 1, more memory is promised than exists, so on_full is swap. The priority is from
 * the container's limits (kube/hami/priority.h), but an opportunistic container always gets the lowest. Returns -ENODEV if a
 * card is not on this node; -EINVAL for a share without memory, an unknown priority or long names.
 */
int annotated_request_make(struct node *node, const struct choice *choice,
			   char key[TENANT_CLAIM_MAX], char name[REGION_NAME_MAX],
			   struct claim_request *ret, struct error *err);

/* Sets whether the container shares by time or by space, and with which group. *ret points to the pod's texts. */
int annotated_request_sharing(const struct kube_pod *pod, const char *container,
			      struct claim_request *ret, struct error *err);
