/* What a scheduler's choice means as a claim. */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "kube/hami/choice.h"

/*
 * Fills the request, whose texts are `key` and `name`. Shares of one card add up; cores 0 is no guarantee. With
 * kube_memory_scaling above 1 more memory is promised than there is: such tenants take turns on the card (--on-full
 * swap). The priority is what the container's limits say (kube/hami/priority.h). -ENODEV: a card is none of this node's;
 * -EINVAL: a share of no memory, no such priority, or names that are too long.
 */
int annotated_request_make(struct node *node, const struct choice *choice,
			   char key[TENANT_CLAIM_MAX], char name[REGION_NAME_MAX],
			   struct claim_request *ret, struct error *err);

/* How the pod wants the container's GPU to be shared, and with whom: for *ret. The texts are the pod's. */
int annotated_request_sharing(const struct kube_pod *pod, const char *container,
			      struct claim_request *ret, struct error *err);
