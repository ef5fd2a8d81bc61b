#include "daemon/kubelet/devices/dra_key.h"

#include <stdio.h>
#include <string.h>

#include "kube/dra/dra_names.h"

void dra_key_make(const struct dra_name *name, char ret_key[TENANT_CLAIM_MAX])
{
	int n = snprintf(ret_key, TENANT_CLAIM_MAX, DRA_KEY "%s/%s/%s", name->uid,
			 name->in_namespace, name->name);
	if (n >= TENANT_CLAIM_MAX)
		snprintf(ret_key, TENANT_CLAIM_MAX, DRA_KEY "%s", name->uid);
}

bool dra_key_parse(const char *key, struct dra_key *ret)
{
	if (strncmp(key, DRA_KEY, strlen(DRA_KEY)) != 0 || strlen(key) >= sizeof(ret->text))
		return false;
	strcpy(ret->text, key + strlen(DRA_KEY));
	char *in_namespace = strchr(ret->text, '/');
	char *name = in_namespace ? strchr(in_namespace + 1, '/') : NULL;
	ret->name = (struct dra_name){ .uid = ret->text, .in_namespace = "", .name = "" };
	if (!name)
		return !in_namespace;
	*in_namespace++ = '\0';
	*name++ = '\0';
	ret->name.in_namespace = in_namespace;
	ret->name.name = name;
	return true;
}

void dra_claim_path(const struct dra_name *name, char ret_path[DRA_CLAIM_PATH_MAX])
{
	snprintf(ret_path, DRA_CLAIM_PATH_MAX, DRA_API "/namespaces/%s/resourceclaims/%s",
		 name->in_namespace, name->name);
}

bool dra_key_is_of(const struct tenant *t)
{
	return !strncmp(t->terms.claim.key, DRA_KEY, strlen(DRA_KEY));
}

bool dra_key_is_not_of(const struct tenant *t)
{
	return !dra_key_is_of(t);
}
