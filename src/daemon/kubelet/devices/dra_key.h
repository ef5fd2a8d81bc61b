/*
 * Keys of claims (daemon/containers/claims) that ResourceClaims made: "dra/<uid>/<namespace>/<name>", or "dra/<uid>" where that
 * is too long. Pure.
 */
#pragma once

#include <stdbool.h>

#include "daemon/state/tenant.h"

#define DRA_KEY "dra/"

/* A ResourceClaim, as the kubelet names it. */
struct dra_name {
	const char *in_namespace, *uid, *name;
};

struct dra_key {
	char text[TENANT_CLAIM_MAX];
	struct dra_name name; /* within `text`: it is not to be copied; namespace and name are "" in a short key */
};

void dra_key_make(const struct dra_name *name, char ret_key[TENANT_CLAIM_MAX]);
/* False: it is another's. */
bool dra_key_parse(const char *key, struct dra_key *ret);

/* The ResourceClaim's path at the API server. Names are as the kubelet's messages were checked to have them. */
#define DRA_CLAIM_PATH_MAX 400
void dra_claim_path(const struct dra_name *name, char ret_path[DRA_CLAIM_PATH_MAX]);

/* Was the tenant made for a ResourceClaim? The cluster's scheduler counts what it has; of others others do. */
bool dra_key_is_of(const struct tenant *tenant);
bool dra_key_is_not_of(const struct tenant *tenant);
