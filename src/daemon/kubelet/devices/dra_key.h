/*
 * A claim is a container's right to GPUs (daemon/containers/claims), identified by a key. Claims for Kubernetes'
 * ResourceClaims have the keys "dra/<uid>/<namespace>/<name>", or "dra/<uid>" if that is too long. Pure.
 */
#pragma once

#include <stdbool.h>

#include "daemon/containers/claims/claim.h"
#include "daemon/state/tenant.h"

#define DRA_KEY CLAIM_KEY_DRA

/* A ResourceClaim, as the kubelet names it. */
struct dra_name {
	const char *in_namespace, *uid, *name;
};

struct dra_key {
	char text[TENANT_CLAIM_MAX];
	/* points into `text`, so do not copy the struct; namespace and name are "" in a short key */
	struct dra_name name;
};

void dra_key_make(const struct dra_name *name, char ret_key[TENANT_CLAIM_MAX]);
/* Returns false if the key is of another kind. */
bool dra_key_parse(const char *key, struct dra_key *ret);

/* Makes the ResourceClaim's path at the API server. The names must be safe in a path, as dra_request_read() ensures. */
#define DRA_CLAIM_PATH_MAX 400
void dra_claim_path(const struct dra_name *name, char ret_path[DRA_CLAIM_PATH_MAX]);

/* Whether the tenant was made for a ResourceClaim, or not. The cluster's scheduler counts only tenants of ResourceClaims. */
bool dra_key_is_of(const struct tenant *tenant);
bool dra_key_is_not_of(const struct tenant *tenant);
